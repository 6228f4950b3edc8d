"""rules/models/*.toml: how each family's config.json reads, and what kind of cache each of its layers has."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import rtoml

from bot.domain.shape import CACHES
from bot.rulebook.load import RulebookError, rules_folder

GENERAL = "any.toml"
"""The file with what every family reads unless its own file says otherwise."""


class Field(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a number stands in config.json: the first key that holds one, else a sum, product or quotient, else the default.

    A key may be dotted; the terms of a combination are other fields, or keys. `smallest`: the least of all keys that hold a number.
    """

    key: str | list[str] = ""
    sum: list[str] = []
    product: list[str] = []
    quotient: list[str] = []
    default: int | None = None
    smallest: bool = False

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys, in the order in which they are tried."""
        return tuple([self.key] if isinstance(self.key, str) else self.key) if self.key else ()


class LayerRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One reader of the layer pattern; exactly one of `all`, `list`, `letters`, `every`, `indices`, `below`, `blocks`.

    It is passed over when its key is missing, when a field in `when` has no value (or not the value said), or when one in `unless` has.
    `after`: a field m for `every`; the first m layers are `nth`, and the counting starts behind them. `rest`: what `every` makes of the
    layers behind the last whole stretch of n.
    `list`, `letters`: a key whose items `map` to kinds. `every`: a field n; layer i is `nth` where i mod n = `at` (default n − 1),
    else `others`. `indices`: a key listing the layers that are `nth`. `below`: a field n; the first n layers are `nth`.
    `blocks`: a key with one table per layer, read as Nemotron-NAS writes them. `last`: what the last layer is, whatever the pattern says.
    `among`: a key listing the layers that `list` is read for; the rest are `others`. `first`: the number that the file gives to the first
    layer. `shared`: a field n; the last n layers read the cache of earlier ones.
    """

    all: str = ""
    list: str = ""
    letters: str = ""
    every: str = ""
    indices: str = ""
    below: str = ""
    blocks: str = ""
    map: dict[str, str] = {}
    nth: str = ""
    others: str = ""
    at: int | str | None = None
    after: str = ""
    last: str = ""
    rest: str = ""
    among: str = ""
    first: int = 0
    shared: str = ""
    when: dict[str, Any] = {}
    unless: dict[str, Any] = {}

    @property
    def reader(self) -> str:
        """Which of the readers this is; empty when none or several are named."""
        named = [name for name in ("all", "list", "letters", "every", "indices", "below", "blocks") if getattr(self, name)]
        return named[0] if len(named) == 1 else ""

    @property
    def kinds(self) -> set[str]:
        """The kinds of layer that this rule can give."""
        return {kind for kind in (self.all, self.nth, self.others, self.last, self.rest, *self.map.values()) if kind}


