"""Whose figures stand in which row: restarts, several engines, containers, copies, and what only the first worker prints."""

from bot.diagnosis.diagnose import diagnose
from bot.domain.diagnosis import Diagnosis
from bot.domain.incident import Contribution
from bot.domain.size import GIB
from bot.reading.read import read
from bot.rulebook.load import load_rulebook

BOOK = load_rulebook()
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 96.00 MiB. GPU {gpu} has a total capacity of 79.18 GiB of which 41.00 MiB is free. "
    "Including non-PyTorch memory, this process has 79.13 GiB memory in use. Of the allocated memory 77.10 GiB is allocated by PyTorch, "
    "with 310.00 MiB allocated in private pools (e.g., CUDA Graphs), and 61.00 MiB is reserved by PyTorch but unallocated."
)


def judged(text: str) -> Diagnosis:
    return diagnose(BOOK, read(BOOK, [Contribution("paste", text)]))


def gib(figure: float) -> int:
    return round(figure * GIB)


def test_a_figure_that_only_rank_0_printed_is_never_the_failing_ranks() -> None:
    found = judged(f"""
(EngineCore_DP0 pid=90) INFO 02-03 10:00:01 [core.py:97] Initializing a V1 LLM engine (v0.15.0) with config: model='/models/m', tensor_parallel_size=4
(Worker_TP0 pid=101) INFO 02-03 10:01:12 [gpu_model_runner.py:4221] Model loading took 16.41 GiB memory and 31.000000 seconds
(Worker_TP0 pid=101) INFO 02-03 10:01:42 [gpu_worker.py:373] Available KV cache memory: 51.2 GiB
(Worker_TP3 pid=104) ERROR 02-03 10:02:10 [multiproc_executor.py:880] WorkerProc hit an exception.
(Worker_TP3 pid=104) ERROR 02-03 10:02:10 [multiproc_executor.py:880] {OOM.format(gpu=3)}
""")
    failing, first = found.budgets
    assert (failing.rank, failing.reported_by_rank) == (3, 0)
    assert "kv_cache_bytes" not in failing.figures
    assert failing.figures["total_bytes"] == gib(79.18)
    assert (first.rank, first.reported_by_rank, first.figures["kv_cache_bytes"]) == (0, 0, gib(51.2))


def test_before_0_11_1_every_rank_speaks_for_itself() -> None:
    found = judged(f"""
(EngineCore_DP0 pid=90) INFO 10-03 10:00:01 [core.py:77] Initializing a V1 LLM engine (v0.11.0) with config: model='/models/m', tensor_parallel_size=2
(Worker_TP0 pid=101) INFO 10-03 10:01:42 [gpu_worker.py:298] Available KV cache memory: 36.07 GiB
(Worker_TP1 pid=102) INFO 10-03 10:01:42 [gpu_worker.py:298] Available KV cache memory: 36.63 GiB
(EngineCore_DP0 pid=90) INFO 10-03 10:01:43 [kv_cache_utils.py:1087] GPU KV cache size: 480,128 tokens
(EngineCore_DP0 pid=90) INFO 10-03 10:01:43 [kv_cache_utils.py:1087] GPU KV cache size: 472,752 tokens
(Worker_TP1 pid=102) ERROR 10-03 10:02:10 [multiproc_executor.py:671] {OOM.format(gpu=1)}
""")
    assert [(b.rank, b.reported_by_rank, b.figures["kv_cache_bytes"]) for b in found.budgets] == [(1, 1, gib(36.63)), (0, 0, gib(36.07))]
    assert {b.figures["kv_tokens"] for b in found.budgets} == {472752}


def test_of_several_starts_the_last_before_the_failure_counts() -> None:
    start = "INFO {at} [core.py:113] Initializing a V1 LLM engine (v0.22.1) with config: model='/models/m'"
    found = judged(f"""
(EngineCore pid=300) {start.format(at="06-01 10:00:00")}
(EngineCore pid=300) INFO 06-01 10:01:00 [gpu_worker.py:508] Available KV cache memory: 9.11 GiB
(EngineCore pid=300) INFO 06-01 10:01:01 [kv_cache_utils.py:2146] GPU KV cache size: 74,624 tokens
(EngineCore pid=411) {start.format(at="06-01 10:05:00")}
(EngineCore pid=411) INFO 06-01 10:06:00 [gpu_worker.py:508] Available KV cache memory: 4.02 GiB
(EngineCore pid=411) ERROR 06-01 10:06:20 [core.py:1210] EngineCore failed to start.
(EngineCore pid=411) ERROR 06-01 10:06:20 [core.py:1210] {OOM.format(gpu=0)}
(EngineCore pid=522) {start.format(at="06-01 10:10:00")}
(EngineCore pid=522) INFO 06-01 10:11:00 [gpu_worker.py:508] Available KV cache memory: 2.22 GiB
""")
    (row,) = found.budgets
    assert row.figures["kv_cache_bytes"] == gib(4.02)
    assert "kv_tokens" not in row.figures


