"""What more would fit when it fits: a longer context, fewer cards, so many requests."""

from collections.abc import Mapping, Sequence
from typing import Any

from bot.budget.search import first
from bot.usecases.sizing.again import TENSOR_SIZES, Ask, Document, fits, longest


def room(ask: Ask, question: Mapping[str, Any], document: Document) -> list[str]:
    """What more would fit for certain when it fits: the longest context, the fewest cards."""
    if not document.get("fits"):
        return []
    said = []
    asked = int(question.get("max_model_len") or 0)
    most = longest(ask) if asked > 0 else None
    if most and most > asked:
        worst = " even at the worst of the estimates" if document.get("range") else ""
        said.append(f"up to {most:,} tokens of context would fit{worst}")
    fewest = first(_smaller_sizes(question), lambda tp: fits(ask, {"tensor_parallel_size": tp}))
    if fewest is not None:
        said.append(f"tensor parallel size {fewest} would be enough")
    return said


def surely_held(document: Document) -> float:
    """Full-length requests that the smallest pool of the range holds at once; where nothing is estimated, the pool."""
    kv, pool = document["kv"], document["ranks"][document["limiting_rank"] or 0]["kv_pool_bytes"] or 0
    low = ((document.get("range") or {}).get("kv_pool_bytes") or [pool])[0]
    return float((kv["max_concurrency"] or 0) * max(0, low) / pool) if pool > 0 else 0.0


def _smaller_sizes(question: Mapping[str, Any]) -> Sequence[int]:
    """Below what is asked; weights given per rank say nothing about another number of ranks."""
    if any(question.get(name) is not None for name in ("weights_bytes", "kv_cache_memory_bytes")):
        return ()
    return [tp for tp in TENSOR_SIZES if tp < int(question.get("tensor_parallel_size") or 1)]
