"""Parameter and buffer bytes of every rank, by where each tensor is placed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd

from bot.budget.placement import stage_layers
from bot.budget.quantization import Quantization, Storage
from bot.domain.size import gib
from bot.domain.tensors import Experts, Linear, ModelTensors, Module, Part, Plain, Stretch, Table, TensorGrid, Unplaceable


@dataclass(frozen=True, slots=True)
class RankWeights:
    """One rank of one replica, in bytes. `peak` is what loading needs at its worst, never less than `resident`."""

    resident: int
    peak: int


@dataclass(frozen=True, slots=True)
class Weights:
    """`ranks` in order pp × TP + tp; `assumptions` in words."""

    ranks: tuple[RankWeights, ...]
    stages: int
    basis: str
    assumptions: tuple[str, ...]

    @property
    def named(self) -> Mapping[str, int]:
        """Resident bytes as ppS_tpR."""
        tensor_ranks = len(self.ranks) // self.stages
        return {f"pp{i // tensor_ranks}_tp{i % tensor_ranks}": rank.resident for i, rank in enumerate(self.ranks)}


def padded_rows(rows: int, multiple: int) -> int:
    """Rows of a vocabulary table after padding. Source: vLLM layers/vocab_parallel_embedding.py (64)."""
    return -(-rows // multiple) * multiple


def finer(storage: Storage, intermediate: int) -> Storage:
    """Blocks that do not divide an expert's dealt size are cut down to the largest that do. Seen in vLLM 0.32 and 0.33."""
    if storage.block is None or intermediate % storage.block[0] == 0:
        return storage
    edge = gcd(intermediate, storage.block[0])
    return replace(storage, block=(edge, edge))


