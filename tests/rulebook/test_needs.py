"""The words that an alternative of a pattern needs are those that it cannot match without."""

import pytest

from bot.rulebook.load import load_rulebook
from bot.rulebook.needs import alternatives_of
from bot.rulebook.patterns import compiled


def needs(pattern: str) -> list[list[set[str]]]:
    return [[set(need) for need in one.needs] for one in alternatives_of(pattern)]


@pytest.mark.parametrize(
    "pattern",
    [
        r"(?:large)?",
        r"[large]",
        r"\w+\d{3}",
        r"(?=large)(?<!small)",
        r"(?:large|\d+)",
        r"l?a*",
        r"(?:large){0,3}?",
        r"(?(before)large|small)",
    ],
)
def test_what_need_not_stand_there_is_not_needed(pattern: str) -> None:
    assert needs(pattern) == [[]]


def test_each_alternative_needs_its_own_words_in_lower_case() -> None:
    assert needs(r"(?i)OOM\ when\ (?:load|start)ing|drei\ ?Köche|显存") == [
        [{"oom"}, {"when"}, {"load", "start"}, {"ing"}],
        [{"drei"}, {"köche"}],
        [{"显存"}],
    ]


def test_a_word_ends_where_a_letter_may_be_missing_or_stand_again() -> None:
    assert needs(r"requests?\ dro+pped") == [[{"request"}, {"dro"}, {"pped"}]]


def test_a_set_of_letters_and_a_bracket_that_is_text_part_words() -> None:
    assert needs(r"graph[\ _-]capture\(mode\)") == [[{"graph"}, {"capture"}, {"mode"}]]


def test_every_rule_matches_its_examples_by_an_alternative_whose_words_stand_there() -> None:
    tried = 0
    for rule in load_rulebook().facts:
        if not rule.pattern:
            continue
        for line in (example.line for example in (*rule.example, *rule.counterexample)):
            live = [one for one in alternatives_of(rule.pattern) if all(any(word in line.lower() for word in need) for need in one.needs)]
            found = any(compiled(one.pattern).search(line) for one in live)
            assert found == (compiled(rule.pattern).search(line) is not None), (rule.id, line)
            tried += found
    assert tried > 300
