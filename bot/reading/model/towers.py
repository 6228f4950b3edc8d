"""Vision and audio towers and their projectors, as tensors."""

from collections.abc import Callable, Mapping

from bot.domain.tensors import Part
from bot.reading.model.tensor_fields import Fields, plausible_layers
from bot.reading.model.tensor_parts import vector
from bot.reading.model.tower_parts import Modules, Sizes, back, blocks, full, patches, wide
from bot.reading.model.towers_audio import causal_whisper, mel_table, mimo_audio, qwen_audio, whisper_encoder
from bot.reading.model.towers_conformer import conformer, granite_audio, parakeet, phi4_audio, phi4_vision
from bot.reading.model.towers_other import (
    blip2_queries,
    gemma3n_towers,
    mllama_vision,
    picture_codebook,
    resampler,
    self_conditioning,
    text_encoder,
)
from bot.reading.model.towers_pictures import (
    clip_vision,
    cohere_projector,
    deepseek_vision,
    glm_next_vision,
    molmo_pooling,
    muse_vision,
    sam_and_clip,
    sam_and_qwen2,
    siglip_head,
)
from bot.reading.model.towers_qwen import bailing_vision, mimo_vision, qwen2_vision, qwen3_vision, qwen25_vision
from bot.reading.model.towers_shuffled import (
    dino_and_siglip,
    idefics3_vision,
    minicpm_merging,
    nvlm_vision,
    ovis_vision,
    radio_neck,
    radio_vision,
    radio_whole,
    side_by_side_projector,
)


