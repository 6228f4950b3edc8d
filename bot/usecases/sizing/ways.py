"""What would make it fit, found by asking again with one thing changed, the cheapest first."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from bot.budget.search import first
from bot.domain.engines import HIGHEST_FRACTION
from bot.domain.size import gib
from bot.rulebook.gpus import Gpus
from bot.usecases.sizing.again import LEAST_LENGTH, Ask, Change, Document, fits, longest
from bot.usecases.sizing.checkpoints import checkpoints
from bot.usecases.sizing.hardware import cards, checkpoints_and_more, pairs
from bot.usecases.sizing.room import surely_held
from bot.usecases.sizing.values import quantization_method

CHEAPEST = 3
"""Ways that are told, and beside them the cheapest with other cards where none of these needs them: a choice, not a catalogue."""


def ways(ask: Ask, question: Mapping[str, Any], document: Document, gpus: Gpus, utilization: float) -> list[dict[str, Any]]:
    """Changes that make a model fit for certain, cheapest first; none when it fits or when an input that decides is missing.

    `utilization`: the fraction in force, given or the version's own. Where no setting and no other checkpoint alone is enough, checkpoints
    on more cards come before more cards alone.
    """
    if document.get("headline") not in ("It does not fit", "It may fit"):
        return []
    found = _fitting(ask, _changes(ask, question, document, gpus, utilization))
    hardware = _fitting(ask, cards(ask, question, gpus))
    between = [] if found else _fitting(ask, checkpoints_and_more(ask, question, gpus))
    hardware = hardware or ([] if found else _fitting(ask, pairs(ask, question)))
    cheapest = [*found, *between][:CHEAPEST]
    return [*cheapest, *hardware[: max(1, CHEAPEST - len(cheapest))]]


def ways_for_all(ask: Ask, question: Mapping[str, Any], requests: int, gpus: Gpus) -> list[dict[str, Any]]:
    """What would hold so many full-length requests at once, for certain: an 8-bit cache, more ranks, a larger card; cheapest first."""

    def held(changes: Mapping[str, Any]) -> Document | None:
        answer = ask(changes)
        return answer if answer is not None and answer.get("fits") and surely_held(answer) >= requests else None

    return _fitting(held, chain(_narrower_cache(question), cards(held, question, gpus)))[: CHEAPEST - 1]


def _fitting(ask: Ask, changes: Iterable[Change]) -> list[dict[str, Any]]:
    found = []
    for change in sorted(changes, key=lambda one: one.price):
        answer = ask(change.arguments)
        if answer is not None and answer.get("fits"):
            found.append(_way(change, answer))
    return found


def _changes(ask: Ask, question: Mapping[str, Any], document: Document, gpus: Gpus, utilization: float) -> Iterator[Change]:
    yield from _shorter(ask, document)
    yield from _budget(ask, question, utilization)
    yield from _narrower_cache(question)
    yield from _leaner(ask, question)
    for price, one in enumerate(checkpoints(question, gpus)):
        yield Change(one.arguments, one.costs, 32 + price, {"checkpoint": one.title})
    if not any(question.get(name) is not None for name in ("weights_bytes", "checkpoint_bytes")) and not quantization_method(question):
        yield Change({"quantization": "fp8"}, "weights turned into 8 bits while they load; quality needs a check of its own", 35)


def _narrower_cache(question: Mapping[str, Any]) -> Iterator[Change]:
    if not str(question.get("kv_cache_dtype") or "auto").startswith(("fp8", "nvfp4", "int")):
        yield Change({"kv_cache_dtype": "fp8"}, "half the bytes per cached value; quality needs a check of its own", 20)


def _shorter(ask: Ask, document: Document) -> Iterator[Change]:
    """The longest context that the pool still holds."""
    if not (document.get("kv") or {}).get("estimated_max_model_len"):
        return
    length = longest(ask)
    if length and length >= LEAST_LENGTH:
        yield Change({"max_model_len": length}, f"requests longer than {length:,} tokens are refused", 0)


def _budget(ask: Ask, question: Mapping[str, Any], used: float) -> Iterator[Change]:
    """The smallest utilization above the one that is used; it sizes nothing when the pool is given."""
    if question.get("kv_cache_memory_bytes") is not None or used >= HIGHEST_FRACTION:
        return
    steps = [round(used + 0.01 * n, 2) for n in range(1, 100) if used + 0.01 * n <= HIGHEST_FRACTION + 1e-9]
    share = first(steps, lambda value: fits(ask, {"gpu_memory_utilization": value}))
    if share is not None:
        yield Change({"gpu_memory_utilization": share}, "less room outside the budget for graphs, communicators and other processes", 10)


def _leaner(ask: Ask, question: Mapping[str, Any]) -> Iterator[Change]:
    """Fewer sequences, smaller batches, no graphs: they shrink what is estimated, so only where it is not given."""
    if question.get("other_bytes") is not None or question.get("kv_cache_memory_bytes") is not None:
        return
    most = question.get("max_num_seqs")
    seqs = first([n for n in (256, 128, 64, 32, 16, 8) if not most or n < int(most)], lambda n: fits(ask, {"max_num_seqs": n}))
    if seqs is not None:
        yield Change({"max_num_seqs": seqs}, f"at most {seqs} requests run at once, the rest wait", 12)
    batched = question.get("max_num_batched_tokens")
    tokens = first([n for n in (4096, 2048, 1024) if not batched or n < int(batched)], lambda n: fits(ask, {"max_num_batched_tokens": n}))
    if tokens is not None:
        yield Change({"max_num_batched_tokens": tokens}, "long prompts take more steps", 14)
    if not question.get("enforce_eager"):
        yield Change({"enforce_eager": True}, "no CUDA graphs: slower decoding", 30)


def _way(change: Change, answer: Document) -> dict[str, Any]:
    kv, limiting = answer["kv"], answer["ranks"][answer["limiting_rank"] or 0]
    pool = limiting["kv_pool_bytes"]
    held = "" if kv["max_concurrency"] is None else f": a pool of {gib(pool or 0)}, {kv['max_concurrency']:.2f} full requests"
    told = change.shown or change.arguments
    said = ", ".join(_said(name, value) for name, value in told.items())
    return {
        "change": dict(told),
        "with": said,
        "says": f"{said} fits{held}",
        "costs": change.costs,
        "kv_pool_bytes": pool,
        "max_concurrency": kv["max_concurrency"],
        "command": answer["command"],
    }


def _said(name: str, value: object) -> str:
    if name == "checkpoint":
        return f"{'an' if str(value).startswith('F') else 'a'} {value} checkpoint"
    flag = "--" + name.replace("_", "-")
    return f"card {value}" if name == "gpu" else flag if value is True else f"{flag} {value}"
