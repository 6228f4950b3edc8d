"""Who failed first where the lines of several workers do not stand in the order of their stamps."""

import pytest

from bot.domain.incident import Contribution
from bot.rulebook.load import load_rulebook
from bot.usecases.judge import judge
from tests.diagnosis.material import oom

BOOK = load_rulebook()


def failed(*stamps: str) -> tuple[int, int]:
    """(rank, line) said to have failed first, of workers 0, 1, … that failed at these moments."""
    lines = [
        f"(Worker_TP{n} pid={100 + n}) ERROR {at} [multiproc_executor.py:671] {oom('2.00 GiB', '512.00 MiB', gpu=n)}"
        for n, at in enumerate(stamps)
    ]
    document = judge(BOOK, [Contribution("paste", "\n".join(lines) + "\n")])
    return document["rank"]["number"], document["first_error"]["line"]


@pytest.mark.parametrize(
    "stamps",
    [
        ("03-07 08:00:01", "03-07 08:00:04"),  # in order
        ("03-07 08:00:01", "03-07 08:00:01"),  # in one second the first one printed is named
        ("03-07 08:00:01", "03-07 06:30:00"),  # of another run
        ("01-01 00:00:01", "12-31 23:59:58"),  # no year says which came before
        ("03-07 08:00:09", "99-99 08:00:01"),
    ],
)
def test_the_first_line_stays_the_first(stamps: tuple[str, str]) -> None:
    assert failed(*stamps) == (0, 1)


def test_an_earlier_stamp_goes_before_an_earlier_line() -> None:
    assert failed("03-07 08:00:09", "03-07 08:00:07", "03-07 08:00:03") == (2, 3)


def test_stamps_of_two_forms_are_not_compared() -> None:
    text = (
        f"2026-03-07T08:00:09Z [rank0]: {oom('2.00 GiB', '512.00 MiB', gpu=0)}\n"
        f"(Worker_TP1 pid=9) ERROR 03-07 08:00:01 [multiproc_executor.py:671] {oom('2.00 GiB', '512.00 MiB', gpu=1)}\n"
    )
    assert judge(BOOK, [Contribution("paste", text)])["first_error"]["line"] == 1


def told_then_logged(first: str, *, apart: bool) -> tuple[int, int | None]:
    """(line of the log that is said to have failed first, its rank) of a line that came before a worker's own log; 0 for that line."""
    log = f"(Worker_TP1 pid=9) ERROR 03-07 08:00:09 [multiproc_executor.py:671] {oom('2.00 GiB', '512.00 MiB', gpu=1)}"
    pastes = [first, log] if apart else [f"{first}\n{log}"]
    document = judge(BOOK, [Contribution("paste", text) for text in pastes])
    error = document["first_error"]
    return error["line"] + (error["source"] - 1) - 1, (document["rank"] or {}).get("number")


@pytest.mark.parametrize("apart", [True, False])
@pytest.mark.parametrize(
    "first",
    [
        "(Worker_TP0 pid=8) ERROR 03-07 08:00:09 [multiproc_executor.py:671] RuntimeError: CUDA error: out of memory",  # another worker's own
        "(EngineCore_DP0 pid=7) ERROR 03-07 08:00:02 [core.py:708] RuntimeError: CUDA error: out of memory",  # before the worker's
    ],
)
def test_a_line_that_is_signed_and_no_later_stays_the_first(first: str, apart: bool) -> None:
    assert told_then_logged(first, apart=apart)[0] == 0


@pytest.mark.parametrize("apart", [True, False])
@pytest.mark.parametrize(
    "first",
    [
        "CUDA error: out of memory",
        "RuntimeError: CUDA error: out of memory",
        "torch.OutOfMemoryError: CUDA out of memory.",
        "(EngineCore_DP0 pid=7) ERROR 03-07 08:00:09 [core.py:708] RuntimeError: CUDA error: out of memory",
        "(EngineCore_DP0 pid=7) ERROR 03-07 08:00:11 [core.py:708] RuntimeError: CUDA error: out of memory",
    ],
)
def test_a_bare_line_or_the_cores_copy_gives_way_to_the_workers_own_log(first: str, apart: bool) -> None:
    assert told_then_logged(first, apart=apart) == (1, 1)
