"""A Diagnosis as the contract's JSON; the one owner of its shape."""

from typing import Any

from bot.domain.diagnosis import Diagnosis, FirstError, Remedy, ReportedBudget
from bot.domain.rank import Rank

SCHEMA = "oombot.diagnosis/1"
ERROR_FIGURES = (
    "tried_bytes",
    "free_bytes",
    "total_bytes",
    "process_bytes",
    "allocated_bytes",
    "allowed_bytes",
    "reserved_unallocated_bytes",
    "private_pool_bytes",
)
BUDGET_FIGURES = (
    "total_bytes",
    "free_at_start_bytes",
    "utilization",
    "requested_bytes",
    "weights_bytes",
    "activation_peak_bytes",
    "non_torch_bytes",
    "consumed_bytes",
    "graph_bytes",
    "graph_estimate_bytes",
    "graphs_inside_budget",
    "other_reserved_bytes",
    "kv_cache_bytes",
    "needed_bytes",
    "kv_tokens",
    "num_gpu_blocks",
    "state_blocks",
    "max_concurrency",
    "estimated_max_model_len",
    "free_before_profile_bytes",
    "free_after_profile_bytes",
    "outside_budget_bytes",
)


def diagnosis_document(diagnosis: Diagnosis) -> dict[str, Any]:
    """The contract's object, `id` still null, with what doors show besides: summary, container, also_failed, notes, similar, topic."""
    return {
        "schema": SCHEMA,
        "id": None,
        "verdict": diagnosis.verdict,
        "engine": diagnosis.engine,
        "engine_version": diagnosis.engine_version,
        "engine_version_range": diagnosis.engine_version_range,
        "phase": diagnosis.phase,
        "summary": diagnosis.summary,
        "also_possible": [{"phase": p.phase, "because": p.because} for p in diagnosis.also_possible],
        "rank": _rank(diagnosis.rank),
        "container": diagnosis.container,
        "also_failed": list(diagnosis.also_failed),
        "first_error": _first_error(diagnosis.first_error),
        "budgets": [_budget(b) for b in diagnosis.budgets],
        "deployment": dict(diagnosis.deployment),
        "recommendation": remedy_document(diagnosis.recommendation),
        "alternatives": [remedy_document(r) for r in diagnosis.alternatives],
        "avoid": [{"flag": a.flag, "direction": a.direction, "because": a.because} for a in diagnosis.avoid],
        "questions": [
            {"id": q.id, "text": q.text, "how": q.how, "would_change": q.would_change, "choices": list(q.choices)}
            for q in diagnosis.questions
        ],
        "proof": [{"source": p.source, "line": p.line, "rule": p.rule, "text": p.text} for p in diagnosis.proof],
        "notes": list(diagnosis.notes),
        "similar": [],
        "sizing": None,
        "topic": None,
        "redactions": diagnosis.redactions,
        "rulebook": diagnosis.rulebook,
    }


def _rank(rank: Rank | None) -> dict[str, Any] | None:
    if rank is None:
        return None
    return {
        "number": rank.number,
        "label": rank.label,
        "dp": rank.dp,
        "pp": rank.pp,
        "tp": rank.tp,
        "ep": rank.ep,
        "gpu_index": rank.gpu_index,
        "node": rank.node,
        "pid": rank.pid,
        "basis": rank.basis,
    }


def _first_error(error: FirstError | None) -> dict[str, Any] | None:
    if error is None:
        return None
    return {"source": error.source, "line": error.line, "text": error.text, "kind": error.kind} | {
        n: error.figures.get(n) for n in ERROR_FIGURES
    }


def _budget(budget: ReportedBudget) -> dict[str, Any]:
    return {
        "rank": budget.rank,
        "label": budget.label,
        "engine_label": budget.engine_label,
        **{n: budget.figures.get(n) for n in BUDGET_FIGURES},
        "closes": budget.closes,
        "residual_bytes": budget.residual_bytes,
        "reported_by_rank": budget.reported_by_rank,
        "missing": list(budget.missing),
        "lines": dict(budget.lines),
        "sources": dict(budget.sources),
    }


def remedy_document(remedy: Remedy | None) -> dict[str, Any] | None:
    """The contract's recommendation object."""
    if remedy is None:
        return None
    return {
        "id": remedy.id,
        "flag": remedy.flag,
        "direction": remedy.direction,
        "value": remedy.value,
        "because": remedy.because,
        "frees_bytes": remedy.frees_bytes,
        "costs": remedy.costs,
        "disproved_by": remedy.disproved_by,
        "keep_fixed": list(remedy.keep_fixed),
        "command": remedy.command,
    }
