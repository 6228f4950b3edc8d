import inspect
import re

import pytest

from bot.diagnosis import derived, derived_error, derived_start, fractions, host_pools, weights
from bot.diagnosis.derived_error import sampler_rows
from bot.domain.evidence import Evidence
from bot.domain.size import GIB, MIB
from bot.rulebook.load import load_rulebook
from tests.diagnosis.material import judged, oom, worker


@pytest.mark.parametrize(
    ("tried", "rows"),
    [
        (round(1.74 * GIB), (1024, 151936, 12)),
        (round(1.47 * GIB), (1024, 128256, 12)),
        (round(1.16 * GIB), (1024, 151936, 8)),
        (380 * MIB, (256, 129280, 12)),
        (150 * MIB, (256, 151936, 4)),
    ],
)
def test_a_request_that_is_rows_times_vocabulary_names_the_sampler(tried: int, rows: tuple[int, int, int]) -> None:
    assert sampler_rows(load_rulebook(), tried, Evidence()) == rows


@pytest.mark.parametrize("tried", [2 * GIB, 20 * MIB, 512 * MIB, round(3.5 * GIB)])
def test_a_round_request_names_nothing(tried: int) -> None:
    assert sampler_rows(load_rulebook(), tried, Evidence()) is None


def test_memory_that_others_hold_is_named_before_the_weights() -> None:
    line = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 500.00 MiB. GPU 0 has a total capacity of 79.18 GiB of which 100.00 MiB is free. "
        "Including non-PyTorch memory, this process has 20.00 GiB memory in use. Of the allocated memory 19.00 GiB is allocated by PyTorch, "
        "and 50.00 MiB is reserved by PyTorch but unallocated."
    )
    from tests.diagnosis.material import frame

    document = judged(worker("Worker", frame("v1/worker/gpu_worker.py", "load_model"), line))
    assert document["recommendation"]["id"] == "stop-other-process"


def test_far_more_free_than_asked_for_is_no_shortage_when_the_allocator_was_refused() -> None:
    text = "CUDA Error: invalid argument at /workspace/csrc/cumem_allocator.cpp:119\n" + oom("20.00 MiB", "66.43 GiB")
    assert judged(text)["phase"] == "not_oom"


def test_the_kinds_that_arithmetic_states_are_those_that_the_rules_list() -> None:
    source = "".join(map(inspect.getsource, (derived, derived_error, derived_start, weights, host_pools, fractions)))
    stated = set(re.findall(r'"([a-z]+(?:-[a-z]+)+)"', source))
    listed = {row.kind for row in load_rulebook().derived}
    assert listed - stated == set()
    assert {kind for kind in stated if re.search(rf'stated\(\s*"{kind}"', source)} - listed == set()


OTHERS = """(EngineCore_DP0 pid=9) ValueError: Free memory on device cuda:0 (8.1/79.11 GiB) on startup is less than desired GPU memory utilization (0.9, 71.2 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes."""
PROCESS = "|    0   N/A  N/A           51873      C   /opt/ollama/bin/ollama               70144MiB |"
NOTHING = "|  No running processes found                                                 |"


def test_a_process_that_nvidia_smi_shows_is_named_where_another_holds_the_card() -> None:
    document = judged(f"{OTHERS}\n{PROCESS}\n")
    assert document["recommendation"]["id"] == "stop-other-process"
    assert "nvidia-smi shows /opt/ollama/bin/ollama (pid 51873, 68.50 GiB on GPU 0, line 2)." in document["notes"]


def test_an_empty_list_of_processes_is_not_taken_for_an_empty_card() -> None:
    (note,) = (n for n in judged(f"{OTHERS}\n{NOTHING}\n")["notes"] if "nvidia-smi" in n)
    assert note.startswith("nvidia-smi (line 2) lists no process. It does not see those of other containers")


def test_a_process_on_the_card_says_nothing_where_none_is_in_the_way() -> None:
    text = "INFO 07-01 12:00:00 [gpu_worker.py:1] Available KV cache memory: 1.5 GiB\nValueError: To serve at least one request with the models's max seq len (131072), (16.0 GiB KV cache is needed, which is larger than the available KV cache memory (1.5 GiB).\n"
    assert not any("nvidia-smi" in n for n in judged(text + PROCESS + "\n")["notes"])


def of_others(*words: str) -> str | None:
    line = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB. GPU 0 has a total capacity of 79.19 GiB of which 1.50 GiB is free. "
    tail = "Of the allocated memory 20.00 GiB is allocated by PyTorch, and 1.00 GiB is reserved by PyTorch but unallocated."
    return next((n.partition(" of this")[0] for n in judged(line + " ".join(words) + " " + tail)["notes"] if "Other processes" in n), None)


