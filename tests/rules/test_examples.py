"""Every example and counterexample of the rules, one test each; a new rule brings its own tests."""

import pytest

from bot.rulebook.load import load_rulebook
from bot.usecases.check_rules import Case, cases, faults

BOOK = load_rulebook()


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in cases(BOOK)])
def test_reading_makes_of_an_example_what_its_rule_says(case: Case) -> None:
    assert faults(BOOK, case) == []
