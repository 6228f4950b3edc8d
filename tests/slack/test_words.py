"""What a message is: a verb, an answer, evidence, or talk."""

import pytest

from bot.slack.words import Verb, answers, incident, is_evidence, short_of_memory, tells_facts, verb


@pytest.mark.parametrize(
    "said",
    [
        "help, it crashed",
        "show me the money",
        "watch out!",
        "stats look bad",
        "settings are wrong",
        "sizes",
        "",
        "size\nsize",
        "forget about it",
    ],
)
def test_talk_is_no_verb(said: str) -> None:
    assert verb(said) is None


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("help", Verb("help", "")), ("Help!", None), ("size llama-70b gpu=H100", Verb("size", "llama-70b gpu=H100")), ("show D-0187", Verb("show", "D-0187")),
        ("SHOW d-187", Verb("show", "d-187")), ("explain should utilization go up or down?", Verb("explain", "should utilization go up or down?")),
        ("watch off", Verb("watch", "off")), ("outcome fixed", Verb("outcome", "fixed")), ("stats 7d", Verb("stats", "7d")),
    ],
)  # fmt: skip
def test_a_verb_is_followed_by_what_it_takes(said: str, expected: Verb | None) -> None:
    assert verb(said) == expected


def test_a_slash_command_is_a_verb_whatever_follows() -> None:
    assert verb("show me", typed_as_command=True) == Verb("show", "me")


@pytest.mark.parametrize("said", ["lol", "thanks!", "rank and file", "version control is nice", "tp 4 pp 2", "?", "in 3 days"])
def test_talk_is_no_answer(said: str) -> None:
    assert answers(said, ["failing_rank"]) == []


def test_a_bare_number_answers_only_the_question_for_the_rank() -> None:
    assert answers("3", ["failing_rank"]) == ["rank=3"]
    assert answers("3", ["first_error"]) == []
    assert answers("all of them: every rank", ["failing_rank"]) == ["rank=all"]


def test_not_knowing_answers_every_open_question() -> None:
    assert answers("I don't know", ["first_error", "engine_version"]) == ["first_error=unknown", "engine_version=unknown"]
    assert answers("I don't know", []) == []


@pytest.mark.parametrize("said", ["shall we order pizza?", "the OOMs of yesterday were fun? no", "my memory is bad"])
def test_talk_shows_no_lack_of_memory(said: str) -> None:
    assert not short_of_memory(said)


@pytest.mark.parametrize(
    "said",
    ["torch.OutOfMemoryError: CUDA out of memory.", "container OOMKilled", "No available memory for the cache blocks", "exit code 137"],
)
def test_what_ran_out_of_memory_is_seen(said: str) -> None:
    assert short_of_memory(said)
    assert is_evidence(said)


def test_facts_are_told_apart_from_talk() -> None:
    assert tells_facts("vllm 0.11.0 on 4 x H100")
    assert tells_facts("started with --max-model-len 32768")
    assert not tells_facts("let me ask around")


def test_an_incident_is_found_in_many_spellings() -> None:
    assert [incident(said) for said in ("D-0187", "d-187", "see D187 please", "no", "187")] == [
        "D-0187",
        "D-0187",
        "D-0187",
        None,
        "D-0187",
    ]
