"""rules/models/*.toml: every family, found by the names in a config.json, with how it reads, what it keeps and what it weighs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import rtoml

from bot.domain.shape import CACHES
from bot.rulebook.family import Family, Field, as_field
from bot.rulebook.load import RulebookError, rules_folder
from bot.rulebook.weights import check, narrowed, unlike

GENERAL = "any"
"""The family whose file says what holds for every one unless its own file says otherwise."""


class UnknownArchitecture(ValueError):
    """No file in rules/models knows this architecture; the message names it and says what to do."""


class Known(NamedTuple):
    """A family, and the name in config.json that it was found by: an architecture, or a model_type where that stands for none."""

    family: Family
    name: str


@dataclass(frozen=True, slots=True)
class Models:
    """All families, each complete with what is general. `by_architecture`, `by_type`: the family of a name in config.json."""

    families: Mapping[str, Family]
    by_architecture: Mapping[str, str]
    by_type: Mapping[str, str]
    general: Mapping[str, Any]
    """The [weights] of every one."""

    def find(self, config: Mapping[str, Any]) -> Known:
        """The family of a config: by its architectures, or where it names none by its model_type. Raises UnknownArchitecture."""
        names = [str(name) for name in config.get("architectures") or []]
        for name in names:
            if name in self.by_architecture:
                return Known(self.families[self.by_architecture[name]], name)
        kind = str(config.get("model_type") or "")
        if not names and kind in self.by_type:
            family = self.families[self.by_type[kind]]
            implied = "".join(piece.capitalize() for piece in kind.split("_")) + "ForCausalLM"
            return Known(family, implied if implied in family.architectures else kind)
        raise UnknownArchitecture(_unknown(", ".join(names) or kind, len(self.by_architecture)))

    def weights(self, outer: Known, inner: Known, version: str, gpu: str = "") -> Mapping[str, Any]:
        """The [weights] of a model for one engine version and GPU; `inner`: its language model, where that is of another family."""
        tables = [(self.general, outer.name), (outer.family.weights, outer.name)]
        if inner.family is not outer.family:
            tables.insert(1, (inner.family.weights, inner.name))
        laid: dict[str, Any] = {}
        for table, name in tables:
            laid |= narrowed(table, version, gpu, name)
        return laid


def _unknown(said: str, known: int) -> str:
    if not said:
        return "config.json names neither `architectures` nor a known `model_type`; give the model's own config.json"
    return (
        f"the architecture {said} is not in rules/models ({known} architectures are known), so its cache cannot be planned; "
        "a file for its family teaches it"
    )


@cache
def load_models(folder: Path | None = None) -> Models:
    """The families of a rules folder; RulebookError with all their problems when they are broken."""
    problems: list[str] = []
    files = sorted(((folder or rules_folder()) / "models").glob("*.toml"))
    read = {path.stem: one for path in files if (one := _parse(path, problems)) is not None}
    problems += unlike({name: one.weights for name, one in read.items()})
    general = read.pop(GENERAL, None) or Family(GENERAL)
    problems += [f"{GENERAL}.toml: {problem}" for problem in check(general.weights)]
    families = {name: _complete(one, general) for name, one in read.items()}
    problems += [f"{name}.toml: {problem}" for name, one in families.items() for problem in _check(one, name)]
    by_architecture = _index(families, "architectures", problems)
    by_type = _index(families, "model_types", problems)
    if problems:
        raise RulebookError(f"models/{problem}" for problem in problems)
    return Models(families, by_architecture, by_type, general.weights)


def _parse(path: Path, problems: list[str]) -> Family | None:
    try:
        said = rtoml.load(path)
        one = msgspec.convert(said, Family)
    except ValueError as error:
        problems.append(f"{path.name}: {error}")
        return None
    if "weights" not in said and one.family != GENERAL and not one.by_device:
        problems.append(f"{path.name}: a family needs [weights], be it empty: plain attention and a gated feed-forward")
    return one


def _complete(one: Family, general: Family) -> Family:
    """The family with general fields, kinds and layer readers where it has none of its own."""
    fields = {name: as_field(value) for name, value in {**general.fields, **one.fields}.items()}
    kinds = {**general.kinds, **one.kinds}
    return msgspec.structs.replace(one, fields=fields, kinds=kinds, layers=one.layers or general.layers, weights=_with_head_size(one))


def _with_head_size(one: Family) -> dict[str, Any]:
    """[weights] with the head's size where config.json is silent, as [fields] has it for the cache."""
    said = one.fields.get("head_dim")
    if not isinstance(said, Field) or said.key != ["head_dim"] or said.default is None:
        return one.weights
    return {**one.weights, "defaults": {"head_dim": said.default, **one.weights.get("defaults", {})}}


def _check(one: Family, name: str) -> Iterable[str]:
    if one.family != name:
        yield f"family = {one.family!r}: a file is called like its family"
    for kind, caches in one.kinds.items():
        yield from (f"kinds.{kind}: {problem}" for said in caches for problem in _check_cache(said, one))
    for number, rule in enumerate(one.layers, 1):
        if not rule.reader:
            yield f"layers #{number}: name exactly one of all, list, letters, every, indices, blocks"
        yield from (f"layers #{number}: there is no kind {kind!r}" for kind in sorted(rule.kinds - one.kinds.keys()))
    for method, behind in (("mtp", one.mtp), ("dspark", one.dspark)):
        if behind and behind.kind not in {"listed", *one.kinds}:
            yield f"{method}: there is no kind {behind.kind!r}"
    if not (one.architectures or one.model_types):
        yield "a family needs architectures or model_types"
    yield from check(one.weights)


def _check_cache(said: Mapping[str, Any], one: Family) -> Iterable[str]:
    kind = CACHES.get(str(said.get("cache")))
    if kind is None:
        yield f"there is no cache {said.get('cache')!r}; known: {', '.join(CACHES)}"
        return
    allowed = {field.name for field in fields(kind)}
    for name, value in said.items():
        if name != "cache" and name not in allowed:
            yield f"{said['cache']} has no {name!r}; it has {', '.join(sorted(allowed))}"
        elif name not in {"cache", "element"} and isinstance(value, str) and value not in one.fields:
            yield f"{name} = {value!r} is not one of [fields]"


def _index(families: Mapping[str, Family], what: str, problems: list[str]) -> dict[str, str]:
    index: dict[str, str] = {}
    for name, one in families.items():
        for value in getattr(one, what):
            if value in index:
                problems.append(f"{name}.toml: {value} is claimed by {index[value]} too")
            index[value] = name
    return index