class _Scale:
    """One question's figures, each module of a kind computed once."""

    def __init__(
        self, tensors: ModelTensors, quantization: Quantization, grid: TensorGrid, stored: Mapping[str, int] | None = None
    ) -> None:
        self.tensors, self.quantization, self.grid = tensors, quantization, grid
        self.stored = None if quantization.online else stored
        self.tp = grid.tp if tensors.sharded else 1
        self.width = tensors.dtype_bytes
        self.known: dict[tuple[int, int, int], int] = {}

    def module(self, module: Module, prefix: str, tp: int, rank: int) -> int:
        """Bytes of one module on one tensor rank: its share of what the checkpoint stores, else what its storage implies."""
        storage = self.storage(module, prefix)
        stored = self.stored_bytes(module, prefix)
        if stored is not None:
            return stored * self.weigh(module, storage, tp, rank) // self.weigh_whole(module, storage)
        key = (id(module), id(storage), tp if not isinstance(module, Experts) else -1 - rank)
        if key not in self.known:
            self.known[key] = self.weigh(module, storage, tp, rank)
        return self.known[key]

    def storage(self, module: Module, prefix: str) -> Storage | None:
        if isinstance(module, Linear) and module.quantized:
            return self.quantization.of([prefix + name for name in ((*module.names, module.fused) if module.fused else module.names)])
        if isinstance(module, Experts):
            return self.quantization.of([prefix + module.name], experts=True)
        if isinstance(module, Table) and module.head and (self.quantization.head or self.quantization.assigned):
            return self.quantization.of([prefix + module.name])
        return None

    def stored_bytes(self, module: Module, prefix: str) -> int | None:
        """Whole bytes of a matrix or of all experts of a layer as the checkpoint stores them; None when it does not name them."""
        if not self.stored or not isinstance(module, Linear | Experts):
            return None
        names = (module.name,) if isinstance(module, Experts) else module.names
        sizes = [self.stored.get(prefix + name) for name in names]
        if None not in sizes:
            return sum(size for size in sizes if size is not None)
        return self.stored.get(prefix + module.fused) if isinstance(module, Linear) and module.fused else None

    def weigh_whole(self, module: Module, storage: Storage | None) -> int:
        """The same module undivided and without padding."""
        key = (id(module), id(storage), 0)
        if key not in self.known:
            bare = replace(storage, pad=1, pad_whole=False, pad_hidden=1) if storage else None
            self.known[key] = _Scale(self.tensors, self.quantization, TensorGrid()).weigh(module, bare, 1, 0)
        return self.known[key]

    def weigh(self, module: Module, storage: Storage | None, tp: int, rank: int) -> int:
        if isinstance(module, Linear):
            return self.linear(module, storage, tp)
        if isinstance(module, Experts):
            return self.experts(module, storage, rank)
        if isinstance(module, Table):
            return self.table(module, storage, tp)
        return self.plain(module, tp)

    def linear(self, module: Linear, storage: Storage | None, tp: int) -> int:
        what = module.names[0]
        inputs = module.inputs.on(tp, what)
        outputs = sum(part.on(tp, what) for part in module.outputs)
        bias = outputs * self.width if module.bias else 0
        if storage is None:
            return inputs * outputs * self.width + bias
        scale_inputs = module.inputs.on(1, what) if storage.whole_scales else None
        return storage.matrix(inputs, outputs, len(module.outputs), scale_inputs) + bias

    def experts(self, module: Experts, storage: Storage | None, rank: int) -> int:
        ranks = self.grid.expert_ranks if self.tensors.sharded else 1
        count, intermediate = module.count, module.intermediate
        if self.grid.experts_parallel and ranks > 1:
            count = module.count // ranks + (1 if rank < module.count % ranks else 0)
            extra = 4 * module.count
        else:
            intermediate = max(-(-intermediate // ranks), module.least) if ranks > 1 else intermediate
            extra = 0
        hidden, merged = module.hidden, module.merged
        bias = (intermediate * merged + hidden) * self.width if module.bias else 0
        if storage is None:
            return count * ((merged + 1) * intermediate * hidden * self.width + bias) + extra
        if storage.pad_whole or (ranks > 1 and not self.grid.experts_parallel):
            intermediate = -(-intermediate // storage.pad) * storage.pad
        hidden = -(-hidden // storage.pad_hidden) * storage.pad_hidden
        bias = (intermediate * merged + hidden) * self.width if module.bias else 0
        storage = finer(storage, intermediate)
        up = merged * storage.matrix(hidden, intermediate)
        down = storage.matrix(intermediate, hidden)
        orders = 4 * storage.expert_orders * (hidden + intermediate)
        return count * (up + down + bias + orders) + extra

    def table(self, module: Table, storage: Storage | None, tp: int) -> int:
        rows = padded_rows(module.rows, module.multiple) if module.spread == "split" else module.rows
        ranks = 1 if module.spread == "whole" else tp
        rows = Part(rows).on(ranks, module.name)
        return rows * module.width * self.width if storage is None else storage.matrix(module.width, rows)

    def plain(self, module: Plain, tp: int) -> int:
        count = self.width if module.element_bytes is None else module.element_bytes
        for part in module.parts:
            count *= part.on(tp, module.name)
        return count

    def layer(self, index: int, rank: int) -> int:
        """Bytes of one layer; computed once where no setting names single layers."""
        modules = self.tensors.layers[index]
        if self.quantization.by_layer or self.stored:
            return sum(self.module(m, f"layers.{index}.", self.tp, rank) for m in modules)
        key = (id(modules), 0, -1000 - rank)
        if key not in self.known:
            self.known[key] = sum(self.module(m, "layers.0.", self.tp, rank) for m in modules)
        return self.known[key]

    def stands(self, where: str, stage: int) -> bool:
        """Is a stretch of modules on this pipeline stage?"""
        last = self.grid.pp - 1
        return where == "every" or stage == {"first": 0, "last": last, "last of several": last or -1}[where]

    def rank(self, stage: int, layers: range, rank: int) -> int:
        total = sum(self.layer(i, rank) for i in layers)
        for stretch in self.tensors.stretches:
            if self.stands(stretch.where, stage):
                tp = self.tower_ranks(stretch) if stretch.encoder else self.tp
                total += sum(self.module(m, "", tp, rank) for m in stretch.modules)
        return total

    def tower_ranks(self, stretch: Stretch) -> int:
        """Ranks that share a tower: one when it is copied, as asked or because its heads cannot be dealt."""
        if self.grid.encoder_data:
            return 1
        try:
            for module in stretch.modules:
                self.module(module, "", self.tp, 0)
        except Unplaceable:
            return 1
        return self.tp


def weights_per_rank(
    tensors: ModelTensors, quantization: Quantization, grid: TensorGrid, stored: Mapping[str, int] | None = None
) -> Weights:
    """Bytes of every rank of one replica. Unplaceable when the engine itself could not deal the tensors out.

    `stored`: whole bytes of each module as the checkpoint's headers say; they win over what the architecture implies.

    """
    scale = _Scale(tensors, quantization, grid, stored)
    full = _Scale(tensors, Quantization(), grid) if quantization.online else None
    ranks: list[RankWeights] = []
    for stage, layers in enumerate(stage_layers(len(tensors.layers), grid.pp)):
        uneven = grid.experts_parallel and any(isinstance(m, Experts) and m.count % grid.expert_ranks for ms in tensors.layers for m in ms)
        one = [loading(scale, full, stage, layers, r) for r in range(grid.tp if uneven else 1)]
        ranks += one if uneven else one * grid.tp
    basis = HEADERS if scale.stored else tensors.basis
    said = (*_assumptions(tensors, quantization, grid, basis), *_peaks(quantization, ranks))
    return Weights(tuple(ranks), grid.pp, basis, said)


def loading(scale: _Scale, full: _Scale | None, stage: int, layers: range, rank: int) -> RankWeights:
    """One rank's bytes, and its peak: for an online-quantized model one layer at full width more, or all layers and one converted."""
    resident = scale.rank(stage, layers, rank)
    if full is None:
        return RankWeights(resident, resident)
    if scale.quantization.online == "layer":
        return RankWeights(resident, resident + max((full.layer(i, rank) for i in layers), default=0))
    return RankWeights(resident, full.rank(stage, layers, rank) + max((scale.layer(i, rank) for i in layers), default=0))


def _peaks(quantization: Quantization, ranks: Sequence[RankWeights]) -> Sequence[str]:
    if not quantization.online:
        return ()
    how = "layer by layer" if quantization.online == "layer" else "after all of it has been loaded"
    peak = max(rank.peak for rank in ranks)
    return (f"the checkpoint is converted {how}: a rank needs up to {gib(peak)} for weights while loading",)


HEADERS = "from safetensors headers, placed by architecture"


def _assumptions(tensors: ModelTensors, quantization: Quantization, grid: TensorGrid, basis: str) -> Sequence[str]:
    said = [f"weights {basis}, {quantization.title}", *tensors.notes]
    if not tensors.sharded and grid.tp > 1:
        said.append(f"this engine version does not shard this architecture: each of {grid.tp} ranks holds all of it")
    if grid.experts_parallel and grid.expert_ranks > 1:
        said.append(f"whole experts dealt to {grid.expert_ranks} ranks")
    return said
