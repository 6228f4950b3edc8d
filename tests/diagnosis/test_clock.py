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
