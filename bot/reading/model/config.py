"""config.json -> ModelShape; the only place that interprets one."""

from collections.abc import Mapping
from typing import Any

from bot.domain.shape import CACHES, Cache, ModelShape
from bot.reading.model.kv_settings import kv_dtype_of, kv_scheme_of
from bot.reading.model.layers import layer_kinds, layer_rule, mtp_kinds, per_block
from bot.reading.model.numbers import MOST_LAYERS, Config
from bot.reading.model.resolved import resolve
from bot.rulebook.family import Family, LayerRule
from bot.rulebook.models import Models

DEFAULTS: Mapping[str, Mapping[str, str]] = {"heads": {"kv_heads": "kv_heads", "key_dim": "head_dim", "value_dim": "value_dim"}}
"""What a cache reads when its family does not say."""
OPTIONAL = frozenset({"bounded"})
"""What a cache may be without."""


class UnknownDraft(ValueError):
    """We do not know how this model drafts; the message names it."""


GENERATIONS = tuple(str(major) for major in range(7, 16))
"""Major numbers of CUDA's compute capability that a family may have a file of its own for."""


def read_shape(raw: Mapping[str, Any], models: Models, hf_quant_config: Mapping[str, Any] | None = None, compute: str = "") -> ModelShape:
    """The shape of the model that `raw`, a parsed config.json, describes. `compute`: of the device, where caches depend on it.

    Raises UnknownArchitecture, or MissingField when a field that decides is absent; both messages name it.
    """
    found = resolve(raw, models)
    text, architecture = found.text, found.architecture
    family = _on_device(found.inner.family, architecture, models, compute)
    config = Config(text, raw, family, architecture)
    rule = layer_rule(config, family)
    layers = per_block(config, rule.blocks) if rule.blocks else _layers(config, family, rule)
    return ModelShape(
        family=family.family,
        architecture=architecture,
        layers=layers,
        heads=config.need("heads"),
        hidden=config.count("hidden"),
        vocab=config.get("vocab") or 0,
        max_positions=config.positions(),
        dtype=config.dtype(),
        intermediate=config.get("intermediate") or 0,
        experts=config.get("experts") or 0,
        experts_per_token=config.get("experts_per_token") or 0,
        expert_intermediate=config.get("expert_intermediate") or 0,
        kv_dtype=kv_dtype_of(raw, text, hf_quant_config) or family.traits.kv_dtype,
        kv_scheme=kv_scheme_of(raw, text),
        state_dtype=config.word(family.traits.state_dtype),
        packed=family.traits.packed,
        pipeline=family.traits.pipeline,
        encoder_tokens=config.get("encoder_tokens") or 0,
        fixed_block=family.traits.block,
        state_chunk=config.get("state_chunk") or 0,
        sparse=family.traits.sparse,
        shared_layers=config.need(rule.shared) if rule.shared else 0,
    )


def read_own_draft(raw: Mapping[str, Any], models: Models, method: str, target: ModelShape) -> tuple[tuple[Cache, ...], ...]:
    """What the layers keep that predict further tokens; none where the file has none. UnknownDraft where the family says nothing.

    `method`: mtp or dspark. `target`: the model itself.
    """
    found, family = resolve(raw, models), models.families[target.family]
    text, architecture = found.text, found.architecture
    behind = family.mtp if method == "mtp" else family.dspark
    if behind is None:
        raise UnknownDraft(f"no file in rules/models says how {architecture} predicts further tokens ({method})")
    config = Config(text, raw, family, architecture)
    said = next((value for key in behind.layers if isinstance(value := config.raw(key), int)), behind.default)
    count = min(said or 0, behind.most or MOST_LAYERS, MOST_LAYERS)
    for key, known in behind.only.items():
        if config.raw(key) not in (None, known):
            raise UnknownDraft(
                f"{key} is {config.raw(key)!r} in config.json of {architecture}; we know how further tokens come of {known!r}"
            )
    kinds = mtp_kinds(config, family, count) if behind.kind == "listed" else [behind.kind] * count
    return tuple(tuple(_cache(config, cache) for cache in family.kinds[kind]) for kind in kinds)


def differs_by_device(architecture: str, models: Models, compute: str) -> bool:
    """Whether the model's caches depend on the device, and this one's generation is not known."""
    known = {major for major in GENERATIONS if f"{architecture} on {major}" in models.by_architecture}
    return bool(known) and compute.partition(".")[0] not in known


def _on_device(family: Family, architecture: str, models: Models, compute: str) -> Family:
    """The file for `architecture on 10`, where the devices of that generation keep other records; else the family itself."""
    name = models.by_architecture.get(f"{architecture} on {compute.partition('.')[0]}") if compute else None
    return models.families[name] if name else family


def _layers(config: Config, family: Family, rule: LayerRule) -> tuple[tuple[Cache, ...], ...]:
    kinds = layer_kinds(rule, config)
    caches = {kind: tuple(_cache(config, said) for said in family.kinds[kind]) for kind in set(kinds)}
    return tuple(caches[kind] for kind in kinds)


def _cache(config: Config, said: Mapping[str, Any]) -> Cache:
    name = said["cache"]
    values = {**DEFAULTS.get(name, {}), **{key: value for key, value in said.items() if key != "cache"}}
    read = {key: _value(config, key, value) for key, value in values.items()}
    return CACHES[name](**read)


def _value(config: Config, key: str, value: Any) -> Any:
    if key == "element" or not isinstance(value, str):
        return value
    return config.get(value) if key in OPTIONAL else config.count(value)
