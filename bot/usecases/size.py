"""Will this model fit: the engine's own plan for a question, as the contract's sizing answer."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

from bot.budget.kv_groups import Unplannable
from bot.budget.plan import plan
from bot.domain.budget import KvPlan, RankBudget
from bot.domain.size import gb
from bot.reading.model_config import Missing, UnknownArchitecture
from bot.rulebook.planning import UnknownVersion
from bot.usecases.reply import Reply, Unusable
from bot.usecases.size_command import command
from bot.usecases.size_compare import compare, several
from bot.usecases.size_estimates import Measured
from bot.usecases.size_question import Asked, Refused, SizingRules, per_rank, read_question
from bot.usecases.size_refusals import refuse
from bot.usecases.size_risks import risks
from bot.usecases.size_search import room, ways
from bot.usecases.size_terms import Other, Term, other_terms, with_loading
from bot.usecases.size_weights import weights_of

SCHEMA = "oombot.sizing/1"
Named = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""A question with a model's name -> the same with its config.json; Unusable when nobody has that model."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Everything the document is drawn from. `loading`: what weights need at most while they are read and converted."""

    asked: Asked
    plan: KvPlan
    ranks: tuple[RankBudget, ...]
    other: Other
    assumptions: tuple[str, ...]
    loading: Sequence[int] | None = None


def size(rules: SizingRules, question: Mapping[str, Any], measured: Measured | None = None) -> Reply:
    """The sizing answer; terms that `measured` gives stand in for estimates. Raises Unusable with a sentence when there is no answer."""
    choices = several(question)
    try:
        if choices:
            return Reply("sizing", compare(lambda one: _told(rules, one, measured), question, choices))
        _, told = _told(rules, question, measured)
        ask = partial(_again, rules, question, measured)
        return Reply("sizing", {**told, "ways": ways(ask, question, told, rules.gpus), "room": room(ask, question, told)})
    except Refused as refused:
        raise Unusable(str(refused)) from refused


def _told(rules: SizingRules, question: Mapping[str, Any], measured: Measured | None) -> tuple[Asked, dict[str, Any]]:
    found = answer(rules, question, measured)
    return found.asked, document(found)


def _again(rules: SizingRules, question: Mapping[str, Any], measured: Measured | None, changes: Mapping[str, Any]) -> dict[str, Any] | None:
    """The same question with something changed; None where that has no answer."""
    try:
        return document(answer(rules, {**question, **changes}, measured))
    except Refused:
        return None


def size_batch(rules: SizingRules, lines: Iterable[str], named: Named | None = None) -> Iterator[dict[str, Any]]:
    """One answer for each JSON line, in order, with its id; a question without an answer gets `error` and `refused_by`.

    `named` finds the config.json of a question that has only a `model`.
    """
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield _one_of_batch(rules, line, number, named)


def _one_of_batch(rules: SizingRules, line: str, number: int, named: Named | None) -> dict[str, Any]:
    try:
        question = json.loads(line)
    except ValueError as error:
        return {"id": None, "error": f"line {number} is not JSON: {error}", "refused_by": "oombot"}
    if not isinstance(question, dict):
        return {"id": None, "error": f"line {number} is not a JSON object", "refused_by": "oombot"}
    try:
        whole = named(question) if named and question.get("model") and question.get("config") is None else question
        return {"id": question.get("id"), **document(answer(rules, whole))}
    except Refused as refused:
        return {"id": question.get("id"), "error": str(refused), "refused_by": refused.by}
    except Unusable as unusable:
        return {"id": question.get("id"), "error": str(unusable), "refused_by": "oombot"}


def answer(rules: SizingRules, question: Mapping[str, Any], measured: Measured | None = None) -> Answer:
    """The plan and the budget of every rank. Raises Refused, and says by whom."""
    try:
        asked = read_question(rules, question)
        refuse(asked)
        return _answer(asked, measured)
    except Unplannable as error:
        raise Refused(str(error), by="engine") from error
    except (Missing, UnknownArchitecture, UnknownVersion) as error:
        raise Refused(str(error)) from error
    except Refused:
        raise
    except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
        # a person's config.json may hold anything anywhere
        raise Refused(f"config.json or the question has a value of the wrong kind ({type(error).__name__}: {error})") from error


