"""Which figures of memory a door shows, and what they are called: the engine's that failed, and the failed request's of its card."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple


class Figure(NamedTuple):
    """What a figure is called inside a sentence, and what it counts."""

    label: str
    unit: Literal["bytes", "count", "fraction", "ratio"] = "bytes"


FIGURES: Mapping[str, Figure] = {
    "total_bytes": Figure("device memory"),
    "free_at_start_bytes": Figure("free at start"),
    "utilization": Figure("utilization", "fraction"),
    "requested_bytes": Figure("budget"),
    "weights_bytes": Figure("weights"),
    "consumed_bytes": Figure("weights and outside PyTorch"),
    "activation_peak_bytes": Figure("activation peak"),
    "non_torch_bytes": Figure("outside PyTorch"),
    "other_reserved_bytes": Figure("reserved otherwise"),
    "graph_estimate_bytes": Figure("graphs, estimated"),
    "graph_bytes": Figure("graphs, captured"),
    "kv_cache_bytes": Figure("KV pool"),
    "needed_bytes": Figure("one full request needs"),
    "kv_tokens": Figure("tokens in the pool", "count"),
    "num_gpu_blocks": Figure("blocks of the pool", "count"),
    "state_blocks": Figure("state blocks", "count"),
    "max_concurrency": Figure("full requests at once", "ratio"),
    "estimated_max_model_len": Figure("longest context, estimated", "count"),
    "free_before_profile_bytes": Figure("free before profiling"),
    "free_after_profile_bytes": Figure("free after profiling"),
    "outside_budget_bytes": Figure("outside the budget"),
}
"""The contract's figures of one rank's budget, in the order in which they are shown."""
AT_THE_ERROR = (
    ("total_bytes", "the card has"),
    ("process_bytes", "in use by this process"),
    ("allocated_bytes", "allocated by PyTorch"),
    ("private_pool_bytes", "of it in private pools, such as graphs"),
    ("reserved_unallocated_bytes", "reserved by PyTorch but unallocated"),
    ("allowed_bytes", "allowed to this process"),
    ("free_bytes", "free"),
    ("tried_bytes", "asked for"),
)
EXPECTED = ("total_bytes", "utilization", "weights_bytes", "activation_peak_bytes", "kv_cache_bytes")
"""What vLLM reports when it starts; where some of it is missing, that is said."""
_MEASURED = (
    "utilization",
    "weights_bytes", "consumed_bytes", "activation_peak_bytes", "non_torch_bytes", "graph_bytes", "graph_estimate_bytes",
    "other_reserved_bytes", "kv_cache_bytes", "needed_bytes", "kv_tokens", "num_gpu_blocks", "state_blocks",
    "free_before_profile_bytes", "free_after_profile_bytes",
)  # fmt: skip


def at_the_error(document: Mapping[str, Any]) -> list[tuple[str, int]]:
    """(label, bytes) of the card when the first request failed, as its line says. Empty where it says no more than the headline does."""
    error = document.get("first_error") or {}
    if error.get("process_bytes") is None and error.get("allocated_bytes") is None:
        return []
    return [(label, error[name]) for name, label in AT_THE_ERROR if error.get(name) is not None]


def of_what_failed(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The budgets of the container that failed, or all of them; none that repeats only what the error says of the card."""
    failed = document.get("container")
    mine = [b for b in document["budgets"] if not failed or b.get("engine_label") in (None, failed)]
    return [b for b in mine if measured(b) or not at_the_error(document)]


def measured(budget: Mapping[str, Any]) -> bool:
    """Did the engine report a term of its own, beyond the card and its fraction?"""
    return any(budget.get(name) is not None for name in _MEASURED)


def not_reported(document: Mapping[str, Any], budget: Mapping[str, Any]) -> Sequence[str]:
    """Labels of the terms that vLLM usually reports and that are not there; the other engines have no such terms."""
    if document["engine"] not in ("vllm", "unknown"):
        return []
    both = budget.get("consumed_bytes") is not None  # weights and what is outside PyTorch, as one figure
    return [FIGURES[name].label for name in EXPECTED if budget.get(name) is None and not (both and name == "weights_bytes")]