def test_of_several_tries_that_nobody_signs_the_figures_are_those_of_the_first_error() -> None:
    sentence = (
        "ValueError: To serve at least one request with the models's max seq len (131072), (31.00 GiB KV cache is needed, which is larger than "
        "the available KV cache memory ({} GiB). Based on the available memory, the estimated maximum model length is {}."
    )
    first = f"# vllm serve a/b\n\n{sentence.format(24.5, 103600)}\n"
    document = judged(f"{first}\n# vllm serve a/b --gpu-memory-utilization 0.95\n\n{sentence.format(28.0, 118400)}\n")
    assert document.first_error is not None
    assert document.first_error.line == 3
    figures = document.budgets[0].figures
    assert (figures["kv_cache_bytes"], figures["estimated_max_model_len"]) == (gib(24.5), 103600)


def test_two_containers_of_one_paste_are_two_rows() -> None:
    found = judged("""
decode-1   | (EngineCore pid=55) INFO 06-01 10:00:00 [core.py:113] Initializing a V1 LLM engine (v0.22.1) with config: model='/models/a'
prefill-1  | (EngineCore pid=55) INFO 06-01 10:00:00 [core.py:113] Initializing a V1 LLM engine (v0.22.1) with config: model='/models/a'
decode-1   | (EngineCore pid=55) INFO 06-01 10:01:00 [gpu_worker.py:508] Available KV cache memory: 30.5 GiB
prefill-1  | (EngineCore pid=55) INFO 06-01 10:01:00 [gpu_worker.py:508] Available KV cache memory: 12.25 GiB
decode-1   | (EngineCore pid=55) INFO 06-01 10:01:00 [kv_cache_utils.py:2146] GPU KV cache size: 400,000 tokens
prefill-1  | (EngineCore pid=55) INFO 06-01 10:01:00 [kv_cache_utils.py:2146] GPU KV cache size: 160,000 tokens
""")
    assert {(b.engine_label, b.figures["kv_cache_bytes"], b.figures["kv_tokens"]) for b in found.budgets} == {
        ("decode-1", gib(30.5), 400000),
        ("prefill-1", gib(12.25), 160000),
    }


def test_two_data_parallel_engines_are_no_restart_and_keep_their_own_pools() -> None:
    found = judged("""
(EngineCore_DP0 pid=70) INFO 02-03 10:00:01 [core.py:97] Initializing a V1 LLM engine (v0.15.0) with config: model='/models/m', data_parallel_size=2
(EngineCore_DP1 pid=71) INFO 02-03 10:00:01 [core.py:97] Initializing a V1 LLM engine (v0.15.0) with config: model='/models/m', data_parallel_size=2
(Worker_DP0_EP0 pid=80) INFO 02-03 10:01:12 [gpu_worker.py:373] Available KV cache memory: 20.0 GiB
(Worker_DP1_EP1 pid=81) INFO 02-03 10:01:12 [gpu_worker.py:373] Available KV cache memory: 21.5 GiB
(EngineCore_DP0 pid=70) INFO 02-03 10:01:13 [kv_cache_utils.py:1307] GPU KV cache size: 200,000 tokens
(EngineCore_DP1 pid=71) INFO 02-03 10:01:13 [kv_cache_utils.py:1307] GPU KV cache size: 215,000 tokens
""")
    assert {(b.rank, b.figures["kv_tokens"]) for b in found.budgets} == {(0, 200000), (1, 215000)}


def test_what_a_front_end_repeats_makes_no_second_row() -> None:
    check = "ValueError: Free memory on device cuda:0 (60.12/79.18 GiB) on startup is less than desired GPU memory utilization (0.92, 72.85 GiB)."
    found = judged(f"""
(EngineCore pid=55) ERROR 06-01 10:00:20 [core.py:1210] EngineCore failed to start.
(EngineCore pid=55) ERROR 06-01 10:00:20 [core.py:1210] {check}
(APIServer pid=1) {check}
""")
    (row,) = found.budgets
    assert row.figures["free_at_start_bytes"] == gib(60.12)
    assert row.figures["outside_budget_bytes"] == gib(79.18) - gib(72.85)


