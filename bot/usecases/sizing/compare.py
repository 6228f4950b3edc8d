"""Two engine versions or several cards, held side by side, and why their answers differ."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from bot.domain.shape import GatedDelta, Heads
from bot.domain.size import gib
from bot.usecases.sizing.estimates import figures_of
from bot.usecases.sizing.question import Asked
from bot.usecases.sizing.values import Refused

Document = Mapping[str, Any]
One = Callable[[Mapping[str, Any]], tuple[Asked, Document]]


def several(question: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(argument, value) of each answer that is asked for: more than one version or card; empty for a single question.

    Raises Refused for both at once.
    """
    versions = question.get("engine_version")
    cards = [name.strip() for name in str(question.get("gpu") or "").split(",") if name.strip()]
    if isinstance(versions, Sequence) and not isinstance(versions, str) and len(versions) > 1:
        if len(cards) > 1:
            raise Refused(
                "several cards and several engine versions are asked at once; name one card, or one version, and compare the others"
            )
        return [("engine_version", str(version)) for version in versions]
    return [("gpu", card) for card in cards] if len(cards) > 1 else []


def compare(one: One, question: Mapping[str, Any], choices: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """The first answer's document, and under `side_by_side` all answers, by what they differ, and the reasons in words.

    What the engine refuses is left out and named, unless it refuses all.
    """
    answers: dict[str, tuple[Asked, Document]] = {}
    refused: dict[str, Refused] = {}
    for name, value in choices:
        try:
            answers[value] = one({**question, name: value})
        except Refused as error:
            if error.by != "engine":
                raise
            refused[value] = error
    if not answers:
        raise next(iter(refused.values()))
    by, told = choices[0][0], list(answers.values())
    reasons = [f"{value} is left out: {error}" for value, error in refused.items()]
    reasons += _version_reasons(told) if by == "engine_version" else _card_reasons(told)
    beside = {
        "by": by,
        "answers": [{"of": value, **document} for value, (_, document) in answers.items()],
        "says": _summary([value for _, value in choices], {value: document for value, (_, document) in answers.items()}),
        "reasons": reasons,
    }
    return {**told[0][1], "side_by_side": beside}


def _summary(values: Sequence[str], documents: Mapping[str, Document]) -> str:
    return "; ".join(_verdict(value, documents.get(value)) for value in values)


def _verdict(value: str, document: Document | None) -> str:
    return f"{value} is refused by the engine" if document is None else f"{value} {_WORDS[document['headline']]}{_held(document)}"


_WORDS = {"It fits": "fits", "It does not fit": "does not fit", "It may fit": "may fit", "Open": "is open"}


def _held(document: Document) -> str:
    concurrency = document["kv"]["max_concurrency"]
    return "" if concurrency is None else f" ({concurrency:.2f} full requests)"


def _card_reasons(answers: Sequence[tuple[Asked, Document]]) -> Iterator[str]:
    for asked, document in answers:
        if asked.total is not None:
            name = asked.gpu.id if asked.gpu else "the card"
            pool = document["ranks"][document["limiting_rank"] or 0]["kv_pool_bytes"]
            held = "" if pool is None else f", of which the pool gets {gib(pool)}"
            yield f"{name} reports {gib(asked.total)}{held}; a batch has {asked.max_num_batched_tokens:,} tokens by default or as given"


def _version_reasons(answers: Sequence[tuple[Asked, Document]]) -> Iterator[str]:
    (old, before), (new, after) = answers[0], answers[-1]
    pairs = [(name, getattr(old.rules, name), getattr(new.rules, name)) for name in type(new.rules).__dataclass_fields__]
    for name, was, now in pairs:
        if was != now and name in _RULES and _matters(name, new):
            yield _RULES[name].format(old=old.version, new=new.version, was=_said(was), now=_said(now))
    if (old.max_num_batched_tokens, old.max_num_seqs) != (new.max_num_batched_tokens, new.max_num_seqs):
        yield (
            f"a batch has {old.max_num_batched_tokens:,} tokens and {old.max_num_seqs:,} requests in {old.version}, "
            f"{new.max_num_batched_tokens:,} and {new.max_num_seqs:,} in {new.version}"
        )
    yield from _estimate_reasons(old, new)
    if before["kv"]["request_bytes"] != after["kv"]["request_bytes"]:
        taken = [f"{gib(document['kv']['request_bytes'])} in {asked.version}" for asked, document in (answers[0], answers[-1])]
        yield f"one full request takes {taken[0]}, {taken[1]}"


_RULES = {
    "in_flight": "a window is charged with the tokens in flight beside it: one {was} in {old}, one of all {now} under way in {new}",
    "holds_null_block": "from 0.29 the check for one full request leaves out a block that stands for nothing ({old} against {new})",
    "printed_tokens": "“GPU KV cache size” counts by {was} in {old} and by {now} in {new}: compare the concurrency, not the tokens",
    "utilization": "the default utilization is {was} in {old} and {now} in {new}",
    "states": "of recurrent states prefix caching keeps {was} in {old} and {now} in {new}",
    "state_prefix_caching": "models with recurrent state cache prefixes by default: {was} in {old}, {now} in {new}",
    "delta_multiple": "blocks of delta-rule layers are multiples of {was} tokens in {old} and of {now} in {new}",
    "override_limits": "num_gpu_blocks_override also bounds the check from 0.26 ({old} against {new})",
    "async_scheduling": "a second batch is prepared while one runs: {was} in {old}, {now} in {new}",
    "pads_pages": "attention pages that do not divide the largest one are padded: {was} in {old}, {now} in {new}",
    "shares_kv": "layers that read another layer's cache have none of their own: {was} in {old}, {now} in {new}",
}


def _said(value: object) -> object:
    return {True: "yes", False: "no", "every": "those of every block", "aligned": "aligned ones"}.get(value, value)


def _matters(name: str, asked: Asked) -> bool:
    """Whether a rule of the planner touches this model and this question at all."""
    windows = any(isinstance(cache, Heads) and (cache.window or cache.chunk) for cache in asked.shape.caches)
    return {
        "in_flight": windows,
        "async_scheduling": windows,
        "states": asked.shape.recurrent,
        "state_prefix_caching": asked.shape.recurrent,
        "delta_multiple": any(isinstance(cache, GatedDelta) for cache in asked.shape.caches),
        "override_limits": asked.arguments.get("num_gpu_blocks_override") is not None,
        "utilization": asked.arguments.get("gpu_memory_utilization") is None,
        "shares_kv": asked.shape.shared_layers > 0,
        "pads_pages": len(asked.shape.caches) > 1,
    }.get(name, True)


def _estimate_reasons(old: Asked, new: Asked) -> Iterator[str]:
    """What the budget pays for, where the terms are estimated."""
    if new.arguments.get("other_bytes") is not None or new.arguments.get("kv_cache_memory_bytes") is not None or new.total is None:
        return
    was, now = (figures_of(asked) for asked in (old, new))
    if was.graphs_charged != now.graphs_charged:
        paid = {True: "pays for CUDA graphs", False: "leaves CUDA graphs on top"}
        yield f"the budget {paid[was.graphs_charged]} in {old.version} and {paid[now.graphs_charged]} in {new.version}"
    if was.sampler.span != now.sampler.span:
        spans = [f"{span[0]:g}…{span[2]:g} B" for span in (was.sampler.span, now.sampler.span)]
        yield f"drawing takes {spans[0]} per sequence and vocabulary entry in {old.version}, {spans[1]} in {new.version}"
    if was.non_torch.span != now.non_torch.span:
        spans = [f"{span[0]:g}…{span[2]:g} GiB" for span in (was.non_torch.span, now.non_torch.span)]
        yield f"memory beside torch that the budget pays for: {spans[0]} in {old.version}, {spans[1]} in {new.version}"
