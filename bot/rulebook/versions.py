"""Ranges of vLLM's versions as rules write them (`>=0.18,<0.20`), which versions lie in one, and which runner a release has."""

from collections.abc import Mapping
from functools import lru_cache

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

RUNNERS: Mapping[str, str] = {"v0": "<0.11", "v1": ">=0.6.4", "v2": ">=0.12"}
"""The releases that have it: the V0 engine, and the V1 engine with model runner V1 or V2."""
USUAL: Mapping[str, str] = {"v0": "<0.8", "v1": ">=0.8,<0.29", "v2": ">=0.29"}
"""The releases that run it where nobody says otherwise."""


class UnknownVersion(ValueError):
    """Not a version number; the message says what was given."""


@lru_cache(maxsize=4096)
def holds(spec: str, version: str) -> bool:
    """Whether `version` lies in the range `spec`; a local build or pre-release counts as its release. Raises UnknownVersion."""
    asked = _parsed(version)
    post = "" if asked.post is None else f".post{asked.post}"
    return SpecifierSet(spec).contains(asked.base_version + post, prereleases=True)


@lru_cache(maxsize=256)
def release(version: str) -> str:
    """The plain release of a version: 0.33.0rc1+cu129 -> 0.33.0. Raises UnknownVersion."""
    return _parsed(version).base_version


def _parsed(version: str) -> Version:
    try:
        return Version(version)
    except InvalidVersion as error:
        raise UnknownVersion(f"{version!r} is not a vLLM version; write it as 0.33.0") from error


def is_range(text: str) -> bool:
    """Is the text a range of versions?"""
    try:
        SpecifierSet(text)
    except InvalidSpecifier:
        return False
    return True


def oldest(spec: str) -> str | None:
    """The version that a range begins with; None where it has no such end."""
    return next((one.version for one in SpecifierSet(spec) if one.operator == ">="), None)


def meet(one: str, other: str) -> bool:
    """Do two ranges of versions share one? Then the beginning of one of them lies in the other."""
    return holds(one, oldest(other) or "0") or holds(other, oldest(one) or "0")
