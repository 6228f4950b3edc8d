"""rules/sizing-words.toml: what the words of a sizing question stand for, in the languages that people ask in."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec

from bot.rulebook.load import RulebookError, one_file

FILE = "sizing-words.toml"


class _Counters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    cards: str
    machines: str


class _Joins(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    size: list[str]


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    stands_for: dict[str, list[str]]
    numbers: dict[str, list[str]]
    counters: _Counters
    joins: _Joins
    fillers: dict[str, str]


@dataclass(frozen=True, slots=True, eq=False)
class SizingWords:
    """`stands_for`: a word -> what it stands for, in English. `numbers`: a word -> the number. All in lower case.

    `counters`, `machines`: signs behind a number of cards or machines. `joins`: words between a card and its size.
    `fillers`: words that say nothing more, and are not said back.
    """

    stands_for: Mapping[str, str]
    numbers: Mapping[str, int]
    counters: str
    machines: str
    joins: tuple[str, ...]
    fillers: frozenset[str]


@cache
def load_sizing_words(folder: Path | None = None) -> SizingWords:
    """The words of a rules folder; RulebookError with every problem when the file is broken."""
    file = one_file(FILE, _File, folder)
    problems = [f"{FILE}: [numbers] {number!r} is no number" for number in file.numbers if not number.isdecimal()]
    problems += [*_twice("stands_for", file.stands_for), *_twice("numbers", file.numbers)]
    if problems:
        raise RulebookError(problems)
    return SizingWords(
        stands_for={word: means for means, words in file.stands_for.items() for word in words},
        numbers={word: int(number) for number, words in file.numbers.items() for word in words},
        counters=file.counters.cards,
        machines=file.counters.machines,
        joins=tuple(file.joins.size),
        fillers=frozenset(word for words in file.fillers.values() for word in words.split()),
    )


def _twice(table: str, said: Mapping[str, list[str]]) -> list[str]:
    """A word may stand for one thing only, and is written in lower case."""
    found: dict[str, str] = {}
    problems = []
    for means, words in said.items():
        for word in words:
            if word in found or word != word.lower():
                problems.append(f"{FILE}: [{table}] {word!r} stands for {found.get(word, 'nothing as it is cased')} and for {means}")
            found[word] = means
    return problems