def _answer(asked: Asked, measured: Measured | None) -> Answer:
    held = weights_of(asked)
    other = with_loading(other_terms(asked, held.bytes, measured), held)
    ranks, more = _budgets(asked, held.bytes, other.bytes)
    pools = [rank.kv_pool for rank in ranks]
    known = [pool for pool in pools if pool is not None]
    whole = plan(asked.shape, asked.grid, asked.settings, asked.rules, known if len(known) == len(pools) else None)
    if asked.fit_length and whole.estimated_max_model_len:
        asked = replace(asked, settings=replace(asked.settings, max_model_len=whole.estimated_max_model_len))
        whole = plan(asked.shape, asked.grid, asked.settings, asked.rules, known)
    return Answer(asked, whole, ranks, other, (*asked.assumptions, *held.assumed, *more), held.loading)


def _budgets(asked: Asked, weights: Sequence[int] | None, other: int | None) -> tuple[tuple[RankBudget, ...], list[str]]:
    count, said = asked.grid.ranks, []
    pools = per_rank(asked.arguments, "kv_cache_memory_bytes", count)
    budget = None if asked.total is None else int(asked.total * Fraction(str(asked.utilization)))
    if pools is not None:
        said.append(f"the pool is given, so utilization {asked.utilization:g} does not size it; the start-up check still uses it")
    ranks = []
    for rank in range(count):
        held = None if weights is None else weights[rank]
        pool = pools[rank] if pools is not None else None
        if pools is None and budget is not None and held is not None and other is not None:
            pool = budget - held - other
        ranks.append(RankBudget(rank, asked.total, budget, held, other, pool))
    return tuple(ranks), said


def document(told: Answer) -> dict[str, Any]:
    """The contract's JSON."""
    asked, whole = told.asked, told.plan
    fits, why = verdict(told)
    return {
        "schema": SCHEMA,
        "fits": fits,
        "why": why,
        "limiting_rank": whole.limiting_rank,
        "ranks": [_rank(rank) for rank in told.ranks],
        "kv": _kv(whole),
        "demand": _demand(told),
        "range": _range(told),
        "terms": [_term(term) for term in told.other.terms],
        "assumptions": list(told.assumptions),
        "risks": list(risks(asked, told.ranks[whole.limiting_rank or 0], told.other)),
        "engine_version": asked.version,
        "model": asked.arguments.get("model"),
        "gpu": asked.gpu.id if asked.gpu else None,
        "command": command(asked),
    }


def _range(told: Answer) -> dict[str, list[int]] | None:
    """Where the pool of the limiting rank lies when other terms are estimated; None when the pool is given or open."""
    rank = told.ranks[told.plan.limiting_rank or 0]
    if told.other.span is None or not told.other.estimated or rank.budget is None or rank.weights is None:
        return None
    if told.asked.arguments.get("kv_cache_memory_bytes") is not None:
        return None
    low, _, high = told.other.span
    return {"kv_pool_bytes": [rank.budget - rank.weights - high, rank.budget - rank.weights - low]}


def _term(term: Term) -> dict[str, Any]:
    estimated = {} if term.low is None else {"range": [term.low, term.high], "inside_budget": term.inside}
    return {"name": term.name, "bytes": term.bytes, "basis": term.basis, **estimated}