def siglip(f: Fields) -> Modules:
    """SigLIP: positions in full on each rank, a last norm. Source: vLLM models/siglip.py."""
    v = Sizes(f, "vision_config")
    hidden, patch, image = int(v("hidden_size")), int(v("patch_size")), int(v("image_size"))
    return [
        patches(3 * patch * patch, hidden),
        vector((image // patch) ** 2 * hidden),
        *blocks(int(v("num_hidden_layers")), hidden, int(v("num_attention_heads")), int(v("intermediate_size"))),
        vector(2 * hidden),
    ]


def gemma3_projector(f: Fields) -> Modules:
    """A plain matrix and a norm. Source: vLLM models/gemma3_mm.py."""
    hidden = int(Sizes(f, "vision_config")("hidden_size"))
    return [vector(hidden * f.find("hidden") + hidden)]


def llama4_vision(f: Fields) -> Modules:
    """Llama 4's tower, pixel-shuffle layers and projector. Source: vLLM models/mllama4.py."""
    v = Sizes(f, "vision_config")
    hidden, patch = int(v("hidden_size")), int(v("patch_size"))
    places = (int(v("image_size")) // patch) ** 2 + 1
    shuffled = int(v("intermediate_size"))
    out = int(v("vision_output_dim"))
    return [
        wide(3 * patch * patch, Part(hidden), bias=False),
        vector(hidden + places * hidden),
        *blocks(int(v("num_hidden_layers")), hidden, int(v("num_attention_heads")), shuffled),
        vector(4 * hidden),
        wide(int(hidden / float(v("pixel_shuffle_ratio")) ** 2), Part(int(v("projector_input_dim"))), bias=False),
        back(Part(int(v("projector_input_dim"))), int(v("projector_output_dim")), bias=False),
        wide(out, Part(f.find("hidden")), bias=False),
    ]


def moonvit(f: Fields) -> Modules:
    """Kimi's MoonViT and its patch-merging projector. Source: vLLM models/kimi_k25_vit.py."""
    v = Sizes(f, "vision_config")
    hidden, heads = int(v("vt_hidden_size", "hidden_size")), int(v("vt_num_attention_heads", "num_attention_heads"))
    patch, merge = int(v("patch_size")), v("merge_kernel_size", default=(2, 2))
    merged = hidden * int(merge[0]) * int(merge[1])
    depth, intermediate = int(v("vt_num_hidden_layers", "num_hidden_layers")), int(v("vt_intermediate_size", "intermediate_size"))
    return [
        patches(3 * patch * patch, hidden),
        vector(int(v("init_pos_emb_height")) * int(v("init_pos_emb_width")) * hidden),
        *blocks(depth, hidden, heads, intermediate, bias=bool(v("attn_bias", default=True)), inner=int(v("qkv_hidden_size", default=0))),
        vector(4 * hidden),
        full(merged, merged),
        full(merged, f.find("hidden")),
    ]


def plain_vision(f: Fields) -> Modules:
    """A vision transformer as its config describes it (CLIP, SigLIP, Pixtral, InternViT) and a two-layer projector."""
    v = Sizes(f, "vision_config")
    hidden, patch, image = int(v("hidden_size", "width", "embed_dim")), int(v("patch_size")), int(v("image_size", "image_res", default=0))
    depth, heads = int(v("num_hidden_layers", "layers", "depth")), int(v("num_attention_heads", "heads", "num_heads"))
    gated, bias = bool(f.rule("vision_gated", False)), bool(f.rule("vision_bias", True))
    merge = int(f.rule("vision_merge", 1))
    inner = int(v("intermediate_size", default=int(hidden * float(v("mlp_ratio", default=4)))))
    text = f.find("hidden")
    return [
        patches(3 * patch * patch, hidden, bias),
        vector((image // patch) ** 2 * hidden if f.rule("vision_positions", True) else 0),
        *blocks(depth, hidden, heads, inner, gated=gated, bias=bias, norm=4 if bias else 2),
        vector(2 * hidden),
        *([full(hidden * merge, text), full(text, text)] if f.rule("vision_projector", True) else []),
    ]


def gemma4_vision(f: Fields) -> Modules:
    """Gemma 4's tower: gated, four norms and head norms a block, two tables of positions. Source: vLLM models/gemma4_mm.py."""
    v = Sizes(f, "vision_config")
    hidden, heads, patch = int(v("hidden_size")), int(v("num_attention_heads")), int(v("patch_size"))
    head, intermediate = int(v("head_dim")), int(v("intermediate_size"))
    one: Modules = [
        full(hidden, 3 * heads * head, False),
        full(heads * head, hidden, False),
        full(hidden, 2 * intermediate, False),
        full(intermediate, hidden, False),
        vector(4 * hidden + 2 * head),
    ]
    return [
        full(3 * patch * patch, hidden, False),
        vector(2 * int(v("position_embedding_size")) * hidden),
        *one * plausible_layers(int(v("num_hidden_layers")), "layers in its tower"),
        full(hidden, f.find("hidden"), False),
    ]


def glm_vision(f: Fields) -> Modules:
    """GLM-4.1V's tower: gated, RMS norms, a convolution that merges, a gated merger. Source: vLLM models/glm4_1v.py."""
    v = Sizes(f, "vision_config")
    hidden, out, patch, merge = int(v("hidden_size")), int(v("out_hidden_size")), int(v("patch_size")), int(v("spatial_merge_size"))
    inner = int(v("intermediate_size"))
    width = int(v("out_hidden_size"))
    return [
        patches(3 * int(v("temporal_patch_size")) * patch * patch, hidden),
        vector((int(v("image_size")) // patch) ** 2 * hidden),
        *blocks(int(v("depth")), hidden, int(v("num_heads")), width, gated=True, bias=False, norm=2),
        vector(4 * hidden),
        vector(merge * merge * hidden * out + out),
        wide(out, Part(out), bias=False),
        wide(out, Part(inner), Part(inner), bias=False),
        back(Part(inner), out, bias=False),
        vector(2 * out),
    ]


TOWERS: Mapping[str, Callable[[Fields], Modules]] = {
    "siglip": siglip,
    "gemma3-projector": gemma3_projector,
    "qwen2-vision": qwen2_vision,
    "qwen2.5-vision": qwen25_vision,
    "qwen3-vision": qwen3_vision,
    "llama4-vision": llama4_vision,
    "moonvit": moonvit,
    "vision": plain_vision,
    "gemma4-vision": gemma4_vision,
    "whisper-encoder": whisper_encoder,
    "qwen-audio": qwen_audio,
    "causal-whisper": causal_whisper,
    "glm-vision": glm_vision,
    "mllama-vision": mllama_vision,
    "gemma3n-towers": gemma3n_towers,
    "resampler": resampler,
    "text-encoder": text_encoder,
    "picture-codebook": picture_codebook,
    "clip-vision": clip_vision,
    "cohere-projector": cohere_projector,
    "molmo-pooling": molmo_pooling,
    "deepseek-vision": deepseek_vision,
    "muse-vision": muse_vision,
    "glm-next-vision": glm_next_vision,
    "siglip-head": siglip_head,
    "sam-and-clip": sam_and_clip,
    "sam-and-qwen2": sam_and_qwen2,
    "bailing-vision": bailing_vision,
    "blip2-queries": blip2_queries,
    "conformer": conformer,
    "granite-audio": granite_audio,
    "dino-and-siglip": dino_and_siglip,
    "idefics3-vision": idefics3_vision,
    "mel-table": mel_table,
    "mimo-audio": mimo_audio,
    "mimo-vision": mimo_vision,
    "minicpm-merging": minicpm_merging,
    "nvlm-vision": nvlm_vision,
    "ovis-vision": ovis_vision,
    "parakeet": parakeet,
    "phi4-audio": phi4_audio,
    "phi4-vision": phi4_vision,
    "radio": radio_vision,
    "radio-neck": radio_neck,
    "self-conditioning": self_conditioning,
    "side-by-side-projector": side_by_side_projector,
    "radio-whole": radio_whole,
}
"""The closed set of towers that a family's `towers` may name."""


def tower(f: Fields) -> Modules:
    """All modules of the family's towers; empty when it has none. Towers keep the model's dtype."""
    made: Modules = []
    for kind in f.rule("towers", ()):
        made += TOWERS[kind](f)
    return made


GENERIC: Mapping[str, str] = {
    "vision": "the vision tower is counted as a plain transformer with a two-layer projector, from its config",
    "mimo-audio": "the sound tokenizer in the checkpoint's folder, a model of its own, is not counted",
    "qwen-audio": "the audio tower is counted as Whisper's encoder, from its config",
}
"""Towers that are counted roughly or in part, and what is said of them."""


def tower_notes(f: Fields) -> tuple[str, ...]:
    """What was assumed of the family's towers, in words."""
    return tuple(GENERIC[kind] for kind in f.rule("towers", ()) if kind in GENERIC)
