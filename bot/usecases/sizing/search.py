"""What would make it fit, found by asking again with one thing changed; and what still fits when it does."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from bot.budget.search import first, largest
from bot.domain.engines import HIGHEST_FRACTION
from bot.domain.size import gib
from bot.rulebook.gpus import Gpus
from bot.usecases.sizing.checkpoints import Checkpoint, checkpoints
from bot.usecases.sizing.values import quantization_method

Document = Mapping[str, Any]
Ask = Callable[[Mapping[str, Any]], Document | None]
"""Engine arguments laid over the question -> the sizing document; None when that question has no answer."""

STEP = 256  # tokens: lengths are searched in whole multiples
LEAST_LENGTH = 1024
"""Tokens of context below which a shorter one is no way out: hardly a prompt fits."""
CHEAPEST = 3
"""Ways that are told, and beside them the cheapest with other cards where none of these needs them: a choice, not a catalogue."""
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


def ways(ask: Ask, question: Mapping[str, Any], document: Document, gpus: Gpus, utilization: float) -> list[dict[str, Any]]:
    """Changes that make a model fit for certain, cheapest first; none when it fits or when an input that decides is missing.

    `utilization`: the fraction in force, given or the version's own.

    Where no setting and no other checkpoint alone is enough, checkpoints on more cards come before more cards alone.
    """
    if document.get("headline") not in ("It does not fit", "It may fit"):
        return []
    found = _fitting(ask, _changes(ask, question, document, gpus, utilization))
    hardware = _fitting(ask, _cards(ask, question, gpus))
    between = [] if found else _fitting(ask, _checkpoints_and_more(ask, question, gpus))
    hardware = hardware or ([] if found else _fitting(ask, _pairs(ask, question)))
    cheapest = [*found, *between][:CHEAPEST]
    return [*cheapest, *hardware[: max(1, CHEAPEST - len(cheapest))]]


def ways_for_all(ask: Ask, question: Mapping[str, Any], requests: int, gpus: Gpus) -> list[dict[str, Any]]:
    """What would hold so many full-length requests at once, for certain: an 8-bit cache, more ranks, a larger card; cheapest first."""

    def held(changes: Mapping[str, Any]) -> Document | None:
        answer = ask(changes)
        return answer if answer is not None and answer.get("fits") and surely_held(answer) >= requests else None

    return _fitting(held, chain(_narrower_cache(question), _cards(held, question, gpus)))[: CHEAPEST - 1]


def surely_held(document: Document) -> float:
    """Full-length requests that the smallest pool of the range holds at once; where nothing is estimated, the pool."""
    kv, pool = document["kv"], document["ranks"][document["limiting_rank"] or 0]["kv_pool_bytes"] or 0
    low = ((document.get("range") or {}).get("kv_pool_bytes") or [pool])[0]
    return float((kv["max_concurrency"] or 0) * max(0, low) / pool) if pool > 0 else 0.0


def _fitting(ask: Ask, changes: Iterable[Change]) -> list[dict[str, Any]]:
    found = []
    for change in sorted(changes, key=lambda one: one.price):
        answer = ask(change.arguments)
        if answer is not None and answer.get("fits"):
            found.append(_way(change, answer))
    return found


def room(ask: Ask, question: Mapping[str, Any], document: Document) -> list[str]:
    """What more would fit for certain when it fits: the longest context, the fewest cards."""
    if not document.get("fits"):
        return []
    said = []
    asked = int(question.get("max_model_len") or 0)
    longest = _longest(ask) if asked > 0 else None
    if longest and longest > asked:
        worst = " even at the worst of the estimates" if document.get("range") else ""
        said.append(f"up to {longest:,} tokens of context would fit{worst}")
    fewest = first(_smaller_sizes(question), lambda tp: _fits(ask, {"tensor_parallel_size": tp}))
    if fewest is not None:
        said.append(f"tensor parallel size {fewest} would be enough")
    return said


def _longest(ask: Ask, beside: Mapping[str, Any] | None = None) -> int | None:
    """The longest context that fits for certain: what the typical pool holds, else the largest multiple of the step below it."""
    more = beside or {}
    whole = ask({**more, "max_model_len": -1})
    high = int(((whole or {}).get("kv") or {}).get("estimated_max_model_len") or 0)
    if high and _fits(ask, {**more, "max_model_len": high}):
        return high
    return largest(lambda tokens: _fits(ask, {**more, "max_model_len": tokens}), STEP, high, STEP) if high >= STEP else None


def _smaller_sizes(question: Mapping[str, Any]) -> Sequence[int]:
    """Below what is asked; weights given per rank say nothing about another number of ranks."""
    if any(question.get(name) is not None for name in ("weights_bytes", "kv_cache_memory_bytes")):
        return ()
    return [tp for tp in TENSOR_SIZES if tp < int(question.get("tensor_parallel_size") or 1)]


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
    length = _longest(ask)
    if length and length >= LEAST_LENGTH:
        yield Change({"max_model_len": length}, f"requests longer than {length:,} tokens are refused", 0)


def _budget(ask: Ask, question: Mapping[str, Any], used: float) -> Iterator[Change]:
    """The smallest utilization above the one that is used; it sizes nothing when the pool is given."""
    if question.get("kv_cache_memory_bytes") is not None or used >= HIGHEST_FRACTION:
        return
    steps = [round(used + 0.01 * n, 2) for n in range(1, 100) if used + 0.01 * n <= HIGHEST_FRACTION + 1e-9]
    share = first(steps, lambda value: _fits(ask, {"gpu_memory_utilization": value}))
    if share is not None:
        yield Change({"gpu_memory_utilization": share}, "less room outside the budget for graphs, communicators and other processes", 10)


def _leaner(ask: Ask, question: Mapping[str, Any]) -> Iterator[Change]:
    """Fewer sequences, smaller batches, no graphs: they shrink what is estimated, so only where it is not given."""
    if question.get("other_bytes") is not None or question.get("kv_cache_memory_bytes") is not None:
        return
    most = question.get("max_num_seqs")
    seqs = first([n for n in (256, 128, 64, 32, 16, 8) if not most or n < int(most)], lambda n: _fits(ask, {"max_num_seqs": n}))
    if seqs is not None:
        yield Change({"max_num_seqs": seqs}, f"at most {seqs} requests run at once, the rest wait", 12)
    batched = question.get("max_num_batched_tokens")
    tokens = first([n for n in (4096, 2048, 1024) if not batched or n < int(batched)], lambda n: _fits(ask, {"max_num_batched_tokens": n}))
    if tokens is not None:
        yield Change({"max_num_batched_tokens": tokens}, "long prompts take more steps", 14)
    if not question.get("enforce_eager"):
        yield Change({"enforce_eager": True}, "no CUDA graphs: slower decoding", 30)


def _checkpoints_and_more(ask: Ask, question: Mapping[str, Any], gpus: Gpus) -> Iterator[Change]:
    """Another checkpoint, with a shorter context, on more cards, or on a larger card."""
    tp = int(question.get("tensor_parallel_size") or 1)
    for at, one in enumerate(checkpoints(question, gpus)):
        length = _longest(ask, one.arguments)
        if length and length >= LEAST_LENGTH:
            costs = f"{one.costs}; requests longer than {length:,} tokens are refused"
            yield _beside(one, {"max_model_len": length}, costs, 36 + at)
        size = _larger_size(ask, question, one.arguments)
        if size is not None:
            yield _beside(one, {"tensor_parallel_size": size}, f"{size} cards instead of {tp}; {one.costs}", 38 + size / 100 + at / 1000)
        for card in _larger_card(ask, question, gpus, one.arguments):
            yield _beside(one, card.arguments, f"{card.costs}; {one.costs}", 39 + at / 10)


def _beside(one: Checkpoint, more: Mapping[str, Any], costs: str, price: float) -> Change:
    return Change({**one.arguments, **more}, costs, price, {"checkpoint": one.title, **more})


def _larger_size(ask: Ask, question: Mapping[str, Any], beside: Mapping[str, Any] | None = None) -> int | None:
    tp = int(question.get("tensor_parallel_size") or 1)
    return first([n for n in TENSOR_SIZES if n > tp], lambda n: _fits(ask, {**(beside or {}), "tensor_parallel_size": n}))


def _cards(ask: Ask, question: Mapping[str, Any], gpus: Gpus) -> Iterator[Change]:
    """More ranks, and the next larger card of the same maker."""
    if question.get("weights_bytes") is None:
        tp = int(question.get("tensor_parallel_size") or 1)
        larger = _larger_size(ask, question)
        if larger is not None:
            yield Change({"tensor_parallel_size": larger}, f"{larger} cards instead of {tp}", 40 + larger)
        stages = int(question.get("pipeline_parallel_size") or 1)
        yield Change(
            {"pipeline_parallel_size": stages * 2}, f"{stages * 2} pipeline stages instead of {stages}: twice the cards, more latency", 60
        )
    yield from _larger_card(ask, question, gpus)


def _pairs(ask: Ask, question: Mapping[str, Any]) -> Iterator[Change]:
    """Where no single change is enough: more ranks together with weights in 8 bits, or with pipeline stages."""
    if question.get("weights_bytes") is not None:
        return
    tp, stages = int(question.get("tensor_parallel_size") or 1), int(question.get("pipeline_parallel_size") or 1)
    larger = [n for n in TENSOR_SIZES if n > tp]
    beside: list[tuple[dict[str, Any], str]] = [
        ({"pipeline_parallel_size": stages * n}, f"{stages * n} pipeline stages of") for n in (2, 4)
    ]
    if not quantization_method(question):
        beside.insert(0, ({"quantization": "fp8"}, "weights in 8 bits on"))
    for price, (arguments, costs) in enumerate(beside):
        size = first(larger, lambda n, more=arguments: _fits(ask, {"tensor_parallel_size": n, **more}))  # type: ignore[misc]
        if size is not None:
            yield Change({"tensor_parallel_size": size, **arguments}, f"{costs} {size} cards instead of {tp}", size + price)


def _larger_card(ask: Ask, question: Mapping[str, Any], gpus: Gpus, beside: Mapping[str, Any] | None = None) -> Iterator[Change]:
    now = gpus.decide(str(question.get("gpu") or ""), None)
    if now is None or now.total is None or question.get("gpu_memory_bytes") is not None:
        return
    whole = [
        spec for spec in gpus.specs if spec.vendor == now.vendor and not spec.rare and not spec.part_of and spec.unified == now.unified
    ]
    larger = sorted((spec for spec in whole if (spec.total or 0) > now.total), key=lambda spec: spec.total or 0)
    card = first(larger, lambda spec: _fits(ask, {**(beside or {}), "gpu": spec.id}))
    if card is not None:
        yield Change({"gpu": card.id}, f"{card.id} cards instead of {now.id}", 50)


def _fits(ask: Ask, arguments: Mapping[str, Any]) -> bool:
    answer = ask(arguments)
    return bool(answer and answer.get("fits"))


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
