"""Figures of a sentence held against each other: what is asked for, and what there is."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bot.reading.sentences import CALLS, Sentence
from bot.reading.words import Mention

NEAR = 24
"""Letters between a figure and the word that says what it is."""
DEMANDS, STOCKS = ("need", "demand"), ("have", "left", "free")
_AMOUNT = re.compile(r"(?<![\w.,-])(\d{1,6}(?:[.,]\d{1,2})?)(?:\ ?(g|m)(?:i?b)?)?(?![a-z\d%])")
_BLOCKS = re.compile(r"(\d[\d,]*)\ (?:mamba|state)\ (?:cache\ )?blocks")
_SEQUENCES = re.compile(r"(\d[\d,]*)\ (?:\w+\ )?(?:sequences|requests|seqs)\b")
_TOKENS = re.compile(r"(?<![\w.,-])(\d{1,3}(?:[.,]\d{3})+|\d+(?:[.,]\d{1,2})?)(?:\ ?(k)\b)?(?![\w%])")
_IS = re.compile(r"[\s:=]{0,3}(?:(?:is|are|of|at|about|for|to be)\b)?[\s:=]{0,3}")
"""Between what is asked for and how much it is; what becomes less (`context from 134k to 44k`) is not asked for."""
_TOKEN = re.compile(r"\ ?tokens?\b")


class _Amount(NamedTuple):
    start: int
    end: int
    figure: float
    unit: str | None

    def mib(self, other: str | None) -> float:
        """It has the other's unit where it has none: `needs 6 GiB, 5.2 are left`; of two without a unit only fractions are of one kind."""
        return self.figure * {"g": 1024, "m": 1}.get(self.unit or other or "", self.figure % 1 > 0)


def only_so_much(one: Sentence) -> Mention | None:
    """The same where the sentence says itself that it is too little: `wants 1.02 GiB and only 900 MB are left`."""
    only = one.all_of("only")
    short = falls_short(one) if only else None
    return short if short and any(abs(short.start - word.end) <= NEAR for word in only) else None


def implies(one: Sentence) -> bool:
    """Does it tell of a failure without a word for it: only so much, so much wanted, what called what, what it never gets past?"""
    if one.asks:
        return False
    chained = any(one.text.startswith(CALLS, word.end) for word in one.relations if word.telling)
    return (
        one.stuck
        or chained
        or only_so_much(one) is not None
        or _nearest(one.all_of(*DEMANDS), [a for a in _amounts(one) if a.unit]) is not None
    )


def falls_short(one: Sentence, *asking: str) -> Mention | None:
    """The word for what there is, where more is asked for: `would take 4.2 GiB, 3.9 are available`, `96 state blocks for 128 sequences`."""
    held = _held_against(one, *asking)
    if held and held[1].mib(held[2].unit) > held[2].mib(held[1].unit):
        return held[0]
    return _fewer_blocks(one) or _fewer_tokens(one)


def suffices(one: Sentence) -> bool:
    """Is there more than is asked for, both with their units: `needed 5 GiB, available 80 GiB`?"""
    held = _held_against(one)
    return held is not None and bool(held[1].unit and held[2].unit) and held[1].mib(None) < held[2].mib(None)


def _held_against(one: Sentence, *asking: str) -> tuple[Mention, _Amount, _Amount] | None:
    """The word for what there is, how much is asked for, and how much there is."""
    demands, stocks = one.all_of(*DEMANDS, *asking), one.all_of(*STOCKS)
    if not demands or not stocks:
        return None
    amounts = list(_amounts(one))
    asked = _nearest(demands, amounts)
    there = _nearest(stocks, [amount for amount in amounts if asked is None or amount != asked[1]])
    return (there[0], asked[1], there[1]) if asked and there else None


def _fewer_blocks(one: Sentence) -> Mention | None:
    """Each sequence holds a block of recurrent state."""
    for cache in one.all_of("cache"):
        blocks = _BLOCKS.search(one.text, max(one.start, cache.start - NEAR), cache.end)
        sequences = blocks and _SEQUENCES.search(one.text, one.start, one.words[-1].end + 2 * NEAR)
        if blocks and sequences and _count(blocks) < _count(sequences):
            return cache
    return None


def _fewer_tokens(one: Sentence) -> Mention | None:
    """`It holds 9k tokens, max-model-len is 32768`: the word for what it holds."""
    holding, asking = one.all_of("request-length", "cache", "pool", "only"), one.all_of("request-length", *DEMANDS)
    if not holding or not asking:
        return None
    counts = [(found, _tokens(found)) for found in _TOKENS.finditer(one.text, one.start, one.words[-1].end + 2 * NEAR)]
    held = next(((found, tokens) for found, tokens in counts if _TOKEN.match(one.text, found.end())), None)
    asked = (tokens for found, tokens in counts if any(_IS.fullmatch(one.text, word.end, found.start()) for word in asking))
    return holding[0] if held is not None and any(tokens > held[1] for tokens in asked) else None


def _tokens(found: "re.Match[str]") -> float:
    whole = re.sub(r"[.,](?=\d{3}(?!\d))", "", found[1]).replace(",", ".")
    return float(whole) * (1000 if found[2] else 1)


def _amounts(one: Sentence) -> Iterator[_Amount]:
    for found in _AMOUNT.finditer(one.text, max(one.start, one.words[0].start - NEAR), one.words[-1].end + NEAR):
        yield _Amount(found.start(), found.end(), float(found[1].replace(",", ".")), found[2])


def _nearest(words: Sequence[Mention], amounts: Sequence[_Amount]) -> tuple[Mention, _Amount] | None:
    pairs = [(word, amount) for word in words for amount in amounts if _between(word, amount) <= NEAR]
    return min(pairs, key=lambda pair: _between(*pair), default=None)


def _between(word: Mention, amount: _Amount) -> int:
    return max(word.start, amount.start) - min(word.end, amount.end)


def _count(found: "re.Match[str]") -> int:
    return int(found[1].replace(",", ""))
