"""What one forward pass of a model moves, from its config.json: the text model's widths, its latents, its vision tower."""

from collections.abc import Mapping
from typing import Any

from bot.domain.overheads import ForwardShape
from bot.domain.shape import ModelShape

LARGEST_PICTURE = 65_536  # patches: 16,384 merged tokens, what towers without a fixed picture size are profiled with (vLLM issue 18550)
COMMON_PICTURE = 4_096  # 896 × 896 in patches of 14
MOST_STREAMS = 64  # more than any model has
_LATENT_HEAD = 256  # key and value elements of one head after projection, where the file does not say (DeepSeek-V3: 128 + 128)


def forward_shape(config: Mapping[str, Any], shape: ModelShape, value_bytes: int = 2) -> ForwardShape:
    """Widths of the whole model; what the file leaves out is as in its family's shape. Left alone, a float32 file runs in 16 bits."""
    text = config.get("text_config") if isinstance(config.get("text_config"), Mapping) else config
    return ForwardShape(
        hidden=shape.hidden,
        intermediate=shape.intermediate or (0 if shape.experts_per_token else 4 * shape.hidden),
        vocab=shape.vocab,
        layers=len(shape.layers),
        experts_per_token=shape.experts_per_token,
        expert_intermediate=shape.expert_intermediate or shape.intermediate,
        context_bytes=_context_bytes(text or {}, shape),
        vision=_vision(config.get("vision_config")),
        streams=_streams(text or {}),
        value_bytes=value_bytes,
    )


def _streams(text: Mapping[str, Any]) -> int:
    """Copies of the hidden state beside each other. Source: vllm/models/deepseek_v4 and glm5next, their hyper-connections."""
    said = text.get("hc_mult") or text.get("hc_count")
    return said if isinstance(said, int) and 1 <= said <= MOST_STREAMS and text.get("mhc", True) else 1


def _context_bytes(text: Mapping[str, Any], shape: ModelShape) -> int:
    """Bytes of keys and values of all heads for one token, once its latent is projected up."""
    if not shape.latent or not (text.get("kv_lora_rank") or text.get("q_lora_rank")):
        return 0  # an indexer's latents are never projected up
    keys, values = text.get("qk_nope_head_dim"), text.get("v_head_dim")
    return shape.heads * ((keys + values) if keys and values else _LATENT_HEAD) * 2


def _vision(tower: object) -> tuple[int, int, int] | None:
    if not isinstance(tower, Mapping):
        return None
    hidden = next((tower[key] for key in ("embed_dim", "hidden_size", "vt_hidden_size", "width") if isinstance(tower.get(key), int)), None)
    if hidden is None:
        return None
    intermediate = tower.get("intermediate_size") or tower.get("vt_intermediate_size")
    return hidden, intermediate if isinstance(intermediate, int) else 4 * hidden, _patches(tower)


def _patches(tower: Mapping[str, Any]) -> int:
    """Patches of the largest picture: its side where that is fixed, the most that merging towers take, else a common side."""
    side, patch = tower.get("image_size"), tower.get("patch_size")
    if isinstance(side, int) and isinstance(patch, int) and patch > 0:
        return int((side // patch) ** 2)
    return LARGEST_PICTURE if "spatial_merge_size" in tower else COMMON_PICTURE
