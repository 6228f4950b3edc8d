"""The rulebook without one of its rules about phases, and what a person reads and acts on."""

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from bot.diagnosis.diagnose import diagnose
from bot.domain.evidence import Evidence
from bot.rulebook.book import Rulebook

PARTS = ("rules", "outer", "marks", "ruled_out")


def answer(book: Rulebook, evidence: Evidence) -> tuple[Any, ...]:
    """The phase, how sure it is, the one change, what is not excluded, and the sentence."""
    found = diagnose(book, evidence)
    change = found.recommendation
    return found.phase, found.verdict, change and (change.id, change.flag, change.direction), found.also_possible, found.summary


def names(book: Rulebook) -> Iterator[str]:
    """Every rule about phases: its id, or `mark.` and the message that it stands for."""
    for part in PARTS:
        yield from (_name(row) for row in getattr(book, part))


def without(book: Rulebook, name: str) -> Rulebook:
    """The same rulebook, that rule left out."""
    return replace(book, **{part: [row for row in getattr(book, part) if _name(row) != name] for part in PARTS})


def _name(row: Any) -> str:
    return getattr(row, "id", None) or f"mark.{row.fact}"
