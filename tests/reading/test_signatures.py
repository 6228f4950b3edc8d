"""Who speaks: every way that a line can be signed, and what carries it."""

import pytest

from bot.reading.signatures import Signatures
from bot.rulebook.load import load_rulebook
from tests.reading.material import evidence, signed

WORKER = "(Worker_TP3 pid=12) ERROR 11-18 10:00:00 [gpu_worker.py:298] boom"


def test_prose_is_signed_by_nobody() -> None:
    for line in ("the error (see below) is odd", "a note | a second column", "1. vllm serve x", "Worker died", "pid=12 was gone"):
        assert signed(line) == [(1, "", line)]


@pytest.mark.parametrize(
    ("line", "label"),
    [
        ("(VllmWorker rank=1 pid=2978) x", "VllmWorker rank=1"),
        ("(VllmWorker PP0_TP0 pid=) x", "VllmWorker PP0_TP0"),
        ("(VllmWorkerProcess pid=195359) x", "VllmWorkerProcess"),
        ("(Worker_TP7_EP7 pid=7501) x", "Worker_TP7_EP7"),
        ("(Worker_DP1_TP1_EP3 pid=9) x", "Worker_DP1_TP1_EP3"),
        ("(Worker pid=32255) x", "Worker"),
        ("Worker_TP1 pid=9) x", "Worker_TP1"),
        ("(EngineCore_0 pid=4) x", "EngineCore_0"),
        ("(EngineCore_DP0 pid=7317) x", "EngineCore_DP0"),
        ("(APIServer pid=1) (EngineCore_DP0 pid=68) x", "EngineCore_DP0"),
        ("(EngineCore_DP0 pid=1) (Worker_TP1 pid=2) x", "Worker_TP1"),
        ("(RayWorkerWrapper pid=7152, ip=10.0.0.10) x", "RayWorkerWrapper"),
        ("(ActorModelRayActor pid=348991) x", "ActorModelRayActor"),
        ("(main_task pid=55) x", "main_task"),
        ("[rank0]: x", "rank 0"),
        ("[2025-07-02 07:41:58 DP0 TP3] x", "DP0 TP3"),
        ("[07/08/2025-19:47:15] [TRT-LLM] [RANK 1] [E] x", "rank 1"),
        ("WARN  PyProcess W-252-model-stderr: (RayWorkerWrapper pid=7, ip=10.0.0.2) x", "RayWorkerWrapper"),
        ("2024-10-14 01:39:49 | ERROR | stderr | [rank0]: x", "rank 0"),
    ],
)  # fmt: skip
def test_a_process_is_known_by_its_tag(line: str, label: str) -> None:
    assert signed(line) == [(1, label, "x")]


@pytest.mark.parametrize(
    "carrier",
    [
        "> ", "vllm-1  | ", "[pod/vllm-6d5f-abcde/vllm] ", "2026-11-18T10:00:00.123456789Z ", "2026-11-18T10:00:00.123456789Z stderr F ",
        "[pod/vllm-6d5f-abcde/vllm] 2026-11-18T10:00:00.1Z ", "Nov 18 10:00:00 gpu01 vllm[812]: ", "2026-11-18T10:00:00+0000 gpu01 docker[812]: ",
        "vllm-6d5f8-abcde vllm ", "vllm-6d5f8-abcde vllm │ ", "4711:", "vllm.log:12:", "  12\t", "```", "- ", "[vllm-prefill-0] ",
        '2026-03-11T17:57:10Z {app="vllm", pod="vllm-0"} ', "INFO 2025-11-19T20:16:36.0Z [resource.labels.containerName: vllm] ",
        "E0915 15:27:00.910199 134 logging.cc:40] ", "> > vllm-1  | ",
    ],
)  # fmt: skip
def test_what_carries_a_line_is_peeled_off(carrier: str) -> None:
    assert signed(carrier + WORKER) == [(1, "Worker_TP3", "boom")]


def test_two_containers_are_two_speakers() -> None:
    one, two = "vllm-1  | " + WORKER, "vllm-2  | " + WORKER
    from tests.reading.material import evidence

    assert len({line.speaker.key for line in evidence(one + "\n" + two).speakers}) == 2


def test_the_same_line_is_read_the_same_whatever_was_read_before() -> None:
    fresh, used = Signatures(load_rulebook()), Signatures(load_rulebook())
    lines = ["2026-11-18T10:00:00Z hello", "2026-11-18T10:00:00Z stderr F hello", WORKER, "2026-11-18T10:00:00Z " + WORKER]
    for line in lines * 2:
        used.peel(line)
    for line in lines:
        assert used.peel(line) == fresh.peel(line)


def test_a_line_folded_by_ray_counts_as_often_as_it_says() -> None:
    from bot.reading.lines import sign
    from tests.reading.material import BOOK

    (line,) = sign(BOOK, 1, [(1, "(RayWorkerWrapper pid=7) boom [repeated 30x across cluster]")])
    assert (line.text, line.repeats) == ("boom", 30)


def test_a_traceback_below_a_signed_header_belongs_to_its_process() -> None:
    text = (
        "[2025-07-02 07:41:58 TP1] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "/sgl/scheduler.py", line 2520, in run_scheduler_process\n'
        "RuntimeError: Not enough memory.\n"
        "what a person wrote below"
    )
    assert [label for _, label, _ in signed(text)] == ["TP1", "TP1", "TP1", ""]


def test_a_traceback_that_nobody_signed_is_nobodys() -> None:
    text = "(Worker_TP1 pid=1) ERROR 11-18 10:00:00 [x.py:1] boom\nTraceback (most recent call last):\nValueError: x"
    assert [label for _, label, _ in signed(text)] == ["Worker_TP1", "", ""]


def test_two_nodes_of_ray_whose_workers_sign_alike_are_two_processes() -> None:
    line = "(RayWorkerProc pid=231, ip={}) (Worker_TP1 pid=231) ERROR 10-01 10:00:00 [multiproc_executor.py:1] x"
    found = evidence(line.format("10.0.0.5") + "\n" + line.format("10.0.0.6"))
    assert [(one.speaker.label, one.speaker.ip) for one in found.errors] == [("Worker_TP1", "10.0.0.5"), ("Worker_TP1", "10.0.0.6")]
    assert len(found.ranks) == 2
