"""The pieces that vision and audio towers are described with. Towers keep the model's dtype."""

from collections.abc import Mapping
from typing import Any

from bot.domain.tensors import Linear, Module, Part, Plain, whole
from bot.reading.model.numbers import MissingField
from bot.reading.model.tensor_fields import Fields, plausible_layers
from bot.reading.model.tensor_parts import vector

Modules = list[Module]


class Sizes:
    """A tower's own table in config.json over the family's defaults for it; called with the names that a size may have."""

    def __init__(self, f: Fields, key: str) -> None:
        told = f.config.get(key) or f.raw(f"thinker_config.{key}") or f.raw(f"vlm_config.{key}")
        self.table: Mapping[str, Any] = {**f.rules.get(f"{key}_defaults", {}), **(told if isinstance(told, Mapping) else {})}

    def __call__(self, *keys: str, default: Any = None) -> Any:
        """The first of `keys` that has a value, else the default; MissingField when there is neither."""
        for key in keys:
            if self.table.get(key) is not None:
                return self.table[key]
        if default is None:
            raise MissingField(f"the tower's config has no {' / '.join(keys)}: add it, or give --weights-bytes")
        return default


def wide(inputs: int, *outputs: Part, bias: bool = True) -> Linear:
    """A tower's matrix with its outputs dealt."""
    return Linear(("tower",), whole(inputs), outputs, bias, False)


def back(inputs: Part, outputs: int, bias: bool = True) -> Linear:
    """A tower's matrix with its inputs dealt."""
    return Linear(("tower",), inputs, (whole(outputs),), bias, False)


def full(inputs: int, outputs: int, bias: bool = True) -> Linear:
    """A tower's matrix on every rank."""
    return Linear(("tower",), whole(inputs), (whole(outputs),), bias, False)


def blocks(
    depth: int, hidden: int, heads: int, intermediate: int, *, gated: bool = False, bias: bool = True, norm: int = 4, inner: int = 0
) -> Modules:
    """`depth` transformer blocks; `norm` vectors of the hidden size each (4: two layer norms with bias); `inner`: width of all heads."""
    head = Part(heads, (inner or hidden) // heads)
    ups = [Part(intermediate)] * (2 if gated else 1)
    one: Modules = [
        wide(hidden, head, head, head, bias=bias),
        back(head, hidden, bias),
        wide(hidden, *ups, bias=bias),
        back(Part(intermediate), hidden, bias),
        vector(norm * hidden),
    ]
    return one * plausible_layers(depth, "layers in its tower")


def patches(pixels: int, hidden: int, bias: bool = True) -> Plain:
    """The convolution that makes patches."""
    return vector(pixels * hidden + (hidden if bias else 0))


def turned(head: int) -> Plain:
    """The tower's own table of rotary positions: 8,192 of them, half a head wide."""
    return Plain((whole(8192), whole(head // 2)), name="rotary positions")
