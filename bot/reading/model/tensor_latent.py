"""Attention over latents (DeepSeek) and what picks the tokens for it, as tensors."""

from bot.domain.tensors import Linear, Module, Part, Plain, whole
from bot.reading.model.tensor_attention import head_dim
from bot.reading.model.tensor_fields import Fields, plausible_layers
from bot.reading.model.tensor_parts import F32, Modules, column, copied, row, vector


def latent(f: Fields, inputs: int = 0) -> Modules:
    """Multi-head latent attention (DeepSeek-V2 on): latents copied to each rank, heads dealt, absorbed copies of kv_b kept in BF16.

    The absorbed copies (W_UK, W_UV) stand beside kv_b_proj after loading: vLLM layers/attention/mla_attention.py.
    """
    hidden, heads = f.find("hidden"), f.find("heads")
    seen = inputs or hidden
    q_rank, kv_rank = int(f.raw("q_lora_rank", 0) or 0), f.number("kv_lora_rank")
    rope, nope, value = f.number("qk_rope_head_dim"), f.number("qk_nope_head_dim"), int(f.raw("v_head_dim", 0)) or f.find("hidden") // heads
    at = "self_attn."
    gate = "element" if f.raw("mla_use_output_gate") else f.rule("head_gate", False)
    made: list[Module] = []
    if q_rank:
        made += [
            Linear((at + "q_a_proj", at + "kv_a_proj_with_mqa"), whole(seen), (whole(q_rank), whole(kv_rank + rope))),
            vector(q_rank),
            column((at + "q_b_proj",), q_rank, Part(heads, nope + rope)),
        ]
    else:
        made += [column((at + "q_proj",), seen, Part(heads, nope + rope)), copied(at + "kv_a_proj_with_mqa", seen, kv_rank + rope)]
    return (
        *made,
        vector(kv_rank),
        column((at + "kv_b_proj",), kv_rank, Part(heads, nope + value)),
        row(at + "o_proj", Part(heads, value), hidden, bool(f.rule("out_bias", False))),
        *((column((at + "g_proj",), hidden, Part(heads, value if gate == "element" else 1)),) if gate else ()),
        *((Plain((Part(heads, (nope + value) * kv_rank),), 2, "absorbed copies of kv_b_proj"),) if f.rule("absorbed", True) else ()),
    )


def indexer(f: Fields) -> Modules:
    """The lightning indexer of sparse attention (DeepSeek-V3.2), copied to each rank; its head weights are not quantized."""
    heads, dim = f.number("index_n_heads"), f.number("index_head_dim")
    q_rank, hidden = f.number("q_lora_rank"), f.find("hidden")
    at = "self_attn.indexer."
    return (
        copied(at + "wq_b", q_rank, heads * dim),
        copied(at + "wk", hidden, dim),
        vector(2 * dim),
        copied(at + "weights_proj", hidden, heads, quantized=False),
        *((vector(dim * hidden), vector(int(f.raw("index_kpool")) * dim, F32)) if f.raw("index_kpool") else ()),
    )


def compressed_latent(f: Fields, ratio: int) -> Modules:
    """DeepSeek-V4's attention: one shared latent, grouped output projection, a compressor, and an indexer at ratio 4.

    Sources: vllm/models/deepseek_v4/attention.py, compressor.py.
    """
    hidden, heads, dim = f.find("hidden"), f.find("heads"), head_dim(f)
    q_rank, o_rank, groups = f.number("q_lora_rank"), f.number("o_lora_rank"), f.number("o_groups")
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
        index_heads, index_dim = f.number("index_n_heads"), f.number("index_head_dim")
        made += [
            copied(at + "indexer.wq_b", q_rank, index_heads * index_dim),
            copied(at + "weights_proj", hidden, index_heads, quantized=False),
        ]
        made += compressor(hidden, index_dim, ratio)
    return tuple(made)


def shared_sources(f: Fields) -> Modules:
    """DeepSeek-V4.1: a few layers compress for those behind them, and a few pick tokens. Source: vllm/models/deepseek_v41/attention.py."""
    hidden, dim, index = f.find("hidden"), head_dim(f), f.number("index_head_dim")
    heads, q_rank = f.number("index_n_heads"), f.number("q_lora_rank")
    ratios = f.raw("compress_ratios")
    made: Modules = ()
    for layer in f.raw("kv_source_layer_ids"):
        width = dim * (2 if int(ratios[layer]) > 1 else 1)
        made += (copied("compressor", hidden, width, quantized=False), vector(dim + dim * index + index))
    picks = (copied("attn.indexer.wq_b", q_rank, heads * index), copied("weights_proj", hidden, heads, quantized=False))
    return (*made, *picks * plausible_layers(len(f.raw("index_source_layer_ids")), "layers that pick tokens"))


def compressor(hidden: int, dim: int, ratio: int) -> Modules:
    """Pools `ratio` tokens into one entry; overlapping windows double its width at ratio 4. Not quantized."""
    width = dim * (2 if ratio == 4 else 1)
    return (copied("compressor", hidden, 2 * width, quantized=False), Plain((whole(ratio), whole(width)), F32), vector(dim))
