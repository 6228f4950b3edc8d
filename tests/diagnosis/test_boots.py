"""A log of several starts is judged by the one that failed."""

import pytest

from bot.diagnosis.boots import current_boot
from bot.diagnosis.diagnose import diagnose
from bot.domain.diagnosis import Diagnosis
from bot.domain.incident import Contribution
from bot.domain.size import GIB
from bot.reading.read import read
from bot.rulebook.load import load_rulebook

BOOK = load_rulebook()
SERVED = """(APIServer pid=1) INFO 06-01 09:00:00 [api_server.py:2010] vLLM API server version 0.14.1
(EngineCore_DP0 pid=300) INFO 06-01 09:00:20 [core.py:97] Initializing a V1 LLM engine (v0.14.1) with config: model='/models/m'
(EngineCore_DP0 pid=300) INFO 06-01 09:01:00 [gpu_model_runner.py:3800] Model loading took 14.37 GiB memory and 13.381314 seconds
(EngineCore_DP0 pid=300) INFO 06-01 09:01:30 [gpu_worker.py:373] Available KV cache memory: 30.1 GiB
(EngineCore_DP0 pid=300) INFO 06-01 09:01:40 [gpu_model_runner.py:4900] Graph capturing finished in 9 secs, took 0.61 GiB
(APIServer pid=1) INFO:     Application startup complete.
(APIServer pid=1) INFO:     10.0.0.34:57224 - "POST /v1/completions HTTP/1.1" 200 OK
"""
AGAIN = """(APIServer pid=1) INFO 06-01 10:00:00 [api_server.py:2010] vLLM API server version 0.14.1
(EngineCore_DP0 pid=411) INFO 06-01 10:00:20 [core.py:97] Initializing a V1 LLM engine (v0.14.1) with config: model='/models/larger'
(EngineCore_DP0 pid=411) INFO 06-01 10:00:25 [gpu_model_runner.py:3700] Starting to load model /models/larger...
"""
OOM = (
    "(EngineCore_DP0 pid=411) ERROR 06-01 10:01:00 [core.py:936] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 96.00 MiB. "
    "GPU 0 has a total capacity of 47.50 GiB of which 41.00 MiB is free. Including non-PyTorch memory, this process has 47.30 GiB memory in use. "
    "Of the allocated memory 46.50 GiB is allocated by PyTorch, and 61.00 MiB is reserved by PyTorch but unallocated.\n"
)


def judged(text: str) -> Diagnosis:
    return diagnose(BOOK, read(BOOK, [Contribution("paste", text)]))


def test_what_the_process_reports_that_was_started_in_the_failed_ones_place_is_none_of_its_budget() -> None:
    check = (
        "(EngineCore_DP0 pid={}) ERROR 06-01 09:00:20 [core.py:708] ValueError: Free memory on device (70.11/79.19 GiB) on startup is less "
        "than desired GPU memory utilization (0.95, 75.23 GiB).\n"
    )
    pool = "(EngineCore_DP0 pid=95) INFO 06-01 09:09:00 [kv_cache_utils.py:1087] GPU KV cache size: 248,576 tokens\n"
    up = "(APIServer pid=1) INFO:     Application startup complete.\n"
    failed = judged(check.format(90) + pool + up)
    assert all("kv_tokens" not in row.figures for row in failed.budgets)
    assert any("came up afterwards" in note for note in failed.notes)
    assert any("kv_tokens" in row.figures for row in judged(check.format(95) + pool).budgets)


def test_a_front_end_that_answers_that_its_engine_failed_is_no_engine_that_came_up() -> None:
    refused = '(APIServer pid=1) INFO:     10.0.0.4:40332 - "POST /v1/completions HTTP/1.1" 500 Internal Server Error\n'
    assert not any("came up afterwards" in note for note in judged(OOM + refused).notes)
    assert any("came up afterwards" in note for note in judged(OOM + refused.replace("500 Internal Server Error", "200 OK")).notes)


@pytest.mark.parametrize("earlier", [SERVED, SERVED[SERVED.index("(EngineCore_DP0 pid=300) INFO 06-01 09:01:00") :]])
def test_an_earlier_start_that_served_does_not_make_a_later_failure_one_of_serving(earlier: str) -> None:
    found = judged(earlier + AGAIN + OOM)
    assert found.phase == "weight_loading"
    assert all("kv_cache_bytes" not in row.figures for row in found.budgets)


