"""Layers that carry a state instead of a cache: Mamba, delta rules, linear attention, short convolutions."""

from bot.domain.tensors import Part, Plain, whole
from bot.reading.model.tensor_attention import head_dim
from bot.reading.model.tensor_fields import Fields
from bot.reading.model.tensor_parts import F32, Modules, column, copied, row, vector

MAMBA_HEADS = ("mamba_num_heads", "mamba_n_heads", "n_mamba_heads", "num_heads")


def mamba2(f: Fields) -> Modules:
    """A Mamba-2 mixer: heads dealt; groups dealt, or copied when there is one."""
    hidden = f.find("hidden")
    heads, dim = f.number(*MAMBA_HEADS), _mamba_dim(f)
    groups = int(f.raw("n_groups") or f.raw("mamba_n_groups") or f.raw("mamba_ngroups") or 1)
    state = f.number("ssm_state_size", "mamba_d_state", "state_size")
    kernel = int(f.raw("conv_kernel") or f.raw("mamba_d_conv") or 4)
    bias = bool(f.raw("use_bias", f.raw("mamba_proj_bias", f.raw("add_bias_linear", False))))
    at = f.rule("mamba_name", "mixer") + "."
    inner = Part(heads, dim)
    group = Part(groups, state, "heads" if groups == 1 else "split")
    return (
        column((at + "in_proj",), hidden, inner, inner, group, group, Part(heads), bias=bias),
        Plain((inner, whole(kernel + 1))),
        Plain((group, whole(2 * (kernel + 1)))),
        Plain((Part(heads), whole(2)), F32),
        *((Plain((inner,)),) if f.rule("mamba_norm", True) else ()),
        row(at + "out_proj", inner, hidden, bias),
    )


def _mamba_dim(f: Fields) -> int:
    told = f.raw("mamba_head_dim") or f.raw("mamba_d_head") or f.raw("mamba_headdim")
    if told in (None, "auto"):
        heads = f.number(*MAMBA_HEADS)
        inner = f.raw("mamba_d_ssm") or int(f.raw("mamba_expand") or f.raw("expand") or 2) * f.find("hidden")
        told = f.raw("head_dim") if f.raw("num_heads") and not f.raw("num_attention_heads") else int(inner) // heads
    return int(told)


