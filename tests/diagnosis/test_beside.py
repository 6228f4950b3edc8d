"""What a person says beside the error decides the change."""

import pytest

from tests.diagnosis.material import judged


@pytest.mark.parametrize(
    ("text", "change"),
    [
        (
            "OOM while the CUDA graphs are captured at 0.95. The error does not occur when I decrease `gpu_memory_utilization` to 0.87.",
            "0.87",
        ),
        ("OOM in the sampler warm-up with 1024 dummy requests. Reducing max_num_seqs to 64 solves it.", "64"),
        ("No available memory for the cache blocks at 0.8. It works once I raise gpu_memory_utilization to 0.95.", "0.95"),
    ],
)
def test_the_value_with_which_somebody_says_that_it_passed_is_the_change(text: str, change: str) -> None:
    assert judged(text)["recommendation"]["value"] == change


@pytest.mark.parametrize(
    ("text", "change"),
    [
        (
            "openrlhf: FSDP loads the full actor on the GPU before vLLM is initialized.\n"
            "ValueError: Free memory on device cuda:0 (30.1/79.1 GiB) on startup is less than desired GPU memory utilization (0.6, 47.5 GiB).",
            "free-trainer-cache",
        ),
        ("SGLang with enabled torch compile:\nException: Capture cuda graph failed: \nPossible solutions:", "remove-torch-compile"),
        ("DGX Spark, UMA. The same assert again: init_free=41.10 GiB, current_free=42.02 GiB after the profile", "pin-kv-cache"),
        ("vllm on a B200: CUDA Error: invalid argument at /w/csrc/cumem_allocator.cpp:128", "upgrade-engine"),
        ("Fatal Python error: deallocating None\n" + '  File "/x/vllm/device_allocator/cumem.py", line 210 in wake_up', "upgrade-engine"),
    ],
)
def test_what_a_person_says_beside_the_error_is_what_changes(text: str, change: str) -> None:
    assert judged(text)["recommendation"]["id"] == change