def test_a_start_after_the_failure_does_not_count_either() -> None:
    later = (
        AGAIN.replace("pid=411", "pid=522")
        + "(EngineCore_DP0 pid=522) INFO 06-01 11:01:30 [gpu_worker.py:373] Available KV cache memory: 3.3 GiB\n"
    )
    found = judged(AGAIN + OOM + later)
    assert found.phase == "weight_loading"
    assert all("kv_cache_bytes" not in row.figures for row in found.budgets)


def test_the_same_failure_without_a_restart_is_one_of_serving() -> None:
    assert judged(SERVED + OOM.replace("pid=411", "pid=300")).phase == "serving"


def test_what_stands_before_the_first_start_is_kept() -> None:
    found = judged("vllm serve /models/larger --gpu-memory-utilization 0.95\n" + SERVED + AGAIN + OOM)
    assert found.deployment["gpu_memory_utilization"] == 0.95


REHEARSED = (
    "(EngineCore pid=40) INFO 11-20 10:00:17 [model_runner.py:440] Model loading took 15.27 GiB memory and 10.101010 seconds\n"
    "Capturing CUDA graphs (FULL): 100%|#####| 35/35 [00:02<00:00, 14.1it/s]\n"
    "(EngineCore pid=40) INFO 11-20 10:00:52 [model_runner.py:820] Graph capturing finished in 3 secs, took 0.41 GiB\n"
)
POOL = (
    "(EngineCore pid=40) INFO 11-20 10:00:53 [gpu_worker.py:702] Available KV cache memory: 4.91 GiB\n"
    "(EngineCore pid=40) INFO 11-20 10:00:53 [kv_cache_planning.py:1210] GPU KV cache size: 35,700 tokens\n"
)
FAILED = (
    "(EngineCore pid=40) ERROR 11-20 10:05:00 [core.py:1288] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 62.00 MiB.\n"
)


def test_a_capture_above_the_pool_is_the_estimate_and_no_sign_of_the_warm_up() -> None:
    found = judged(REHEARSED + POOL + FAILED)
    assert found.phase == "graph_capture"
    assert found.budgets[0].figures["graph_estimate_bytes"] == 440234148
    assert all("graph_bytes" not in row.figures for row in found.budgets)


def test_a_capture_below_the_pool_is_the_capture() -> None:
    below = "Capturing CUDA graphs (FULL):  43%|##| 15/35 [00:01<00:01, 14.1it/s]\n"
    assert judged(REHEARSED + POOL + below + FAILED).phase == "graph_capture"


def test_a_log_of_such_a_version_that_ends_before_the_pool_is_still_profiling() -> None:
    banner = "(EngineCore pid=40) INFO 11-20 10:00:00 [core.py:120] Initializing a V1 LLM engine (v0.33.0) with config: model='m'\n"
    assert judged(banner + REHEARSED + FAILED).phase == "profiling"
    assert judged(banner.replace("0.33.0", "0.19.0") + REHEARSED + FAILED).phase == "warmup"


TRIED = "GPU 0 has a total capacity of 79.15 GiB of which 1.00 GiB is free."


@pytest.mark.parametrize(
    ("log", "phase"),
    [
        ("cudaMalloc failed: out of memory\nmain: server is listening on http://127.0.0.1:8080 - starting the main loop", "unknown"),
        (
            "load_tensors: loading model tensors, this can take a while... (mmap = true)\n"
            "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 18432.00 MiB on device 0: cudaMalloc failed: out of memory\n"
            'time=2026-03-01T10:00:09.000Z level=INFO source=server.go:600 msg="llama runner started in 2.51 seconds"',
            "weight_loading",
        ),
        (
            "[2026-03-01 10:00:21 TP0] Capture cuda graph begin. This can take up to several minutes. avail mem=5.00 GB\n"
            f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. {TRIED}\n"
            "[2026-03-01 10:05:00] The server is fired up and ready to roll!",
            "graph_capture",
        ),
    ],
)
def test_a_server_that_came_up_after_the_failure_did_not_serve_before_it(log: str, phase: str) -> None:
    document = judged(log)
    assert document.phase == phase
    assert any("came up afterwards" in note for note in document.notes)
    assert all(proof.line <= document.first_error.line for proof in document.proof if document.first_error)


