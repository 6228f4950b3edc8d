"""Grouped-query attention of every kind, as tensors."""

from bot.domain.tensors import Module, Part, Plain, whole
from bot.reading.model.tensor_fields import Fields, plausible_layers
from bot.reading.model.tensor_parts import F32, Modules, column, copied, row, vector


def head_dim(f: Fields) -> int:
    """The size of one attention head: as the file says, else hidden over heads."""
    return f.find("head_dim", 0) or f.find("hidden") // f.find("heads")


def kv_heads(f: Fields) -> int:
    """Key and value heads: as the file says, one for multi-query, else as many as query heads."""
    if f.raw("multi_query") and not f.raw("new_decoder_architecture", False):
        return int(f.raw("n_head_kv_multi_query", 1))
    return f.find("kv_heads", f.find("heads"))


def grouped(
    f: Fields, *, heads: int = 0, kv: int = 0, dim: int = 0, value_dim: int = 0, shared_cache: bool = False, inputs: int = 0
) -> Modules:
    """Grouped-query attention: q, k, v merged and dealt by head, o back; optional norms, gate and sinks.

    `shared_cache`: the layer reads another layer's keys and values and has no weights for its own. `inputs`: its width, where that is not
    the hidden size.
    """
    hidden, heads, kv, dim = f.find("hidden"), heads or f.find("heads"), kv or kv_heads(f), dim or head_dim(f)
    value_dim = value_dim or int(f.raw(f.rule("value_key", ""), 0)) or dim
    at = f.rule("attention_name", "self_attn") + "."
    names = tuple(at + n for n in ("q_proj", "k_proj", "v_proj"))
    query = Part(heads * (2 if f.rule("output_gate", False) else 1), dim)
    parts = (query,) if shared_cache else (query, Part(kv, dim, "heads"), Part(kv, value_dim, "heads"))
    made: list[Module] = [
        column(names, inputs or hidden, *parts, bias=bool(f.rule("qkv_bias", False)), fused=at + "qkv_proj"),
        row(at + "o_proj", Part(heads, value_dim), hidden, bool(f.rule("out_bias", False))),
        *head_norms(f.rule("qk_norm", "none"), heads, 0 if shared_cache else kv, dim),
    ]
    if f.rule("sinks", False):
        made.append(Plain((Part(heads),)))
    gate = f.rule("head_gate", False)
    if gate:
        made.append(column((at + "g_proj",), hidden, Part(heads, dim if gate == "element" else 1)))
    return tuple(made)


def head_norms(kind: str, heads: int, kv: int, dim: int) -> Modules:
    """Norms of queries and keys: one head's size, all heads on each rank, or all heads dealt."""
    if kind == "head":
        return (vector((2 if kv else 1) * dim),)
    if kind == "full":
        return (vector((heads + kv) * dim),)
    if kind in ("split", "split-bias"):
        return (Plain((Part(heads, dim),)), Plain((Part(kv, dim, "heads"),))) * (2 if kind == "split-bias" else 1)
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


def relative(f: Fields) -> Modules:
    """Inkling's layers without a window: relative positions beside q, k, v, convolutions over k, v and both streams.

    Source: vllm/models/inkling/nvidia/attention.py, model.py.
    """
    return _relative(f, f.find("heads"), kv_heads(f), head_dim(f), int(f.raw("rel_extent", 1024)))


def relative_window(f: Fields) -> Modules:
    """And those with a window, whose heads the file lists apart."""
    heads, kv = int(f.raw("swa_num_attention_heads", 0)) or f.find("heads"), int(f.raw("swa_num_key_value_heads", 0)) or kv_heads(f)
    return _relative(f, heads, kv, int(f.raw("swa_head_dim", 0)) or head_dim(f), int(f.raw("sliding_window_size", 512)))


def _relative(f: Fields, heads: int, kv: int, dim: int, reach: int) -> Modules:
    hidden, kernel, rel = f.find("hidden"), int(f.raw("sconv_kernel_size") or f.raw("conv_kernel_size", 4)), int(f.raw("d_rel", 16))
    key, at = Part(kv, dim, "heads"), "attn."
    return (
        column((at + "wq", at + "wk", at + "wv", at + "wr"), hidden, Part(heads, dim), key, key, Part(heads, rel)),
        row(at + "wo", Part(heads, dim), hidden),
        vector(rel * reach + 2 * dim),
        Plain((key, whole(2 * kernel))),
        Plain((Part(hidden), whole(2 * kernel))),
    )


def value_experts(f: Fields) -> Modules:
    """K2 Horizon: values of several matrices, chosen token by token; plain attention where the file names none. Source: k2_horizon.py."""
    count = int(f.raw("mova_num_experts", 0))
    hidden, kv = f.find("hidden"), Part(kv_heads(f), head_dim(f), "heads")
    value = column(("self_attn.v_experts",), hidden, kv)
    router = (copied("self_attn.v_router", hidden, count), vector(count, F32))
    return (*grouped(f), *[value] * (plausible_layers(count, "value experts") - 1), *router) if count else grouped(f)


def narrow_query(f: Fields) -> Modules:
    """Step 3: queries from a narrow vector and one key and value head, all that in full on each rank. Source: vLLM models/step3_text.py."""
    hidden, heads, dim = f.find("hidden"), f.find("heads"), head_dim(f)
    narrow = int(f.raw("share_q_dim", 0)) or dim
    return (
        copied("self_attn.qkv_proj", hidden, narrow + 2 * dim),
        vector(narrow),
        column(("self_attn.wq",), narrow, Part(heads, dim)),
        row("self_attn.o_proj", Part(heads, dim), hidden),
    )


def learned_tokens(f: Fields) -> Modules:
    """openPangu Pro V2: keys of two parts beside narrower values, and keys and values of tokens that stand before every request.

    Source: vLLM models/openpangu.py OpenPanguSinkAttention.
    """
    key, value = f.number("qk_nope_dim") + f.number("qk_rope_dim"), f.number("v_channels")
    tokens = plausible_layers(int(f.raw("param_sink_number", 0)), "learned tokens")
    learned = Plain((Part(kv_heads(f), tokens * (key + value), "heads"),))
    return (*grouped(f, dim=key, value_dim=value), vector(key), learned)


def picture_attention(f: Fields) -> Modules:
    """Llama 3.2 Vision's layers that read the picture: head norms and two gates beside the matrices. Source: vLLM models/mllama.py."""
    return (*grouped(f), vector(2 * head_dim(f) + 2))
