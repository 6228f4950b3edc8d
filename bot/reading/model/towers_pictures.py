"""Picture encoders that stand beside a text encoder, or two in a row: CLIP, SigLIP with its head, SAM, Qwen2 as an encoder."""

from bot.domain.tensors import Part
from bot.reading.model.tensor_fields import Fields, plausible_layers
from bot.reading.model.tensor_parts import vector
from bot.reading.model.tower_parts import Modules, Sizes, back, blocks, full, patches, wide


def clip_vision(f: Fields) -> Modules:
    """CLIP's tower and both projections into the common space. Source: vLLM models/clip.py CLIPEmbeddingModel."""
    hidden, common = int(Sizes(f, "vision_config")("hidden_size")), int(f.raw("projection_dim", 512))
    return [*clip_blocks(f), vector(2 * hidden), full(hidden, common, False), full(f.find("hidden"), common, False)]


def clip_blocks(f: Fields) -> Modules:
    """CLIP's transformer with its class token, positions and first norm, without a last one."""
    v = Sizes(f, "vision_config")
    hidden, patch = int(v("hidden_size")), int(v("patch_size"))
    return [
        patches(3 * patch * patch, hidden, bias=False),
        vector(hidden + ((int(v("image_size")) // patch) ** 2 + 1) * hidden),
        *blocks(int(v("num_hidden_layers")), hidden, int(v("num_attention_heads")), int(v("intermediate_size"))),
        vector(2 * hidden),
    ]


def siglip_head(f: Fields) -> Modules:
    """What SigLIP keeps behind its tower to embed a picture, and the projection of its text. Source: vLLM models/siglip.py."""
    v = Sizes(f, "vision_config")
    hidden, inner, text = int(v("hidden_size")), int(v("intermediate_size")), f.find("hidden")
    pooling: Modules = [
        vector(hidden + 4 * hidden * hidden + 4 * hidden + 2 * hidden),
        wide(hidden, Part(inner)),
        back(Part(inner), hidden),
    ]
    projection = full(text, int(f.raw("projection_size", text)))
    return [*(pooling if v("vision_use_head", default=True) else []), projection]


def sam(width: int) -> Modules:
    """SAM-B over 1,024 × 1,024 pixels, whole on each rank, and three convolutions that make `width` channels of it.

    Source: vLLM models/deepencoder.py ImageEncoderViT: 12 layers of 768, four of them attending the whole picture (64 × 64 places), the
    others windows of 14 × 14; relative positions of one head (64) each way.
    """
    hidden, depth, whole_picture, head = 768, 12, 4, 64
    relative = 2 * head * (whole_picture * (2 * 64 - 1) + (depth - whole_picture) * (2 * 14 - 1))
    layer = full(hidden, 3 * hidden), full(hidden, hidden), full(hidden, 4 * hidden), full(4 * hidden, hidden), vector(4 * hidden)
    neck = hidden * 256 + 9 * 256 * 256 + 4 * 256 + 9 * 256 * 512 + 9 * 512 * width
    return [patches(3 * 16 * 16, hidden), vector(64 * 64 * hidden + relative + neck), *layer * depth]


def sam_and_clip(f: Fields) -> Modules:
    """DeepSeek-OCR: SAM and CLIP side by side, one matrix over both, two learned separators. Source: vLLM models/deepseek_ocr.py."""
    return [*sam(1024), *clip_blocks(f), full(2048, f.find("hidden")), vector(2 * f.find("hidden"))]


def sam_and_qwen2(f: Fields) -> Modules:
    """DeepSeek-OCR 2: Qwen2-0.5B reads what SAM sees, whole on each rank; its queries, and one matrix behind it.

    Source: vLLM models/deepseek_ocr2.py, deepencoder2.py.
    """
    hidden, inner, key = 896, 4864, 128
    one = full(hidden, hidden + 2 * key), full(hidden, hidden, False), full(hidden, 2 * inner, False), full(inner, hidden, False)
    return [
        *sam(hidden),
        *(*one, vector(2 * hidden)) * 24,
        vector((1 + 144 + 256) * hidden),
        full(hidden, f.find("hidden")),
        vector(f.find("hidden")),
    ]


def cohere_projector(f: Fields) -> Modules:
    """Four patches side by side through a gated pair of matrices. Source: vLLM models/cohere2_vision.py, aya_vision.py."""
    seen, factor = int(Sizes(f, "vision_config")("hidden_size")), int(f.raw("downsample_factor", 2))
    text = f.find("hidden")
    inner = int(f.config.get("alignment_intermediate_size") or text) // 2
    return [wide(seen * factor * factor, Part(inner), Part(inner)), back(Part(inner), text), vector(2 * seen * factor * factor)]


def molmo_pooling(f: Fields) -> Modules:
    """Molmo's attention over two layers' patches, and its gated projector. Source: vLLM models/molmo.py MolmoVisionBackbone."""
    seen, layers, text, inner = int(Sizes(f, "vision_config")("hidden_size")), 2, f.find("hidden"), f.find("intermediate") // 2
    heads = Part(int(Sizes(f, "vision_config")("num_attention_heads")), seen // int(Sizes(f, "vision_config")("num_attention_heads")))
    return [
        *[wide(layers * seen, heads)] * 3,
        back(heads, seen),
        wide(seen, Part(inner), Part(inner), bias=False),
        back(Part(inner), text, bias=False),
        vector(2 * layers * seen),
    ]


def deepseek_vision(f: Fields) -> Modules:
    """DeepSeek V4's tower: gated blocks, norms in float32, a merging projector, four vectors. Source: deepseek_v4/common/vision.py."""
    v = Sizes(f, "vision_config")
    depth = int(f.raw("vision_n_layers") or v("num_hidden_layers", default=0))
    if not depth:
        return []
    hidden = int(f.raw("vision_dim") or v("hidden_size", default=1024))
    heads, inner = (
        int(f.raw("vision_n_heads") or v("num_attention_heads", default=16)),
        int(f.raw("vision_inter_dim") or v("intermediate_size")),
    )
    patch, merge = int(f.raw("vision_patch_size") or v("patch_size")), int(f.raw("vision_downsample_ratio") or v("downsample_ratio"))
    text = f.find("hidden")
    return [
        patches(3 * patch * patch, hidden),
        *blocks(depth, hidden, heads, inner, gated=True, bias=False, norm=8),
        vector(2 * hidden + 4 * text),
        wide(hidden * merge * merge, Part(text)),
        back(Part(text), text),
    ]


def muse_vision(f: Fields) -> Modules:
    """Muse Glimmer's tower: attention dealt, feed-forward and adapter on every rank. Source: vLLM models/muse_glimmer.py."""
    v = Sizes(f, "vision_config")
    hidden, heads, inner = int(v("hidden_size")), int(v("num_attention_heads")), int(v("intermediate_size"))
    patch, times = int(v("patch_size")), int(v("patch_temporal", default=1))
    out, between = f.number("out_hidden_size"), f.number("projector_hidden_size")
    head = Part(heads, hidden // heads)
    one: Modules = [wide(hidden, head, head, head), back(head, hidden), full(hidden, inner), full(inner, hidden), vector(4 * hidden)]
    return [
        patches(times * 3 * patch * patch, hidden, bias=False),
        vector((int(v("pos_emb_height")) * int(v("pos_emb_width")) + 4) * hidden),
        *one * plausible_layers(int(v("num_hidden_layers")), "layers in its tower"),
        full(out, between, bias=False),
        full(between, between, bias=False),
        full(between, f.find("hidden"), bias=False),
    ]


def glm_next_vision(f: Fields) -> Modules:
    """GLM 5.3 Flash's tower: gated blocks with head norms, a convolution that merges, a gated merger. Source: vllm/models/glm5next."""
    v = Sizes(f, "vision_config")
    hidden, out, heads = int(v("hidden_size")), int(v("out_hidden_size")), int(v("num_heads"))
    patch, merge, inner = int(v("patch_size")), int(v("spatial_merge_size")), int(v("projection_intermediate_size"))
    depth, times = int(v("depth")), int(v("temporal_patch_size", default=1))
    return [
        patches(3 * times * patch * patch, hidden),
        *blocks(depth, hidden, heads, int(v("intermediate_size")), gated=True, norm=2),
        vector(depth * 2 * (hidden // heads) + hidden),
        vector(merge * merge * hidden * out + out),
        wide(out, Part(out), bias=False),
        wide(out, Part(inner), Part(inner), bias=False),
        back(Part(inner), out, bias=False),
        vector(2 * out),
    ]
