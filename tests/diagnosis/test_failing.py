import json
from typing import Any

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


def test_a_check_in_one_of_several_engines_and_workers_of_its_own_give_no_rank_of_that_engine() -> None:
    check = "(EngineCore_DP3 pid=9) ERROR 10-23 09:37:56 [core.py:708] ValueError: No available memory for the cache blocks."
    assert judged(check)["rank"] is None
    inside = worker("EngineCore_DP3", *FAILED, oom("1.00 GiB", "0.50 GiB", gpu=3), at="ERROR 10-23 09:37:56 [core.py:708]")
    assert judged(inside)["rank"]["number"] == 3
    assert judged("vllm serve m -tp 2 -dp 4\n" + inside)["rank"]["number"] is None


@pytest.mark.parametrize(("world", "rank"), [(2, 1), (4, None)])
def test_of_two_workers_of_v0_the_one_that_is_not_the_driver_is_rank_1(world: int, rank: int | None) -> None:
    text = f"rank 0 in world size {world} is assigned as DP rank 0, PP rank 0, TP rank 0\n"
    text += "(VllmWorkerProcess pid=8) ERROR 08-08 10:10:11 [multiproc_worker_utils.py:239] Exception in worker VllmWorkerProcess while processing method init_device.\n"
    text += "(VllmWorkerProcess pid=8) ERROR 08-08 10:10:11 [multiproc_worker_utils.py:239] RuntimeError: CUDA error: out of memory"
    assert (judged(text)["rank"] or {"number": None})["number"] == rank


def test_an_error_that_stands_in_a_title_alone_failed_in_the_engine_core_whose_traceback_is_below() -> None:
    steps = [frame("v1/engine/core.py", name, n) for n, name in ((1129, "run_engine_core"), (1209, "_process_engine_step"))]
    told = "\n".join(f"(EngineCore pid=104) {line}" for line in steps)
    title = "[Bug]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 50.00 MiB. GPU 0 has a total capacity of 23.56 GiB\n"
    assert judged(title)["phase"] == "unknown"
    assert judged(title + told)["phase"] == "serving"


def test_under_ray_one_worker_is_rank_0_where_the_command_says_that_there_is_one() -> None:
    loads = frame("worker/worker.py", "load_model", 183)
    command = "vllm serve a/b --tensor-parallel-size {} --distributed-executor-backend ray\n"
    assert judged(command.format(2) + loads)["rank"] is None
    assert judged(command.format(1) + loads)["rank"]["number"] == 0


def test_under_ray_a_device_index_gives_no_rank() -> None:
    document = judged("(RayWorkerWrapper pid=71, ip=10.0.0.3) " + oom("1.00 GiB", "0.50 GiB", gpu=3))
    assert (document["rank"]["number"], document["rank"]["gpu_index"]) == (None, 3)


@pytest.mark.parametrize(
    "said", ["fails on 2 nodes (8*H20)", "--nnodes 2 --node-rank 0", "双机16卡", "LeaderWorkerSet", "--tensor-parallel-size 16"]
)
def test_on_one_of_several_nodes_a_device_index_gives_no_rank(said: str) -> None:
    rank = judged(f"{said}\n{oom('448.00 MiB', '1.06 GiB', gpu=7)}")["rank"]
    assert (rank["number"], rank["gpu_index"]) == (None, 7)


@pytest.mark.parametrize(("pools", "rank"), [((9.9, 9.8), None), ((-3.86, -3.9), None), ((9.9, -3.86), 1)])
def test_the_one_rank_without_a_pool_is_the_one_for_which_the_engine_stops(pools: tuple[float, ...], rank: int | None) -> None:
    lines = [
        f"(Worker_TP{n} pid={40 + n}) INFO 12-10 03:24:48 [gpu_worker.py:298] Available KV cache memory: {pool} GiB"
        for n, pool in enumerate(pools)
    ]
    core = "(EngineCore_DP0 pid=9) ERROR 12-10 03:24:48 [core.py:708] ValueError: No available memory for the cache blocks."
    assert (judged("\n".join([*lines, core]))["rank"] or {"number": None})["number"] == rank


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


def test_an_error_that_a_sentence_names_is_the_first_error_where_no_program_raises_it() -> None:
    document = judged("Same start, one flag more:\n\n- `--gpu-memory-utilization 0.82` → `torch.OutOfMemoryError` while the weights load\n")
    assert (document["first_error"]["line"], document["phase"], document["verdict"]) == (3, "weight_loading", "likely")


