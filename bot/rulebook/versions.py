"""Ranges of vLLM's versions as rules write them (`>=0.18,<0.20`), and which versions lie in one."""

from functools import lru_cache

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version


class UnknownVersion(ValueError):
    """Not a version number; the message says what was given."""


@lru_cache(maxsize=4096)
def holds(spec: str, version: str) -> bool:
    """Whether `version` lies in the range `spec`; a local, pre- or post-release counts as its release. Raises UnknownVersion."""
    return SpecifierSet(spec).contains(release(version), prereleases=True)


@lru_cache(maxsize=256)
def release(version: str) -> str:
    """The plain release of a version: 0.33.0rc1+cu129 -> 0.33.0. Raises UnknownVersion."""
    try:
        return Version(version).base_version
    except InvalidVersion as error:
        raise UnknownVersion(f"{version!r} is not a vLLM version; write it as 0.33.0") from error


def is_range(text: str) -> bool:
    """Is the text a range of versions?"""
    try:
        SpecifierSet(text)
    except InvalidSpecifier:
        return False
    return True
