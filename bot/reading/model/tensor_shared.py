"""Zamba 2: a few transformer blocks that many layers share, with low-rank adapters of each layer's own. Source: vLLM models/zamba2.py."""

from bot.domain.tensors import Part
from bot.reading.model.tensor_fields import Fields
from bot.reading.model.tensor_parts import Modules, column, copied, row, vector
from bot.reading.model.tensor_recurrent import mamba2


def shared_blocks(f: Fields) -> Modules:
    """The blocks, once each: attention and its norm over the layer's input beside the embedding, then a gated feed-forward."""
    hidden, inner = f.find("hidden"), f.find("intermediate")
    wide, head = _attention(f)
    one: Modules = (
        column(tuple(f"self_attn.{name}_proj" for name in "qkv"), wide, head, head, head),
        row("self_attn.o_proj", head, hidden),
        column(("feed_forward.gate_up_proj",), hidden, Part(inner), Part(inner)),
        row("feed_forward.down_proj", Part(inner), hidden),
        vector(3 * hidden),
    )
    return one * f.number("num_mem_blocks")


def hybrid(f: Fields) -> Modules:
    """A layer that passes through a shared block: its adapters, a matrix back into the stream, and its own Mamba-2 mixer."""
    hidden, inner, rank = f.find("hidden"), f.find("intermediate"), int(f.raw("adapter_rank", 128))
    wide, head = _attention(f)
    made: Modules = (copied("linear", hidden, hidden), column(("adapter.0",), hidden, Part(rank)))
    made += (column(("adapter.1",), rank, Part(inner), Part(inner)),)
    if f.raw("use_shared_attention_adapter"):
        made += (column(("q_adapter.0",), wide, Part(rank)), column(("q_adapter.1",), rank, head)) * 3
    return (*made, *mamba2(f))


def _attention(f: Fields) -> tuple[int, Part]:
    """(its input: stream and embedding side by side, all its heads)."""
    heads = f.find("heads")
    wide = int(f.raw("attention_hidden_size", 0)) or 2 * f.find("hidden")
    return wide, Part(heads, int(f.raw("attention_head_dim", 0)) or wide // heads)
