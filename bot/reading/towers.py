"""Vision and audio towers and their projectors, as tensors."""

from collections.abc import Callable, Mapping
from typing import Any

from bot.domain.tensors import Linear, Module, Part, Plain, whole
from bot.reading.tensor_blocks import vector
from bot.reading.tensor_fields import Fields, MissingField

Modules = list[Module]


def tower(f: Fields) -> Modules:
    """All modules of the family's towers; empty when it has none. Towers keep the model's dtype."""
    made: Modules = []
    for kind in f.rule("towers", ()):
        made += TOWERS[kind](f)
    return made


class Sizes:
    """A tower's own table in config.json over the family's defaults for it; called with the names that a size may have."""

    def __init__(self, f: Fields, key: str) -> None:
        told = f.config.get(key) or f.raw(f"thinker_config.{key}")
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
    return one * depth


def patches(pixels: int, hidden: int, bias: bool = True) -> Plain:
    """The convolution that makes patches."""
    return vector(pixels * hidden + (hidden if bias else 0))


def turned(head: int) -> Plain:
    """The tower's own table of rotary positions: 8,192 of them, half a head wide."""
    return Plain((whole(8192), whole(head // 2)), name="rotary positions")


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


def qwen3_vision(f: Fields) -> Modules:
    """Qwen3-VL's and Qwen3.5's tower, merger and deep-stack mergers. Source: vLLM models/qwen3_vl.py."""
    v = Sizes(f, "vision_config")
    hidden, out = int(v("hidden_size")), int(v("out_hidden_size"))
    merged = hidden * int(v("spatial_merge_size")) ** 2
    merger: Modules = [wide(merged, Part(merged)), back(Part(merged), out)]
    deep: Modules = [vector(2 * merged), *merger] * len(v("deepstack_visual_indexes", default=()))
    return [
        patches(3 * int(v("temporal_patch_size")) * int(v("patch_size")) ** 2, hidden),
        vector(int(v("num_position_embeddings")) * hidden),
        *blocks(int(v("depth")), hidden, int(v("num_heads")), int(v("intermediate_size"))),
        vector(2 * hidden),
        *merger,
        *deep,
        turned(hidden // int(v("num_heads"))),
    ]


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
    text = f.find("hidden")
    return [
        patches(3 * patch * patch, hidden, bias),
        vector((image // patch) ** 2 * hidden if f.rule("vision_positions", True) else 0),
        *blocks(depth, hidden, heads, int(v("intermediate_size", default=4 * hidden)), gated=gated, bias=bias, norm=4 if bias else 2),
        vector(2 * hidden),
        full(hidden * merge, text),
        full(text, text),
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
        *one * int(v("num_hidden_layers")),
        full(hidden, f.find("hidden"), False),
    ]


def whisper_encoder(f: Fields) -> Modules:
    """Whisper's encoder: two convolutions, fixed positions, blocks without a key bias. Source: vLLM models/whisper.py."""
    v = Sizes(f, "audio_config")
    hidden = int(v("d_model", "hidden_size", default=f.raw("d_model")))
    mels = int(v("num_mel_bins", default=f.raw("num_mel_bins")))
    heads = int(v("encoder_attention_heads", "num_attention_heads", default=f.raw("encoder_attention_heads")))
    return [
        vector(3 * mels * hidden + hidden + 3 * hidden * hidden + hidden),
        vector(int(v("max_source_positions", default=f.raw("max_source_positions"))) * hidden),
        *blocks(
            int(v("encoder_layers", "num_hidden_layers", default=f.raw("encoder_layers"))), hidden, heads,
            int(v("encoder_ffn_dim", "intermediate_size", default=f.raw("encoder_ffn_dim"))),
        ),
        vector(2 * hidden),
    ]  # fmt: skip


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


def qwen_audio(f: Fields) -> Modules:
    """The audio tower of Qwen's omni models: Whisper's encoder and a projection. Source: vLLM models/qwen2_5_omni_thinker.py."""
    a = Sizes(f, "audio_config")
    return [*whisper_encoder(f), full(int(a("d_model")), int(a("output_dim", default=f.find("hidden"))))]


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
    "glm-vision": glm_vision,
}
"""The closed set of towers that a family's `towers` may name."""
