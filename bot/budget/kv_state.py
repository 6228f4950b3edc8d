"""Bytes of recurrent state that one request keeps in one layer, on one rank."""

from bot.domain.budget import CacheSettings
from bot.domain.shape import GatedDelta, KimiDelta, Lightning, Mamba1, Mamba2, ShortConvolution, State


def state_bytes(state: State, tp: int, settings: CacheSettings) -> int:
    """Convolution window and recurrent matrix together. Source: vllm/model_executor/layers/mamba/mamba_utils.py."""
    window, matrix = state_elements(state, tp, settings.draft_tokens)
    return window * settings.conv_bytes + matrix * (4 if isinstance(state, KimiDelta) else settings.state_bytes)


def state_elements(state: State, tp: int, draft: int = 0) -> tuple[int, int]:
    """(elements of the convolution window, elements of the recurrent matrix) per rank; `draft` tokens lengthen the window."""
    match state:
        case Mamba1(inner, width, kernel):
            return inner // tp * (kernel - 1), inner // tp * width
        case Mamba2():
            return _mamba2(state, tp, draft)
        case GatedDelta():
            channels = 2 * state.key_heads * state.key_dim + state.value_heads * state.value_dim
            return (state.kernel - 1 + draft) * (channels // tp), state.value_heads // tp * state.value_dim * state.key_dim
        case KimiDelta(heads=heads, head_dim=head_dim, kernel=kernel):
            return 3 * (kernel - 1 + draft) * (heads * head_dim // tp), heads // tp * head_dim * head_dim
        case Lightning(heads, head_dim):
            return 0, heads // tp * head_dim * head_dim
        case ShortConvolution(width, kernel, dilation, whole):
            return ((kernel - 1) * dilation + draft) * width if whole else (kernel - 1) * (width // tp), 0


def _mamba2(state: Mamba2, tp: int, draft: int) -> tuple[int, int]:
    # A single group is copied to every rank, so that each head shard finds its own B and C.
    groups = state.groups if state.groups % tp == 0 else tp
    channels = state.inner + 2 * groups * state.state
    return (state.kernel - 1 + draft) * (channels // tp), state.heads // tp * state.head_dim * state.state
