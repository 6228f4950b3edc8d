"""Towers whose patches are laid side by side before they go to the language model, or to a visual vocabulary, as tensors."""

from collections.abc import Mapping

from bot.domain.tensors import Linear, Part
from bot.reading.model.numbers import MissingField
from bot.reading.model.tensor_fields import Fields
from bot.reading.model.tensor_parts import undealt, vector
from bot.reading.model.tower_parts import Modules, Sizes, back, blocks, full, patches, wide

RADIO: Mapping[str, tuple[int, int, int, int]] = {
    "small": (384, 12, 6, 1536),
    "base": (768, 12, 12, 3072),
    "large": (1024, 24, 16, 4096),
    "huge": (1280, 32, 16, 5120),
    "so400m": (1152, 27, 16, 4304),
}
"""Width, layers, heads and feed-forward of a RADIO tower by its timm name. Source: vLLM transformers_utils/configs/radio.py."""


def idefics3_vision(f: Fields) -> Modules:
    """SigLIP and one matrix over a square of patches. Source: vLLM models/idefics3.py, smolvlm."""
    v = Sizes(f, "vision_config")
    hidden, patch = int(v("hidden_size")), int(v("patch_size"))
    square = int(f.raw("scale_factor", 2)) ** 2
    return [
        patches(3 * patch * patch, hidden),
        vector((int(v("image_size")) // patch) ** 2 * hidden + 2 * hidden),
        *blocks(int(v("num_hidden_layers")), hidden, int(v("num_attention_heads")), int(v("intermediate_size"))),
        full(hidden * square, f.find("hidden"), False),
    ]


def side_by_side_projector(f: Fields) -> Modules:
    """Moondream 3: the whole picture's features beside a crop's, through two matrices. Source: vLLM models/moondream3.py."""
    v = Sizes(f, "vision_config")
    between = Part(int(v("proj_inner_dim")))
    return [wide(2 * int(v("hidden_size")), between), back(between, f.find("hidden"))]


def dino_and_siglip(f: Fields) -> Modules:
    """OpenVLA: DINOv2-L and SigLIP on 224 pixels, whole on each rank, and three matrices over both. Source: vLLM models/openvla.py."""
    made: Modules = []
    for hidden, depth, inner, beside in ((1024, 24, 4096, 2), (1152, 27, 4304, 0)):  # beside: the scales of a layer's two branches
        layer = full(hidden, 3 * hidden), full(hidden, hidden), full(hidden, inner), full(inner, hidden), vector((4 + beside) * hidden)
        made += [patches(3 * 14 * 14, hidden), vector((16 * 16 + 5 + 2) * hidden), *layer * depth]
    pooling: Modules = [full(1152, 3 * 1152), full(1152, 1152), full(1152, 4304), full(4304, 1152), vector(3 * 1152)]
    both, text = 1024 + 1152, f.find("hidden")
    return [*made, *pooling, wide(both, Part(4 * both)), back(Part(4 * both), text), full(text, text)]


def minicpm_merging(f: Fields) -> Modules:
    """MiniCPM-V 4.6 and 4.7: SigLIP, a merging by window attention, a merging projector. Source: vLLM models/minicpmv4_6.py."""
    v = Sizes(f, "vision_config")
    hidden, heads, inner = int(v("hidden_size")), int(v("num_attention_heads")), int(v("intermediate_size"))
    patch, text, square = int(v("patch_size")), f.find("hidden"), 4
    depth = int(v("num_hidden_layers")) - (1 if f.config.get("drop_vision_last_layer") else 0)
    attention = blocks(1, hidden, heads, inner)[:2]
    return [
        patches(3 * patch * patch, hidden),
        vector((int(v("image_size")) // patch) ** 2 * hidden + 2 * hidden),
        *blocks(depth, hidden, heads, inner),
        *attention,
        vector((2 + 2 * square) * hidden),
        full(square * hidden, square * inner),
        full(square * inner, hidden),
        vector(2 * square * hidden),
        full(square * hidden, square * hidden),
        full(square * hidden, text),
    ]


def nvlm_vision(f: Fields) -> Modules:
    """InternViT with seven heads more, so that they can be dealt, and a projector as wide as the language model's feed-forward.

    Source: vLLM models/nvlm_d.py.
    """
    v = Sizes(f, "vision_config")
    hidden, heads, patch = int(v("hidden_size")), int(v("num_attention_heads")), int(v("patch_size"))
    dealt, inner, text = heads + 7, f.find("intermediate"), f.find("hidden")
    return [
        patches(3 * patch * patch, hidden),
        vector(((int(v("image_size")) // patch) ** 2 + 2) * hidden),
        *blocks(int(v("num_hidden_layers")), hidden, dealt, int(v("intermediate_size")), norm=8, inner=dealt * (hidden // heads)),
        vector(2 * 4 * hidden),
        full(4 * hidden, inner, False),
        full(inner, text, False),
    ]


def radio_vision(f: Fields) -> Modules:
    """C-RADIO and the projector of NVIDIA's vision models. Source: vLLM models/radio.py, nemotron_vl.py, nano_nemotron_vl.py."""
    hidden, tower = _radio(Sizes(f, "vision_config"))
    text, merged = f.find("hidden"), hidden * int(1 / float(f.raw("downsample_ratio", 0.5))) ** 2
    between = int(f.raw("projector_hidden_size", 0)) or text
    return [*tower, vector(2 * merged), full(merged, between), full(between, text)]


def radio_neck(f: Fields) -> Modules:
    """Nemotron Parse's: two convolutions make a page narrower, a matrix makes the summary. Source: vLLM models/nemotron_parse.py."""
    hidden, tower = _radio(Sizes(f, "encoder"))
    text = f.find("hidden")
    neck: Modules = [vector(hidden * text + text + 4 * text * text + 3 * 2 * text), wide(3 * hidden, Part(text))]
    return [*tower, *neck]


def _radio(v: Sizes) -> tuple[int, Modules]:
    """The tower's hidden size, and its tower without what leads out of it."""
    told = v("args", default={}).get("model") or v("model_name", default="") or v("version", default="")
    size = next((size for name, size in RADIO.items() if name in told or told.endswith(f"-{name[0]}")), None)
    if size is None:
        raise MissingField(f"config.json does not say which RADIO tower it has ({told or 'no model'}): give --weights-bytes")
    hidden, depth, heads, inner = size
    patch = int(v("patch_size", default=16))
    largest = int(v("cpe_max_size", "max_resolution", default=2048)) // patch
    return hidden, [vector(3 * patch * patch * hidden + (largest**2 + 16) * hidden), *blocks(depth, hidden, heads, inner)]


def radio_whole(f: Fields) -> Modules:
    """The same where the engine takes the tower from transformers, which deals nothing."""
    return [undealt(module) if isinstance(module, Linear) else module for module in radio_vision(f)]


def ovis_vision(f: Fields) -> Modules:
    """Ovis: a tower that picks entries of a visual vocabulary, and the table of those. Source: vLLM models/ovis.py, ovis2_5.py."""
    told = f.config.get("visual_tokenizer_config") or f.config.get("vit_config") or {}
    v: Mapping[str, int] = told.get("backbone_config") or told
    if "hidden_size" not in v:
        raise MissingField("config.json has no sizes in visual_tokenizer_config / vit_config: add them, or give --weights-bytes")
    hidden, patch, text = int(v["hidden_size"]), int(v.get("patch_size", 14)), f.find("hidden")
    entries = int(f.config.get("visual_vocab_size") or told.get("vocab_size", 65536))
    kept, stride = entries - (4 if "vit_config" in f.config else 5), int(told.get("hidden_stride", 2))
    old = str(v.get("model_type", "")).startswith("aimv2")
    inner, depth, heads = (int(v[key]) for key in ("intermediate_size", "num_hidden_layers", "num_attention_heads"))
    positions = int(v.get("num_patches", 0)) or (int(v["image_size"]) // patch) ** 2
    return [
        patches(3 * patch * patch, hidden),
        vector((positions + 2) * hidden),
        *blocks(depth, hidden, heads, inner, gated=old, bias=not old, norm=2 if old else 4),
        full(hidden * stride**2, kept, False),
        vector(2 * kept + entries * text),
    ]
