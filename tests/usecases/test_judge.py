"""Which outcomes of an incident stand, before anything is judged."""

import pytest

from bot.domain.incident import Contribution
from bot.usecases.judge import moved_at, refuted_changes

LOG = Contribution("paste", "a log")


def said(result: str, remedy: str) -> Contribution:
    return Contribution("outcome", result, name=remedy)


@pytest.mark.parametrize(
    ("outcomes", "refuted"),
    [
        ((said("same", "a"), said("same", "b")), ["a", "b"]),  # what was offered next did not help either
        ((said("same", "a"), said("fixed", "a")), []),
        ((said("same", "a"), LOG, said("same", "a")), ["a", "a"]),
        ((said("same", "a"), said("same", "b"), said("undo", "b")), ["a"]),
    ],
)
def test_an_outcome_corrects_the_one_before_only_of_the_same_change(outcomes: tuple[Contribution, ...], refuted: list[str]) -> None:
    assert [one["id"] for one in refuted_changes([LOG, *outcomes])] == refuted


def test_moved_stands_when_something_was_read_since() -> None:
    assert moved_at([LOG, said("moved", "a"), said("same", "a")]) == 0
    assert moved_at([LOG, said("moved", "a"), LOG, said("same", "a")]) == 2
