"""Rules of people's words are held against all their lines at once."""

from collections.abc import Sequence

from bot.domain.evidence import LogLine
from bot.reading.anchored import SHORT, finder_of
from bot.reading.figures import Figures
from bot.reading.lines import sign
from bot.reading.prose import Talking
from bot.reading.sieved import FURTHEST, sieved
from bot.rulebook.load import load_rulebook

BOOK = load_rulebook()
RULE = "typed.weights"


def lines_of(*texts: str) -> Sequence[LogLine]:
    return [*sign(BOOK, 1, [*enumerate(texts, 1)])]


def said(*texts: str) -> list[int]:
    """The places of the lines that the rule is left for."""
    lines = lines_of(*texts)
    return [place for place, rules in sieved(finder_of(BOOK).anchored(lines), lines, Figures(BOOK), Talking(BOOK)).items() if RULE in rules]


def test_a_line_that_names_the_weights_and_says_nothing_of_them_is_passed() -> None:
    assert said("we load the weights on two cards of 80 GiB") == []


def test_what_a_program_prints_is_looked_at_where_it_is_read() -> None:
    assert said("weights=2", "INFO 11-18 09:00:00 [gpu_worker.py:298] we load the weights") == [0, 1]


def test_lines_that_are_alike_are_all_kept() -> None:
    assert said("the weights took 14.2 GiB", "", "and then", "", "the weights took 14.2 GiB", "") == [0, 4]


def test_what_goes_on_in_the_next_line_is_kept_and_where_something_else_stands_is_not() -> None:
    assert said("by the way, the weights took", "14.2 GiB of it") == [0]
    assert said("by the way, the weights took", "", "14.2 GiB of it") == []


def test_of_a_long_line_it_is_found_out_later() -> None:
    assert said("the weights and " + "so on " * (SHORT // 5)) == [0]


def test_every_rule_of_peoples_words_runs_over_no_more_lines_than_are_looked_at() -> None:
    assert max(rule.spans for rule in BOOK.facts if rule.figure and "prose" in rule.kinds) <= FURTHEST
