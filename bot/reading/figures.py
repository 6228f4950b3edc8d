"""What a message says nothing without, a figure or a word, looked for in its small letters: cheaper than the pattern by far."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from bot.rulebook.book import Rulebook, texts
from bot.rulebook.files import FactRule
from bot.rulebook.patterns import quick

_WORDS = re.compile(r"[\w '’=<|-]+")
"""A figure that is nothing but words, in any case."""
_CAPITALS = re.compile(r"\\.|[A-Z]")
"""What is written in capitals, but what a backslash makes a kind of letters: the text is in small ones."""


class Wanted:
    """The figures of a rule: of each that is words those of which one is enough, and what looks for each of the others."""

    __slots__ = ("_forms", "_words")

    def __init__(self, figures: Sequence[str]) -> None:
        self._words = [figure.split("|") for figure in figures if _WORDS.fullmatch(figure)]
        self._forms = [quick(_in_small_letters(figure)).search for figure in figures if not _WORDS.fullmatch(figure)]

    @property
    def has_words(self) -> bool:
        """Is one of them nothing but words?"""
        return bool(self._words)

    def words_stand_in(self, small: str) -> bool:
        """Do those that are nothing but words stand in a text in small letters? What holds such a text holds them too."""
        for words in self._words:
            for word in words:  # any() would take three times as long
                if word in small:
                    break
            else:
                return False
        return True

    def forms_stand_in(self, small: str) -> bool:
        """Do the others?"""
        for form in self._forms:  # noqa: SIM110  the same
            if form(small) is None:
                return False
        return True


class Figures:
    """Which of the rulebook's figures stand in the texts of one paste."""

    def __init__(self, book: Rulebook) -> None:
        self._wanted = _wanted(book)
        self._small: dict[str, str] = {}

    def of(self, rule: FactRule) -> Wanted:
        """The figures of a rule that has any."""
        return self._wanted[rule.id]

    def need_words(self, rule: FactRule) -> bool:
        """Is one of the rule's figures nothing but words?"""
        return bool(rule.figure) and self._wanted[rule.id].has_words

    def stand_in(self, text: str, rule: str) -> bool:
        """Do all figures of the rule with this id stand in the text?"""
        wanted = self._wanted.get(rule)
        if wanted is None:
            return True
        small = self._in_small(text)
        return wanted.words_stand_in(small) and wanted.forms_stand_in(small)

    def _in_small(self, text: str) -> str:
        if text not in self._small:
            self._small[text] = text.lower()
        return self._small[text]


def _in_small_letters(figure: str) -> str:
    return _CAPITALS.sub(lambda found: found[0] if found[0][0] == "\\" else found[0].lower(), figure)


@lru_cache(maxsize=8)
def _wanted(book: Rulebook) -> Mapping[str, Wanted]:
    return {rule.id: Wanted(texts(rule.figure)) for rule in book.facts if rule.figure}
