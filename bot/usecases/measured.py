"""What stored starts measured, as terms of a sizing answer: they stand in for estimates, with the incident named."""

from collections.abc import Mapping, Sequence
from typing import Any

from bot.domain.overheads import Estimate
from bot.store.numbers import version_sort, version_span
from bot.usecases.desk import Desk, Viewer
from bot.usecases.size_estimates import Measured, figures_of
from bot.usecases.size_question import Asked

_TERMS = {"activations": "activation_peak_bytes", "non-torch": "non_torch_bytes", "CUDA graphs": "graph_bytes"}
_MOST_ROWS = 200


async def measured_terms(desk: Desk, viewer: Viewer, question: Mapping[str, Any]) -> Measured | None:
    """The terms that starts of the question's model had, as `size` takes them; None where nothing is stored of it."""
    model = question.get("model")
    if desk.store is None or not isinstance(model, str) or not model:
        return None
    rows = await desk.store.measured(viewer, model, limit=_MOST_ROWS)
    return (lambda asked: _terms(rows, asked)) if rows else None


def _terms(rows: Sequence[Mapping[str, Any]], asked: Asked) -> list[Estimate]:
    """Terms of starts on the same card, with the same tensor parallelism, minor version and batch; newest first gives the typical one."""
    if asked.gpu is None or asked.grid.pp > 1:
        return []
    like = [
        row
        for row in rows
        if row["gpu"] == asked.gpu.id and row["tp"] == asked.grid.tp and _same_minor(row["engine_version"], asked.version)
    ]
    found = []
    for name, figure in _TERMS.items():
        seen = [row for row in like if row[figure] is not None and _same_batch(name, row, asked)]
        if seen:
            found.append(_estimate(name, [(row["id"], row[figure]) for row in seen], asked))
    return found


def _estimate(name: str, seen: Sequence[tuple[str, int]], asked: Asked) -> Estimate:
    ids = list(dict.fromkeys(incident for incident, _ in seen))
    sizes = [size for _, size in seen]
    newest = max(size for incident, size in seen if incident == ids[0])  # the rank that needs most
    others = f" and {len(ids) - 1} more" if len(ids) > 1 else ""
    inside = figures_of(asked).graphs_charged if name == "CUDA graphs" else True
    return Estimate(name, min(sizes), newest, max(sizes), f"measured {ids[0]}{others}", inside)


def _same_minor(printed: str | None, version: str) -> bool:
    have, span = version_sort(printed), version_span(".".join(version.split(".")[:2]))
    return have is not None and span is not None and span[0] <= have < span[1]


def _same_batch(name: str, row: Mapping[str, Any], asked: Asked) -> bool:
    """The activation peak follows the batch; the others do not."""
    return name != "activations" or row["batched_tokens"] == asked.max_num_batched_tokens
