"""What a diagnosis document says, as columns to search by, as figures for sizing, and as words to count."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bot.store.numbers import version_sort
from bot.store.packed import plain

COUNTED = ("phase", "verdict", "engine", "version", "model", "family", "gpu", "tp", "rank", "error_kind", "remedy", "flag", "outcome")
"""Single-valued columns whose values are counted in rollups and can be asked for; `rule` and `channel` besides."""

FIGURES = (
    "weights_bytes", "activation_peak_bytes", "non_torch_bytes", "consumed_bytes",
    "graph_bytes", "graph_estimate_bytes", "kv_cache_bytes", "total_bytes",
)  # fmt: skip

_SIZE = re.compile(r"\d+(\.\d+)?[bmt]|a\d+(\.\d+)?b|\d+x\d+(\.\d+)?b|e\d+", re.IGNORECASE)
_HUB_CACHE = re.compile(r"(?:^|/)models--[^/]+?--([^/]+)")
_MOST_NAME = 200  # characters; PostgreSQL's index row ends at 2.7 KB
_MOST_RULES = 500
_MOST_BIGINT = 2**63 - 1
_MOST_INT = 2**31 - 1


TRIED = ("phase", "remedy", "flag", "direction", "result")
NO_RULE = "no rule"  # a diagnosis that quoted no line
OPEN = "open"  # what people call an incident without an outcome


def family_of(model: str | None) -> str | None:
    """The name before its size: `Qwen/Qwen2.5-72B-Instruct` gives `qwen2.5`, `meta-llama/Llama-3.3-70B` gives `llama-3.3`."""
    if not model:
        return None
    kept: list[str] = []
    for word in re.split(r"[-_ ]+", _own_name(model)):
        if _SIZE.fullmatch(word):
            break
        kept.append(word.lower())
    return "-".join(kept) or None


def model_key(model: str | None) -> str | None:
    """A model by its own name, small letters, whatever folder or owner stands before it."""
    return _own_name(model).lower() if model else None


def _own_name(model: str) -> str:
    """Without the owner or folders before it; `…/models--Qwen--Qwen3-8B/snapshots/1a2b` is how the hub's cache writes Qwen/Qwen3-8B."""
    cached = _HUB_CACHE.search(model)
    return cached[1] if cached else model.rstrip("/").rsplit("/", 1)[-1]


def columns(document: Mapping[str, Any]) -> dict[str, Any]:
    """The judged columns of an incident; None where the document does not say."""
    deployment = document.get("deployment") or {}
    error = document.get("first_error") or {}
    change = document.get("recommendation") or {}
    version = _named(document.get("engine_version"))
    model = _named(deployment.get("model"))
    return {
        "verdict": _named(document.get("verdict")),
        "phase": _named(document.get("phase")),
        "engine": _named(document.get("engine")),
        "version": version,
        "version_sort": version_sort(version),
        "model": model,
        "family": _named(deployment.get("family")) or family_of(model),
        "gpu": _named(deployment.get("gpu")),
        "gpu_count": whole(deployment.get("gpu_count")),
        "tp": whole(deployment.get("tensor_parallel_size")),
        "rank": whole((document.get("rank") or {}).get("number")),
        "error_kind": _named(error.get("kind")),
        "error_text": (plain(error.get("text")) or "")[:500] or None,
        "remedy": _named(change.get("id")),
        "flag": _named(change.get("flag")),
        "direction": plain(change.get("direction")),
        "value": plain(change.get("value")),
        "rulebook": plain(document.get("rulebook")),
        "rules": _rules(document.get("proof") or ()),
    }


def _named(value: Any) -> str | None:
    """A name as an index can hold it: what is longer is no name."""
    return (plain(value) or "")[:_MOST_NAME] or None


def _rules(proof: Sequence[Mapping[str, Any]]) -> str | None:
    """The rules that spoke, each once, as many as an index can hold."""
    rules = " ".join(dict.fromkeys(str(line["rule"]) for line in proof if line.get("rule")))
    return rules[: _MOST_RULES + 1].rpartition(" ")[0] if len(rules) > _MOST_RULES else rules or None


def figures(document: Mapping[str, Any], judged: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """One row for each rank that reported any of the terms that sizing can use, in bytes; `number` counts from 1."""
    deployment = document.get("deployment") or {}
    if (whole(deployment.get("pipeline_parallel_size")) or 1) > 1:
        return  # every stage holds other layers: nothing that another grid could use
    number = 0
    for budget in document.get("budgets") or ():
        terms = {name: whole(budget.get(name), _MOST_BIGINT) for name in FIGURES}
        if all(terms[name] is None for name in FIGURES if name != "total_bytes"):
            continue
        number += 1
        yield {
            "number": number,
            "rank": whole(budget.get("rank")),
            "label": plain(budget.get("label")),
            "model": model_key(judged["model"]),
            **{name: judged[name] for name in ("gpu", "tp", "version_sort")},
            "batched_tokens": whole(deployment.get("max_num_batched_tokens")),
            **terms,
        }


def counted(row: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(field, value) pairs that an incident's row stands for; `total` has the empty value."""
    pairs = [("total", "")]
    pairs += [(name, str(row[name])) for name in COUNTED if row[name] is not None]
    if row["outcome"] is None:
        pairs.append(("outcome", OPEN))
    pairs += [("rule", rule) for rule in (row["rules"] or "").split()]
    if row["channel"]:
        pairs.append(("channel", row["channel"]))
    return pairs


def weighed(row: Mapping[str, Any]) -> list[tuple[str, str, int]]:
    """(field, value, how much) that an incident's row adds to the rollups: what can be searched, and what a review of all time needs."""
    pairs = [(field, value, 1) for field, value in counted(row)]
    if row["rules"] is not None:
        pairs.append(("rules", row["rules"], 1))
    if row["outcome"] == "fixed":
        pairs += [(f"{name} fixed", str(row[name]), 1) for name in ("phase", "model", "gpu") if row[name] is not None]
    if row["outcome"] == "wrong":
        pairs += [("rule wrong", rule, 1) for rule in (row["rules"] or "").split() or [NO_RULE]]
    if row["settled"] is not None:
        phase = row["phase"] or ""
        pairs += [("settled", phase, 1), ("settled after", phase, max(0, row["settled"] - row["key"]))]
    return pairs


def tried(trial: Mapping[str, Any]) -> list[tuple[str, str, int]]:
    """The same of a trial's row: a change that was tried in a phase, and its result, as one JSON list."""
    if trial["result"] is None or trial["remedy"] is None or trial["withdrawn"] is not None:
        return []
    return [("tried", json.dumps([trial[name] for name in TRIED], separators=(",", ":")), 1)]


def change_key(change: Mapping[str, Any] | None) -> tuple[Any, ...] | None:
    """What makes two recommendations the same change."""
    return None if not change else tuple(plain(change.get(name)) for name in ("id", "flag", "direction", "value"))


def whole(value: Any, most: int = _MOST_INT) -> int | None:
    """A figure as an integer column takes it; None for anything else, for example a figure that no machine can have."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if abs(value) <= most else None


def spoken(contributions: Sequence[Mapping[str, Any]]) -> str:
    """Everything people gave to one incident, as one text to search in."""
    return "\n".join(part["text"] for part in contributions if part["text"])
