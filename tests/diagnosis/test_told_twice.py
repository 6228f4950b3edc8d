"""One failure in two pastes: its end first, then the log that shows it whole. The order in which they came decides nothing."""

from itertools import permutations
from typing import Any

import pytest

from bot.domain.incident import Contribution
from bot.rulebook.load import load_rulebook
from bot.usecases.judge import judge
from tests.diagnosis.material import frame, oom, worker

BOOK = load_rulebook()
WRAPPER = "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"
FRAMES = (frame("v1/worker/gpu_worker.py", "compile_or_warm_up_model"), frame("v1/worker/gpu_model_runner.py", "capture_model"))
CAPTURE = "\n".join(FRAMES)
LAST = oom("136.00 MiB", "80.00 MiB", gpu=6)
LOG = "\n".join(
    [
        "(EngineCore_DP0 pid=7400) INFO 10-23 09:35:01 [core.py:77] Initializing a V1 LLM engine (v0.11.0) with config: tensor_parallel_size=8",
        worker("Worker_TP0", "Available KV cache memory: 50.00 GiB", at="INFO 10-23 09:36:40 [gpu_worker.py:298]"),
        worker("Worker_TP6", "Traceback (most recent call last):", *FRAMES, LAST),
        worker("Worker_TP2", oom("136.00 MiB", "80.00 MiB", gpu=2), at="ERROR 10-23 09:37:57 [multiproc_executor.py:671]"),
    ]
)


def told(*pastes: str) -> list[dict[str, Any]]:
    """The diagnosis for each order of the pastes."""
    return [judge(BOOK, [Contribution("paste", text + "\n") for text in order]) for order in permutations(pastes)]


@pytest.mark.parametrize(
    "tail",
    [
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 136.00 MiB.\n{WRAPPER}",
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 136.00 MiB. \n{WRAPPER}\nx",
        f"{CAPTURE}\ntorch.OutOfMemoryError: CUDA out of memory.\n{WRAPPER}",
        f"Traceback (most recent call last):\n{CAPTURE}\n{LAST}",
        f"(EngineCore_DP0 pid=7400) {oom('136.00 MiB', '80.00 MiB', gpu=6)}\n{WRAPPER}",
        worker("Worker_TP2", oom("136.00 MiB", "80.00 MiB", gpu=2), at="ERROR 10-23 09:37:57 [multiproc_executor.py:671]"),
    ],
)
def test_the_log_decides_in_either_order(tail: str) -> None:
    for document in told(tail, LOG):
        assert (document["verdict"], document["phase"], document["rank"]["number"]) == ("certain", "graph_capture", 6)
        assert (document["first_error"]["line"], document["also_failed"]) == (6, ["Worker_TP2"])


def test_the_check_of_free_memory_is_the_workers_that_signs_it() -> None:
    check = "ValueError: Free memory on device cuda:3 (31.44/47.38 GiB) on startup is less than desired GPU memory utilization (0.95, 45.01 GiB)."
    for document in told(check, worker("Worker_TP3", frame("v1/worker/gpu_worker.py", "init_device"), check)):
        assert (document["rank"]["number"], document["first_error"]["line"]) == (3, 2)


@pytest.mark.parametrize(
    "other",
    [
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",  # asked for something else
        oom("136.00 MiB", "80.00 MiB", gpu=3),  # on another card
        oom("136.00 MiB", "12.00 MiB", gpu=6),  # with less free: another try
        worker("Worker_TP4", oom("136.00 MiB", "80.00 MiB", gpu=4)),
        "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 136.00 MiB.",  # signed by another
    ],
)
def test_another_failure_that_came_first_stays_the_first(other: str) -> None:
    assert told(other, LOG)[0]["first_error"]["source"] == 1


def test_of_two_pastes_that_overlap_the_first_failure_stays_the_first() -> None:
    for document in told(LOG.rpartition("\n")[0], "\n".join(LOG.split("\n")[2:])):
        assert (document["rank"]["number"], document["first_error"]["line"], document["also_failed"]) == (6, 6, ["Worker_TP2"])


def test_of_two_tails_neither_names_a_rank() -> None:
    tail = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 136.00 MiB.\n" + WRAPPER
    assert [document["rank"] for document in told(tail, f"{LAST.split(' GPU 6')[0]}\nkilled")] == [None, None]


def test_a_headline_with_its_figure_goes_behind_the_log_below_it() -> None:
    document = judge(BOOK, [Contribution("paste", f"CUDA out of memory. Tried to allocate 136.00 MiB.\n{LOG}\n")])
    assert (document["rank"]["number"], document["first_error"]["line"]) == (6, 7)
