"""Which stored incidents are like one that is being diagnosed, and how they are shown. Standard library only: the short way asks too."""

from collections.abc import Mapping
from typing import Any

from bot.store.numbers import label, stamp

NEAREST = (("phase", "family", "gpu"), ("phase", "family"), ("phase", "gpu"))
"""What must be the same, the nearest first."""

CANDIDATES = 60  # newest of each kind of nearness
MOST_SIMILAR, MOST_TRIED = 5, 50  # that are given
_MINOR = 10_000 * 100 * 10 * 1000  # one minor version in `version_sort`
_SHOWN = ("outcome", "remedy", "flag", "direction", "value", "phase", "model", "family", "gpu", "tp")


def distance(asked: Mapping[str, Any], row: Mapping[str, Any]) -> tuple[int, bool, int]:
    """A sort key: how much differs, then with an outcome before without, then newest first."""
    differs = sum(weight for field, weight in (("family", 4), ("gpu", 2), ("tp", 1)) if asked[field] != row[field])
    both = asked["version_sort"], row["version_sort"]
    apart = 3 if None in both else min(3, abs(both[0] - both[1]) // _MINOR)
    return differs + apart, row["outcome"] is None, -row["key"]


def shown(row: Mapping[str, Any]) -> dict[str, Any]:
    """An incident's row as an entry of `similar`."""
    return {"id": label(row["number"]), **{name: row[name] for name in _SHOWN}, "engine_version": row["version"], "at": stamp(row["key"])}


def tried(incident: Mapping[str, Any], trial: Mapping[str, Any]) -> dict[str, Any]:
    """A trial that has a result, as a precedent."""
    change = {name: trial[name] for name in ("phase", "remedy", "flag", "direction", "value")}
    return {**shown(incident), **change, "outcome": trial["result"]}
