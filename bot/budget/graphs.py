"""CUDA graphs: which batch sizes are captured, and what their pools take."""

from bot.budget.activations import FEW
from bot.domain.overheads import Estimate, ForwardShape, OverheadFigures, Run
from bot.domain.size import GIB, MIB

LARGEST = 512


def capture_sizes(sequences: int) -> int:
    """How many batch sizes are captured by default: 1, 2, 4, then every 8th to 256 and every 16th to 512, at most twice the sequences.

    Source: vLLM config/vllm.py _set_cudagraph_sizes (0.11.1 to 0.33).
    """
    top = min(2 * sequences, LARGEST)
    return sum(size <= top for size in (1, 2, 4, *range(8, 256, 8), *range(256, LARGEST + 1, 16)))


def graph_pool(shape: ForwardShape, run: Run, figures: OverheadFigures) -> Estimate:
    """Bytes of all captured graphs on one rank; `inside` where this version's budget pays for them."""
    if run.eager:
        return Estimate("CUDA graphs", 0, 0, 0, "eager execution captures none", inside=figures.graphs_charged)
    low, typical, high = (
        figures.first_graph.span[i] * GIB + max(0, graphs - 1) * shape.layers / run.pp * figures.graph.span[i] * MIB
        for i, graphs in enumerate(_counts(run, figures))
    )
    return Estimate("CUDA graphs", round(low), round(typical), round(high), _basis(shape, run, figures), inside=figures.graphs_charged)


def _counts(run: Run, figures: OverheadFigures) -> tuple[int, int, int]:
    """Captured graphs; without a given number of sequences a start may well have chosen few."""
    usual = _sets(run.sequences, figures)
    return (usual if run.sequences_given or run.tokens_given else _sets(min(run.sequences, FEW), figures)), usual, usual


def _sets(sequences: int, figures: OverheadFigures) -> int:
    """Piecewise graphs of every size, and full ones of sizes that decoding can reach."""
    piecewise = capture_sizes(sequences)
    return piecewise + (capture_sizes(sequences // 2) if figures.full_graphs else 0)


def _basis(shape: ForwardShape, run: Run, figures: OverheadFigures) -> str:
    low, _, high = figures.graph.span
    counted = f"{_sets(run.sequences, figures)} graphs × {shape.layers // run.pp} layers × {low:g}…{high:g} MiB and the first one"
    paid = "" if figures.graphs_charged else "; this version's budget does not pay for them"
    return f"{counted}; fitted on {figures.graph.rows} measured starts{paid}"