def test_what_a_sentence_names_gives_way_to_what_the_engine_raises() -> None:
    told = "It dies with `CUDA out of memory` while it warms up.\n"
    sampler = "RuntimeError: CUDA out of memory occurred when warming up sampler with 256 dummy requests."
    document = judged(told + sampler)
    assert (document["first_error"]["line"], document["first_error"]["kind"]) == (2, "sampler_warmup")


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


@pytest.mark.parametrize(
    "text",
    [
        "TP rank 1 died while loading the model: out of memory",
        "OOM on rank 1 and rank 3 while loading the model",
        "OOM on rank 9 while loading the model, --tensor-parallel-size 8",
    ],
)
def test_a_rank_of_a_group_one_of_several_and_one_beyond_the_grid_are_not_named(text: str) -> None:
    assert judged(text)["rank"] is None


def test_a_message_that_names_the_rank_that_failed_is_believed() -> None:
    rank = judged("Wake-up failed on Rank 1: CUDA Error: out of memory at /app/csrc/cumem_allocator.cpp:163")["rank"]
    assert (rank["number"], rank["basis"]) == (1, "message")


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


TP8 = "(Worker_TP7 pid=9) ERROR 11-18 10:00:01 [x.py:1] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
UNSIGNED = "INFO world_size=8 rank=0\nvllm serve org/m1 --tensor-parallel-size 8\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."


def told(text: str, answer: str) -> dict[str, Any]:
    return judge(load_rulebook(), [Contribution("paste", text), Contribution("answer", f"rank={answer}")])


@pytest.mark.parametrize("answer", ["-1", "99", "3.7", "0 or 1", "8", "the first one", "not 3", "it isn't rank 3"])
def test_an_answer_that_names_no_one_rank_is_not_taken(answer: str) -> None:
    document = told(UNSIGNED, answer)
    assert (document["rank"] or {}).get("number") is None
    assert any("names no one rank" in note and answer in note for note in document["notes"])


@pytest.mark.parametrize("answer", ["3", "gpu3", "Rank 3", "Worker_TP3_EP3"])
def test_an_answer_that_names_one_rank_is(answer: str) -> None:
    document = told(UNSIGNED, answer)
    assert (document["rank"]["number"], document["rank"]["basis"]) == (3, "answer")


def test_the_tag_of_what_failed_stands_against_an_answer_and_it_says_so() -> None:
    document = told(TP8, "3")
    assert document["rank"]["number"] == 7
    assert any("not followed" in note and "rank 7" in note for note in document["notes"])


def test_nobody_is_noted_for_not_knowing() -> None:
    assert not any("answer" in note for note in told(UNSIGNED, "I don't know")["notes"])


def test_where_a_check_failed_the_smallest_pool_is_the_one_that_is_spoken_of() -> None:
    text = (
        "(Worker_TP0 pid=60) INFO 11-01 10:01:30 [gpu_worker.py:440] Available KV cache memory: 14.50 GiB\n"
        "(Worker_TP1 pid=61) INFO 11-01 10:01:30 [gpu_worker.py:440] Available KV cache memory: 14.20 GiB\n"
        "(EngineCore pid=55) ERROR 11-01 10:01:31 [core.py:1100] ValueError: To serve at least one request with the model's max seq len (131072), "
        "(20.0 GiB KV cache is needed, which is larger than the available KV cache memory (14.2 GiB).\n"
    )
    assert "the pool has 14.20 GiB" in judged(text)["recommendation"]["because"]


def test_a_budget_names_no_rank_where_the_diagnosis_names_none() -> None:
    text = (
        "ERROR 11-01 10:01:31 [multiproc_executor.py:492] ValueError: Free memory on device (31.44/47.38 GiB) on startup is less than desired GPU "
        "memory utilization (0.95, 45.01 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes."
    )
    document = judged(text)
    assert document["rank"] is None
    assert [row["rank"] for row in document["budgets"]] == [None]
    assert document["deployment"]["gpu_memory_utilization"] == 0.95
    assert document["first_error"]["total_bytes"] == document["budgets"][0]["total_bytes"]