def test_a_pool_set_in_bytes_is_not_held_against_the_fraction() -> None:
    found = judged("""
(EngineCore pid=55) INFO 06-01 10:00:00 [core.py:113] Initializing a V1 LLM engine (v0.22.1) with config: model='/models/a'
(EngineCore pid=55) INFO 06-01 10:01:00 [gpu_worker.py:470] Initial free memory 78.7 GiB, reserved 40.0 GiB memory for KV Cache as specified by kv_cache_memory_bytes config and skipped memory profiling. This does not respect the gpu_memory_utilization config.
(EngineCore pid=55) DEBUG 06-01 10:01:40 [gpu_worker.py:655] Free memory on device cuda:0 (78.7/79.18 GiB) on startup. Desired GPU memory utilization is (0.92, 72.85 GiB). Actual usage is 15.5 GiB for weight, 1.4 GiB for peak activation, 0.11 GiB for non-torch memory, and 0.64 GiB for CUDAGraph memory.
""")
    (row,) = found.budgets
    assert row.figures["kv_cache_bytes"] == gib(40.0)
    assert (row.closes, row.residual_bytes) == (None, None)


def test_what_multimodal_decoding_takes_stands_beside_the_pool_that_is_left() -> None:
    found = judged("""
(EngineCore pid=55) INFO 07-20 10:00:00 [core.py:113] Initializing a V1 LLM engine (v0.26.0) with config: model='/models/a'
(EngineCore pid=55) INFO 07-20 10:01:00 [gpu_model_runner.py:6512] Estimated CUDA graph memory: 0.74 GiB total
(EngineCore pid=55) INFO 07-20 10:01:00 [gpu_worker.py:560] Available KV cache memory: 53.9 GiB
(EngineCore pid=55) INFO 07-20 10:01:00 [gpu_worker.py:588] Reserving 1.5 GiB of GPU memory for frontend multimodal decoding (0.5 GiB raw-frame semaphore budget, 1.0 GiB decoder+CUDA-context across 1 API server(s) @ 1.0 GiB/server); KV cache memory reduced to 52.4 GiB.
(EngineCore pid=55) INFO 07-20 10:01:40 [gpu_worker.py:870] Free memory on device cuda:0 (78.66/79.18 GiB) on startup. Desired GPU memory utilization is (0.92, 72.85 GiB). Actual usage is 15.27 GiB for weight, 2.81 GiB for peak activation, 0.13 GiB for non-torch memory, and 0.7 GiB for CUDAGraph memory.
""")
    (row,) = found.budgets
    assert (row.figures["other_reserved_bytes"], row.figures["kv_cache_bytes"]) == (gib(1.5), gib(52.4))
    assert row.closes is True


def test_graphs_that_runner_v2_captured_while_profiling_are_not_the_graphs() -> None:
    found = judged("""
(EngineCore pid=55) INFO 10-20 10:00:00 [core.py:130] Initializing a V1 LLM engine (v0.30.0) with config: model='/models/a'
(EngineCore pid=55) INFO 10-20 10:00:01 [gpu_worker.py:378] Using V2 Model Runner
(EngineCore pid=55) INFO 10-20 10:00:40 [model_runner.py:811] Graph capturing finished in 4 secs, took 0.41 GiB
(EngineCore pid=55) INFO 10-20 10:00:41 [gpu_worker.py:590] Available KV cache memory: 20.11 GiB
""")
    (row,) = found.budgets
    assert "graph_bytes" not in row.figures
    assert row.figures["graphs_inside_budget"] is True


def test_two_printed_fractions_give_the_estimate_behind_them() -> None:
    found = judged(
        """
(EngineCore pid=55) INFO 06-01 10:00:00 [core.py:113] Initializing a V1 LLM engine (v0.22.1) with config: model='/models/a'
(EngineCore pid=55) INFO 06-01 10:01:00 [gpu_worker.py:530] CUDA graph memory profiling is enabled (default since v0.21.0). The current --gpu-memory-utilization=0.9200 is equivalent to --gpu-memory-utilization=0.9127 without CUDA graph memory profiling. To keep the KV cache of before, increase --gpu-memory-utilization to 0.9273.
(EngineCore pid=55) ERROR 06-01 10:02:10 [core.py:1210] """
        + OOM.format(gpu=0)
    )
    (row,) = found.budgets
    assert abs(row.figures["graph_estimate_bytes"] - 0.0073 * gib(79.18)) < 2
    assert row.figures["graphs_inside_budget"] is True


def test_an_estimate_that_is_switched_off_is_in_no_budget() -> None:
    found = judged("""
VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=0 vllm serve /models/a
(EngineCore pid=55) INFO 06-01 10:00:00 [core.py:113] Initializing a V1 LLM engine (v0.22.1) with config: model='/models/a'
(EngineCore pid=55) INFO 06-01 10:01:00 [gpu_worker.py:508] Available KV cache memory: 4.02 GiB
""")
    assert found.budgets[0].figures["graphs_inside_budget"] is False