def test_a_process_that_holds_what_the_message_says_has_no_other_beside_it() -> None:
    assert of_others("Process 777 has 77.60 GiB memory in use.") is None
    assert of_others("Including non-PyTorch memory, this process has 77.60 GiB memory in use.") is None


def test_of_several_processes_in_a_container_the_smallest_that_can_be_is_this_one() -> None:
    assert (
        of_others("Process 777 has 56.10 GiB memory in use. Process 778 has 21.50 GiB memory in use.") == "Other processes hold 56.10 GiB"
    )
    assert (
        of_others("Process 778 has 21.50 GiB memory in use. Process 777 has 56.10 GiB memory in use.") == "Other processes hold 56.10 GiB"
    )


def test_where_no_process_is_named_what_pytorch_did_not_count_is_others_only_when_it_is_much() -> None:
    assert of_others() == "Other processes, or this one beside what PyTorch counts, hold 56.69 GiB"


def test_what_others_have_is_the_figure_of_the_line_where_that_is_all_that_is_missing() -> None:
    own = "Including non-PyTorch memory, this process has 74.00 GiB memory in use."
    assert of_others("Process 1204 has 3.66 GiB memory in use.", own) == "Other processes hold 3.66 GiB"  # 3.69 by the difference
    assert of_others("Process 1204 has 1.31 GiB memory in use.", own) == "Other processes hold 3.69 GiB"  # others are not listed


SGLANG = """[2025-09-10 08:00:01 TP0] Load weight begin. avail mem=78.40 GB
[2025-09-10 08:00:01 TP1] Load weight begin. avail mem=78.60 GB
[2025-09-10 08:00:41 TP0] Memory pool end. avail mem=9.83 GB
[2025-09-10 08:00:41 TP1] Memory pool end. avail mem=9.90 GB
[2025-09-10 08:00:42 TP0] Capture cuda graph begin. This can take up to several minutes. avail mem=7.80 GB
[2025-09-10 08:01:00 TP1] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 12.00 GiB. GPU 1 has a total capacity of 79.11 GiB of which 600.00 MiB is free.
"""


def test_what_sglang_left_beside_its_pool_says_the_fraction_in_force() -> None:
    document = judged(SGLANG)
    assert document["recommendation"]["flag"] == "--mem-fraction-static"
    assert document["recommendation"]["value"] == "0.72"  # 11.4 GiB of 79 were missing
    (note,) = [note for note in document["notes"] if "fraction" in note]
    assert "By this log the fraction is 0.87" in note
    assert "78.40 GiB" in note
    assert "9.83 GiB" in note
    assert "(line 3)" in note


@pytest.mark.parametrize(
    "more",
    [
        "python -m sglang.launch_server --model-path org/m1 --max-total-tokens 200000\n",
        "[2025-09-10 08:00:40 TP0] KV Cache VA upper bound. dtype: torch.bfloat16, #tokens: 812345, K size: 26.58 GB, V size: 26.58 GB\n",
    ],
)
def test_a_pool_that_the_fraction_does_not_size_says_nothing_of_it(more: str) -> None:
    document = judged(more + SGLANG)
    assert document["recommendation"]["value"] == "0.73"  # 11.4 GiB of 79 were missing
    assert any("0.73 is counted from what SGLang takes by itself, about 0.88" in note for note in document["notes"])


def test_a_fraction_that_was_given_needs_no_figures() -> None:
    document = judged("python -m sglang.launch_server --model-path org/m1 --mem-fraction-static 0.9\n" + SGLANG)
    assert document["recommendation"]["value"] == "0.75"
    assert not [note for note in document["notes"] if "fraction" in note]


IN_PIECES = ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.20 GiB. GPU 0 has a total capacity of 23.52 GiB of which 0.30 GiB is free. Including non-PyTorch memory, this process has 23.20 GiB memory in use. "
    "Of the allocated memory 19.50 GiB is allocated by PyTorch, and {spare} is reserved by PyTorch but unallocated.")  # fmt: skip


def profiled(start: str, spare: str) -> list[str]:
    from tests.diagnosis.material import frame

    text = start + worker("Worker_TP0", frame("v1/worker/gpu_worker.py", "determine_available_memory"), IN_PIECES.format(spare=spare))
    document = judged(text)
    assert document["phase"] == "profiling"
    return [change["flag"] for change in (document["recommendation"], *document["alternatives"])]


