"""The terms that nobody gave: estimated by version, runner, device and model, each a range with its formula."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from bot.budget.overhead import estimated_terms, together
from bot.domain.overheads import Estimate, ForwardShape, OverheadFigures, Run, Runner
from bot.reading.model.forward_shape import forward_shape
from bot.rulebook.overheads import load_overheads
from bot.usecases.sizing.question import Asked
from bot.usecases.sizing.settings import ELEMENTS
from bot.usecases.sizing.values import flag, quantization_method

Measured = Callable[[Asked], Sequence[Estimate]]
"""Terms measured on stored starts of the same model, card and version: `basis` begins `measured D-0187`; low and high as they were seen."""
_FIRST_ENGINE_SEQUENCES = 256
"""Requests at once that the V0 engine takes by default, also in releases whose usual engine takes more."""


def estimates(asked: Asked, weights: int, measured: Measured | None = None) -> tuple[Estimate, ...]:
    """Every term beside weights and pool, on the rank that needs most; a measured term stands in for the estimate of the same name.

    `weights`: bytes of the heaviest rank as loaded, 0 when the question gives what they take on the device.
    """
    figures = figures_of(asked)
    seen = {term.name: term for term in (measured(asked) if measured else ())}
    made = estimated_terms(_shape(asked), _run(asked, figures), figures, weights)
    return tuple(seen.get(term.name, term) for term in made if term.high)


def span(asked: Asked, terms: Sequence[Estimate]) -> tuple[int, int, int]:
    """low, typical, high of what lies inside the budget, in bytes; narrow only when version and batch are given."""
    told = asked.arguments.get("engine_version") and asked.arguments.get("max_num_batched_tokens")
    return together(terms, known=bool(told) and not (asked.gpu and asked.gpu.unified))


def figures_of(asked: Asked) -> OverheadFigures:
    """The coefficients of this question's version, runner, device and grid."""
    gpu, shape = asked.gpu, asked.shape
    dense = not shape.experts_per_token and not shape.recurrent
    runner = _runner(asked.version, gpu.compute if gpu else "", shape.architecture, dense)
    return _chosen(
        asked.version,
        runner,
        gpu.vendor if gpu else "nvidia",
        asked.grid.tp,
        bool(gpu and gpu.unified),
        quantization_method(asked.arguments),
    )


@lru_cache(maxsize=1024)
def _runner(version: str, compute: str, architecture: str, dense: bool) -> Runner:
    return load_overheads().runner(version, compute, architecture, dense=dense)


@lru_cache(maxsize=1024)
def _chosen(version: str, runner: Runner, vendor: str, tp: int, unified: bool, method: str) -> OverheadFigures:
    return load_overheads().figures(version, runner, vendor, tp, unified=unified, method=method)


def _shape(asked: Asked) -> ForwardShape:
    config = asked.arguments.get("config")
    width = ELEMENTS.get(str(asked.arguments.get("dtype")), 2)
    return forward_shape(config if isinstance(config, Mapping) else {}, asked.shape, width)


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
        eager=flag(given, "enforce_eager", False),
        encodes=not any(flag(given, name, False) for name in ("language_model_only", "skip_mm_profiling")) and not _no_items(given),
    )


def _no_items(given: Mapping[str, Any]) -> bool:
    """--limit-mm-per-prompt with nothing but zeros keeps pictures out."""
    limits = given.get("limit_mm_per_prompt")
    return isinstance(limits, Mapping) and bool(limits) and not any(limits.values())
