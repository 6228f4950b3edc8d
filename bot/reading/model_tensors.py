"""config.json of a family -> its tensors, by what the engine's model classes create."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bot.domain.tensors import ModelTensors, Module, Part, Plain, Stretch, Table, whole
from bot.reading import tensor_blocks as blocks
from bot.reading.tensor_fields import Fields
from bot.reading.towers import tower

Modules = tuple[Module, ...]
MIXERS: Mapping[str, Callable[[Fields], Modules]] = {
    "attention": blocks.grouped,
    "attention-without-kv": lambda f: blocks.grouped(f, shared_cache=True),
    "attention-global": blocks.wide_heads,
    "attention-window": blocks.window_heads,
    "attention-indexed": blocks.indexed,
    "attention+mamba2": lambda f: (*blocks.grouped(f), *blocks.mamba2(f)),
    "attention+cross": lambda f: (*blocks.grouped(f), *blocks.grouped(f), blocks.vector(0)),
    "latent": blocks.latent,
    "compressed-latent": lambda f: blocks.compressed_latent(f, 128),
    "compressed-latent-4": lambda f: blocks.compressed_latent(f, 4),
    "window-latent": lambda f: blocks.compressed_latent(f, 1),
    "mamba1": blocks.mamba1,
    "mamba2": blocks.mamba2,
    "gated-delta": blocks.gated_delta,
    "kimi-delta": blocks.kimi_delta,
    "lightning": blocks.lightning,
    "conv": blocks.short_conv,
    "none": lambda f: (),
}
"""What may mix tokens in a layer: the closed set that a family's `mixers` may name."""
FEEDS: Mapping[str, Callable[[Fields], Modules]] = {
    "dense": blocks.feed_forward,
    "experts": blocks.mixture,
    "hashed-experts": blocks.hashed_mixture,
    "none": lambda f: (),
}
"""What may feed forward in a layer."""
EXTRAS: Mapping[str, Callable[[Fields], Modules]] = {
    "laurel": blocks.laurel,
    "per-layer-inputs": blocks.per_layer_inputs,
    "hyper-connections": blocks.hyper_connections,
}
"""What else may stand in every layer."""
DTYPES = {"float32": 4, "float": 4, "bfloat16": 2, "float16": 2, "half": 2}


def read_tensors(config: Mapping[str, Any], rules: Mapping[str, Any], dtype: str = "auto") -> ModelTensors:
    """All tensors of one model. `rules`: the family's [weights], narrowed to one engine version, GPU and architecture.

    MissingField when a field that decides is absent.
    """
    f = Fields(config, rules)
    layers = layer_count(f)
    kinds = list(zip(mixer_kinds(f, layers), feed_kinds(f, layers), indexer_kinds(f, layers), strict=True))
    made: dict[tuple[str, str, bool], Modules] = {}
    for kind in kinds:
        if kind not in made:
            made[kind] = layer(f, *kind)
    stack = named_blocks(f) if f.rule("blocks", "") else tuple(made[kind] for kind in kinds)
    return ModelTensors(stack, tuple(ends(f)), dtype_bytes(f, dtype), bool(f.rule("sharded", True)))


def layer_count(f: Fields) -> int:
    """Layers as the file counts them, else as many as its pattern lists."""
    reader = f.rule("mixers", {})
    listed = f.raw(reader.get("list", "")) or f.raw(reader.get("letters", ""))
    return f.find("layers", len(listed) if listed else None)


def dtype_bytes(f: Fields, dtype: str) -> int:
    """Bytes of an unquantized weight. `auto` makes float32 files float16, as the engine does."""
    if dtype in ("auto", "None", ""):
        return 2
    return DTYPES.get(dtype, 2)


def layer(f: Fields, mixer: str, feed: str, indexed: bool) -> Modules:
    """One decoder layer: what mixes tokens, what feeds forward, and the norms around them."""
    norms = int(f.rule("norms", 2)) * (2 if f.rule("norm_bias", False) else 1)
    extras = [module for name in f.rule("extras", ()) for module in EXTRAS[name](f)]
    index = blocks.indexer(f) if indexed else ()
    return (*MIXERS[mixer](f), *index, *FEEDS[feed](f), *extras, blocks.vector(norms * f.find("hidden")))


def indexer_kinds(f: Fields, layers: int) -> list[bool]:
    """Which layers have an indexer of their own: all that the file gives one, unless it lists those that share another's."""
    if not f.raw("index_n_heads") or f.rule("mixers", {}).get("all") != "latent":
        return [False] * layers
    kinds = pattern(f, f.rule("indexers", {}), layers)
    return [kind == "indexer" for kind in kinds] if kinds else [True] * layers


