"""The vision towers of the Qwen models, as tensors."""

from bot.domain.tensors import Part
from bot.reading.model.tensor_fields import Fields, plausible_layers
from bot.reading.model.tensor_parts import vector
from bot.reading.model.tower_parts import Modules, Sizes, back, blocks, patches, turned, wide


def qwen2_vision(f: Fields) -> Modules:
    """Qwen2-VL's tower and merger. Source: vLLM models/qwen2_vl.py."""
    v = Sizes(f, "vision_config")
    hidden, heads, text = int(v("embed_dim")), int(v("num_heads")), int(v("hidden_size"))
    merged = hidden * int(v("spatial_merge_size")) ** 2
    return [
        patches(3 * int(v("temporal_patch_size")) * int(v("patch_size")) ** 2, hidden, bias=False),
        *blocks(int(v("depth")), hidden, heads, int(hidden * float(v("mlp_ratio")))),
        vector(2 * hidden),
        wide(merged, Part(merged)),
        back(Part(merged), text),
        turned(hidden // heads),
    ]


def qwen25_vision(f: Fields) -> Modules:
    """Qwen2.5-VL's tower and merger: gated, RMS norms. Source: vLLM models/qwen2_5_vl.py."""
    v = Sizes(f, "vision_config")
    hidden = int(v("hidden_size"))
    merged = hidden * int(v("spatial_merge_size")) ** 2
    return [
        patches(3 * int(v("temporal_patch_size")) * int(v("patch_size")) ** 2, hidden, bias=False),
        *blocks(int(v("depth")), hidden, int(v("num_heads")), int(v("intermediate_size")), gated=True, norm=2),
        vector(hidden),
        wide(merged, Part(merged)),
        back(Part(merged), int(v("out_hidden_size"))),
        turned(hidden // int(v("num_heads"))),
    ]


def mimo_vision(f: Fields) -> Modules:
    """MiMo V2.5's tower and merger: Qwen 2.5's with fewer key heads, wide query heads and sinks. Source: vLLM models/mimo_v2_omni.py."""
    v = Sizes(f, "vision_config")
    hidden, inner, heads, keys = int(v("hidden_size")), int(v("intermediate_size")), int(v("num_heads")), int(v("num_key_value_heads"))
    query, value = int(v("qk_channels")), int(v("kv_channels"))
    merged = hidden * int(v("spatial_merge_size")) ** 2
    one: Modules = [
        wide(hidden, Part(heads, query), Part(keys, query), Part(keys, value)),
        back(Part(heads, value), hidden),
        wide(hidden, Part(inner), Part(inner)),
        back(Part(inner), hidden),
        vector(2 * hidden + (heads if v("use_sink", default=False) else 0)),
    ]
    return [
        patches(3 * int(v("temporal_patch_size")) * int(v("patch_size")) ** 2, hidden, bias=False),
        *one * plausible_layers(int(v("depth")), "layers in its tower"),
        vector(hidden),
        wide(merged, Part(merged), bias=False),
        back(Part(merged), int(v("out_hidden_size")), bias=False),
        turned(query),
    ]


def qwen3_vision(f: Fields) -> Modules:
    """Qwen3-VL's and Qwen3.5's tower, merger and deep-stack mergers. Source: vLLM models/qwen3_vl.py."""
    v = Sizes(f, "vision_config")
    hidden, out = int(v("hidden_size")), int(v("out_hidden_size"))
    merged = hidden * int(v("spatial_merge_size")) ** 2
    merger: Modules = [wide(merged, Part(merged)), back(Part(merged), out)]
    deep: Modules = [vector(2 * merged), *merger] * len(v("deepstack_visual_indexes", default=()))
    return [*_qwen3_blocks(f), *merger, *deep]


def bailing_vision(f: Fields) -> Modules:
    """The same tower without mergers, and two matrices into the language model. Source: vLLM models/bailing_moe_v3_vl.py."""
    v, text = Sizes(f, "vision_config"), f.find("hidden")
    merged = int(v("hidden_size")) * int(v("spatial_merge_size")) ** 2
    return [*_qwen3_blocks(f), wide(merged, Part(text)), back(Part(text), text)]


def _qwen3_blocks(f: Fields) -> Modules:
    v = Sizes(f, "vision_config")
    hidden = int(v("hidden_size"))
    return [
        patches(3 * int(v("temporal_patch_size")) * int(v("patch_size")) ** 2, hidden),
        vector(int(v("num_position_embeddings")) * hidden),
        *blocks(int(v("depth")), hidden, int(v("num_heads")), int(v("intermediate_size"))),
        vector(2 * hidden),
        turned(hidden // int(v("num_heads"))),
    ]
