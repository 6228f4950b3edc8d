"""Amounts of memory as people read them: GiB as engines print them, and GB beside it where the question was asked in GB."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from bot.domain.size import gb, gib

GIVEN = ("gpu_memory_bytes", "weights_bytes", "checkpoint_bytes", "other_bytes", "kv_cache_memory_bytes")
STEP = 10**8
"""Bytes in a tenth of a GB: a figure that is a whole multiple was thought of in decimal; no GiB is one."""


def is_decimal(question: Mapping[str, Any]) -> bool:
    """Whether somebody gave an amount in round GB."""
    return any(isinstance(value := question.get(name), int) and value != 0 and value % STEP == 0 for name in GIVEN)


def amounts(question: Mapping[str, Any]) -> Callable[[int], str]:
    """How this question's amounts are said: 42.93 GiB, or 42.93 GiB (46.1 GB)."""
    return partial(_said, decimal=is_decimal(question))


def _said(count: int, *, decimal: bool) -> str:
    return f"{gib(count)} ({gb(count)})" if decimal else gib(count)