class Example(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A config.json excerpt and the bytes that one request of `length` tokens needs per rank."""

    config: dict[str, Any]
    request_bytes: int
    length: int
    tp: int = 1
    vllm: str = "0.33.0"
    max_num_batched_tokens: int = 8192


class Mtp(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Layers behind the last one that predict further tokens (`mtp`, `dspark`), where a model's own file describes its draft.

    `layers`: keys that may hold their number; `default` where none does. `most`: the engine runs no more of them. `kind`: what each keeps,
    one of [kinds], or `listed` where the file's list of layers goes on with them. `only`: keys whose other values we do not know. How they
    are made as tensors stands in [weights] under the same name.
    """

    kind: str
    layers: list[str] = msgspec.field(default_factory=lambda: ["num_nextn_predict_layers"])
    default: int | None = None
    most: int | None = None
    only: dict[str, Any] = {}


class Word(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a word stands in config.json, and what holds when it does not."""

    key: str = ""
    default: str | None = None


class Traits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the engine does with a family beyond its caches.

    `inside`: keys under which the language model's own config stands. `language`: that config is another family's. `silent`: what such a
    config leaves out, by its model_type.
    `packed`: pages of several sizes lie side by side. `pipeline`: whether the engine's class supports pipeline parallelism.
    `pads_vocabulary`: rows to which the vocabulary is padded before it is split; 0 when it is not split.
    `block`: tokens per block when its kernel fixes one. `sparse`: an indexer picks the tokens. `kv_dtype`: how `auto` keeps its KV cache.
    `state_dtype`: how `auto` keeps recurrent state, when not as the model's own type.
    """

    inside: tuple[str, ...] = ("text_config", "llm_config", "language_config")
    language: bool = False
    silent: dict[str, dict[str, int]] = {}
    packed: bool = False
    pipeline: bool = True
    pads_vocabulary: int = 64
    block: int = 0
    sparse: bool = False
    kv_dtype: str | None = None
    state_dtype: Word = Word()


class Family(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One file, called like the family. `[weights]` is read by bot/rulebook/weights.py."""

    family: str
    architectures: list[str] = []
    model_types: list[str] = []
    sources: list[str] = []
    fields: dict[str, Field | str | int] = {}
    kinds: dict[str, list[dict[str, Any]]] = {}
    layers: list[LayerRule] = []
    traits: Traits = Traits()
    mtp: Mtp | None = None
    dspark: Mtp | None = None
    example: list[Example] = []
    weights: dict[str, Any] = {}


def family_files(folder: Path | None = None) -> list[Path]:
    """A file for each family of a rules folder, and GENERAL."""
    return sorted(((folder or rules_folder()) / "models").glob("*.toml"))


@dataclass(frozen=True, slots=True)
class Models:
    """All families, each complete with what is general. `by_architecture`, `by_type`: the family of a name in config.json."""

    families: Mapping[str, Family]
    by_architecture: Mapping[str, str]
    by_type: Mapping[str, str]


@cache
def load_models(folder: Path | None = None) -> Models:
    """The families of a rules folder; RulebookError with all their problems when they are broken."""
    problems: list[str] = []
    parsed = {path.name: _parse(path, problems) for path in family_files(folder)}
    general = parsed.pop(GENERAL, None) or Family("any")
    families = {name: _complete(one, general) for name, one in parsed.items() if one is not None}
    for name, one in families.items():
        problems += [f"{name}: {problem}" for problem in _check(one)]
        if name != f"{one.family}.toml":
            problems.append(f"{name}: family = {one.family!r}: a file is called like its family")
    by_architecture = _index(families, "architectures", problems)
    by_type = _index(families, "model_types", problems)
    if problems:
        raise RulebookError(f"models/{problem}" for problem in problems)
    return Models({one.family: one for one in families.values()}, by_architecture, by_type)


def _parse(path: Path, problems: list[str]) -> Family | None:
    try:
        return msgspec.convert(rtoml.load(path), Family)
    except ValueError as error:
        problems.append(f"{path.name}: {error}")
        return None


def _complete(one: Family, general: Family) -> Family:
    """The family with general fields, kinds and layer readers where it has none of its own."""
    fields = {name: as_field(value) for name, value in {**general.fields, **one.fields}.items()}
    kinds = {**general.kinds, **one.kinds}
    return msgspec.structs.replace(one, fields=fields, kinds=kinds, layers=one.layers or general.layers)


def as_field(value: Field | str | int) -> Field:
    """A field as the file may abbreviate it: a key, or a number that always holds."""
    if isinstance(value, Field):
        return value
    return Field(key=value) if isinstance(value, str) else Field(default=value)


def _check(one: Family) -> Iterable[str]:
    for kind, caches in one.kinds.items():
        yield from (f"kinds.{kind}: {problem}" for said in caches for problem in _check_cache(said, one))
    for number, rule in enumerate(one.layers, 1):
        if not rule.reader:
            yield f"layers #{number}: name exactly one of all, list, letters, every, indices, below, blocks"
        yield from (f"layers #{number}: there is no kind {kind!r}" for kind in sorted(rule.kinds - one.kinds.keys()))
    for name, behind in (("mtp", one.mtp), ("dspark", one.dspark)):
        if behind and behind.kind not in {"listed", *one.kinds}:
            yield f"{name}: there is no kind {behind.kind!r}"
    if not (one.architectures or one.model_types):
        yield "a family needs architectures or model_types"


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
                problems.append(f"{name}: {value} is claimed by {index[value]} too")
            index[value] = one.family
    return index
