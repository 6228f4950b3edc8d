"""What a message says nothing without, a figure or a word, looked for in its small letters: cheaper than the pattern by far."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial

from bot.rulebook.book import Rulebook, texts
from bot.rulebook.patterns import quick

_WORDS = re.compile(r"[\w '’=<|-]+")
"""A figure that is nothing but words, in any case."""
_CAPITALS = re.compile(r"\\.|[A-Z]")
"""What is written in capitals, but what a backslash makes a kind of letters: the text is in small ones."""


class Figures:
    """Which of the rulebook's figures stand in the texts of one paste."""

    def __init__(self, book: Rulebook) -> None:
        self._wanted = _wanted(book)
        self._small: dict[str, str] = {}

    def stand_in(self, text: str, rule: str) -> bool:
        """Do all figures of the rule with this id stand in the text?"""
        wanted = self._wanted.get(rule)
        if wanted is None:
            return True
        small = self._in_small(text)
        return all(looked(small) for looked in wanted)

    def _in_small(self, text: str) -> str:
        if text not in self._small:
            self._small[text] = text.lower()
        return self._small[text]


def _looked(figure: str) -> Callable[[str], bool]:
    """Does the figure stand in a text in small letters?"""
    if _WORDS.fullmatch(figure):
        return partial(_any_stands, figure.split("|"))
    search = quick(_CAPITALS.sub(lambda found: found[0] if found[0][0] == "\\" else found[0].lower(), figure)).search
    return lambda small: search(small) is not None


def _any_stands(words: Sequence[str], small: str) -> bool:
    for word in words:  # noqa: SIM110  # any() would take three times as long
        if word in small:
            return True
    return False


@lru_cache(maxsize=8)
def _wanted(book: Rulebook) -> Mapping[str, Sequence[Callable[[str], bool]]]:
    looked = {figure: _looked(figure) for rule in book.facts for figure in texts(rule.figure)}
    return {rule.id: [looked[figure] for figure in texts(rule.figure)] for rule in book.facts if rule.figure}
