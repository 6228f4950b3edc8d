"""Which kind of layer stands where, by the family's readers and the config's own lists."""

from collections.abc import Mapping, Sequence
from typing import Any

from bot.reading.model.layers import by_name
from bot.reading.model.tensor_fields import Fields


def pattern(f: Fields, reader: Mapping[str, Any], layers: int) -> list[str] | None:
    """A kind for every layer from the first of a reader's keys that the config has: a list, letters, every n-th, or indices."""
    names: Mapping[str, str] = reader.get("map", {})
    listed = f.raw(reader.get("list", ""))
    if isinstance(listed, list):
        return [by_name(names, str(word)) or reader.get("other", "attention") for word in listed][:layers]
    letters = f.raw(reader.get("letters", ""))
    if isinstance(letters, str):
        return [names.get(letter, "none") for letter in letters][:layers]
    if "every" in reader and (f.raw(reader["every"]) or "default" in reader):
        every = int(f.raw(reader["every"], reader.get("default")))
        offset = every // 2 if reader.get("middle") else int(f.raw(reader.get("offset", ""), every - 1))
        whole = layers - layers % every if "rest" in reader else layers
        return [reader["rest"] if i >= whole else reader["then"] if i % every == offset else reader["else"] for i in range(layers)]
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


def mixer_kinds(f: Fields, layers: int) -> list[str]:
    """What mixes tokens in each layer, from the family's `mixers` reader, else attention everywhere."""
    reader = f.rule("mixers", {"all": "attention"})
    return pattern(f, reader, layers) or [str(reader.get("all", "attention"))] * layers


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
        period, offset = f.number("expert_layer_period"), int(f.raw("expert_layer_offset", 0))
        return {i for i in range(layers) if i % period == offset}
    if f.raw("decoder_sparse_step") or f.raw("interleave_moe_layer_step") or f.raw("moe_layer_interval"):
        return {i for i in range(first, layers) if (i + 1) % step == 0 and i not in dense}
    return {i for i in range(first, layers) if i % step == 0 and i not in dense}


def _enumerated(value: Any) -> set[int] | None:
    if isinstance(value, str) and value:
        return {int(piece) for piece in value.split(",")}
    return {int(v) for v in value} if isinstance(value, Sequence) and value else None


def indexer_kinds(f: Fields, layers: int) -> list[bool]:
    """Which layers have an indexer of their own: all that the file gives one, unless it lists those that share another's."""
    if not f.raw("index_n_heads") or f.rule("mixers", {}).get("all") != "latent":
        return [False] * layers
    kinds = pattern(f, f.rule("indexers", {}), layers)
    return [kind == "indexer" for kind in kinds] if kinds else [True] * layers
