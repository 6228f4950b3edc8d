"""The terms beside weights and KV cache, put together: what lies inside the budget, what comes on top, and how sure that is."""

from collections.abc import Sequence
from math import sqrt

from bot.budget.activations import activation_peak
from bot.budget.graphs import graph_pool
from bot.domain.overheads import Estimate, ForwardShape, Measured, OverheadFigures, Run
from bot.domain.size import GIB

NARROW = 3 * GIB  # 1.5 GiB either way


def non_torch(figures: OverheadFigures, tp: int) -> Estimate:
    """What grows outside torch while profiling runs: kernels' workspaces and, where the version charges them, communicators."""
    return _constant("non-torch", figures.non_torch, f"growth beside torch, {'one rank' if tp == 1 else 'several ranks'}")


def repacked(weights: int, figures: OverheadFigures) -> Estimate:
    """What kernels add to the weights once they are loaded: other layouts, padding, scales. `weights`: bytes of one rank as loaded."""
    low, typical, high = (round(weights * share) for share in figures.repacked.span)
    shares = f"{figures.repacked.span[0]:.0%} to {figures.repacked.span[2]:.0%} of the weights"
    return Estimate(
        "repacked weights", low, typical, high, f"{shares}; fitted on {figures.repacked.rows} models; {figures.repacked.source}"
    )


def baseline(figures: OverheadFigures) -> Estimate:
    """CUDA context and what else stands before the first snapshot: it lowers free memory and is in no version's budget."""
    return _constant("CUDA context and communicators", figures.baseline, "total less free at start", inside=False)


def _constant(name: str, measured: Measured, how: str, *, inside: bool = True) -> Estimate:
    low, typical, high = (round(value * GIB) for value in measured.span)
    rows = f"fitted on {measured.rows} measured starts" if measured.rows else "no measured start stands behind it"
    return Estimate(name, low, typical, high, f"{how}: {rows}; {measured.source}", inside)


def estimated_terms(shape: ForwardShape, run: Run, figures: OverheadFigures, weights: int = 0) -> tuple[Estimate, ...]:
    """Every term of one rank, each counted once: activations, non-torch, graphs, repacking, and what stands outside any budget."""
    return (
        activation_peak(shape, run, figures),
        non_torch(figures, run.tp),
        graph_pool(shape, run, figures),
        repacked(weights, figures),
        baseline(figures),
    )


def together(terms: Sequence[Estimate], *, known: bool) -> tuple[int, int, int]:
    """low, typical, high of all terms inside the budget. `known`: version and batch are given, and the memory is the device's own.

    Independent terms do not reach their ends together, so deviations add as squares; but a batch left open moves several terms down at
    once, so then the lows are added. With a known batch the ends lie at most NARROW apart: of 11 such measured starts 10 lay inside.
    """
    inside = [term for term in terms if term.inside]
    typical = sum(term.typical for term in inside)
    below = sqrt(sum((term.typical - term.low) ** 2 for term in inside)) if known else typical - sum(term.low for term in inside)
    above = sqrt(sum((term.high - term.typical) ** 2 for term in inside))
    share = min(1.0, NARROW / max(1.0, below + above)) if known else 1.0
    return max(0, round(typical - below * share)), typical, round(typical + above * share)
