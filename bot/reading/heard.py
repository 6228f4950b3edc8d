"""What somebody speaks of, judged by how often each of his words was heard of what: asked last, where no sentence says it.

A naive Bayes over the stems of rules/heard.toml. It knows no grammar and no certainty, so it only speaks where it leaves little doubt.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import exp, log

from bot.rulebook.book import Rulebook

LONGEST = 800
"""Letters of which a text is judged as a whole: a longer one speaks of several things."""
SURE = 0.8
"""The share of belief from which on it is said; how often it is right then: rules/README.md."""
ENOUGH = 8
"""Stems that must be known well, besides those of the complaint itself: with fewer the others are too few to judge by."""
_WELL = 6
"""Sentences, of whatever, in which a stem that is known well was heard: one that was heard once tells of that sentence alone."""
_COMPLAINT = frozenset(("cuda", "gpu", "memor", "of", "oom", "ooms", "out", "vram"))
_STEM = 5
_SMOOTHED = 1.0
_DAMPED = 0.3
"""Stems do not stand for themselves: their sum is divided by so high a power of their number."""
_FIGURE = re.compile(r"\d+(?:[.,]\d+)?")
_WORD = re.compile(r"[^\W\d_]+|0")


def stems(text: str) -> set[str]:
    """The words of a text by how they begin, figures as one; of another script than Latin every two signs."""
    found: set[str] = set()
    for word in _WORD.findall(_FIGURE.sub("0", text.lower())):
        found.update([word[:_STEM]] if word.isascii() else (word[at : at + 2] for at in range(len(word) - 1)))
    return found


class Heard:
    """The counts of a rulebook, prepared for asking."""

    def __init__(self, book: Rulebook) -> None:
        self._moments = [row.moment for row in book.heard]
        self._sentences = [row.sentences for row in book.heard]
        self._counts: dict[str, dict[int, int]] = {}
        for place, row in enumerate(book.heard):
            given = row.stems.split()
            for stem, count in zip(given[::2], given[1::2], strict=True):
                self._counts.setdefault(stem, {})[place] = int(count)

    def likeliest(self, text: str) -> str | None:
        """The id of the moment that a text most likely speaks of; none where that is not clear."""
        if len(text) > LONGEST:
            return None
        counts = {stem: self._counts[stem] for stem in sorted(stems(text)) if stem in self._counts}
        if sum(sum(counts[stem].values()) >= _WELL for stem in counts.keys() - _COMPLAINT) < ENOUGH:
            return None
        known = [*counts.values()]
        sums = [sum(column) / len(known) ** _DAMPED for column in zip(*map(self._odds, known), strict=True)]
        most = max(sums)
        return self._moments[sums.index(most)] if 1 / sum(exp(one - most) for one in sums) >= SURE else None

    def _odds(self, counts: Mapping[int, int]) -> Sequence[float]:
        """How much likelier a stem is in a sentence of each moment than in one of the others, as a logarithm."""
        total, everywhere = sum(counts.values()), sum(self._sentences)
        return [
            _share(counts.get(place, 0), sentences) - _share(total - counts.get(place, 0), everywhere - sentences)
            for place, sentences in enumerate(self._sentences)
        ]


def _share(count: int, sentences: int) -> float:
    return log((count + _SMOOTHED) / (sentences + 2 * _SMOOTHED))


@lru_cache(maxsize=4)
def heard_of(book: Rulebook) -> Heard:
    """The counts of a rulebook, prepared once."""
    return Heard(book)
