"""Words count by when they were said; logs keep their order."""

from datetime import UTC, datetime, timedelta

import pytest

from bot.domain.incident import Contribution
from bot.rulebook.load import load_rulebook
from bot.usecases.judge import judge, moved_at, refuted_changes
from bot.usecases.said_when import in_order_said
from tests.diagnosis.material import oom

TAIL = oom("1.00 GiB", "0.50 GiB").partition(" GPU ")[0]


def said(second: int, kind: str, text: str, *, author: str = "UA", name: str | None = None, chat: bool = True) -> Contribution:
    """What was said so many seconds into the thread."""
    at = datetime(2026, 11, 30, tzinfo=UTC) + timedelta(seconds=second)
    return Contribution(kind, text, name=name, author=author, message=str(second) if chat else None, at=at)  # type: ignore[arg-type]


@pytest.mark.parametrize("late", [True, False])
def test_of_two_answers_the_one_said_last_is_followed(late: bool) -> None:
    answers = [said(5, "answer", "rank=3"), said(9, "answer", "rank=4")]
    document = judge(load_rulebook(), [said(0, "paste", TAIL), *(reversed(answers) if late else answers)])
    assert document["rank"]["number"] == 4


def test_an_outcome_that_comes_late_is_not_the_newest() -> None:
    came = [said(0, "paste", "log"), said(9, "outcome", "fixed", name="a"), said(5, "outcome", "same", name="a")]
    assert refuted_changes(in_order_said(came)) == []


def test_a_log_that_came_before_the_word_that_the_error_moved_is_of_the_run_since() -> None:
    came = [said(0, "paste", "log"), said(9, "paste", "another log"), said(5, "outcome", "moved")]
    assert moved_at(in_order_said(came)) == 2


def test_logs_stay_where_they_are() -> None:
    came = [said(0, "paste", "log"), said(9, "file", "its end"), said(5, "paste", "its middle"), said(3, "answer", "first_error=a line")]
    assert in_order_said(came) == came


def test_moments_of_two_clocks_are_not_compared() -> None:
    came = [said(0, "paste", "log"), said(9, "answer", "rank=4"), said(5, "answer", "rank=3", chat=False)]
    assert in_order_said(came) == came
