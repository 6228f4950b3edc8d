"""rules/architectures.toml: which releases of vLLM have a class of their own for an architecture."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec
from packaging.version import InvalidVersion, Version

from bot.rulebook.load import RulebookError, one_file
from bot.rulebook.versions import release

FILE = "architectures.toml"


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    last: dict[str, list[str]]
    not_yet: dict[str, list[str]]


@dataclass(frozen=True, slots=True)
class Architectures:
    """By architecture: the last release with a class for it, and the newest of those looked at that had none yet."""

    last: Mapping[str, str]
    not_yet: Mapping[str, str]

    def doubt(self, architecture: str, version: str) -> str | None:
        """A sentence where `version` has no class of its own for the architecture; None where it has, or nobody looked."""
        asked = Version(release(version))
        last, missing = self.last.get(architecture), self.not_yet.get(architecture)
        if last is not None and asked > Version(last):
            why = f"{last} was the last that had"
        elif missing is not None and asked <= Version(missing):
            why = f"{missing} had none yet"
        else:
            return None
        return f"{architecture} has no class of its own in vLLM {version} ({why}): the engine refuses it unless transformers can run it"


@cache
def load_architectures(folder: Path | None = None) -> Architectures:
    """The architectures of a rules folder; RulebookError with every problem when the file is broken."""
    file = one_file(FILE, _File, folder)
    problems = [f"{FILE}: {version!r} is no release" for version in (*file.last, *file.not_yet) if not _is_release(version)]
    if problems:
        raise RulebookError(problems)
    return Architectures(_by_name(file.last), _by_name(file.not_yet))


def _by_name(listed: Mapping[str, list[str]]) -> dict[str, str]:
    return {name: version for version, names in listed.items() for name in names}


def _is_release(text: str) -> bool:
    try:
        return bool(Version(text))
    except InvalidVersion:
        return False
