"""What a model consists of, and how each piece is spread over the ranks of a grid."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Spread = Literal["split", "whole", "heads", "even"]
Where = Literal["first", "last", "every", "last of several"]


class Unplaceable(ValueError):
    """A piece that the grid cannot hold evenly: the engine itself refuses to start. The message names both numbers."""


@dataclass(frozen=True, slots=True)
class TensorGrid:
    """`experts_parallel` deals whole experts to tp × dp ranks; `encoder_data` copies vision and audio towers to every rank."""

    tp: int = 1
    pp: int = 1
    dp: int = 1
    experts_parallel: bool = False
    encoder_data: bool = False

    @property
    def copies_shared(self) -> bool:
        """Do ranks keep tokens of their own between layers, and shared experts in full? With expert, tensor and data parallelism together.

        Source: vLLM config/parallel.py use_sequence_parallel_moe.
        """
        return self.experts_parallel and self.tp > 1 and self.dp > 1

    @property
    def expert_ranks(self) -> int:
        """Ranks that share one layer's experts: the tensor ranks of all data-parallel replicas together."""
        return self.tp * self.dp


@dataclass(frozen=True, slots=True)
class Part:
    """`units` pieces of `size` elements. split: dealt evenly; whole: copied to each rank; heads: dealt, at least one each;
    even: dealt, rounded up.

    With a `block`, whole blocks of that many units are dealt, the last ranks' being padding.
    """

    units: int
    size: int = 1
    spread: Spread = "split"
    block: int = 1

    def on(self, ranks: int, what: str) -> int:
        """Elements on one of `ranks` ranks; Unplaceable when they cannot be dealt evenly."""
        if self.spread == "whole" or ranks == 1:
            return self.units * self.size
        if self.spread == "even":
            return -(-self.units // ranks) * self.size
        if self.spread == "heads" and ranks >= self.units:
            if ranks % self.units:
                raise Unplaceable(f"{what}: {self.units} heads can be copied evenly to a multiple of {self.units} ranks, not to {ranks}")
            return self.size
        if self.block > 1:
            return -(-(self.units // self.block) // ranks) * self.block * self.size
        if self.units % ranks:
            raise Unplaceable(f"{what}: {self.units} is not divisible by {ranks} ranks")
        return self.units // ranks * self.size


def whole(elements: int) -> Part:
    """A dimension that every rank has in full."""
    return Part(elements, 1, "whole")


@dataclass(frozen=True, slots=True)
class Linear:
    """A matrix multiplication. `names`: the checkpoint's modules merged into it, as quantization settings call them.

    `fused`: what a checkpoint calls them that stores them as one. `shared`: part of an expert that every token passes.
    """

    names: tuple[str, ...]
    inputs: Part
    outputs: tuple[Part, ...]
    bias: bool = False
    quantized: bool = True
    fused: str = ""
    shared: bool = False


@dataclass(frozen=True, slots=True)
class Experts:
    """`count` experts of one layer: `merged` matrices hidden → intermediate (2 when gated) and one back; not their router.

    `least`: the smallest intermediate size that a rank holds, padded up to it.
    """

    name: str
    count: int
    hidden: int
    intermediate: int
    merged: int = 2
    bias: bool = False
    least: int = 0


@dataclass(frozen=True, slots=True)
class Table:
    """An embedding or output table: its rows are padded and dealt over the tensor ranks, or whole on each."""

    name: str
    rows: int
    width: int
    spread: Spread = "split"
    head: bool = False


@dataclass(frozen=True, slots=True)
class Plain:
    """Norms, biases, constants, rotary tables: never quantized. `element_bytes` None: the model's dtype."""

    parts: tuple[Part, ...]
    element_bytes: int | None = None
    name: str = ""


Module = Linear | Experts | Table | Plain


@dataclass(frozen=True, slots=True)
class Stretch:
    """Modules outside the layers; `where` in the pipeline they stand, `encoder` when they belong to a vision or audio tower."""

    where: Where
    modules: tuple[Module, ...]
    encoder: bool = False

    def stands_on(self, stage: int, stages: int) -> bool:
        """Is it on this one of so many pipeline stages?"""
        last = stages - 1
        return self.where == "every" or stage == {"first": 0, "last": last, "last of several": last or -1}[self.where]


@dataclass(frozen=True, slots=True)
class ModelTensors:
    """`layers` in pipeline order (layer i is called `layers.i`).

    `first`, `stem`: what the first layer is called, where these are the layers of a draft and not a model's own.
    """

    layers: tuple[tuple[Module, ...], ...]
    stretches: tuple[Stretch, ...]
    dtype_bytes: int = 2
    basis: str = "from config.json by architecture"
    notes: tuple[str, ...] = ()
    first: int = 0
    stem: str = "layers."


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """One tensor of a checkpoint's header: its type as safetensors writes it (BF16, F8_E4M3, I32), its elements and its bytes."""

    dtype: str
    elements: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a model's files say of it, weights unread. `where`: hub, cache or folder; `revision`: the commit, None for a folder.

    `tensors` is None when they were not asked for or cannot be had.
    """

    name: str
    where: str
    revision: str | None
    config: Mapping[str, Any]
    hf_quant_config: Mapping[str, Any] | None = None
    tensors: Mapping[str, StoredTensor] | None = None
