"""Slots for LoRA adapters: the two thin matrices beside every matrix of the model, made for as many adapters as may run at once.

Source: vllm/lora/layers (base_linear.py, column_parallel_linear.py, row_parallel_linear.py, fused_moe.py, vocab_parallel_embedding.py,
logits_processor.py), create_lora_weights. The engine makes them while the model is loaded, so its figure for the weights holds them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from bot.budget.placement import stage_layers
from bot.domain.tensors import Experts, Linear, ModelTensors, Module, Part, Table, TensorGrid, Unplaceable


@dataclass(frozen=True, slots=True)
class Adapters:
    """`slots` adapters at once of at most `rank`, kept in `width` bytes an element.

    `fully`: the thin matrices are dealt wherever they can be. `tables`: whether embedding and output table take adapters.
    `experts`: whether experts do.
    """

    slots: int
    rank: int
    width: int = 2
    fully: bool = False
    tables: Literal["none", "embedding", "both"] = "none"
    experts: bool = True


def adapter_bytes(tensors: ModelTensors, grid: TensorGrid, adapters: Adapters) -> tuple[int, ...]:
    """Bytes of all slots on every rank, pipeline × tensor. Unplaceable where the engine could not deal the rank itself."""
    tp = grid.tp
    if adapters.fully and adapters.rank % tp:
        raise Unplaceable(f"max_lora_rank {adapters.rank} is not divisible by {tp} ranks, as fully sharded adapters need it")
    known: dict[int, int] = {}
    stages = []
    for stage, layers in enumerate(stage_layers(len(tensors.layers), grid.pp)):
        modules = [tensors.layers[index] for index in layers]
        for one in modules:
            if id(one) not in known:
                known[id(one)] = sum(_columns(module, tp, grid, adapters) for module in one)
        columns = sum(known[id(one)] for one in modules) + sum(_columns(one, tp, grid, adapters) for one in _beside(tensors, grid, stage))
        stages.append(columns + _tables(tensors, grid, stage, adapters))
    scale = adapters.slots * adapters.width
    return tuple(scale * columns for columns in stages for _ in range(grid.tp))


def _columns(module: Module, tp: int, grid: TensorGrid, adapters: Adapters) -> int:
    """Elements of one slot beside one module on one rank."""
    if isinstance(module, Linear):
        return _linear(module, tp, adapters)
    if isinstance(module, Experts) and adapters.experts:
        return _experts(module, tp, grid, adapters)
    return 0


def _linear(module: Linear, tp: int, adapters: Adapters) -> int:
    """Down from the inputs once for each merged matrix, and up to the outputs; what the matrix deals is dealt too."""
    rank, what = adapters.rank, module.names[0]
    outputs = sum(part.on(tp, what) for part in module.outputs)
    if _dealt(module.inputs):
        return rank * module.inputs.on(tp, what) + rank * (outputs // tp if adapters.fully else outputs)
    down = rank // tp if adapters.fully and any(map(_dealt, module.outputs)) else rank
    return down * module.inputs.on(tp, what) * len(module.names) + rank * outputs


def _dealt(part: Part) -> bool:
    return part.spread != "whole"


def _experts(module: Experts, tp: int, grid: TensorGrid, adapters: Adapters) -> int:
    """The same for every expert of the rank; of sliced experts, the inner size is dealt."""
    rank, apart = adapters.rank, grid.experts_parallel and grid.expert_ranks > 1
    count = -(-module.count // grid.expert_ranks) if apart else module.count
    inner = module.intermediate if apart else -(-module.intermediate // tp)
    down = rank // tp if adapters.fully else rank
    back = module.hidden // tp if adapters.fully else module.hidden
    return count * (module.merged * (down * module.hidden + inner * rank) + rank * inner + back * rank)


def _beside(tensors: ModelTensors, grid: TensorGrid, stage: int) -> Iterable[Module]:
    """Modules outside the layers on one stage; towers take no adapters unless asked to."""
    stretches = (one for one in tensors.stretches if not one.encoder and one.stands_on(stage, grid.pp))
    return (module for stretch in stretches for module in stretch.modules)


def _tables(tensors: ModelTensors, grid: TensorGrid, stage: int, adapters: Adapters) -> int:
    """Beside the embedding on the first stage and the output table on the last, whole on each rank."""
    table = next((one for stretch in tensors.stretches for one in stretch.modules if isinstance(one, Table)), None)
    if table is None or adapters.tables == "none":
        return 0
    both = adapters.tables == "both" and stage == grid.pp - 1
    return ((stage == 0) + both) * adapters.rank * (table.rows + table.width)
