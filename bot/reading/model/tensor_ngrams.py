"""Embeddings of several tokens at once, and gated residual streams, as tensors: Qwen 4 and LongCat Flash Lite."""

from bot.domain.tensors import Module, Part, Table
from bot.reading.model.tensor_attention import grouped
from bot.reading.model.tensor_fields import Fields, plausible_layers
from bot.reading.model.tensor_parts import Modules, column, copied, vector


def index_query(f: Fields) -> Modules:
    """Qwen 4's sparse attention: an indexer's few queries and one key on every rank. Source: vllm/models/qwen4_exp/nvidia/qsa.py."""
    heads, keys, dim = f.number("indexer_n_heads"), int(f.raw("indexer_kv_heads", 1)), f.number("indexer_head_dim")
    return (*grouped(f), copied("self_attn.indexer.index_qk_proj", f.find("hidden"), (heads + keys) * dim), vector(2 * dim))


def gated_streams(f: Fields) -> Modules:
    """A gate before attention and one before the experts. Source: vllm/models/qwen4_exp/common/hyperconnection.py GatedResidual."""
    return (vector(2 * (_gate(f) + _streams(f) * int(f.raw("hc_count")))),)


def stream_mixer(f: Fields) -> Modules:
    """What makes one hidden state of all streams for the output table."""
    return (vector(_gate(f)),)


def ngram_layers(f: Fields) -> Modules:
    """What a layer with n-grams holds beside their table: two matrices, norms, a convolution. Source: nvidia/ple_layer.py."""
    width, streams = f.number("ple_embed_dim"), _streams(f)
    one: Modules = (vector(width * (streams + f.find("hidden"))), vector((3 + int(f.raw("ple_conv_kernel_size", 4))) * streams))
    return one * plausible_layers(len(f.raw("ple_layer_ids")), "layers with n-grams")


def engrams(f: Fields) -> Modules:
    """DeepSeek-V4.1: what a layer with n-grams holds beside their table. Source: vllm/models/deepseek_v41/common/engram.py Engram."""
    hidden, streams = f.find("hidden"), int(f.raw("hc_mult", 4))
    width = (f.number("engram_max_ngram_size") - 1) * f.number("engram_n_heads") * f.number("engram_head_dim")
    one: Modules = (column(("engram.wkv",), width, Part(hidden * (streams + 1))), vector(2 * streams * hidden))
    return one * plausible_layers(len(f.raw("engram_layer_ids")), "layers with n-grams")


def ngram_notes(f: Fields) -> tuple[str, ...]:
    """Where the tables themselves are. Source: vllm/config/engram.py, cpu_offload."""
    there = f.raw("ple_layer_ids") or f.raw("engram_layer_ids")
    return ("its tables of n-grams stay in pinned host memory, as the engine keeps them by itself",) if there else ()


def ngram_tables(f: Fields) -> list[Module]:
    """LongCat's tables of pairs, triples and so on, and a matrix for each. Source: vllm models/longcat_flash_ngram.py."""
    hidden, rows = f.find("hidden"), int(f.raw("ngram_vocab_size_ratio")) * f.find("vocab")
    tables = f.number("emb_split_num") * (f.number("emb_neighbor_num") - 1)
    width = hidden // plausible_layers(tables, "tables of n-grams")
    every = tables * rows + tables * tables  # one more than the table before has, and one to begin with
    return [Table("ngram_embeddings", every, width), vector(tables * width * hidden)]


def _streams(f: Fields) -> int:
    return int(f.raw("hc_count")) * f.find("hidden")


def _gate(f: Fields) -> int:
    """A norm of all streams and two narrow matrices."""
    return _streams(f) * (1 + 2 * f.number("hc_lowrank"))
