"""Evidence of text, and the pieces that tests ask it for."""

from typing import Any

from bot.domain.evidence import Evidence, Fact
from bot.domain.incident import Contribution
from bot.reading.lines import sign
from bot.reading.read import read
from bot.reading.text import split_lines
from bot.rulebook.load import load_rulebook

BOOK = load_rulebook()


def evidence(*texts: str) -> Evidence:
    """What reading makes of one paste or several."""
    return read(BOOK, [Contribution("paste", text) for text in texts])


def signed(text: str) -> list[tuple[int, str, str]]:
    """(line number, speaker's label, what is left of the line) of a paste."""
    return [(line.number, line.speaker.label, line.text) for line in sign(BOOK, 1, list(enumerate(split_lines(text), 1)))]


def fact(found: Evidence, identity: str) -> Fact:
    """The first fact of that id."""
    return next(f for f in found.facts if f.id == identity)


def arguments(text: str) -> dict[str, Any]:
    """Engine arguments by name."""
    return {name: known.value for name, known in evidence(text).deployment.arguments.items()}