def mamba1(f: Fields) -> Modules:
    """A Mamba-1 mixer: inner width dealt. Models of nothing else name it (`intermediate_size`); Jamba's file says how it expands."""
    hidden = f.find("hidden")
    named = 0 if f.raw("mamba_expand") or f.raw("num_attention_heads") else int(f.raw("intermediate_size") or f.raw("d_inner") or 0)
    inner = named or int(f.raw("mamba_expand") or f.raw("expand") or 2) * hidden
    state = int(f.raw("mamba_d_state") or f.raw("state_size") or 16)
    kernel = int(f.raw("mamba_d_conv") or f.raw("conv_kernel") or 4)
    rank = f.raw("mamba_dt_rank") or f.raw("time_step_rank") or "auto"
    rank = -(-hidden // 16) if rank == "auto" else int(rank)
    bias = bool(f.raw("mamba_proj_bias", f.raw("use_bias", False)))
    at = f.rule("mamba_name", "mamba") + "."
    return (
        column((at + "in_proj",), hidden, Part(inner), Part(inner), bias=bias),
        Plain((Part(inner), whole(kernel + 1))),
        row(at + "x_proj", Part(inner), rank + 2 * state),
        column((at + "dt_proj",), rank, Part(inner), bias=True, quantized=False),
        Plain((Part(inner), whole(state + 1)), F32),
        vector(rank + 2 * state if f.rule("mamba_norms", False) else 0),
        row(at + "out_proj", Part(inner), hidden, bias),
    )


def gated_delta(f: Fields) -> Modules:
    """Gated delta-rule linear attention (Qwen3-Next, Qwen3.5): key and value heads dealt."""
    hidden = f.find("hidden")
    k_heads, k_dim = f.number("linear_num_key_heads"), f.number("linear_key_head_dim")
    v_heads, v_dim = f.number("linear_num_value_heads"), f.number("linear_value_head_dim")
    kernel = int(f.raw("linear_conv_kernel_dim") or 4)
    at = "linear_attn."
    key, value = Part(k_heads, k_dim), Part(v_heads, v_dim)
    return (
        column((at + "in_proj_qkv", at + "in_proj_z"), hidden, key, key, value, value, fused=at + "in_proj_qkvz"),
        column((at + "in_proj_b", at + "in_proj_a"), hidden, Part(v_heads), Part(v_heads), fused=at + "in_proj_ba"),
        Plain((key, whole(2 * kernel))),
        Plain((value, whole(kernel))),
        Plain((Part(v_heads),)),
        Plain((Part(v_heads),), F32),
        vector(v_dim),
        row(at + "out_proj", value, hidden),
    )


def short_conv(f: Fields) -> Modules:
    """The short convolution of LFM2: in (three gates), a depthwise filter, out."""
    hidden, kernel = f.find("hidden"), int(f.raw("conv_L_cache") or 3)
    dim = int(f.raw("conv_dim") or hidden)
    bias = bool(f.raw("conv_bias", False))
    return (
        column(("conv.in_proj",), hidden, Part(dim), Part(dim), Part(dim), bias=bias),
        Plain((Part(dim), whole(kernel + int(bias)))),
        row("conv.out_proj", Part(dim), hidden, bias),
    )


def kimi_delta(f: Fields) -> Modules:
    """Kimi's delta attention: q, k, v and gates by head. Sources: vLLM layers/kda.py, vllm/models/kimi_k3/nvidia/kda.py."""
    hidden = f.find("hidden")
    told = f.raw("linear_attn_config") or {}
    heads = int(told.get("num_heads") or f.raw("linear_num_heads") or f.raw("linear_num_key_heads") or f.find("heads"))
    dim = int(told.get("head_dim") or f.raw("linear_head_dim") or f.raw("linear_key_head_dim") or head_dim(f))
    kernel = int(told.get("short_conv_kernel_size") or f.raw("linear_conv_kernel_dim") or f.raw("short_conv_kernel_size", 4))
    head, at = Part(heads, dim), "self_attn."
    full_rank = bool(told.get("use_full_rank_gate"))
    gates: Modules = (column((at + "g_proj",), hidden, head),)
    if not full_rank:
        gates = (copied(at + "g_a_proj", hidden, dim), column((at + "g_b_proj",), dim, head, bias=True))
    return (
        column((at + "q_proj", at + "k_proj", at + "v_proj"), hidden, head, head, head),
        *gates,
        copied(at + "f_a_proj", hidden, dim),
        column((at + "f_b_proj",), dim, head),
        column((at + "b_proj",), hidden, Part(heads)),
        Plain((head, whole(3 * kernel * (2 if full_rank else 1))), F32),
        Plain((head,), F32),
        Plain((Part(heads),), F32),
        vector(dim),
        row(at + "o_proj", head, hidden),
    )


def lightning(f: Fields) -> Modules:
    """MiniMax-Text-01's linear attention with an output gate. Source: vLLM models/minimax_text_01.py."""
    hidden, head = f.find("hidden"), Part(f.find("heads"), head_dim(f))
    at = "self_attn."
    return (
        column((at + "qkv_proj",), hidden, head, head, head),
        column((at + "output_gate",), hidden, head),
        row(at + "out_proj", head, hidden),
        Plain((head,)),
    )


def plamo_mamba(f: Fields) -> Modules:
    """PLaMo 2's mixer: B, C and step sizes are projected from what the convolution gives. Source: vLLM models/plamo2.py."""
    hidden, heads, dim, state = f.find("hidden"), f.number("mamba_num_heads"), f.number("hidden_size_per_head"), f.number("mamba_d_state")
    inner, rank, at = Part(heads, dim), max(64, hidden // 16), "mixer."
    return (
        column((at + "in_proj",), hidden, inner, inner),
        Plain((inner, whole(int(f.raw("mamba_d_conv", 4))))),
        row(at + "bcdt_proj", inner, rank + 2 * state),
        column((at + "dt_proj",), rank, Part(heads)),
        Plain((Part(heads), whole(3)), F32),
        vector(rank + 2 * state),
        row(at + "out_proj", inner, hidden),
    )