def test_an_unknown_version_is_not_said_to_count_graphs_in_or_out() -> None:
    (row,) = judged("Free memory on device (10.0/24.0 GiB) ... Model loading took 14.96 GiB memory and 4.1 seconds").budgets
    assert row.figures["graphs_inside_budget"] is None


def test_the_driver_of_v0_is_not_taken_for_a_second_rank_0() -> None:
    found = judged("""
INFO 10-02 10:00:00 model_runner.py:1025] Loading model weights took 10.0714 GB
(VllmWorkerProcess pid=77) INFO 10-02 10:00:00 model_runner.py:1025] Loading model weights took 10.0714 GB
""")
    assert [b.rank for b in found.budgets].count(0) <= 1


def test_an_unsigned_failure_stands_in_the_row_of_the_rank_that_its_device_names() -> None:
    found = judged("vllm serve /models/m --tensor-parallel-size 2\n" + OOM.format(gpu=1))
    assert found.rank is not None
    assert [(found.rank.number, b.rank) for b in found.budgets] == [(1, 1)]


def test_a_rank_that_reports_by_its_name_and_fails_under_its_device_is_one_row() -> None:
    reported = "(VllmWorker rank={rank} pid=220{rank}) INFO 06-01 10:00:01 [gpu_worker.py:227] Available KV cache memory: 6.21 GiB\n"
    found = judged("".join(reported.format(rank=rank) for rank in (0, 3)) + OOM.format(gpu=3))
    assert [(b.rank, b.label, "total_bytes" in b.figures) for b in found.budgets] == [
        (3, "VllmWorker rank=3", True),
        (0, "VllmWorker rank=0", False),
    ]


def test_of_two_unmatched_pids_the_engine_is_the_one_that_can_hold_what_torch_allocated() -> None:
    found = judged("""
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 594.00 MiB. GPU 0 has a total capacity of 31.36 GiB of which 463.31 MiB is free. Process 4567 has 2.10 GiB memory in use. Process 9911 has 28.60 GiB memory in use. Of the allocated memory 27.60 GiB is allocated by PyTorch, and 320.00 MiB is reserved by PyTorch but unallocated.
""")
    assert found.first_error is not None
    assert found.first_error.figures["process_bytes"] == gib(28.60)


def test_a_report_that_is_cut_before_its_pool_is_read_as_far_as_it_goes() -> None:
    (row,) = judged("INFO 03-01 10:00:00 worker.py:267] model weights take 9.38GiB; non_torch_memory takes 0.08GiB; PyTorch activ").budgets
    assert row.figures["weights_bytes"] == gib(9.38)
    assert "kv_cache_bytes" in row.missing


def two_starts(*pastes: tuple[int, int]) -> list[tuple[int | None, float, int]]:
    """(rank, GiB of its pool, source) for each row, of starts with two ranks each: (first pid, rank that failed) of each paste."""
    said = []
    for pid, failed in pastes:
        lines = [
            f"(Worker_TP{n} pid={pid + n}) INFO 02-03 10:01:42 [gpu_worker.py:373] Available KV cache memory: {pid + n}.0 GiB"
            for n in (0, 1)
        ]
        lines.append(f"(Worker_TP{failed} pid={pid + failed}) ERROR 02-03 10:02:42 [multiproc_executor.py:671] {OOM.format(gpu=failed)}")
        said.append(Contribution("paste", "\n".join(lines)))
    rows = diagnose(BOOK, read(BOOK, said)).budgets
    return [(row.rank, (row.figures["kv_cache_bytes"] or 0) / GIB, row.sources.get("kv_cache_bytes", 1)) for row in rows]


def test_of_the_logs_of_two_starts_each_rank_has_the_row_of_the_one_that_failed_first() -> None:
    assert two_starts((20, 1), (40, 0)) == [(1, 21.0, 1), (0, 20.0, 1)]


def test_the_log_of_one_start_in_two_pastes_is_one_start() -> None:
    assert two_starts((20, 1), (20, 1)) == [(1, 21.0, 1), (0, 20.0, 1)]


def test_a_rank_that_only_the_other_paste_reports_keeps_its_row() -> None:
    one = Contribution("paste", f"(Worker_TP1 pid=21) ERROR 02-03 10:02:42 [multiproc_executor.py:671] {OOM.format(gpu=1)}")
    other = [
        f"(Worker_TP{n} pid={40 + n}) INFO 02-03 10:01:42 [gpu_worker.py:373] Available KV cache memory: {40 + n}.0 GiB" for n in (0, 1)
    ]
    rows = diagnose(BOOK, read(BOOK, [one, Contribution("paste", "\n".join(other))])).budgets
    assert [(row.rank, row.figures.get("kv_cache_bytes")) for row in rows] == [(1, gib(41)), (0, gib(40))]
