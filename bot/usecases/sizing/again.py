"""The same question with one thing changed: whether it fits then, and the longest context that does."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bot.budget.search import largest

Document = Mapping[str, Any]
Ask = Callable[[Mapping[str, Any]], Document | None]
"""Engine arguments laid over the question -> the sizing document; None when that question has no answer."""

STEP = 256  # tokens: lengths are searched in whole multiples
LEAST_LENGTH = 1024
"""Tokens of context below which a shorter one is no way out: hardly a prompt fits."""
TENSOR_SIZES = (1, 2, 4, 8, 16, 32)


@dataclass(frozen=True, slots=True)
class Change:
    """One thing to change. `price` orders ways: what costs a flag stands before what costs quality, speed or cards.

    `shown`: what is told instead of the arguments, where those are a whole config.json.
    """

    arguments: Mapping[str, Any]
    costs: str
    price: float
    shown: Mapping[str, Any] | None = None


def fits(ask: Ask, arguments: Mapping[str, Any]) -> bool:
    """Whether it fits for certain with these arguments."""
    answer = ask(arguments)
    return bool(answer and answer.get("fits"))


def longest(ask: Ask, beside: Mapping[str, Any] | None = None) -> int | None:
    """The longest context that fits for certain: what the typical pool holds, else the largest multiple of the step below it."""
    more = beside or {}
    whole = ask({**more, "max_model_len": -1})
    high = int(((whole or {}).get("kv") or {}).get("estimated_max_model_len") or 0)
    if high and fits(ask, {**more, "max_model_len": high}):
        return high
    return largest(lambda tokens: fits(ask, {**more, "max_model_len": tokens}), STEP, high, STEP) if high >= STEP else None
