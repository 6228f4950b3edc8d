"""Every example and counterexample of the rules, one test each; a new rule brings its own tests."""

import pytest

from bot.rulebook.load import load_rulebook
from bot.usecases.check_examples import Case, cases, faults
from bot.usecases.check_families import FamilyCase, family_cases, family_faults
from bot.usecases.sizing.question import load_sizing

BOOK, SIZING = load_rulebook(), load_sizing()


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in cases(BOOK)])
def test_reading_makes_of_an_example_what_its_rule_says(case: Case) -> None:
    assert faults(BOOK, case) == []


@pytest.mark.parametrize("case", [pytest.param(case, id=f"{case.family}:{case.table}:{case.number}") for case in family_cases(SIZING)])
def test_a_family_s_example_needs_the_bytes_that_it_says(case: FamilyCase) -> None:
    assert family_faults(SIZING, case) == []
