"""Layer patterns as config files write them: a closed set of readers."""

from collections.abc import Mapping, Sequence
from typing import Any

from bot.domain.shape import Cache, Heads
from bot.reading.model.numbers import MOST_LAYERS, Config, MissingField
from bot.rulebook.family import Family, LayerRule

FORMER: Mapping[str, Sequence[str]] = {
    "linear_attention": ("mamba",),
    "full_attention": ("attention",),
    "indexed_attention": ("deepseek_sparse_attention", "qwen_sparse_attention"),
}
"""What a kind of layer was called in files written before transformers renamed it (configuration_utils.py remap_legacy_layer_types)."""


def by_name(names: Mapping[str, str], item: str) -> str | None:
    """What a family's map makes of a layer, whether the file has its present name or its former one; None where neither is there."""
    return next((names[name] for name in (item, *FORMER.get(item, ())) if name in names), None)


def layer_rule(config: Config, family: Family) -> LayerRule:
    """The first rule of the family that applies. Raises MissingField when none does."""
    for rule in family.layers:
        if _applies(rule, config):
            return rule
    raise MissingField(f"config.json of {config.architecture} does not say what kind its layers are")


def _applies(rule: LayerRule, config: Config) -> bool:
    key = rule.list or rule.letters or rule.indices or rule.blocks
    if key and not config.raw(key):
        return False
    if rule.every and not config.get(rule.every):
        return False
    return all(_holds(config, name, wanted) for name, wanted in rule.when.items()) and not any(
        _holds(config, name, wanted) for name, wanted in rule.unless.items()
    )


def _holds(config: Config, name: str, wanted: Any) -> bool:
    """`set`: there is a value; `mixed`: a list with different items; else the very value, or one of a list of values."""
    value = config.get(name) if name in config.family.fields else config.raw(name)
    if wanted == "set":
        return bool(value)
    if wanted == "mixed":
        return isinstance(value, list) and len(set(map(str, value))) > 1
    if isinstance(wanted, Mapping):
        least = wanted.get("at_least")
        return isinstance(value, int | float) and least is not None and value >= least
    return value in wanted if isinstance(wanted, list) else value == wanted


def layer_kinds(rule: LayerRule, config: Config) -> list[str]:
    """The kind of every layer by that rule, after those ahead of the first. Raises MissingField for a layer that it does not know."""
    _plausible(config, config.get("layers"))
    kinds = READERS[rule.reader](rule, config)
    if rule.last:
        kinds[-1:] = [rule.last]
    return [rule.ahead_are] * _plausible(config, config.get(rule.ahead)) + kinds


def _plausible(config: Config, count: int | None) -> int:
    """So many layers, none where the file says nothing; MissingField when no model has as many."""
    if count is not None and not 0 < count <= MOST_LAYERS:
        raise MissingField(f"config.json of {config.architecture} says {count} layers; 1 to {MOST_LAYERS:,} can be planned")
    return count or 0


def mtp_kinds(config: Config, family: Family, count: int) -> list[str]:
    """The kinds of `count` layers behind the last one, where the list of layers goes on with them; else MissingField."""
    rule = layer_rule(config, family)
    listed = [*config.raw(rule.list)[config.need("layers") :], *(config.raw("mtp_layer_types") or ())]
    behind = [str(item) for item in listed][:count]
    if len(behind) < count:
        raise MissingField(
            f"config.json of {config.architecture} lists {len(behind)} of its {count} layers for further tokens in {rule.list}"
        )
    return [_mapped(rule, item, config) for item in behind]


def _all(rule: LayerRule, config: Config) -> list[str]:
    return [rule.all] * config.need("layers")


def _list(rule: LayerRule, config: Config) -> list[str]:
    items = [str(item).lower() if isinstance(item, bool) else str(item) for item in config.raw(rule.list)][: config.get("layers")]
    chosen = set(config.raw(rule.among) or ()) if rule.among else set(range(len(items)))
    return [_mapped(rule, item, config) if layer in chosen else rule.others for layer, item in enumerate(items)]


def _letters(rule: LayerRule, config: Config) -> list[str]:
    return [_mapped(rule, letter, config) for letter in config.raw(rule.letters)]


def _mapped(rule: LayerRule, item: str, config: Config) -> str:
    kind = by_name(rule.map, item) or rule.map.get("else")
    if kind is None:
        key = rule.list or rule.letters
        raise MissingField(f"config.json of {config.architecture} has a layer {item!r} in {key} that rules/models does not know")
    return kind


def _every(rule: LayerRule, config: Config) -> list[str]:
    step, layers = config.need(rule.every), config.need("layers")
    at = step - 1 if rule.at is None else config.need(rule.at) if isinstance(rule.at, str) else rule.at
    first = config.need(rule.after) if rule.after else 0
    kinds = [rule.nth if layer < first or (layer - first) % step == at else rule.others for layer in range(layers)]
    whole = (layers - first) // step * step + first
    return [*kinds[:whole], *[rule.rest] * (layers - whole)] if rule.rest else kinds


def _indices(rule: LayerRule, config: Config) -> list[str]:
    listed = {int(item) - rule.first for item in config.raw(rule.indices)}
    return [rule.nth if layer in listed else rule.others for layer in range(config.need("layers"))]


READERS = {"all": _all, "list": _list, "letters": _letters, "every": _every, "indices": _indices}


def per_block(config: Config, key: str) -> tuple[tuple[Cache, ...], ...]:
    """Layers whose attention is described one by one: query heads per KV head, or no attention at all (Nemotron-NAS)."""
    return tuple(_block_caches(config, block.get("attention") or {}) for block in config.raw(key))


def _block_caches(config: Config, attention: Mapping[str, Any]) -> tuple[Cache, ...]:
    if attention.get("no_op") or attention.get("replace_with_linear"):
        return ()
    shared_by = attention.get("n_heads_in_group")
    if not shared_by:
        raise MissingField(f"config.json of {config.architecture} has an attention block without n_heads_in_group")
    return (Heads(config.count("heads") // shared_by, config.need("head_dim"), config.need("head_dim")),)