def named_blocks(f: Fields) -> tuple[Modules, ...]:
    """Nemotron-NAS: each layer says itself what attention and feed-forward it has, if any."""
    hidden, heads = f.find("hidden"), f.find("heads")
    made: dict[tuple[int, int, bool, bool], Modules] = {}
    stack = []
    for block in f.raw(f.rule("blocks")):
        attention, feed = block["attention"], block["ffn"]
        group = int(attention.get("n_heads_in_group") or 0)
        width = nas_width(feed, hidden)
        key = (group, width, bool(attention.get("replace_with_linear")), bool(feed.get("replace_with_linear")))
        if key not in made:
            mixer: Modules = blocks.grouped(f, kv=heads // group) if group else ()
            mixer = (blocks.copied("self_attn.linear_attn", hidden, hidden),) if key[2] else mixer
            dense: Modules = blocks.feed_forward(f, width) if width else ()
            dense = (blocks.copied("mlp.linear_mlp", hidden, hidden),) if key[3] else dense
            made[key] = (*mixer, *dense, blocks.vector((bool(mixer) + bool(dense)) * hidden))
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


def mixer_kinds(f: Fields, layers: int) -> list[str]:
    """What mixes tokens in each layer, from the family's `mixers` reader, else attention everywhere."""
    reader = f.rule("mixers", {"all": "attention"})
    return pattern(f, reader, layers) or [str(reader.get("all", "attention"))] * layers


def pattern(f: Fields, reader: Mapping[str, Any], layers: int) -> list[str] | None:
    """A kind for every layer from the first of a reader's keys that the config has: a list, letters, every n-th, or indices."""
    names: Mapping[str, str] = reader.get("map", {})
    listed = f.raw(reader.get("list", ""))
    if isinstance(listed, list):
        return [names.get(str(word), reader.get("other", "attention")) for word in listed][:layers]
    letters = f.raw(reader.get("letters", ""))
    if isinstance(letters, str):
        return [names.get(letter, "none") for letter in letters][:layers]
    if "every" in reader and (f.raw(reader["every"]) or "default" in reader):
        every = int(f.raw(reader["every"], reader.get("default")))
        offset = int(f.raw(reader.get("offset", ""), every - 1))
        return [reader["then"] if i % every == offset else reader["else"] for i in range(layers)]
    if "below" in reader and (f.raw(reader["below"]) is not None or "default" in reader):
        first = int(f.raw(reader["below"], reader.get("default")))
        return [reader["then"] if i < first else reader["else"] for i in range(layers)]
    if "last" in reader and (f.raw(reader["last"]) is not None or "default" in reader):
        last = layers - int(f.raw(reader["last"], reader.get("default")))
        return [reader["then"] if i >= last else reader["else"] for i in range(layers)]
    if "ones" in reader and f.raw(reader["ones"]):
        within = f.raw(reader["ones"])
        return [reader["then"] if i + 1 in within else reader["else"] for i in range(layers)]
    indices = f.raw(reader.get("indices", ""))
    if isinstance(indices, list):
        return [reader["then"] if i in indices else reader["else"] for i in range(layers)]
    return None


def feed_kinds(f: Fields, layers: int) -> list[str]:
    """Which layers are dense, which mix experts, which have none."""
    reader = f.rule("feeds", {})
    found = pattern(f, reader, layers)
    if found:
        return found
    if "all" in reader:
        return [str(reader["all"])] * layers
    if not f.rule("experts", False) or f.find("experts", 0) <= 1:
        return ["dense"] * layers
    sparse = sparse_layers(f, layers)
    return ["experts" if i in sparse else "dense" for i in range(layers)]


def sparse_layers(f: Fields, layers: int) -> set[int]:
    """Indices of the layers with experts, by whichever of the known keys the file has."""
    listed = f.raw("mlp_layer_types")
    if isinstance(listed, list):
        return {i for i, word in enumerate(listed) if word in ("sparse", "moe")}
    frequency = f.raw("moe_layer_freq")
    if isinstance(frequency, list):
        return {i for i, on in enumerate(frequency) if on}
    chosen = _enumerated(f.raw("moe_layers_enum") or f.raw("moe_layers"))
    if chosen is not None:
        return chosen
    first = int(f.raw("first_k_dense_replace", f.raw("moe_layer_start_index", f.raw("num_dense_layers", 0))))
    step = int(frequency or f.raw("decoder_sparse_step") or f.raw("interleave_moe_layer_step") or f.raw("moe_layer_interval") or 1)
    dense = set(f.raw("mlp_only_layers") or ())
    if f.raw("expert_layer_period"):
        period, offset = int(f.raw("expert_layer_period")), int(f.raw("expert_layer_offset", 0))
        return {i for i in range(layers) if i % period == offset}
    if f.raw("decoder_sparse_step") or f.raw("interleave_moe_layer_step") or f.raw("moe_layer_interval"):
        return {i for i in range(first, layers) if (i + 1) % step == 0 and i not in dense}
    return {i for i in range(first, layers) if i % step == 0 and i not in dense}


def _enumerated(value: Any) -> set[int] | None:
    if isinstance(value, str) and value:
        return {int(piece) for piece in value.split(",")}
    return {int(v) for v in value} if isinstance(value, Sequence) and value else None


def ends(f: Fields) -> list[Stretch]:
    """What stands before and after the layers: embeddings, positions, final norm, output table, towers."""
    hidden, vocab = f.find("hidden"), f.find("vocab")
    table = Table("embed_tokens", vocab, hidden, "whole" if f.rule("embedding_whole", False) else "split")
    tied = bool(f.raw("tie_word_embeddings", f.rule("tied", False)))
    everywhere = bool(f.rule("embeddings_everywhere", False))
    final = blocks.vector(hidden * (2 if f.rule("norm_bias", False) else 1) * int(f.rule("final_norms", 1)))
    stretches = [
        Stretch("every" if everywhere else "first", (table, *before(f))),
        Stretch("last", (final, *after(f))),
        Stretch("every", tuple(rotary(f))),
        Stretch(f.rule("tower_stages", "every"), tuple(tower(f)), encoder=True),
    ]
    if not tied:
        stretches.append(Stretch("every" if everywhere else "last", (Table("lm_head", vocab, hidden, head=True),)))
    if (tied or f.rule("embedding_last", False)) and not everywhere:
        stretches.append(Stretch("last of several", (table,)))
    return stretches


def before(f: Fields) -> list[Module]:
    """Learned positions, token types, per-layer embeddings, residual streams: whatever else the first stage holds."""
    hidden = f.find("hidden")
    made: list[Module] = []
    if f.rule("positions", "rope") == "learned":
        made.append(blocks.vector((f.find("positions") + int(f.rule("positions_extra", 0))) * hidden))
    if f.raw("type_vocab_size"):
        made.append(blocks.vector(int(f.raw("type_vocab_size")) * hidden))
    width = int(f.raw("hidden_size_per_layer_input", 0))
    if width and "per-layer-inputs" in f.rule("extras", ()):
        every = width * f.find("layers")
        made.append(Table("embed_tokens_per_layer", int(f.raw("vocab_size_per_layer_input", f.find("vocab"))), every))
        made += [blocks.column(("per_layer_model_projection",), hidden, Part(every)), blocks.vector(width)]
    if "laurel" in f.rule("extras", ()):
        made += [blocks.column(("altup_projections",), hidden, Part(hidden))] * (2 * (int(f.raw("altup_num_inputs", 4)) - 1))
    return made


def after(f: Fields) -> list[Module]:
    """What else the last stage holds: the mixing of residual streams into one."""
    if "hyper-connections" not in f.rule("extras", ()):
        return []
    streams = int(f.raw("hc_mult", 4))
    return [blocks.vector(streams * streams * f.find("hidden") + streams + 1, 4)]


def rotary(f: Fields) -> list[Plain]:
    """The tables of rotary positions, each shared by all layers of a stage that turn alike."""
    if f.rule("positions", "rope") != "rope" or not f.rule("rotary_table", True):
        return []
    rows, whole_heads = rotary_rows(f), bool(f.rule("rotary_whole", False))
    told = [int(f.raw(key)) for key in f.rule("rotary_dims", [])]
    if told:
        dims = [dim if whole_heads else int(dim * partial(f)) for dim in told]
    else:
        dims = [int(f.raw("qk_rope_head_dim") or f.raw("rotary_dim") or blocks.head_dim(f) * partial(f))]
    return [Plain((whole(rows), whole(dim)), f.rule("rotary_bytes"), "rotary positions") for dim in dims]


def rotary_rows(f: Fields) -> int:
    """Positions in the table: the model's own limit, stretched by YaRN; four times for sections of several axes in one table."""
    scaling = f.raw("rope_scaling") or f.raw("rope_parameters") or {}
    positions = int(f.raw(f.rule("positions_key", ""), 0)) or f.find("positions", 2048)
    if (scaling.get("rope_type") or scaling.get("type")) == "yarn":
        positions = int(int(scaling.get("original_max_position_embeddings") or positions) * float(scaling.get("factor", 1)))
    if scaling.get("mrope_section"):
        return positions * int(
            f.rule("rotary_interleaved_times", 1) if scaling.get("mrope_interleaved") else f.rule("rotary_sections_times", 4)
        )
    return positions


def partial(f: Fields) -> float:
    """The share of a head that is turned."""
    scaling = f.raw("rope_scaling") or f.raw("rope_parameters") or {}
    told = f.raw("partial_rotary_factor", scaling.get("partial_rotary_factor", f.raw("rotary_pct")))
    return float(f.rule("partial", 1.0) if told is None else told)
