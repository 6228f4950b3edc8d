"""The blocks that decoder layers are built of: attention of each kind, feed-forward of each kind, as tensors."""

from bot.domain.tensors import Experts, Linear, Module, Part, Plain, whole
from bot.reading.tensor_fields import Fields

Modules = tuple[Module, ...]
F32 = 4


def vector(elements: int, bytes_: int | None = None, name: str = "") -> Plain:
    """A norm or bias that every rank has."""
    return Plain((whole(elements),), bytes_, name)


def column(names: tuple[str, ...], inputs: int, *outputs: Part, bias: bool = False, quantized: bool = True, fused: str = "") -> Linear:
    """A matrix whose outputs are dealt over the ranks."""
    return Linear(names, whole(inputs), outputs, bias, quantized, fused)


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


def grouped(f: Fields, *, heads: int = 0, kv: int = 0, dim: int = 0, value_dim: int = 0, shared_cache: bool = False) -> Modules:
    """Grouped-query attention: q, k, v merged and dealt by head, o back; optional norms, gate and sinks.

    `shared_cache`: the layer reads another layer's keys and values and has no weights for its own.
    """
    hidden, heads, kv, dim = f.find("hidden"), heads or f.find("heads"), kv or kv_heads(f), dim or head_dim(f)
    value_dim = value_dim or int(f.raw(f.rule("value_key", ""), 0)) or dim
    at = f.rule("attention_name", "self_attn") + "."
    names = tuple(at + n for n in f.rule("qkv_names", ["q_proj", "k_proj", "v_proj"]))
    query = Part(heads * (2 if f.rule("output_gate", False) else 1), dim)
    parts = (query,) if shared_cache else (query, Part(kv, dim, "heads"), Part(kv, value_dim, "heads"))
    made: list[Module] = [
        column(names, hidden, *parts, bias=bool(f.rule("qkv_bias", False)), fused=at + "qkv_proj"),
        row(at + f.rule("out_name", "o_proj"), Part(heads, value_dim), hidden, bool(f.rule("out_bias", False))),
        *head_norms(f.rule("qk_norm", "none"), heads, 0 if shared_cache else kv, dim),
    ]
    if f.rule("sinks", False):
        made.append(Plain((Part(heads),)))
    if f.rule("head_gate", False):
        made.append(column((at + "g_proj",), hidden, Part(heads)))
    return tuple(made)


def head_norms(kind: str, heads: int, kv: int, dim: int) -> Modules:
    """Norms of queries and keys: one head's size, all heads on each rank, or all heads dealt."""
    if kind == "head":
        return (vector((2 if kv else 1) * dim),)
    if kind == "full":
        return (vector((heads + kv) * dim),)
    if kind == "split":
        return Plain((Part(heads, dim),)), Plain((Part(kv, dim, "heads"),))
    return ()


def wide_heads(f: Fields) -> Modules:
    """Gemma 4's layers without a window: their own head size and KV heads."""
    return grouped(f, kv=int(f.raw("num_global_key_value_heads", 0)) or kv_heads(f), dim=int(f.raw("global_head_dim", 0)) or head_dim(f))


def window_heads(f: Fields) -> Modules:
    """Layers with a window whose heads the file lists apart (`swa_…`), as MiMo-V2 does."""
    return grouped(
        f,
        heads=int(f.raw("swa_num_attention_heads", 0)),
        kv=int(f.raw("swa_num_key_value_heads", 0)),
        dim=int(f.raw("swa_head_dim", 0)),
        value_dim=int(f.raw("swa_v_head_dim", 0)),
    )


def indexed(f: Fields) -> Modules:
    """MiniMax-M3's block-sparse attention: index queries by head and one index key beside q, k, v. Source: vllm/models/minimax_m3."""
    sparse = f.raw("sparse_attention_config") or {}
    heads, kv, dim, hidden = f.find("heads"), kv_heads(f), head_dim(f), f.find("hidden")
    index_heads, index_dim = int(sparse.get("sparse_num_index_heads", kv)), int(sparse.get("sparse_index_dim", dim))
    at = "self_attn."
    names = tuple(at + n for n in ("q_proj", "k_proj", "v_proj", "index_q_proj", "index_k_proj"))
    key = Part(kv, dim, "heads")
    return (
        column(names, hidden, Part(heads, dim), key, key, Part(index_heads, index_dim, "heads"), whole(index_dim)),
        row(at + "o_proj", Part(heads, dim), hidden),
        vector(2 * dim + 2 * index_dim),
    )


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
        *((column((at + "g_proj",), hidden, Part(heads, value)),) if f.raw("mla_use_output_gate") else ()),
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