@pytest.mark.parametrize(
    ("start", "spare", "place"),
    [
        ("vllm serve org/m1\n", "2.80 GiB", 0),
        ("vllm serve org/m1 -tp 2\n", "2.80 GiB", 0),
        ("PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync vllm serve org/m1\n", "2.80 GiB", None),
        ("vllm serve org/m1\n", "180.00 MiB", None),
        ("vllm serve org/m1 --enable-sleep-mode\n", "2.80 GiB", None),
        ('vllm serve org/m1 --kv-transfer-config \'{"kv_connector": "NixlConnector"}\'\n', "2.80 GiB", None),
        ("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True vllm serve org/m1\n", "2.80 GiB", None),
    ],
)
def test_segments_that_grow_are_for_memory_that_is_there_in_pieces(start: str, spare: str, place: int | None) -> None:
    flags = profiled(start, spare)
    assert (flags.index("PYTORCH_CUDA_ALLOC_CONF") if "PYTORCH_CUDA_ALLOC_CONF" in flags else None) == place


POD = "    Last State:     Terminated\n      Reason:       OOMKilled\n      Exit Code:    137\n    Requests:\n      memory:  32Gi\n"


@pytest.mark.parametrize(
    ("text", "limit", "line", "value"),
    [
        (POD + "    Limits:\n      memory:  64Gi\n", "64.00 GiB", 7, "96 GiB"),
        ("[88121.4] memory: usage 50331648kB, limit 50331648kB, failcnt 90211\n", "48.00 GiB", 1, "72 GiB"),
        ("docker run --gpus all -m 10g vllm/vllm-openai:v0.9.0 --model org/m1\nvllm-1 exited with code 137\n", "10.00 GiB", 1, "15 GiB"),
    ],
)
def test_a_container_killed_at_its_limit_is_given_half_as_much_again(text: str, limit: str, line: int, value: str) -> None:
    change = judged(text)["recommendation"]
    assert (change["id"], change["flag"], change["value"]) == ("raise-host-memory", None, value)
    assert f"at its memory limit of {limit} (line {line})" in change["because"]


@pytest.mark.parametrize(
    "text",
    [
        POD,
        POD + "Killed process 22918 (VLLM::Worker_TP) total-vm:231892748kB, anon-rss:8117884kB\n    Limits:\n      memory:  64Gi\n",
        "Out of memory: Killed process 4711 (VLLM::Worker_TP) total-vm:231892748kB, anon-rss:61117884kB, file-rss:0kB\n    Limits:\n      memory:  64Gi\n",
    ],
)
def test_a_kill_that_no_limit_explains_is_not_sized_by_one(text: str) -> None:
    change = judged(text)["recommendation"]
    assert (change["id"], change["value"]) == ("raise-host-memory", None)


def test_a_checkpoint_that_is_quantized_already_is_no_way_out_of_host_memory() -> None:
    for model, ways in (("org/m1-235b", ["use-prequantized-checkpoint"]), ("org/m1-235b-FP8", [])):
        document = judged(f"vllm serve {model} -tp 8\n" + POD)
        assert [change["id"] for change in document["alternatives"]] == ways


LOADED = """[2025-07-02 07:41:58 TP0] Load weight begin. avail mem=78.60 GB
[2025-07-02 07:41:59 TP0] Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=11.32 GB, mem usage=67.28 GB.
[2025-07-02 07:42:00 TP0] RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.
"""


def test_what_sglang_s_weights_left_says_the_least_fraction_that_makes_a_pool() -> None:
    change = judged(LOADED)["recommendation"]
    assert (change["flag"], change["direction"], change["value"]) == ("--mem-fraction-static", "raise", "0.88")
    assert "of 78.60 GiB free before the weights 11.32 GiB were left, so the weights alone take 0.856." in change["because"]
    assert change["command"].endswith("--mem-fraction-static 0.88")


def test_the_least_fraction_that_sglang_names_itself_is_taken_first() -> None:
    own = LOADED.replace(
        "Not enough memory. Please try to increase --mem-fraction-static.",
        "Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static=0.6. Raise above 0.714 (minimum viable = 1 - 22.4/78.4).",
    )
    change = judged(own)["recommendation"]
    assert change["value"] == "0.74"


def test_a_pool_that_is_used_up_is_raised_from_the_fraction_in_force() -> None:
    text = LOADED.rsplit("[", 1)[0] + "[2025-07-02 07:42:00 TP0] Memory pool end. avail mem=9.40 GB\n"
    full = "[2025-07-02 07:52:00 TP0] RuntimeError: Decode out of memory. Try to lower your batch size.\n"
    offered = judged(text + full)
    changes = [offered["recommendation"], *offered["alternatives"]]
    assert [c["value"] for c in changes if c and c["flag"] == "--mem-fraction-static"] == ["0.93"]
