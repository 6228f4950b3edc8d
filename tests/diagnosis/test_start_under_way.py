"""What a runner's frames alone mean where a start is under way: model runner V2 warms its kernels up with what serves requests."""

import pytest

from tests.diagnosis.material import frame, judged

STEP = frame("vllm/v1/worker/gpu/model_runner.py", "sample_tokens")
CAPTURED = "(Worker_TP1 pid=7) INFO 12-01 09:00:10 [model_runner.py:729] Graph capturing finished in 9 secs, took 1.10 GiB"


def failed_at(moment: str, *before: str) -> str:
    """The phase of a worker that fails at that moment of the day with the frames of a step alone."""
    traceback = [f"(Worker_TP1 pid=7) ERROR 12-01 {moment} [multiproc_executor.py:1007] {line.lstrip()}" for line in STEP.splitlines()]
    phase: str = judged("\n".join([*before, CAPTURED, *traceback, "CUDA out of memory"]))["phase"]
    return phase


def test_within_seconds_of_the_capture_kernels_are_warmed_up() -> None:
    assert failed_at("09:00:12") == "warmup"


@pytest.mark.parametrize("moment", ["09:04:12", "08:00:12"])
def test_later_or_on_another_day_it_is_a_request(moment: str) -> None:
    assert failed_at(moment) == "serving"


def test_an_engine_that_did_not_start_served_nobody_with_it() -> None:
    failed = failed_at("09:04:12", "(EngineCore pid=2) ERROR 12-01 09:04:13 [core.py:1250] EngineCore failed to start.")
    assert failed == "warmup"


def test_a_line_of_readiness_that_is_never_reached_is_none() -> None:
    words = "It never reaches Application startup complete: CUDA out of memory in the sampler warm-up."
    assert judged(words)["phase"] == "warmup"
    assert judged("It says Application startup complete, and then it is out of memory.")["phase"] == "serving"


@pytest.mark.parametrize(
    ("words", "phase"),
    [
        ("It is out of memory before Model loading took shows up.", "weight_loading"),
        ("CUDA OOM before the line Available KV cache memory is printed.", "profiling"),
        ("It never prints Graph capturing finished, only CUDA out of memory.", "graph_capture"),
        ("OOM right after Graph capturing finished.", "warmup"),
    ],
)
def test_a_line_that_was_not_reached_names_what_comes_before_it(words: str, phase: str) -> None:
    assert judged(words)["phase"] == phase


def test_somebody_who_says_warm_up_is_believed() -> None:
    assert failed_at("09:04:12", "We get an OOM at kernel warmup:") == "warmup"


def test_kernels_whose_warm_up_began_are_warmed_up() -> None:
    begun = "(Worker_TP1 pid=7) INFO 12-01 09:04:07 [gpu_worker.py:880] JIT kernel warmup starting."
    traceback = [f"(Worker_TP1 pid=7) ERROR 12-01 09:04:12 [multiproc_executor.py:1122] {line.lstrip()}" for line in STEP.splitlines()]
    assert judged("\n".join([begun, *traceback, "CUDA out of memory"]))["phase"] == "warmup"


def test_a_dummy_run_of_the_worker_s_own_is_a_size_that_is_warmed_up() -> None:
    called = frame("vllm/v1/worker/gpu_worker.py", "compile_or_warm_up_model", "self.model_runner._dummy_run(size)")
    assert judged(f"{called}\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.75 GiB.")["phase"] == "warmup"


@pytest.mark.parametrize(
    ("file", "phase"),
    [("idefics2_vision_model.py", "profiling"), ("clip.py", "profiling"), ("llama.py", "unknown")],
)
def test_an_encoder_in_an_engine_that_does_not_come_up_rehearses(file: str, phase: str) -> None:
    failed = f"{frame('vllm/model_executor/models/' + file, 'forward')}\nCUDA out of memory"
    assert judged(f"{failed}\nRuntimeError: Engine core initialization failed. See root cause above.")["phase"] == phase


@pytest.mark.parametrize(
    ("path", "change"),
    [
        ("vllm/model_executor/models/qwen2_5_vl.py", "limit-multimodal"),
        ("vllm/model_executor/models/qwen2.py", "lower-max-num-batched-tokens"),
        ("vllm/model_executor/layers/fused_moe/fused_moe.py", "lower-max-num-batched-tokens"),
    ],
)
def test_fewer_images_are_no_answer_where_the_language_model_was_rehearsed(path: str, change: str) -> None:
    rehearsed = frame("vllm/v1/worker/gpu_worker.py", "determine_available_memory")
    failed = f"vllm serve Qwen/Qwen2.5-VL-7B-Instruct\n{rehearsed}\n{frame(path, 'forward')}\nCUDA out of memory"
    assert judged(failed)["recommendation"]["id"] == change


@pytest.mark.parametrize(
    ("start", "change"),
    [
        ("vllm serve a/Chat-8B", "stop-other-process"),
        ("vllm serve a/Chat-8B --tensor-parallel-size 2", "lower-gpu-memory-utilization"),
        ("vllm serve a/Chat-8B-AWQ", "lower-gpu-memory-utilization"),
        ("vllm serve a/Chat-3B", "lower-gpu-memory-utilization"),
    ],
)
def test_no_fraction_makes_room_for_weights_that_are_larger_than_what_was_free(start: str, change: str) -> None:
    check = "ValueError: Free memory on device cuda:0 (10.00/23.50 GiB) on startup is less than desired GPU memory utilization (0.9, 21.15 GiB)."
    assert judged(f"{start}\n{check}")["recommendation"]["id"] == change


def test_a_title_that_quotes_pytorch_is_no_process() -> None:
    core = frame("vllm/model_executor/models/qwen3_vl.py", "forward").strip()
    title = "Cannot deploy the small model: CUDA out of memory. Tried to allocate 90.00 GiB"
    rank = judged(f"{title}\n(EngineCore_DP0 pid=43) ERROR 03-20 17:39:14 [core.py:1100]   {core}")["rank"]
    assert (rank["number"], rank["pid"]) == (0, 43)


def test_a_title_above_workers_of_several_names_no_rank() -> None:
    title = "Cannot deploy the small model: CUDA out of memory. Tried to allocate 90.00 GiB"
    apart = frame("vllm/v1/executor/multiproc_executor.py", "collective_rpc").strip()
    assert judged(f"{title}\n(EngineCore_DP0 pid=43) ERROR 03-20 17:39:14 [core.py:1100]   {apart}")["rank"] is None


@pytest.mark.parametrize(("free", "change"), [("30.2", "lower-gpu-memory-utilization"), ("3.1", "stop-other-process")])
def test_the_check_is_heard_in_italian_with_its_figures(free: str, change: str) -> None:
    document = judged(f"All'avvio vLLM 0.20 dice che la memoria libera ({free} su 44.4 GiB) è meno di quella richiesta (0.92).")
    assert (document["phase"], document["verdict"], document["recommendation"]["id"]) == ("startup_check", "likely", change)


@pytest.mark.parametrize(
    ("words", "phase"),
    [
        ("We run it with --enforce-eager.", "kv_cache_allocation"),
        ("--enforce-eager is already set.", "kv_cache_allocation"),
        ("If we run it with --enforce-eager nothing fails.", "graph_capture"),
    ],
)
def test_an_engine_that_is_said_to_run_eager_captures_nothing(words: str, phase: str) -> None:
    sized = "(EngineCore pid=1) INFO 04-09 11:02:18 [kv_cache_utils.py:1087] GPU KV cache size: 98,304 tokens"
    assert judged(f"{words}\n{sized}\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB.")["phase"] == phase
