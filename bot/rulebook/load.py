"""Reads rules/*.toml into one Rulebook; a broken file stops it with every problem at once."""

import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import rtoml

from bot.rulebook import files
from bot.rulebook.book import Rulebook

_Shape = TypeVar("_Shape", bound=msgspec.Struct)
OTHER_READERS = (
    "models",
    "gpus.toml",
    "model-names.toml",
    "architectures.toml",
    "sizing-words.toml",
    "accounting/planner.toml",
    "accounting/overheads.toml",
)
"""Parts of the folder that other modules of this room read; their shapes stand there."""


class RulebookError(Exception):
    """Every problem of the rule files, each with file and rule."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("the rulebook is broken:\n" + "\n".join(f"  {p}" for p in self.problems))


def rules_folder() -> Path:
    """Where the rules stand: inside the installed package, or beside it in a checkout."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "_data" / "rules"
    return installed if installed.is_dir() else package.parent / "rules"


def one_file(name: str, shape: type[_Shape], folder: Path | None) -> _Shape:
    """A file of its own, as one of OTHER_READERS reads it; RulebookError where it is missing, no TOML, or of another shape."""
    try:
        return msgspec.convert(rtoml.load((folder or rules_folder()) / name), shape)
    except (OSError, ValueError) as error:
        raise RulebookError([f"{name}: {error}"]) from error


def rule_files(folder: Path) -> list[Path]:
    """The files this loader reads, in one order on every machine."""
    found = (p for p in folder.rglob("*.toml") if not p.relative_to(folder).as_posix().startswith(OTHER_READERS))
    return sorted(found, key=lambda p: p.relative_to(folder).as_posix())


@cache
def load_rulebook(folder: Path | None = None) -> Rulebook:
    """The Rulebook of a folder; RulebookError with all its problems when it is broken."""
    folder = folder or rules_folder()
    digest = hashlib.sha256()
    problems: list[str] = []
    tables: dict[str, list[Any]] = {table: [] for table in _shapes()}
    homes: dict[str, str] = {}
    for path in rule_files(folder):
        data = path.read_bytes()
        name = path.relative_to(folder).as_posix()
        digest.update(name.encode() + b"\0" + data + b"\0")
        _read_file(name, data, tables, homes, problems)
    if not homes:
        problems.append(f"{folder}: no rule files; the installation is incomplete, install oombot again")
    if problems:
        raise RulebookError(problems)
    held = {field.name: tables[field.encode_name] for field in msgspec.structs.fields(files.Tables)}
    return Rulebook(**held, homes=homes, digest="sha256:" + digest.hexdigest())


@cache
def _shapes() -> dict[str, Any]:
    """The shape of a row of each table."""
    return {field.encode_name: field.type.__args__[0] for field in msgspec.structs.fields(files.Tables)}


def _read_file(name: str, data: bytes, tables: dict[str, list[Any]], homes: dict[str, str], problems: list[str]) -> None:
    try:
        raw = rtoml.loads(data.decode())
    except ValueError as error:
        problems.append(f"{name}: not TOML: {error}")
        return
    shapes = _shapes()
    for table, rows in raw.items():
        if table not in shapes or not isinstance(rows, list):
            problems.append(f"{name}: [[{table}]] is no table of a rule file; known: {', '.join(sorted(shapes))}")
            continue
        for row in rows:
            label = row.get("id") or row.get("name") or row.get("fact") or row.get("flag") or "without id"
            try:
                rule = msgspec.convert(row, shapes[table])
            except msgspec.ValidationError as error:
                problems.append(f"{name}: [[{table}]] {label}: {error}")
                continue
            key = f"{table}:{row['id']}" if "id" in row else ""
            if key and key in homes and table not in ("remedy", "question"):
                problems.append(f"{name}: [[{table}]] {label}: the id is taken by {homes[key]}")
            homes.setdefault(key or f"{name}:{table}", name)
            tables[table].append(rule)
