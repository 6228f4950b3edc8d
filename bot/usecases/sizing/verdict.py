"""Whether it fits, and a sentence that names what its figures are: the weights, the pool, or one request."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from bot.domain.budget import KvPlan, RankBudget
from bot.usecases.sizing.question import Asked
from bot.usecases.sizing.terms import Other
from bot.usecases.sizing.units import amounts
from bot.usecases.sizing.weights import UNKNOWN

Say = Callable[[int], str]


@dataclass(frozen=True, slots=True)
class Answer:
    """Everything the document is drawn from. `loading`: what weights need at most while they are read and converted."""

    asked: Asked
    plan: KvPlan
    ranks: tuple[RankBudget, ...]
    other: Other
    assumptions: tuple[str, ...]
    loading: Sequence[int] | None = None


def verdict(told: Answer) -> tuple[bool | None, str]:
    """Whether it fits, and by how much; None when an input is missing, or when an estimate lies on both sides of the limit."""
    say = amounts(told.asked.arguments)
    beyond = next(_beyond_device(told, say), None)
    if beyond:
        return False, beyond
    whole = told.plan
    if whole.fits is None:
        return None, "whether it fits is open: " + _missing(told)
    if whole.concurrency is None:
        return True, "this model keeps no KV cache, so its pool cannot be too small"
    if told.asked.settings.blocks_override is not None:
        return whole.fits, _overridden(told, say)
    if straddles(told):
        return None, _unsure(told, say)
    return whole.fits, _held(told, say) if whole.fits else _short(told, say)


def headline(told: Answer, fits: bool | None) -> str:
    """The answer in three words."""
    if fits is None:
        return "It may fit" if told.plan.fits is not None else "Open"
    return "It fits" if fits else "It does not fit"


def pool_range(told: Answer, rank: RankBudget) -> tuple[int, int] | None:
    """Where the pool of a rank lies when other terms are estimated; None when the pool is given or open."""
    if told.other.span is None or not told.other.estimated or rank.budget is None or rank.weights is None:
        return None
    if told.asked.arguments.get("kv_cache_memory_bytes") is not None:
        return None
    low, _, high = told.other.span
    return rank.budget - rank.weights - high, rank.budget - rank.weights - low


def straddles(told: Answer) -> bool:
    """Does the answer depend on where in its range an estimate lies?"""
    ranges = [spread for rank in told.ranks if (spread := pool_range(told, rank))]
    needs = _needs(told)
    if len(ranges) < len(needs):
        return False
    worst, best = (all(ends[end] >= need for ends, need in zip(ranges, needs, strict=True)) for end in (0, 1))
    return worst != best


def _needs(told: Answer) -> list[int]:
    """Bytes of the pool that each rank must have: one full request, or one block where the length is fitted to the pool."""
    whole, held = told.plan, 1 if told.asked.rules.holds_null_block else 0
    blocks = 1 if told.asked.fit_length else whole.request_blocks
    return [(blocks + held) * size for size in whole.bytes_per_block]


def _beyond_device(told: Answer, say: Say) -> Iterator[str]:
    """What no setting of the budget could hold, because the device has less."""
    for rank in told.ranks:
        if rank.total is None or rank.weights is None:
            continue
        if rank.weights > rank.total:
            yield f"the weights alone take {say(rank.weights)} on rank {rank.rank}, more than the {say(rank.total)} of its device"
        parts = {
            "weights": rank.weights,
            "other consumption": 0 if told.other.estimated else rank.other or 0,
            "the pool": max(0, rank.kv_pool or 0),
        }
        if sum(parts.values()) > rank.total:
            yield f"{_sum(parts, say)} on rank {rank.rank}, more than the {say(rank.total)} of its device"
    for rank, most in zip(told.ranks, told.loading or (), strict=False):
        if rank.total is not None and most > rank.total:
            yield f"rank {rank.rank} needs {say(most)} while weights are loaded and converted, but its device has {say(rank.total)}"


def _sum(parts: dict[str, int], say: Say) -> str:
    """weights (10 GiB), other consumption (2 GiB) and the pool (3 GiB) come to 15 GiB."""
    said = [f"{name} ({say(part)})" for name, part in parts.items() if part]
    return f"{' and '.join(filter(None, (', '.join(said[:-1]), said[-1])))} come to {say(sum(parts.values()))}"


def _limiting(told: Answer) -> RankBudget:
    return told.ranks[told.plan.limiting_rank or 0]


def _short(told: Answer, say: Say) -> str:
    """Why the pool is too small: there is none, or one request is larger."""
    rank = _limiting(told)
    if (rank.kv_pool or 0) > 0 or told.asked.arguments.get("kv_cache_memory_bytes") is not None:
        return f"the pool of rank {rank.rank} has {say(rank.kv_pool or 0)}, too little for {_request(told, say)}"
    if rank.weights is None or rank.budget is None:
        return f"there is no pool on rank {rank.rank}"
    part = f"its budget of {say(rank.budget)} (utilization {told.asked.utilization:g})"
    if rank.weights >= rank.budget:
        return f"the weights alone take {say(rank.weights)} on rank {rank.rank} and leave no pool in {part}"
    return f"{_sum({'weights': rank.weights, 'other consumption': rank.other or 0}, say)} on rank {rank.rank} and leave no pool in {part}"


def _held(told: Answer, say: Say) -> str:
    rank, length, times = _limiting(told), told.asked.settings.max_model_len, told.plan.concurrency or 0
    return f"the pool of rank {rank.rank} has {say(rank.kv_pool or 0)}, room for {times:.2f} requests of {length:,} tokens"


def _unsure(told: Answer, say: Say) -> str:
    """Both ends of an estimated range."""
    rank = _limiting(told)
    low, high = pool_range(told, rank) or (0, 0)
    least = say(low) if low > 0 else "nothing"
    return (
        f"what the engine needs beside weights and cache is estimated; it leaves between {least} and {say(high)} for the pool of "
        f"rank {rank.rank}: at best enough and at worst too little for {_request(told, say)}"
    )


def _request(told: Answer, say: Say) -> str:
    if told.asked.fit_length:
        return f"a single block of {told.plan.block_size:,} tokens"
    return f"one request of {told.asked.settings.max_model_len:,} tokens, which needs {say(max(told.plan.request_bytes))} a rank"


def _overridden(told: Answer, say: Say) -> str:
    """How many blocks were asked for decides, whatever memory there is."""
    whole, length = told.plan, told.asked.settings.max_model_len
    held = f"the {whole.num_blocks or 0:,} blocks asked for hold {whole.concurrency or 0:.2f} requests of {length:,} tokens"
    return held if whole.fits else f"{held}; one such request needs {say(max(whole.request_bytes))} a rank"


def _missing(told: Answer) -> str:
    rank = told.ranks[0]
    figures = (
        ("the device's memory", "--gpu", rank.total),
        ("the size of the weights", "--weights-bytes", rank.weights),
        ("other consumption", "--other-bytes", rank.other if rank.total is not None else 0),  # it follows from the device
    )
    gaps = [name for name, _, value in figures if value is None]
    flags = [flag for _, flag, value in figures if value is None]
    reason = next((f" ({said.removeprefix(UNKNOWN)})" for said in told.assumptions if said.startswith(UNKNOWN)), "")
    named = f"{' and '.join(gaps)} {'is' if len(gaps) == 1 else 'are'} not known{reason}"
    return f"{named}; give {', '.join(flags)}, or the pool itself by --kv-cache-memory-bytes"
