"""What would make it fit with other hardware, or with a checkpoint of the model on it."""

from collections.abc import Iterator, Mapping
from typing import Any

from bot.budget.search import first
from bot.rulebook.gpus import Gpus
from bot.usecases.sizing.again import LEAST_LENGTH, TENSOR_SIZES, Ask, Change, fits, longest
from bot.usecases.sizing.checkpoints import Checkpoint, checkpoints
from bot.usecases.sizing.values import quantization_method


def cards(ask: Ask, question: Mapping[str, Any], gpus: Gpus) -> Iterator[Change]:
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


def _larger_card(ask: Ask, question: Mapping[str, Any], gpus: Gpus, beside: Mapping[str, Any] | None = None) -> Iterator[Change]:
    now = gpus.decide(str(question.get("gpu") or ""), None)
    if now is None or now.total is None or question.get("gpu_memory_bytes") is not None:
        return
    whole = [
        spec for spec in gpus.specs if spec.vendor == now.vendor and not spec.rare and not spec.part_of and spec.unified == now.unified
    ]
    larger = sorted((spec for spec in whole if (spec.total or 0) > now.total), key=lambda spec: spec.total or 0)
    card = first(larger, lambda spec: fits(ask, {**(beside or {}), "gpu": spec.id}))
    if card is not None:
        yield Change({"gpu": card.id}, f"{card.id} cards instead of {now.id}", 50)


def _larger_size(ask: Ask, question: Mapping[str, Any], beside: Mapping[str, Any] | None = None) -> int | None:
    tp = int(question.get("tensor_parallel_size") or 1)
    return first([n for n in TENSOR_SIZES if n > tp], lambda n: fits(ask, {**(beside or {}), "tensor_parallel_size": n}))


def pairs(ask: Ask, question: Mapping[str, Any]) -> Iterator[Change]:
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
        size = first(larger, lambda n, more=arguments: fits(ask, {"tensor_parallel_size": n, **more}))  # type: ignore[misc]
        if size is not None:
            yield Change({"tensor_parallel_size": size, **arguments}, f"{costs} {size} cards instead of {tp}", size + price)


def checkpoints_and_more(ask: Ask, question: Mapping[str, Any], gpus: Gpus) -> Iterator[Change]:
    """Another checkpoint, with a shorter context, on more cards, or on a larger card."""
    tp = int(question.get("tensor_parallel_size") or 1)
    for at, one in enumerate(checkpoints(question, gpus)):
        length = longest(ask, one.arguments)
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
