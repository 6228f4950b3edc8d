"""A message that a terminal or a mail broke between two words is read as if it stood in one line."""

import pytest

from bot.reading.wraps import USUAL
from bot.rulebook.load import load_rulebook
from tests.reading.material import evidence

BOOK = load_rulebook()
MESSAGES = [
    (rule.id, example.line)
    for rule in BOOK.facts
    if "memory-error" in rule.kinds and rule.id.startswith("vllm.")
    for example in rule.example
    if "\n" not in example.line
]


@pytest.mark.parametrize(("rule", "message"), MESSAGES)
def test_an_error_broken_between_any_two_words_is_read(rule: str, message: str) -> None:
    lost = []
    for at, letter in enumerate(message):
        if letter != " " or not 12 <= at <= len(message) - 4 or at in USUAL:  # at a terminal's width a word may be broken as well
            continue
        broken = f"{message[:at]}\n{message[at + 1 :]}"
        if rule not in {fact.id for fact in evidence(broken).facts}:
            lost.append(broken)
    assert lost == []
