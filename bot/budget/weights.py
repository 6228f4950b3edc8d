"""Parameter and buffer bytes of every rank, by where each tensor is placed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bot.budget.placement import stage_layers
from bot.budget.quantization import Quantization
from bot.budget.tensor_bytes import Scale
from bot.domain.size import gib
from bot.domain.tensors import Experts, Linear, ModelTensors, TensorGrid


@dataclass(frozen=True, slots=True)
class RankWeights:
    """One rank of one replica, in bytes. `peak` is what loading needs at its worst, never less than `resident`; `layers` is what of
    `resident` stands in the layers.
    """

    resident: int
    peak: int
    layers: int = 0


@dataclass(frozen=True, slots=True)
class Weights:
    """`ranks` in order pp × TP + tp; `assumptions` in words."""

    ranks: tuple[RankWeights, ...]
    assumptions: tuple[str, ...]


def weights_per_rank(
    tensors: ModelTensors, quantization: Quantization, grid: TensorGrid, stored: Mapping[str, int] | None = None
) -> Weights:
    """Bytes of every rank of one replica. Unplaceable when the engine itself could not deal the tensors out.

    `stored`: whole bytes of each module as the checkpoint's headers say; they win over what the architecture implies.
    """
    scale = Scale(tensors, quantization, grid, stored)
    full = Scale(tensors, Quantization(), grid) if quantization.online else None
    ranks: list[RankWeights] = []
    for stage, layers in enumerate(stage_layers(len(tensors.layers), grid.pp)):
        uneven = grid.experts_parallel and any(isinstance(m, Experts) and m.count % grid.expert_ranks for ms in tensors.layers for m in ms)
        one = [loading(scale, full, stage, layers, r) for r in range(grid.tp if uneven else 1)]
        ranks += one if uneven else one * grid.tp
    basis = HEADERS if scale.stored else tensors.basis
    said = (*_assumptions(tensors, quantization, grid, basis), *_peaks(quantization, ranks))
    return Weights(tuple(ranks), said)


def loading(scale: Scale, full: Scale | None, stage: int, layers: range, rank: int) -> RankWeights:
    """One rank's bytes, and its peak: for an online-quantized model one layer at full width more, or all layers and one converted."""
    resident, inside = scale.rank(stage, layers, rank), sum(scale.layer(i, rank) for i in layers)
    if full is None:
        return RankWeights(resident, resident, inside)
    if scale.quantization.online == "layer":
        return RankWeights(resident, resident + max((full.layer(i, rank) for i in layers), default=0), inside)
    return RankWeights(resident, full.rank(stage, layers, rank) + max((scale.layer(i, rank) for i in layers), default=0), inside)


def _peaks(quantization: Quantization, ranks: Sequence[RankWeights]) -> Sequence[str]:
    if not quantization.online:
        return ()
    how = "layer by layer" if quantization.online == "layer" else "after all of it has been loaded"
    peak = max(rank.peak for rank in ranks)
    return (f"the checkpoint is converted {how}: a rank needs up to {gib(peak)} for weights while loading",)


HEADERS = "from safetensors headers, placed by architecture"


def _assumptions(tensors: ModelTensors, quantization: Quantization, grid: TensorGrid, basis: str) -> Sequence[str]:
    said = [f"weights {basis}, {quantization.title}", *tensors.notes]
    if grid.experts_parallel and grid.expert_ranks > 1:
        said.append(f"whole experts dealt to {grid.expert_ranks} ranks")
    if grid.copies_shared and any(isinstance(m, Linear) and m.shared for layer in tensors.layers for m in layer):
        said.append("shared experts copied to every rank: expert, tensor and data parallelism together")
    return said
