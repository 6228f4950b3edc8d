"""A sizing answer as the contract's JSON; the one owner of its shape."""

from typing import Any

from bot.domain.budget import KvPlan, RankBudget
from bot.usecases.sizing.command import command, model_shown
from bot.usecases.sizing.risks import risks
from bot.usecases.sizing.terms import SAYS, Term
from bot.usecases.sizing.units import is_decimal
from bot.usecases.sizing.verdict import Answer, headline, pool_range, verdict

SCHEMA = "oombot.sizing/1"


def sizing_document(told: Answer) -> dict[str, Any]:
    """The contract's object, with the additions that doors show: headline, terms' ranges, risks, decimal, model, gpu."""
    asked, whole = told.asked, told.plan
    fits, why = verdict(told)
    return {
        "schema": SCHEMA,
        "fits": fits,
        "headline": headline(told, fits),
        "why": why,
        "limiting_rank": whole.limiting_rank,
        "ranks": [_rank(rank) for rank in told.ranks],
        "kv": _kv(whole),
        "demand": _demand(told),
        "range": _range(told),
        "terms": [_term(term) for term in told.other.terms],
        "assumptions": list(told.assumptions),
        "risks": list(risks(asked, told.ranks[whole.limiting_rank or 0], told.other)),
        "decimal": is_decimal(asked.arguments),
        "engine_version": asked.version,
        "model": model_shown(asked.arguments),
        "gpu": asked.gpu.id if asked.gpu else None,
        "command": command(asked) if fits else None,
    }


def _range(told: Answer) -> dict[str, list[int]] | None:
    """Where the pool of the limiting rank lies when other terms are estimated; None when the pool is given or open."""
    spread = pool_range(told, told.ranks[told.plan.limiting_rank or 0])
    return None if spread is None else {"kv_pool_bytes": list(spread)}


def _term(term: Term) -> dict[str, Any]:
    estimated = {} if term.low is None else {"range": [term.low, term.high], "inside_budget": term.inside}
    return {"name": term.name, "says": SAYS.get(term.name, ""), "bytes": term.bytes, "basis": term.basis, **estimated}


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
