"""The blocks that decoder layers are built of: attention of each kind, feed-forward of each kind, as tensors."""

from bot.domain.tensors import Experts, Linear, Module, Part, Plain, whole
from bot.reading.tensor_fields import Fields

Modules = tuple[Module, ...]
F32 = 4


def vector(elements: int, bytes_: int | None = None, name: str = "") -> Plain:
    """A norm or bias that every rank has."""
    return Plain((whole(elements),), bytes_, name)


def column(names: tuple[str, ...], inputs: int, *outputs: Part, bias: bool = False, quantized: bool = True) -> Linear:
    """A matrix whose outputs are dealt over the ranks."""
    return Linear(names, whole(inputs), outputs, bias, quantized)


def row(name: str, inputs: Part, outputs: int, bias: bool = False) -> Linear:
    """A matrix whose inputs are dealt over the ranks."""
    return Linear((name,), inputs, (whole(outputs),), bias)


def copied(name: str, inputs: int, outputs: int, *, bias: bool = False, quantized: bool = True) -> Linear:
    """A matrix that every rank has in full."""
    return Linear((name,), whole(inputs), (whole(outputs),), bias, quantized)


def head_dim(f: Fields) -> int:
    """The size of one attention head: as the file says, else hidden over heads."""
    return f.find("head_dim", 0) or f.find("hidden") // f.find("heads")


def kv_heads(f: Fields) -> int:
    """Key and value heads: as the file says, one for multi-query, else as many as query heads."""
    if f.raw("multi_query") and not f.raw("new_decoder_architecture", False):
        return int(f.raw("n_head_kv_multi_query", 1))
    return f.find("kv_heads", f.find("heads"))


def grouped(f: Fields, heads: int | None = None, kv: int | None = None, dim: int | None = None, value_dim: int | None = None) -> Modules:
    """Grouped-query attention: q, k, v merged and dealt by head, o back; optional norms, gate and sinks."""
    hidden, heads, kv, dim = f.find("hidden"), heads or f.find("heads"), kv or kv_heads(f), dim or head_dim(f)
    value_dim = value_dim or dim
    gate = 2 if f.rule("output_gate", False) else 1
    at = f.rule("attention_name", "self_attn") + "."
    names = tuple(at + n for n in f.rule("qkv_names", ["q_proj", "k_proj", "v_proj"]))
    made: list[Module] = [
        column(names, hidden, Part(heads * gate, dim), Part(kv, dim, "heads"), Part(kv, value_dim, "heads"), bias=bool(f.rule("qkv_bias", False))),
        row(at + f.rule("out_name", "o_proj"), Part(heads, value_dim), hidden, bool(f.rule("out_bias", False))),
    ]
    norm = f.rule("qk_norm", "none")
    if norm == "head":
        made.append(vector(2 * dim))
    elif norm == "full":
        made.append(vector((heads + kv) * dim))
    elif norm == "split":
        made += [Plain((Part(heads, dim),)), Plain((Part(kv, dim, "heads"),))]
    if f.rule("sinks", False):
        made.append(Plain((Part(heads),)))
    return tuple(made)


def latent(f: Fields) -> Modules:
    """Multi-head latent attention (DeepSeek-V2 on): latents copied to each rank, heads dealt, absorbed copies of kv_b kept in BF16.

    The absorbed copies (W_UK, W_UV) stand beside kv_b_proj after loading: vLLM layers/attention/mla_attention.py.
    """
    hidden, heads = f.find("hidden"), f.find("heads")
    q_rank, kv_rank = int(f.raw("q_lora_rank", 0) or 0), int(f.raw("kv_lora_rank"))
    rope, nope, value = int(f.raw("qk_rope_head_dim")), int(f.raw("qk_nope_head_dim")), int(f.raw("v_head_dim"))
    at = "self_attn."
    made: list[Module] = []
    if q_rank:
        made += [
            Linear((at + "q_a_proj", at + "kv_a_proj_with_mqa"), whole(hidden), (whole(q_rank), whole(kv_rank + rope))),
            vector(q_rank),
            column((at + "q_b_proj",), q_rank, Part(heads, nope + rope)),
        ]
    else:
        made += [column((at + "q_proj",), hidden, Part(heads, nope + rope)), copied(at + "kv_a_proj_with_mqa", hidden, kv_rank + rope)]
    return (
        *made,
        vector(kv_rank),
        column((at + "kv_b_proj",), kv_rank, Part(heads, nope + value)),
        row(at + "o_proj", Part(heads, value), hidden, bool(f.rule("out_bias", False))),
        Plain((Part(heads, (nope + value) * kv_rank),), 2, "absorbed copies of kv_b_proj"),
    )


def indexer(f: Fields) -> Modules:
    """The lightning indexer of sparse attention (DeepSeek-V3.2), copied to each rank; its head weights are not quantized."""
    heads, dim = int(f.raw("index_n_heads")), int(f.raw("index_head_dim"))
    q_rank, hidden = int(f.raw("q_lora_rank")), f.find("hidden")
    at = "self_attn.indexer."
    return (
        copied(at + "wq_b", q_rank, heads * dim),
        copied(at + "wk", hidden, dim),
        vector(2 * dim),
        copied(at + "weights_proj", hidden, heads, quantized=False),
    )


