"""A checkpoint's tensor headers -> whole bytes of each module, as an engine loads them."""

from collections.abc import Mapping

from bot.budget.quantization import with_experts_as_one
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
            held.setdefault(with_experts_as_one(module), []).append(tensor)
    return {module: _bytes(parts, dtype_bytes) for module, parts in held.items()}


def _bytes(parts: list[StoredTensor], dtype_bytes: int) -> int:
    if all(part.dtype in FLOATS for part in parts):
        return sum(part.elements for part in parts) * dtype_bytes
    return sum(part.bytes for part in parts)
