"""config.json of a family -> its tensors, by what the engine's model classes create."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bot.domain.tensors import ModelTensors, Module, Plain, Stretch, Table, whole
from bot.reading import tensor_blocks as blocks
from bot.reading.tensor_fields import Fields
from bot.reading.towers import tower

Modules = tuple[Module, ...]
MIXERS: Mapping[str, Callable[[Fields], Modules]] = {
    "attention": blocks.grouped,
    "latent": blocks.latent,
    "mamba1": blocks.mamba1,
    "mamba2": blocks.mamba2,
    "gated-delta": blocks.gated_delta,
    "conv": blocks.short_conv,
    "attention+mamba2": lambda f: (*blocks.grouped(f), *blocks.mamba2(f)),
    "none": lambda f: (),
}
FEEDS: Mapping[str, Callable[[Fields], Modules]] = {"dense": blocks.feed_forward, "experts": blocks.mixture, "none": lambda f: ()}
DTYPES = {"float32": 4, "float": 4, "bfloat16": 2, "float16": 2, "half": 2}


def read_tensors(config: Mapping[str, Any], rules: Mapping[str, Any], dtype: str = "auto") -> ModelTensors:
    """All tensors of one model. `rules`: the family's file, its [weights] already narrowed to one engine version.

    MissingField when a field that decides is absent.
    """
    f = Fields(config, rules)
    layers = f.find("layers")
    mixers, feeds = mixer_kinds(f, layers), feed_kinds(f, layers)
    made: dict[tuple[str, str], Modules] = {}
    for kind in zip(mixers, feeds, strict=True):
        if kind not in made:
            made[kind] = layer(f, *kind)
    return ModelTensors(
        tuple(made[kind] for kind in zip(mixers, feeds, strict=True)),
        tuple(ends(f)),
        dtype_bytes(f, dtype),
        bool(f.rule("sharded", True)),
    )


def dtype_bytes(f: Fields, dtype: str) -> int:
    """Bytes of an unquantized weight. `auto` makes float32 files float16, as the engine does."""
    if dtype in ("auto", "None", ""):
        return 2
    return DTYPES.get(dtype, 2)


def layer(f: Fields, mixer: str, feed: str) -> Modules:
    """One decoder layer: what mixes tokens, what feeds forward, and the norms around them."""
    hidden = f.find("hidden")
    norms = int(f.rule("norms", 2)) * (2 if f.rule("norm_bias", False) else 1)
    extra = blocks.indexer(f) if mixer == "latent" and f.raw("index_n_heads") else ()
    return (*MIXERS[mixer](f), *extra, *FEEDS[feed](f), blocks.vector(norms * hidden))


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
    """What stands before and after the layers: embeddings, positions, final norm, output table."""
    hidden, vocab = f.find("hidden"), f.find("vocab")
    table = Table("embed_tokens", vocab, hidden, "whole" if f.rule("embedding", "split") == "whole" else "split")
    tied = bool(f.raw("tie_word_embeddings", f.rule("tied", False)))
    first: list[Module] = [table]
    if f.rule("positions", "rope") == "learned":
        first.append(Plain((whole(f.find("positions") + int(f.rule("positions_extra", 0))), whole(hidden)), name="positions"))
    final = blocks.vector(hidden * (2 if f.rule("norm_bias", False) else 1) * int(f.rule("final_norms", 1)))
    head = Table("lm_head", vocab, hidden, head=True)
    copies = f.rule("embeddings_everywhere", False)
    stretches = [
        Stretch("every" if copies else "first", tuple(first)),
        Stretch("last", (final,)),
        Stretch("every", tuple(rotary(f))),
        Stretch(f.rule("tower_stages", "every"), tuple(tower(f)), encoder=True),
    ]
    if tied:
        return [*stretches, Stretch("last of several", (table,))]
    return [*stretches, Stretch("every" if copies else "last", (head,))]


def rotary(f: Fields) -> list[Plain]:
    """The tables of rotary positions, each shared by all layers of a stage that turn alike."""
    if f.rule("positions", "rope") != "rope" or not f.rule("rotary_table", True):
        return []
    dims = [int(f.raw(key)) for key in f.rule("rotary_dims", [])] or [int(f.raw("qk_rope_head_dim") or blocks.head_dim(f))]
    return [Plain((whole(rotary_rows(f)), whole(int(dim * partial(f)))), f.rule("rotary_bytes"), "rotary positions") for dim in dims]


def rotary_rows(f: Fields) -> int:
    """Positions in the table: the model's own limit, stretched by YaRN; four times for sections of several axes in one table."""
    scaling = f.raw("rope_scaling") or f.raw("rope_parameters") or {}
    positions = f.find("positions", 2048)
    if (scaling.get("rope_type") or scaling.get("type")) == "yarn":
        positions = int(int(scaling.get("original_max_position_embeddings") or positions) * float(scaling.get("factor", 1)))
    if scaling.get("mrope_section"):
        return positions * int(f.rule("rotary_interleaved_times", 1) if scaling.get("mrope_interleaved") else f.rule("rotary_sections_times", 4))
    return positions


def partial(f: Fields) -> float:
    """The share of a head that is turned."""
    scaling = f.raw("rope_scaling") or f.raw("rope_parameters") or {}
    told = f.raw("partial_rotary_factor", scaling.get("partial_rotary_factor", f.raw("rotary_pct")))
    return float(f.rule("partial", 1.0) if told is None else told)
