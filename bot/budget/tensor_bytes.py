"""Bytes of single modules, layers and stages on one rank."""

from collections.abc import Mapping
from dataclasses import replace
from math import gcd

from bot.budget.quantization import Quantization, Storage
from bot.domain.tensors import Experts, Linear, ModelTensors, Module, Part, Plain, Table, TensorGrid, Unplaceable


def padded_rows(rows: int) -> int:
    """Rows of a vocabulary table after padding. Source: vLLM layers/vocab_parallel_embedding.py DEFAULT_VOCAB_PADDING_SIZE."""
    return -(-rows // 64) * 64


def finer(storage: Storage, intermediate: int) -> Storage:
    """Blocks that do not divide an expert's dealt size are cut down to the largest that do; Unplaceable before vLLM did so (0.29)."""
    if storage.block is None or intermediate % storage.block[0] == 0:
        return storage
    if storage.whole_blocks:
        raise Unplaceable(f"experts: {intermediate:,} of their intermediate size on each rank are not whole blocks of {storage.block[0]}")
    edge = gcd(intermediate, storage.block[0])
    return replace(storage, block=(edge, edge))


def whole_pieces(storage: Storage, inputs: int, ranks: int, what: str) -> None:
    """Unplaceable when a dealt matrix would get part of a group with 16-bit scales (AWQ, GPTQ and their like) or of a block of them.

    Source: vLLM distributed/utils.py verify_group_size_divides_partition, layers/quantization/utils/fp8_utils.py, auto_awq.py.
    """
    piece = storage.block[1] if storage.block else storage.group or 0 if storage.scale_bytes == 2 else 0
    if piece > 0 and inputs % piece:
        kind, whole = "blocks" if storage.block else "groups", inputs * ranks
        sizes = [str(n) for n in (1, 2, 4, 8, 16) if n < ranks and whole % (n * piece) == 0]
        smaller = f"tensor parallel size {' or '.join(sizes)} with pipeline stages for the other cards, or " if sizes else ""
        raise Unplaceable(
            f"{what}: its {inputs:,} inputs on each of {ranks} ranks are not whole {kind} of {piece} of its quantization, so the engine "
            f"would not start. Choose {smaller}a checkpoint that is padded for this or quantized in another way"
        )


class Scale:
    """One question's figures, each module of a kind computed once. `stored`: whole bytes of modules as the checkpoint has them."""

    def __init__(
        self, tensors: ModelTensors, quantization: Quantization, grid: TensorGrid, stored: Mapping[str, int] | None = None
    ) -> None:
        self.tensors, self.quantization, self.grid = tensors, quantization, grid
        self.stored = None if quantization.online else stored
        self.tp = grid.tp
        self.width = tensors.dtype_bytes
        self.known: dict[tuple[int, int, int], int] = {}

    def module(self, module: Module, prefix: str, tp: int, rank: int) -> int:
        """Bytes of one module on one tensor rank: its share of what the checkpoint stores, else what its storage implies."""
        storage = self.storage(module, prefix)
        if isinstance(module, Linear) and module.shared and self.grid.copies_shared:
            tp = 1
        stored = self.stored_bytes(module, prefix)
        if stored is not None:
            return stored * self.weigh(module, storage, tp, rank) // self.weigh_whole(module, storage)
        key = (id(module), id(storage), tp if not isinstance(module, Experts) else -1 - rank)
        if key not in self.known:
            self.known[key] = self.weigh(module, storage, tp, rank)
        return self.known[key]

    def storage(self, module: Module, prefix: str) -> Storage | None:
        """How a module is stored; None when it keeps the model's dtype."""
        if isinstance(module, Linear) and module.quantized:
            names = (*module.names, module.fused) if module.fused else module.names
            return self.quantization.of([prefix + name for name in names])
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
            self.known[key] = Scale(self.tensors, self.quantization, TensorGrid()).weigh(module, bare, 1, 0)
        return self.known[key]

    def weigh(self, module: Module, storage: Storage | None, tp: int, rank: int) -> int:
        """Bytes of one module of known storage on one tensor rank, by its shape."""
        if isinstance(module, Linear):
            return self.linear(module, storage, tp)
        if isinstance(module, Experts):
            return self.experts(module, storage, rank)
        if isinstance(module, Table):
            return self.table(module, storage, tp)
        return self.plain(module, tp)

    def linear(self, module: Linear, storage: Storage | None, tp: int) -> int:
        """A matrix, its scales and its bias."""
        what = module.names[0]
        inputs = module.inputs.on(tp, what)
        outputs = sum(part.on(tp, what) for part in module.outputs)
        bias = outputs * self.width if module.bias else 0
        if storage is None:
            return inputs * outputs * self.width + bias
        if tp > 1 and not module.shared and inputs < module.inputs.units * module.inputs.size:
            whole_pieces(storage, inputs, tp, what)
        scale_inputs = module.inputs.on(1, what) if storage.whole_scales else None
        return storage.matrix(inputs, outputs, len(module.outputs), scale_inputs) + bias

    def experts(self, module: Experts, storage: Storage | None, rank: int) -> int:
        """The experts that one rank holds: whole ones when dealt out (and a map of who has which), else a slice of each."""
        ranks = self.grid.expert_ranks
        dealt = self.grid.experts_parallel and ranks > 1
        count = module.count // ranks + (rank < module.count % ranks) if dealt else module.count
        size = module.intermediate if dealt or ranks == 1 else max(-(-module.intermediate // ranks), module.least)
        sliced = ranks > 1 and not dealt
        return count * self.expert(module, storage, size, sliced) + (4 * module.count if dealt else 0)

    def expert(self, module: Experts, storage: Storage | None, intermediate: int, sliced: bool) -> int:
        """One expert of an intermediate size, padded as its kernel wants it."""
        hidden, merged = module.hidden, module.merged
        if storage is None:
            return (merged + 1) * intermediate * hidden * self.width + self.expert_bias(module, intermediate, hidden)
        if sliced or storage.pad_whole:
            intermediate = -(-intermediate // storage.pad) * storage.pad
        hidden = -(-hidden // storage.pad_hidden) * storage.pad_hidden
        cut = finer(storage, intermediate)
        matrices = merged * cut.matrix(hidden, intermediate) + cut.matrix(intermediate, hidden)
        return matrices + 4 * storage.expert_orders * (hidden + intermediate) + self.expert_bias(module, intermediate, hidden)

    def expert_bias(self, module: Experts, intermediate: int, hidden: int) -> int:
        """Biases of one expert, in the model's dtype."""
        return (intermediate * module.merged + hidden) * self.width if module.bias else 0

    def table(self, module: Table, storage: Storage | None, tp: int) -> int:
        """A table's rows on one rank; Unplaceable when padding does not make them divide."""
        rows = padded_rows(module.rows) if module.spread == "split" else module.rows
        ranks = 1 if module.spread == "whole" else tp
        rows = Part(rows).on(ranks, module.name)
        return rows * module.width * self.width if storage is None else storage.matrix(module.width, rows)

    def plain(self, module: Plain, tp: int) -> int:
        """Norms, biases, constants."""
        count = self.width if module.element_bytes is None else module.element_bytes
        for part in module.parts:
            count *= part.on(tp, module.name)
        return count

    def layer(self, index: int, rank: int) -> int:
        """Bytes of one layer; computed once where no setting names single layers."""
        modules = self.tensors.layers[index]
        if self.quantization.by_layer or self.stored:
            name = f"{self.tensors.stem}{self.tensors.first + index}."
            return sum(self.module(m, name, self.tp, rank) for m in modules)
        key = (id(modules), 0, -1000 - rank)
        if key not in self.known:
            self.known[key] = sum(self.module(m, "layers.0.", self.tp, rank) for m in modules)
        return self.known[key]

    def rank(self, stage: int, layers: range, rank: int) -> int:
        """All bytes of one rank: its layers, and what stands on its stage besides."""
        total = sum(self.layer(i, rank) for i in layers)
        for stretch in self.tensors.stretches:
            if stretch.stands_on(stage, self.grid.pp):
                one = self.tower_module if stretch.encoder else self.stretch_module
                total += sum(one(module, rank) for module in stretch.modules)
        return total

    def stretch_module(self, module: Module, rank: int) -> int:
        """A module outside the layers, on one rank."""
        return self.module(module, "", self.tp, rank)

    def tower_module(self, module: Module, rank: int) -> int:
        """A tower's module: copied to every rank where that is asked for, or where it cannot be dealt evenly (InternViT's 25 heads)."""
        if self.grid.encoder_data:
            return self.module(module, "", 1, rank)
        try:
            return self.module(module, "", self.tp, rank)
        except Unplaceable:
            return self.module(module, "", 1, rank)