@pytest.mark.parametrize(
    "log",
    [
        "[2026-03-01 10:05:00] The server is fired up and ready to roll!\n"
        f"[2026-03-01 10:06:00 TP0] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. {TRIED}\n"
        "[2026-03-01 10:09:00] The server is fired up and ready to roll!",
        "it crashes with CUDA error: out of memory\n[2026-03-01 10:05:00] The server is fired up and ready to roll!",  # a title
    ],
)
def test_what_served_before_it_failed_was_serving(log: str) -> None:
    document = judged(log)
    assert (document.phase, any("came up afterwards" in note for note in document.notes)) == ("serving", False)


CHECKED = """(APIServer pid=1) INFO 10-12 08:11:05 [utils.py:233] non-default args: {'model': 'org/m1', 'gpu_memory_utilization': 0.95}
(EngineCore_DP0 pid=90) ERROR 10-12 08:12:00 [core.py:708] ValueError: Free memory on device (70.11/79.19 GiB) on startup is less than desired GPU memory utilization (0.95, 75.23 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.
"""
SMALLER = """(APIServer pid=1) INFO 10-12 08:20:05 [utils.py:233] non-default args: {'model': 'org/m1', 'gpu_memory_utilization': 0.85}
(EngineCore_DP0 pid=95) INFO 10-12 08:21:40 [gpu_worker.py:298] Available KV cache memory: 37.93 GiB
(EngineCore_DP0 pid=95) INFO 10-12 08:21:41 [kv_cache_utils.py:1087] GPU KV cache size: 248,576 tokens
(APIServer pid=1) INFO:     Application startup complete.
"""


@pytest.mark.parametrize("banner", ["", "(APIServer pid=1) INFO 10-12 08:20:04 [api_server.py:1839] vLLM API server version 0.11.0\n"])
def test_a_start_with_other_arguments_is_another_one_and_its_figures_are_not_those_of_the_one_that_failed(banner: str) -> None:
    found = judged(CHECKED + banner + SMALLER)
    (row,) = found.budgets
    assert row.figures["utilization"] == 0.95
    assert not {"kv_tokens", "kv_cache_bytes"} & row.figures.keys()
    assert any("an engine came up afterwards" in note for note in found.notes)


def test_the_other_way_round_nothing_came_up_afterwards() -> None:
    found = judged(SMALLER + CHECKED)
    assert not any("came up afterwards" in note for note in found.notes)
    assert found.recommendation is not None
    assert found.recommendation.value == "0.88"


OLD_START = (
    "Loading model weights took 15.0213 GB\nMemory profiling results: total_gpu_memory=23.58GiB initial_memory_usage=15.41GiB "
    "peak_torch_memory={peak}GiB memory_usage_post_profile=15.42GiB non_torch_memory=0.38GiB kv_cache_size={pool}GiB gpu_memory_utilization=0.90\n"
    "{mark}GPU blocks: {blocks}, # CPU blocks: 2048\n"
)
TOO_LONG = (
    "The model's max seq len (29000) is larger than the maximum number of tokens that can be stored in KV cache (23648). Try increasing "
    "`gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine."
)


def test_of_two_starts_that_introduce_nobody_the_last_load_begins_the_one_that_failed() -> None:
    text = f"20k works\n{OLD_START.format(pool='3.74', peak=17.1, mark='', blocks=1915)}\n29k does not\n{OLD_START.format(pool='2.81', peak=18.03, mark='# ', blocks=1439)}{TOO_LONG}"
    (budget,) = judged(text).budgets
    assert (budget.figures["num_gpu_blocks"], budget.figures["kv_cache_bytes"], budget.closes) == (1439, round(2.81 * GIB), True)


def test_a_draft_that_is_loaded_beside_the_model_begins_no_start() -> None:
    text = "Loading model weights took 1.0213 GB\n" + OLD_START.format(pool="2.81", peak=18.03, mark="# ", blocks=1439) + TOO_LONG
    facts = read(BOOK, [Contribution("paste", text)]).facts
    assert [f.line for f in current_boot(facts, facts[-1]) if f.id == "vllm.model-loading"] == [1, 2]