def verdict(told: Answer) -> tuple[bool | None, str]:
    """Whether it fits, and a sentence that says by how much."""
    for rank in told.ranks:
        claimed = (rank.weights or 0) + (0 if told.other.estimated else rank.other or 0) + max(0, rank.kv_pool or 0)
        if rank.total is not None and rank.weights is not None and claimed > rank.total:
            return False, f"rank {rank.rank} needs {gb(claimed)} for weights, pool and the rest, but its device has {gb(rank.total)}"
    for rank, most in zip(told.ranks, told.loading or (), strict=False):
        if rank.total is not None and most > rank.total:
            return (
                False,
                f"rank {rank.rank} needs {gb(most)} while weights are loaded and converted, but its device has {gb(rank.total)}",
            )
    whole = told.plan
    if whole.fits is None:
        return None, "whether it fits is open: " + _missing(told)
    need, length = max(whole.request_bytes), told.asked.settings.max_model_len
    if whole.concurrency is None:
        return True, "this model keeps no KV cache, so its pool cannot be too small"
    pool = told.ranks[whole.limiting_rank or 0].kv_pool or 0
    if told.asked.settings.blocks_override is not None:
        return whole.fits, _overridden(whole, need, length)
    if not whole.fits:
        short = f"one request of {length:,} tokens needs {gb(need)} a rank, and the pool of rank {whole.limiting_rank} has {gb(pool)}"
        return False, short + _unsure(told, need, fits=False)
    held = f"the pool of rank {whole.limiting_rank} has {gb(pool)}, room for {whole.concurrency:.2f} requests of {length:,} tokens"
    return True, held + _unsure(told, need, fits=True)


def _overridden(whole: KvPlan, need: int, length: int) -> str:
    """How many blocks were asked for decides, whatever memory there is."""
    held = f"the {whole.num_blocks or 0:,} blocks asked for hold {whole.concurrency or 0:.2f} requests of {length:,} tokens"
    return held if whole.fits else f"{held}; one such request needs {gb(need)} a rank"


def _unsure(told: Answer, need: int, *, fits: bool) -> str:
    """What the other end of an estimated range would mean."""
    spread = _range(told)
    if spread is None:
        return ""
    low, high = spread["kv_pool_bytes"]
    if fits and low < need:
        return f"; other consumption is estimated, and at worst the pool has {gb(low)}, too little for one"
    if not fits and high >= need:
        return f"; other consumption is estimated, and at best the pool has {gb(high)}, enough for one"
    return ""


def _missing(told: Answer) -> str:
    rank = told.ranks[0]
    gaps = [
        name
        for name, value in (("the device's memory", rank.total), ("weights per rank", rank.weights), ("other consumption", rank.other))
        if value is None
    ]
    return f"{', '.join(gaps)} not known; give --kv-cache-memory-bytes or what is missing"


def _rank(rank: RankBudget) -> dict[str, Any]:
    return {
        "rank": rank.rank,
        "total_bytes": rank.total,
        "budget_bytes": rank.budget,
        "weights_bytes": rank.weights,
        "other_bytes": rank.other,
        "kv_pool_bytes": rank.kv_pool,
        "outside_budget_bytes": rank.outside,
    }


def _kv(whole: KvPlan) -> dict[str, Any]:
    heaviest = max(range(len(whole.request_bytes)), key=lambda rank: whole.request_bytes[rank])
    per_token = whole.bytes_per_token[heaviest]
    return {
        "bytes_per_token": round(per_token),
        "fixed_bytes_per_request": whole.fixed_bytes[heaviest],
        "request_bytes": whole.request_bytes[heaviest],
        "block_size": whole.block_size,
        "num_blocks": whole.num_blocks,
        "tokens": whole.tokens,
        "max_concurrency": None if whole.concurrency is None else round(whole.concurrency, 3),
        "full_requests": None if whole.concurrency is None else int(whole.concurrency),
        "estimated_max_model_len": whole.estimated_max_model_len,
        "longest_context": whole.longest_context,
    }


def _demand(told: Answer) -> dict[str, Any]:
    """What all permitted requests would need at full length; the engine never reserves it."""
    requests = told.asked.max_num_seqs
    return {
        "requests": requests,
        "bytes_per_rank": requests * max(told.plan.request_bytes),
        "bytes_all_ranks": requests * sum(told.plan.request_bytes),
        "reserved_at_startup": False,
    }
