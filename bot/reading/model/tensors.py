"""config.json of a family -> its tensors, by what the engine's model classes create."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bot.domain.tensors import ModelTensors
from bot.reading.model.tensor_attention import (
    grouped,
    indexed,
    learned_tokens,
    narrow_query,
    picture_attention,
    relative,
    relative_window,
    value_experts,
    wide_heads,
    window_heads,
)
from bot.reading.model.tensor_ends import ends
from bot.reading.model.tensor_extras import delay_scale, hyper_connections, laurel, per_layer_inputs
from bot.reading.model.tensor_feeds import beside_banks, feed_forward, hashed_mixture, mixture
from bot.reading.model.tensor_fields import Fields, plausible_layers
from bot.reading.model.tensor_latent import compressed_latent, indexer, latent
from bot.reading.model.tensor_layers import feed_kinds, indexer_kinds, mixer_kinds
from bot.reading.model.tensor_ngrams import gated_streams, index_query, ngram_notes
from bot.reading.model.tensor_parts import Modules, copied, vector
from bot.reading.model.tensor_recurrent import gated_delta, kimi_delta, lightning, mamba1, mamba2, plamo_mamba, short_conv
from bot.reading.model.tensor_shared import hybrid
from bot.reading.model.towers import tower_notes

MIXERS: Mapping[str, Callable[[Fields], Modules]] = {
    "attention": grouped,
    "attention-without-kv": lambda f: grouped(f, shared_cache=True),
    "attention-global": wide_heads,
    "attention-window": window_heads,
    "attention-value-experts": value_experts,
    "attention-relative": relative,
    "attention-relative-window": relative_window,
    "attention-indexed": indexed,
    "attention-index-query": index_query,
    "attention-narrow-query": narrow_query,
    "attention-learned-tokens": learned_tokens,
    "attention-picture": picture_attention,
    "attention+mamba2": lambda f: (*grouped(f), *mamba2(f)),
    "attention+cross": lambda f: (*grouped(f), *grouped(f), vector(0)),
    "latent": lambda f: grouped(f) if f.raw("kv_lora_rank") is None else latent(f),  # a file without a rank has plain attention
    "latent-indexed": lambda f: (*latent(f), *indexer(f)),
    "twin-latent": lambda f: (*latent(f), *latent(f), *feed_forward(f), *feed_forward(f)),
    "compressed-latent": lambda f: compressed_latent(f, 128),
    "compressed-latent-4": lambda f: compressed_latent(f, 4),
    "window-latent": lambda f: compressed_latent(f, 1),
    "mamba1": mamba1,
    "mamba2": mamba2,
    "shared+mamba2": hybrid,
    "plamo-mamba": plamo_mamba,
    "gated-delta": gated_delta,
    "kimi-delta": kimi_delta,
    "lightning": lightning,
    "conv": short_conv,
    "none": lambda f: (),
}
"""What may mix tokens in a layer: the closed set that a family's `mixers` may name."""


FEEDS: Mapping[str, Callable[[Fields], Modules]] = {
    "dense": feed_forward,
    "experts": mixture,
    "hashed-experts": hashed_mixture,
    "shared-experts": beside_banks,
    "none": lambda f: (),
}
"""What may feed forward in a layer."""


EXTRAS: Mapping[str, Callable[[Fields], Modules]] = {
    "laurel": laurel,
    "per-layer-inputs": per_layer_inputs,
    "hyper-connections": hyper_connections,
    "gated-streams": gated_streams,
    "delay-scale": delay_scale,
}
"""What else may stand in every layer."""


DTYPES = {"float32": 4, "float": 4, "bfloat16": 2, "float16": 2, "half": 2}


def read_tensors(f: Fields, dtype: str = "auto") -> ModelTensors:
    """All tensors of one model. MissingField when a field that decides is absent."""
    layers = layer_count(f)
    kinds = list(zip(mixer_kinds(f, layers), feed_kinds(f, layers), indexer_kinds(f, layers), strict=True))
    made: dict[tuple[str, str, bool], Modules] = {}
    for kind in kinds:
        if kind not in made:
            made[kind] = layer(f, *kind)
    stack = named_blocks(f) if f.rule("blocks", "") else tuple(made[kind] for kind in kinds)
    if isinstance(f.raw(f.rule("heads_by_layer", "")), list):
        stack = headed_layers(f, kinds)
    return ModelTensors(stack, tuple(ends(f)), dtype_bytes(dtype), notes=(*tower_notes(f), *ngram_notes(f)))


def headed_layers(f: Fields, kinds: Sequence[tuple[str, str, bool]]) -> tuple[Modules, ...]:
    """Layers whose query heads the file lists one by one."""
    both = [(kind, int(heads)) for kind, heads in zip(kinds, f.raw(f.rule("heads_by_layer", "")), strict=True)]
    made = {one: layer(f.changed(num_attention_heads=one[1]), *one[0]) for one in set(both)}
    return tuple(made[one] for one in both)


def layer_count(f: Fields) -> int:
    """Layers as the file counts them, else as many as its pattern lists."""
    reader = f.rule("mixers", {})
    listed = f.raw(reader.get("list", "")) or f.raw(reader.get("letters", ""))
    return plausible_layers(f.find("layers", len(listed) if listed else None))


def dtype_bytes(dtype: str) -> int:
    """Bytes of an unquantized weight. `auto` makes float32 files float16, as the engine does."""
    if dtype in ("auto", "None", ""):
        return 2
    return DTYPES.get(dtype, 2)


def layer(f: Fields, mixer: str, feed: str, indexed: bool) -> Modules:
    """One decoder layer: what mixes tokens, what feeds forward, and the norms around them."""
    norms = int(f.rule("norms", 2)) * (2 if f.rule("norm_bias", False) else 1)
    extras = [module for name in f.rule("extras", ()) for module in EXTRAS[name](f)]
    index = indexer(f) if indexed else ()
    return (*MIXERS[mixer](f), *index, *FEEDS[feed](f), *extras, vector(norms * f.find("hidden")))


def named_blocks(f: Fields) -> tuple[Modules, ...]:
    """Nemotron-NAS: each layer says itself what attention and feed-forward it has, if any."""
    hidden, heads = f.find("hidden"), f.find("heads")
    made: dict[tuple[int, int, bool, bool], Modules] = {}
    stack = []
    for block in f.table(f.rule("blocks")):
        attention, feed = block["attention"], block["ffn"]
        group = int(attention.get("n_heads_in_group") or 0)
        width = nas_width(feed, hidden)
        key = (group, width, bool(attention.get("replace_with_linear")), bool(feed.get("replace_with_linear")))
        if key not in made:
            mixer: Modules = grouped(f, kv=heads // group) if group else ()
            mixer = (copied("self_attn.linear_attn", hidden, hidden),) if key[2] else mixer
            dense: Modules = feed_forward(f, width) if width else ()
            dense = (copied("mlp.linear_mlp", hidden, hidden),) if key[3] else dense
            made[key] = (*mixer, *dense, vector((bool(mixer) + bool(dense)) * hidden))
        stack.append(made[key])
    return tuple(stack)


def nas_width(feed: Mapping[str, Any], hidden: int) -> int:
    """Intermediate size of one block: the multiple of 256 at or above 2/3 of `ffn_mult` × hidden; 0 for none.

    Source: vLLM models/nemotron_nas.py.
    """
    if feed.get("no_op") or feed.get("replace_with_linear"):
        return 0
    if feed.get("intermediate_size"):
        return int(feed["intermediate_size"])
    return -(-int(2 * float(feed["ffn_mult"]) * hidden / 3) // 256) * 256
