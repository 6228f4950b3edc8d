import json

import pytest

from bot.domain.incident import Contribution
from bot.rulebook.load import load_rulebook
from bot.usecases.judge import judge
from tests.diagnosis.material import frame, judged, oom, worker

FAILED = [
    "Traceback (most recent call last):",
    frame("v1/worker/gpu_worker.py", "compile_or_warm_up_model"),
    frame("v1/worker/gpu_model_runner.py", "capture_model"),
]


def test_without_a_rank_in_the_text_the_rank_is_null() -> None:
    assert judged("ValueError: No available memory for the cache blocks.")["rank"] is None


def test_an_engine_core_is_not_a_rank() -> None:
    document = judged("(EngineCore_DP0 pid=9) ERROR 10-23 09:37:56 [core.py:708] ValueError: No available memory for the cache blocks.")
    assert document["rank"] is None


def test_under_ray_a_device_index_gives_no_rank() -> None:
    document = judged("(RayWorkerWrapper pid=71, ip=10.0.0.3) " + oom("1.00 GiB", "0.50 GiB", gpu=3))
    assert (document["rank"]["number"], document["rank"]["gpu_index"]) == (None, 3)


def test_pipeline_and_tensor_parts_make_the_global_rank() -> None:
    text = "vllm serve m --tensor-parallel-size 4 --pipeline-parallel-size 2\n" + worker(
        "Worker_PP1_TP3", *FAILED, oom("1.00 GiB", "0.50 GiB", gpu=7)
    )
    rank = judged(text)["rank"]
    assert (rank["number"], rank["pp"], rank["tp"], rank["gpu_index"]) == (7, 1, 3, 7)


def test_a_data_parallel_part_counts_whole_engines() -> None:
    text = "vllm serve m --tensor-parallel-size 2 --data-parallel-size 2\n" + worker(
        "Worker_DP1_TP1", *FAILED, oom("1.00 GiB", "0.50 GiB", gpu=3)
    )
    assert judged(text)["rank"]["number"] == 3


def test_a_single_worker_is_rank_0() -> None:
    text = "\n".join(f"(EngineCore pid=9) ERROR 04-19 16:13:01 [core.py:1108] {line}" for line in (*FAILED, oom("1.00 GiB", "0.50 GiB")))
    rank = judged(text)["rank"]
    assert (rank["number"], rank["basis"]) in {(0, "only_worker"), (0, "gpu_index")}


def test_the_first_error_is_the_workers_and_not_the_engine_cores_copy() -> None:
    text = worker("Worker_TP1", *FAILED, oom("1.00 GiB", "0.50 GiB", gpu=1))
    text += "\n(EngineCore_DP0 pid=1) ERROR 10-23 09:37:56 [core.py:708] RuntimeError: Worker failed with error 'CUDA out of memory. Tried to allocate 1.00 GiB'"
    error = judged(text)["first_error"]
    assert (error["line"], error["kind"], error["tried_bytes"], error["free_bytes"]) == (4, "torch_oom", 2**30, 2**29)


def test_the_sampler_sentence_is_not_the_first_error_where_an_allocation_stands_above_it() -> None:
    text = (
        oom("592.00 MiB", "11.00 MiB", private="40.00 MiB")
        + "\nRuntimeError: CUDA out of memory occurred when warming up sampler with 1024 dummy requests."
    )
    error = judged(text)["first_error"]
    assert (error["line"], error["kind"]) == (1, "torch_oom")


def test_other_workers_that_failed_too_are_named() -> None:
    text = "\n".join(worker(f"Worker_TP{n}", *FAILED, oom("1.00 GiB", "0.50 GiB", gpu=n), pid=100 + n) for n in (2, 0))
    document = judged(text)
    assert (document["rank"]["number"], document["also_failed"]) == (2, ["Worker_TP0"])


def test_an_answered_rank_counts() -> None:
    document = judged("(RayWorkerWrapper pid=71, ip=10.0.0.3) " + oom("1.00 GiB", "0.50 GiB", gpu=3), Contribution("answer", "rank=11"))
    assert (document["rank"]["number"], document["rank"]["basis"]) == (11, "answer")


def test_the_first_error_of_an_export_on_one_line_is_the_message_and_not_the_whole_export() -> None:
    rows = [{"timestamp": str(n), "line": f"request {n} finished"} for n in range(200)]
    message = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    document = judged(json.dumps([*rows, {"timestamp": "200", "line": message}]))
    assert document["first_error"]["text"] == message
    assert all(len(row["text"]) < 200 for row in document["proof"])


def test_what_was_not_kept_is_not_said_to_hold_no_error() -> None:
    kept = judge(load_rulebook(), [Contribution("file", "INFO all is well", truncated=True)])
    assert kept["summary"].startswith("There is no memory error in what was kept of this evidence")


@pytest.mark.parametrize("figure", ["1e400 GiB", "9" * 400 + " GiB", "99999999999999999999 GiB"])
def test_a_figure_that_none_can_be_is_left_out_and_the_error_stays(figure: str) -> None:
    for text in (oom(figure, "1.06 GiB"), oom("2.00 GiB", figure)):
        error = judged(text)["first_error"]
        assert (error["kind"], error["total_bytes"]) == ("torch_oom", 85_018_877_624)
        assert (error["tried_bytes"], error["free_bytes"]) in ((None, round(1.06 * 2**30)), (2_147_483_648, None))


def test_a_long_device_index_stays_the_number_that_it_is() -> None:
    assert judged(oom("2.00 GiB", "1.06 GiB", gpu=9_007_199_254_740_993))["rank"]["gpu_index"] == 9_007_199_254_740_993
    assert judged(oom("2.00 GiB", "1.06 GiB", gpu=10**30))["first_error"]["kind"] == "torch_oom"
