"""rules/model-names.toml: well-known models by the names that people write, with as much of config.json as sizing reads."""

import difflib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from bot.rulebook.load import RulebookError, one_file

FILE = "model-names.toml"
_ENDINGS = re.compile(r"(-(instruct|chat|it|hf|base))+$")


class _Stored(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How checkpoints with these endings are made; as `own` of a model, what its makers changed for them, and why."""

    endings: list[str]
    says: str
    config: str


class _Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    id: str
    names: list[str]
    source: str
    config: str
    own: _Stored | None = None


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    model: list[_Row]
    stored: list[_Stored] = []


@dataclass(frozen=True, slots=True)
class NamedModel:
    """A model on the hub by its id. `source` says where its figures come from; `stored`: how a checkpoint of it is (`awq`).

    `own`: by such an ending, what its makers changed in config.json for that checkpoint, and why.
    """

    id: str
    source: str
    text: str
    stored: str = ""
    own: Mapping[str, tuple[str, str]] = field(default_factory=dict, hash=False)

    @property
    def config(self) -> Mapping[str, Any]:
        """As much of its config.json as sizing reads."""
        return dict(json.loads(self.text))

    @property
    def layers(self) -> int | None:
        """How many layers a pipeline shares out; None where its config.json does not say."""
        config = self.config
        return {**config, **config.get("text_config", {})}.get("num_hidden_layers")


class ModelNames:
    """All named models, looked up by any spelling."""

    def __init__(self, rows: Iterable[_Row], stored: Iterable[_Stored] = ()) -> None:
        self._stored = {ending: one for one in stored for ending in one.endings}
        self._by_key: dict[str, NamedModel] = {}
        self.spellings: dict[str, str] = {}
        for row in rows:
            own = dict.fromkeys(row.own.endings, (row.own.config, row.own.says)) if row.own else {}
            model = NamedModel(row.id, row.source, row.config, own=own)
            for name in (row.id, row.id.split("/")[-1], *row.names):
                self._by_key.setdefault(_key(name), model)
                self.spellings.setdefault(_key(name), name)

    def find(self, name: str) -> NamedModel | None:
        """The model of that name: its hub id, with or without the owner, or a short name; None when there is none.

        A known name with the ending of a quantized checkpoint (`-awq`) is that model with the usual settings of such checkpoints.
        """
        return self._by_key.get(_key(name)) or self._by_key.get(_key(_ENDINGS.sub("", name.lower()))) or self._ended(name)

    def stored_as(self, model: NamedModel, ending: str, name: str = "") -> NamedModel | None:
        """A checkpoint of a model that is stored as an ending says, under a name of its own; None for no such ending, or one quantized."""
        ending = ending.lower()
        ending = f"gptq-{ending}" if f"gptq-{ending}" in model.own else ending  # what its makers call Int4 is GPTQ
        stored = self._stored.get(ending)
        if stored is None or "quantization_config" in model.config:
            return None
        changed, why = model.own.get(ending, ("{}", ""))
        config = json.dumps({**model.config, **json.loads(changed), "quantization_config": json.loads(stored.config)})
        says = f"{model.source}; its weights as usual for {stored.says}{f'; {why}' if why else ''}"
        return NamedModel(name or model.id, says, config, ending)

    def _ended(self, name: str) -> NamedModel | None:
        told = name.lower().replace(" ", "-").replace("_", "-")
        for ending in sorted(self._stored, key=len, reverse=True):
            if told.endswith(("-" + ending, "." + ending)):
                plain = self.find(name[: -len(ending) - 1])
                return plain and self.stored_as(plain, ending, name)
        return None

    def nearest(self, name: str, cutoff: float = 0.72) -> str | None:
        """The known name that a mistyped one resembles most; None when none does. The figures in it (7b, 3.1) must be the same."""
        figures = re.findall(r"\d+", name)
        alike = [key for key, spelling in self.spellings.items() if re.findall(r"\d+", spelling)[: len(figures)] == figures]
        close = difflib.get_close_matches(_key(name), alike, n=1, cutoff=cutoff)
        return self.spellings[close[0]] if close else None


def _key(name: str) -> str:
    return re.sub(r"[^a-z0-9.]", "", name.lower())


@cache
def load_model_names(folder: Path | None = None) -> ModelNames:
    """The named models of a rules folder; RulebookError with every problem when the file is broken."""
    file = one_file(FILE, _File, folder)
    problems = [f"{FILE}: [[model]] {row.id}: {problem}" for row in file.model if (problem := _problem(row))]
    problems += [f"{FILE}: [[stored]] {one.endings}: {problem}" for one in file.stored if (problem := _broken(one.config))]
    problems += [f"{FILE}: [[model]] {row.id}: own: {problem}" for row in file.model if (problem := _not_own(row, file.stored))]
    problems += _taken(file.model)
    if problems:
        raise RulebookError(problems)
    return ModelNames(file.model, file.stored)


def _problem(row: _Row) -> str | None:
    try:
        config = json.loads(row.config)
    except ValueError as error:
        return f"config is not JSON: {error}"
    return None if isinstance(config, dict) and config.get("architectures") else "config names no architectures"


def _broken(config: str) -> str | None:
    try:
        return None if "quant_method" in json.loads(config) else "config names no quant_method"
    except ValueError as error:
        return f"config is not JSON: {error}"


def _not_own(row: _Row, stored: Iterable[_Stored]) -> str | None:
    if row.own is None:
        return None
    known = {ending for one in stored for ending in one.endings}
    if unknown := [ending for ending in row.own.endings if ending not in known]:
        return f"the endings {', '.join(unknown)} are of no [[stored]]"
    try:
        return None if isinstance(json.loads(row.own.config), dict) else "config is no object"
    except ValueError as error:
        return f"config is not JSON: {error}"


def _taken(rows: Iterable[_Row]) -> list[str]:
    owners: dict[str, str] = {}
    clashes = []
    for row in rows:
        for name in (row.id, *row.names):
            owner = owners.setdefault(_key(name), row.id)
            if owner != row.id:
                clashes.append(f"{FILE}: [[model]] {row.id}: the name {name!r} is taken by {owner}")
    return clashes
