"""A checkpoint of an architecture that no file knows: its tensors placed by what they are called."""

import re
from collections.abc import Mapping
from typing import Any

from bot.budget.quantization import tail
from bot.domain.tensors import ModelTensors, Part, Plain, StoredTensor, Stretch, whole
from bot.reading.model.checkpoint import FLOATS
from bot.reading.model.tensor_attention import kv_heads
from bot.reading.model.tensor_fields import Fields, plausible_layers

LAYER = re.compile(r"(?:^|\.)(?:layers|h|blocks)\.(\d+)\.(.*)")
DEALT = re.compile(
    r"(?:^|\.)(?:q_proj|q_b_proj|kv_b_proj|qkv_proj|qkv|query_key_value|c_attn|o_proj|out_proj|gate_proj|up_proj|gate_up_proj|down_proj|w[123]|fc[12]"
    r"|c_fc|c_proj|dense_h_to_4h|dense_4h_to_h|in_proj\w*|experts|embed_tokens|lm_head|wte|word_embeddings|embed_out)\b"
)
KEYS = re.compile(r"(?:^|\.)[kv]_proj\b")
TOWERS = re.compile(r"(?:^|\.)(?:visual|vision\w*|audio\w*|image\w*|speech\w*|multi_modal_projector|mm_projector|mlp1)\b")
LAST = re.compile(r"(?:^|\.)(?:lm_head|embed_out|output|norm|final_layernorm|ln_f)\b")


def named_tensors(config: Mapping[str, Any], tensors: Mapping[str, StoredTensor], dtype_bytes: int = 2) -> ModelTensors:
    """The model as its headers list it. Matrices are dealt, keys and values by head, the rest copied; drafter layers are left out.

    MissingField when the config does not say how many layers there are.
    """
    f = Fields(config)
    layers: list[list[Plain]] = [[] for _ in range(plausible_layers(f.find("layers")))]
    ends: dict[str, list[Plain]] = {"first": [], "last": [], "tower": []}
    for name, tensor in tensors.items():
        placed = Plain((_part(name, _bytes(tensor, dtype_bytes), f),), 1, name)
        inside = LAYER.search(name)
        if TOWERS.search(name):
            ends["tower"].append(placed)
        elif inside is None:
            ends["last" if LAST.search(tail(name)) else "first"].append(placed)
        elif int(inside[1]) < len(layers):
            layers[int(inside[1])].append(placed)
    stretches = (
        Stretch("first", tuple(ends["first"])),
        Stretch("last", tuple(ends["last"])),
        Stretch("every", tuple(ends["tower"]), encoder=True),
    )
    stack = tuple(tuple(layer) for layer in layers)
    note = "no file in rules/models says how this architecture is made: matrices are taken as dealt evenly, the rest as copied"
    return ModelTensors(stack, stretches, dtype_bytes, basis="from safetensors headers, placed by name", notes=(note,))


def _part(name: str, size: int, f: Fields) -> Part:
    if KEYS.search(name):
        heads = kv_heads(f)
        return Part(heads, -(-size // heads), "heads")
    return Part(size, 1, "even") if DEALT.search(name) else whole(size)


def _bytes(tensor: StoredTensor, dtype_bytes: int) -> int:
    return tensor.elements * dtype_bytes if tensor.dtype in FLOATS else tensor.bytes
