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


def test_somebody_who_says_warm_up_is_believed() -> None:
    assert failed_at("09:04:12", "We get an OOM at kernel warmup:") == "warmup"


def test_a_title_that_quotes_pytorch_is_no_process() -> None:
    core = frame("vllm/model_executor/models/qwen3_vl.py", "forward").strip()
    title = "Cannot deploy the small model: CUDA out of memory. Tried to allocate 90.00 GiB"
    rank = judged(f"{title}\n(EngineCore_DP0 pid=43) ERROR 03-20 17:39:14 [core.py:1100]   {core}")["rank"]
    assert (rank["number"], rank["pid"]) == (0, 43)


def test_a_title_above_workers_of_several_names_no_rank() -> None:
    title = "Cannot deploy the small model: CUDA out of memory. Tried to allocate 90.00 GiB"
    apart = frame("vllm/v1/executor/multiproc_executor.py", "collective_rpc").strip()
    assert judged(f"{title}\n(EngineCore_DP0 pid=43) ERROR 03-20 17:39:14 [core.py:1100]   {apart}")["rank"] is None
