"""Searching what would fit: the largest number that still holds, and the first choice that does."""

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


def largest(holds: Callable[[int], bool], low: int, high: int, step: int = 1) -> int | None:
    """The largest multiple of `step` in low…high that `holds`, where smaller ones hold whenever a larger does; None when none does."""
    first, last = -(-low // step), high // step
    if first > last:
        return None
    if holds(last * step):
        return last * step
    if not holds(first * step):
        return None
    while first < last:
        middle = (first + last + 1) // 2
        if holds(middle * step):
            first = middle
        else:
            last = middle - 1
    return first * step


def first(choices: Iterable[T], holds: Callable[[T], bool]) -> T | None:
    """The first choice that holds, in the order given; None when none does."""
    return next((choice for choice in choices if holds(choice)), None)
