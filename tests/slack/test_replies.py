"""Which rank failed, said in a thread: never heard out of talk about something else."""

import pytest

from bot.slack.replies import answers

ASKED = ["failing_rank", "memory_report"]


@pytest.mark.parametrize(
    "text",
    [
        "it is not rank 3", "not gpu 3, I checked", "rank 3 isn't the one", "anything but rank 3", "which of you owns gpu2?",
        "does anyone know rank 3 of the leaderboard?", "I bought a gpu 5 weeks ago", "did gpu 3 fail?",
        "we moved rank 4 to another node yesterday, can we still restart?", "the scheduler gives worker 7 more jobs than the rest of us",
        "3 of us looked at it", "Worker_TP3 is not the first", "thanks!",
    ],
)  # fmt: skip
def test_talk_about_a_rank_is_no_answer(text: str) -> None:
    assert answers(text, ASKED) == []


@pytest.mark.parametrize(
    "text",
    [
        "we use gpu 3 for the tests", "gpu 0 has the display", "I have one gpu: gpu 0 runs the desktop", "gpu 2 failed RMA last month",
        "rank 5 failed in the other cluster yesterday", "worker 4 is gone for lunch", "rank 1 is down 5% in my ELO", "gpu 3 crashed my laptop",
    ],
)  # fmt: skip
def test_unasked_a_rank_counts_only_where_nothing_else_is_said_of_it(text: str) -> None:
    assert answers(text, []) == []


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("rank 3", "3"), ("Rank: 3.", "3"), ("gpu3", "3"), ("GPU #3", "3"), ("it was rank 3", "3"), ("rank 3?", "3"), ("rank 3 died first", "3"),
        ("I think it's worker 2, the log says so", "2"), ("rank 3, on vllm 0.11.0", "3"), ("it's gpu 1 that OOMs", "1"),
        ("rank 5 failed, rank 4 did not", "5"), ("not rank 2, it is rank 5", "5"), ("device=0", "0"), ("hey! worker 4 crashed", "4"),
        ("rank 3 ran out of memory first", "3"), ("actually rank 5 died with OOM", "5"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("asked", [ASKED, []])
def test_a_rank_is_heard_asked_or_not(text: str, value: str, asked: list[str]) -> None:
    assert answers(text, asked) == [f"rank={value}"]


@pytest.mark.parametrize(
    ("text", "value"),
    [("3", "3"), ("#3", "3"), ("it's 3", "3"), ("das war gpu 3", "3"), ("all of them", "all"), ("Worker_TP3_EP3 is the first", "Worker_TP3_EP3"), ("rank 3 and 5", "3, 5"), ("gpu 5, gpu 3", "3, 5")],
)  # fmt: skip
def test_asked_for_it_less_is_enough_and_several_stay_several(text: str, value: str) -> None:
    assert answers(text, ASKED) == [f"rank={value}"]


def test_who_does_not_know_says_so_of_every_question() -> None:
    assert answers("no idea, sorry", ASKED) == ["failing_rank=unknown", "memory_report=unknown"]
    assert answers("no idea, sorry", []) == []
