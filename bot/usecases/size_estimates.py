"""The terms that nobody gave: estimated by version, runner, device and model, each a range with its formula."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from bot.budget.overhead import estimated_terms, together
from bot.domain.overheads import Estimate, ForwardShape, OverheadFigures, Run
from bot.reading.forward_shape import forward_shape
from bot.rulebook.overheads import load_overheads
from bot.usecases.size_question import Asked

Measured = Callable[[Asked], Sequence[Estimate]]
"""Terms measured on stored starts of the same model, card and version: `basis` begins `measured D-0187`; low and high as they were seen."""

_FIRST_ENGINE_SEQUENCES = 256


def estimates(asked: Asked, measured: Measured | None = None) -> tuple[Estimate, ...]:
    """Every term beside weights and pool, on the rank that needs most; a measured term stands in for the estimate of the same name."""
    figures = figures_of(asked)
    seen = {term.name: term for term in (measured(asked) if measured else ())}
    made = estimated_terms(_shape(asked), _run(asked, figures), figures)
    return tuple(seen.get(term.name, term) for term in made)


def span(asked: Asked, terms: Sequence[Estimate]) -> tuple[int, int, int]:
    """low, typical, high of what lies inside the budget, in bytes; narrow only when version and batch are given."""
    told = asked.arguments.get("engine_version") and asked.arguments.get("max_num_batched_tokens")
    return together(terms, known=bool(told) and not (asked.gpu and asked.gpu.unified))


def figures_of(asked: Asked) -> OverheadFigures:
    """The coefficients of this question's version, runner, device and grid."""
    gpu, shape = asked.gpu, asked.shape
    dense = not shape.experts_per_token and not shape.recurrent
    return _chosen(
        asked.version,
        gpu.compute if gpu else "",
        gpu.vendor if gpu else "nvidia",
        shape.architecture,
        dense,
        asked.grid.tp,
        bool(gpu and gpu.unified),
    )


@lru_cache(maxsize=1024)
def _chosen(version: str, compute: str, vendor: str, architecture: str, dense: bool, tp: int, unified: bool) -> OverheadFigures:
    overheads = load_overheads()
    return overheads.figures(version, overheads.runner(version, compute, architecture, dense=dense), vendor, tp, unified=unified)


def _shape(asked: Asked) -> ForwardShape:
    config = asked.arguments.get("config")
    return forward_shape(config if isinstance(config, Mapping) else {}, asked.shape)


def _run(asked: Asked, figures: OverheadFigures) -> Run:
    given = asked.arguments
    sequences = asked.max_num_seqs
    if figures.runner == "v0" and given.get("max_num_seqs") is None:
        sequences = _FIRST_ENGINE_SEQUENCES
    return Run(
        tokens=asked.max_num_batched_tokens,
        sequences=sequences,
        max_model_len=asked.settings.max_model_len,
        tp=asked.grid.tp,
        pp=asked.grid.pp,
        tokens_given=given.get("max_num_batched_tokens") is not None,
        sequences_given=given.get("max_num_seqs") is not None,
        eager=_says(given, "enforce_eager"),
        encodes=not _says(given, "language_model_only") and not _says(given, "skip_mm_profiling"),
    )


def _says(given: Mapping[str, Any], name: str) -> bool:
    return str(given.get(name, False)).lower() in {"true", "1", "yes"}