def feed_forward(f: Fields, intermediate: int = 0) -> Modules:
    """A dense feed-forward: gate and up merged (or up alone), and down."""
    hidden, at = f.find("hidden"), f.rule("mlp_name", "mlp") + "."
    intermediate = intermediate or int(f.raw(f.rule("mlp_key", ""), 0)) or f.find("intermediate", 4 * hidden)
    if f.raw("block_auto_adjust_ff_dim"):
        step = int(f.raw("block_multiple_of", 256))
        intermediate = -(-int(float(f.raw("block_ffn_dim_multiplier", 1)) * int(2 * intermediate / 3)) // step) * step
    if f.rule("mlp_halved", False):
        intermediate //= 2
    bias = bool(f.rule("mlp_bias", False))
    parts = [Part(intermediate)] * (2 if f.rule("gated", True) else 1)
    names = f.rule("up_names", ["gate_proj", "up_proj"] if len(parts) == 2 else ["up_proj"])
    up = column(tuple(at + n for n in names), hidden, *parts, bias=bias, fused=at + "gate_up_proj")
    down = row(at + f.rule("down_name", "down_proj"), Part(intermediate), hidden, bias)
    return tuple(undealt(m) for m in (up, down)) if f.rule("mlp_whole", False) else (up, down)


def undealt(module: Linear) -> Linear:
    """The same matrix in full on each rank."""
    inputs, outputs = whole(module.inputs.units * module.inputs.size), tuple(whole(o.units * o.size) for o in module.outputs)
    return Linear(module.names, inputs, outputs, module.bias, module.quantized)


def mixture(f: Fields) -> Modules:
    """A mixture of experts: router in full on each rank, experts, and shared experts dealt like a dense layer."""
    hidden, count = f.find("hidden"), f.find("experts")
    intermediate = f.find("expert_intermediate", 0) or f.find("intermediate")
    at = f"{f.rule('experts_name', 'mlp')}.".removeprefix(".")
    narrow = int(f.raw("moe_latent_size", 0) or f.raw("routed_expert_hidden_size", 0))
    gated = bool(f.rule("experts_gated", True))
    router: tuple[Module, ...] = (copied(at + "gate", hidden, count, bias=bool(f.rule("router_bias", False)), quantized=False),)
    if f.rule("router_bytes", 0):
        router = (Plain((whole(hidden), whole(count)), int(f.rule("router_bytes"))),)
    least = int(f.rule("experts_least_part", 0))
    made: list[Module] = [
        *router,
        Experts(at + "experts", count, narrow or hidden, intermediate, 2 if gated else 1, bool(f.rule("experts_bias", False)), least),
    ]
    if f.rule("router_correction", False):
        made.append(vector(count, F32))
    if narrow:
        quantized = bool(f.rule("latent_quantized", True))
        made += [copied(at + f.rule("narrow_name", "fc1_latent_proj"), hidden, narrow, quantized=quantized)]
        made += [copied(at + f.rule("widen_name", "fc2_latent_proj"), narrow, hidden, quantized=quantized), vector(narrow)]
    if f.rule("mlp_beside_experts", False):
        made += [*feed_forward(f), vector(4 * hidden)]
    return (*made, *shared_experts(f, at, shared_intermediate(f, intermediate), gated))


def shared_experts(f: Fields, at: str, intermediate: int, gated: bool) -> Modules:
    """Experts that every token passes, as one dense layer."""
    if not intermediate:
        return ()
    hidden, name = f.find("hidden"), at + f.rule("shared_name", "shared_experts")
    part = Part(intermediate, 1, "split", int(f.rule("shared_block", 1)))
    parts = [part] * (2 if gated else 1)
    ups, downs = (("gate_proj", "up_proj"), "down_proj") if gated else (("up_proj",), "down_proj")
    gate = (copied(f"{name}_gate", hidden, 1, quantized=False),) if f.rule("shared_gate", False) else ()
    return (column(tuple(f"{name}.{up}" for up in ups), hidden, *parts), row(f"{name}.{downs}", part, hidden), *gate)


def hashed_mixture(f: Fields) -> Modules:
    """The first layers of DeepSeek-V4: experts looked up by token in a table instead of a corrected router."""
    table = Plain((whole(f.find("vocab")), whole(int(f.raw("num_experts_per_tok")))), 4, "experts by token")
    return (*mixture(f), table)


def shared_intermediate(f: Fields, intermediate: int) -> int:
    """Width of the shared experts together; 0 when there are none."""
    told = f.find("shared_intermediate", 0)
    if told:
        return told * (f.find("shared_experts", 1) if f.rule("shared_times", False) else 1)
    return f.find("shared_experts", int(f.rule("shared_count", 0))) * intermediate if f.rule("shared", True) else 0


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
    heads, dim, kernel = int(told["num_heads"]), int(told["head_dim"]), int(told.get("short_conv_kernel_size", 4))
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


def compressed_latent(f: Fields, ratio: int) -> Modules:
    """DeepSeek-V4's attention: one shared latent, grouped output projection, a compressor, and an indexer at ratio 4.

    Sources: vllm/models/deepseek_v4/attention.py, compressor.py.
    """
    hidden, heads, dim = f.find("hidden"), f.find("heads"), head_dim(f)
    q_rank, o_rank, groups = int(f.raw("q_lora_rank")), int(f.raw("o_lora_rank")), int(f.raw("o_groups"))
    at = "attn."
    made: list[Module] = [
        Linear((at + "wq_a", at + "wkv"), whole(hidden), (whole(q_rank), whole(dim))),
        column((at + "wq_b",), q_rank, Part(heads, dim)),
        column((at + "wo_a",), heads * dim // groups, Part(groups * o_rank)),
        row(at + "wo_b", Part(groups * o_rank), hidden),
        vector(q_rank + dim),
        Plain((whole(64),), F32),
    ]
    if ratio > 1:
        made += compressor(hidden, dim, ratio)
    if ratio == 4:
        index_heads, index_dim = int(f.raw("index_n_heads")), int(f.raw("index_head_dim"))
        made += [
            copied(at + "indexer.wq_b", q_rank, index_heads * index_dim),
            copied(at + "weights_proj", hidden, index_heads, quantized=False),
        ]
        made += compressor(hidden, index_dim, ratio)
    return tuple(made)


def compressor(hidden: int, dim: int, ratio: int) -> Modules:
    """Pools `ratio` tokens into one entry; overlapping windows double its width at ratio 4. Not quantized."""
    width = dim * (2 if ratio == 4 else 1)
    return (copied("compressor", hidden, 2 * width, quantized=False), Plain((whole(ratio), whole(width)), F32), vector(dim))


def hyper_connections(f: Fields) -> Modules:
    """DeepSeek-V4's residual streams: two mixing matrices a layer, in float32."""
    streams, hidden = int(f.raw("hc_mult", 4)), f.find("hidden")
    mixes = (2 + streams) * streams
    return (vector(2 * (mixes * streams * hidden + mixes + 3), F32),)


def laurel(f: Fields) -> Modules:
    """Gemma 3n's low-rank residual, and what steers its residual streams. Source: vLLM models/gemma3n.py."""
    hidden, rank, streams = f.find("hidden"), int(f.raw("laurel_rank", 64)), int(f.raw("altup_num_inputs", 4))
    return (
        column(("laurel.linear_left",), hidden, Part(rank)),
        row("laurel.linear_right", Part(rank), hidden),
        vector(hidden, F32),
        vector(streams * streams + streams**3 + streams * hidden + 2 * hidden),
    )


def per_layer_inputs(f: Fields) -> Modules:
    """Gemma 3n's and 4's per-layer input: gate and projection in full on each rank."""
    hidden, width = f.find("hidden"), int(f.raw("hidden_size_per_layer_input", 0))
    if not width:
        return ()
    return (copied("per_layer_input_gate", hidden, width), copied("per_layer_projection", width, hidden), vector(hidden))
