"""Rules that no whole incident needs are needed all the same: each by a paste of its own."""

import pytest

from bot.domain.incident import Contribution
from bot.reading.read import read
from bot.rulebook.load import load_rulebook
from tests.diagnosis.needed import NEEDED
from tests.diagnosis.without import answer, names, without

BOOK = load_rulebook()


def test_every_paste_is_of_a_rule_that_there_is() -> None:
    assert NEEDED.keys() - set(names(BOOK)) == set()


@pytest.mark.parametrize("rule", NEEDED)
def test_without_the_rule_the_paste_is_answered_otherwise(rule: str) -> None:
    paste, phase = NEEDED[rule]
    evidence = read(BOOK, [Contribution("paste", paste)])
    assert answer(BOOK, evidence)[0] == phase
    assert answer(without(BOOK, rule), evidence) != answer(BOOK, evidence)
