"""A checkpoint's tensor headers -> whole bytes of each module, as an engine loads them."""

from collections.abc import Mapping

from bot.budget.quantization import tail
from bot.domain.tensors import StoredTensor

FLOATS = frozenset({"F64", "F32", "F16", "BF16"})
UNUSED = frozenset({"g_idx", "input_scale_ub", "rotary_emb.inv_freq"})
"""Tensors that checkpoints carry and the engine rebuilds or leaves out."""


def stored_modules(tensors: Mapping[str, StoredTensor], dtype_bytes: int) -> Mapping[str, int]:
    """Module name (`layers.3.mlp.experts`, experts together) -> bytes.

    A module of floats alone is converted to the model's dtype; one with packed or scaled weights is kept as it is stored.
    """
    held: dict[str, list[StoredTensor]] = {}
    for name, tensor in tensors.items():
        module, _, leaf = name.rpartition(".")
        if leaf not in UNUSED:
            held.setdefault(_module(module), []).append(tensor)
    return {module: _bytes(parts, dtype_bytes) for module, parts in held.items()}


def _module(module: str) -> str:
    """The module that a tensor belongs to; `experts` gathers those of every expert and tensors named beside it."""
    short = tail(module)
    at = f"{short}.".find(".experts.")
    return short if at < 0 else short[: at + 8]


def _bytes(parts: list[StoredTensor], dtype_bytes: int) -> int:
    if all(part.dtype in FLOATS for part in parts):
        return sum(part.elements for part in parts) * dtype_bytes
    return sum(part.bytes for part in parts)