OF_A = (
    "vllm serve org/model-a\n"
    + "(Worker_TP1 pid=5) ERROR 11-18 10:00:01 [x.py:1] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
)


def test_logs_of_two_models_are_two_incidents_and_it_says_so() -> None:
    other = OF_A.replace("model-a", "model-b").replace("TP1", "TP6")
    document = judge(load_rulebook(), [Contribution("file", OF_A, name="a.log"), Contribution("file", other, name="b.log")])
    assert (document["deployment"]["model"], document["rank"]["number"]) == ("org/model-a", 1)
    assert "b.log holds the failure of another model, org/model-b: judge it by itself." in document["notes"]


def test_logs_of_one_model_are_one_incident() -> None:
    both = [Contribution("file", OF_A, name="a.log"), Contribution("file", OF_A.replace("org/", "/models/"), name="b.log")]
    assert not any("another model" in note for note in judge(load_rulebook(), both)["notes"])


def test_memory_that_is_only_said_to_have_run_out_is_not_said_to_have_held() -> None:
    assert judged("it says cuda out of memory at startup")["summary"].startswith("Memory is said to have run out")


def test_whoever_names_memory_in_another_word_is_not_told_that_none_failed() -> None:
    assert judged("the 32B goes OOM and that is all I know")["summary"].startswith("Memory is said to have run out")


def test_the_swap_space_that_v0_pins_is_the_machines_memory() -> None:
    trace = [
        "Traceback (most recent call last):",
        frame("worker/cache_engine.py", "__init__"),
        frame("worker/cache_engine.py", "allocate_cpu_cache"),
    ]
    document = judged("\n".join([*trace, "RuntimeError: CUDA error: out of memory"]))
    assert document["phase"] == "host_memory"
    assert (document["recommendation"]["flag"], document["recommendation"]["value"]) == ("--swap-space", "0")


WAKING = "\n".join(
    (
        "Traceback (most recent call last):",
        frame("engine/llm_engine.py", "wake_up"),
        frame("executor/uniproc_executor.py", "collective_rpc"),
        frame("device_allocator/cumem.py", "create_and_map"),
        "RuntimeError: CUDA Error: out of memory at /workspace/csrc/cumem_allocator.cpp:62",
    )
)


@pytest.mark.parametrize(("cards", "number"), [("on 4 x A800", None), ("on one A800", 0), ("", 0)])
def test_of_engines_that_a_trainer_wakes_on_several_cards_none_tells_its_place(cards: str, number: int | None) -> None:
    assert (judged(f"Waking up {cards} fails\n{WAKING}")["rank"] or {}).get("number") == number


def answered(*answers: tuple[str, str], log: str = UNSIGNED) -> tuple[int | None, list[str]]:
    """(rank, notes on the answers) of what people said one after the other, each with who said it."""
    said = [Contribution("answer", f"rank={value}", author=author) for author, value in answers]
    document = judge(load_rulebook(), [Contribution("paste", log), *said])
    return (document["rank"] or {}).get("number"), [note for note in document["notes"] if "answer" in note]


@pytest.mark.parametrize(
    ("answers", "rank"),
    [
        ([("UA", "2"), ("UB", "2")], 2),
        ([("UA", "2"), ("UB", "Worker_TP2")], 2),
        ([("UA", "2"), ("UA", "5")], 5),  # who corrects himself
        ([("UA", "2"), ("UB", "5"), ("UA", "5")], 5),  # who is convinced
        ([("UA", "2"), ("UB", "unknown")], 2),
    ],
)
def test_who_agrees_is_followed(answers: list[tuple[str, str]], rank: int) -> None:
    assert answered(*answers) == (rank, [])


def test_of_two_who_differ_neither_is_followed_and_both_are_named() -> None:
    said = "The answers rank 2 and rank 5 differ, so none is followed: the line of the first error settles it."
    assert answered(("UA", "2"), ("UB", "5")) == (None, [said])
    assert answered(("UA", "2"), ("UB", "all"))[0] is None


def test_of_two_who_differ_only_the_one_whom_the_tag_refutes_is_named() -> None:
    log = worker("Worker_TP2", oom("1.00 GiB", "0.50 GiB", gpu=2))
    assert answered(("UA", "2"), ("UB", "5"), log=log) == (
        2,
        ["The answer '5' is not followed: what failed signs as Worker_TP2, which is rank 2."],
    )
