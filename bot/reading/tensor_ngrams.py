"""Embeddings of several tokens at once, and gated residual streams, as tensors: Qwen 4 and LongCat Flash Lite."""

from bot.domain.tensors import Module, Table
from bot.reading.tensor_attention import grouped
from bot.reading.tensor_fields import Fields, plausible_layers
from bot.reading.tensor_parts import Modules, copied, vector


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


def ngram_notes(f: Fields) -> tuple[str, ...]:
    """Where the table itself is. Source: vllm/config/engram.py, cpu_offload."""
    return ("the table of n-grams (PLE) stays in pinned host memory, as the engine keeps it by itself",) if f.raw("ple_layer_ids") else ()


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
