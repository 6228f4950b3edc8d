"""What a person says beside the error decides the change."""

import pytest

from tests.diagnosis.material import judged, oom


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
        ("OOM in the profiling run of a VL model. With `--language-model-only` it starts.", "skip-multimodal-encoder"),
        ("八张卡也启动不起来\n" + oom("300.00 GiB", "50.00 GiB"), "fix-environment"),
        ("OOM in awq_marlin.py: process_weights_after_loading -> _convert_to_marlin_layout", "use-other-kernel"),
        ("vLLM won't start: it wants 640 GiB at once, the card has 80 GB.", "fix-environment"),
        ("The OOM killer comes while dozens of nvcc processes fill the RAM, vLLM 0.17", "limit-compile-jobs"),
        ("OOM with --kv-offloading-size 900\n\nFrom the profile, memory keeps growing until it is OOM.", "lower-kv-offloading-size"),
    ],
)
def test_what_a_person_says_beside_the_error_is_what_changes(text: str, change: str) -> None:
    assert judged(text)["recommendation"]["id"] == change


def test_a_card_of_a_sparks_size_shares_the_machines_memory() -> None:
    said = "ValueError: Free memory on device cuda:0 (103.11/121.69 GiB) on startup is less than desired GPU memory utilization (0.9, 109.52 GiB)."
    assert "page cache" in judged(said)["recommendation"]["because"]


def test_a_scripts_own_variable_is_the_arguments_value() -> None:
    assert judged("vLLM goes OOM with KV_CACHE_DTYPE=fp8, MAX_MODEL_LEN 16384")["deployment"]["kv_cache_dtype"] == "fp8"
    assert judged("vLLM goes OOM, GPU_MEM_UTIL (0.30 default)")["deployment"]["gpu_memory_utilization"] == 0.3


def test_a_trainers_own_worker_gets_no_command_of_a_server() -> None:
    raised = "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine."
    assert judged(raised)["recommendation"]["command"] is not None
    assert judged(f"(WorkerDict pid=904526) {raised}")["recommendation"]["command"] is None


def test_where_shared_memory_is_short_its_fill_is_asked_for() -> None:
    assert judged("the workers run out of /dev/shm as soon as NCCL starts")["questions"][0]["how"].startswith("df -h /dev/shm")