def feed_forward(f: Fields) -> Modules:
    """A dense feed-forward: gate and up merged (or up alone), and down."""
    hidden, at = f.find("hidden"), f.rule("mlp_name", "mlp") + "."
    intermediate = int(f.raw(f.rule("mlp_key", ""), 0)) or f.find("intermediate", 4 * hidden)
    bias = bool(f.rule("mlp_bias", False))
    parts = [Part(intermediate)] * (2 if f.rule("gated", True) else 1)
    names = f.rule("up_names", ["gate_proj", "up_proj"] if len(parts) == 2 else ["up_proj"])
    return (
        column(tuple(at + n for n in names), hidden, *parts, bias=bias),
        row(at + f.rule("down_name", "down_proj"), Part(intermediate), hidden, bias),
    )


def mixture(f: Fields) -> Modules:
    """A mixture of experts: router in full on each rank, experts, and shared experts dealt like a dense layer."""
    hidden, count = f.find("hidden"), f.find("experts")
    intermediate = f.find("expert_intermediate", 0) or f.find("intermediate")
    at = f.rule("experts_name", "mlp") + "."
    wide = int(f.raw(f.rule("experts_hidden_key", "moe_latent_size"), 0) or 0)
    gated = bool(f.rule("experts_gated", True))
    made: list[Module] = [
        copied(at + f.rule("router_name", "gate"), hidden, count, bias=bool(f.rule("router_bias", False)), quantized=False),
        Experts(at + "experts", count, wide or hidden, intermediate, 2 if gated else 1, bool(f.rule("experts_bias", False))),
    ]
    if f.rule("router_correction", False):
        made.append(vector(count, F32))
    if f.rule("router_float", False):
        made.append(Plain((whole(hidden), whole(count)), 2))
    if wide:
        made += [copied(at + "fc1_latent_proj", hidden, wide), copied(at + "fc2_latent_proj", wide, hidden)]
    shared = shared_intermediate(f, intermediate)
    if shared:
        name = at + f.rule("shared_name", "shared_experts")
        parts = [Part(shared)] * (2 if gated else 1)
        names = (f"{name}.gate_proj", f"{name}.up_proj") if gated else (f"{name}.up_proj",)
        made += [column(names, hidden, *parts), row(f"{name}.down_proj", Part(shared), hidden)]
        if f.rule("shared_gate", False):
            made.append(copied(f"{name}_gate", hidden, 1, quantized=False))
    return tuple(made)


def shared_intermediate(f: Fields, intermediate: int) -> int:
    """Width of the shared experts together; 0 when there are none."""
    told = f.find("shared_intermediate", 0)
    if told:
        return told * (f.find("shared_experts", 1) if f.rule("shared_times", False) else 1)
    return f.find("shared_experts", int(f.rule("shared_count", 0))) * intermediate


def mamba2(f: Fields) -> Modules:
    """A Mamba-2 mixer: heads dealt; groups dealt, or copied when there is one."""
    hidden = f.find("hidden")
    heads, dim = int(f.raw("mamba_num_heads") or f.raw("mamba_n_heads") or f.raw("num_heads")), _mamba_dim(f)
    groups = int(f.raw("n_groups") or f.raw("mamba_n_groups") or f.raw("mamba_ngroups") or 1)
    state = int(f.raw("ssm_state_size") or f.raw("mamba_d_state") or f.raw("state_size"))
    kernel = int(f.raw("conv_kernel") or f.raw("mamba_d_conv") or 4)
    bias = bool(f.raw("use_bias", f.raw("mamba_proj_bias", False)))
    at = f.rule("mamba_name", "mixer") + "."
    inner = Part(heads, dim)
    group = Part(groups, state, "heads")
    return (
        column((at + "in_proj",), hidden, inner, inner, group, group, Part(heads), bias=bias),
        Plain((inner, whole(kernel + 1))),
        Plain((group, whole(2 * (kernel + 1)))),
        Plain((Part(heads), whole(2)), F32),
        *((Plain((inner,)),) if f.rule("mamba_norm", True) else ()),
        row(at + "out_proj", inner, hidden, bias),
    )


def _mamba_dim(f: Fields) -> int:
    told = f.raw("mamba_head_dim") or f.raw("mamba_d_head")
    if told in (None, "auto"):
        heads = int(f.raw("mamba_num_heads") or f.raw("mamba_n_heads") or f.raw("num_heads"))
        inner = f.raw("mamba_d_ssm") or int(f.raw("mamba_expand") or f.raw("expand") or 2) * f.find("hidden")
        told = f.raw("head_dim") if f.raw("num_heads") and not f.raw("num_attention_heads") else int(inner) // heads
    return int(told)


def mamba1(f: Fields) -> Modules:
    """A Mamba-1 mixer (Jamba): inner width dealt."""
    hidden = f.find("hidden")
    inner = int(f.raw("mamba_expand") or f.raw("expand") or 2) * hidden
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
    k_heads, k_dim = int(f.raw("linear_num_key_heads")), int(f.raw("linear_key_head_dim"))
    v_heads, v_dim = int(f.raw("linear_num_value_heads")), int(f.raw("linear_value_head_dim"))
    kernel = int(f.raw("linear_conv_kernel_dim") or 4)
    at = "linear_attn."
    key, value = Part(k_heads, k_dim), Part(v_heads, v_dim)
    return (
        column((at + "in_proj_qkv", at + "in_proj_z", at + "in_proj_qkvz"), hidden, key, key, value, value),
        column((at + "in_proj_b", at + "in_proj_a", at + "in_proj_ba"), hidden, Part(v_heads), Part(v_heads)),
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
