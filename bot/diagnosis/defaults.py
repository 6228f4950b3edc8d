"""What was in force where nobody said anything: vLLM's own defaults of that version on that card."""

from collections.abc import Mapping, Sequence
from functools import lru_cache

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from bot.budget.activations import CHUNKED_FROM
from bot.domain.deployment import Setting
from bot.domain.evidence import Evidence, Fact
from bot.rulebook.book import Rulebook
from bot.rulebook.load import rules_folder
from bot.rulebook.planning import Planning, load_planning

V1_BY_DEFAULT, LAST_BEFORE = Version("0.8"), "0.7.3"
"""From which release on V1 is the engine unless somebody says otherwise, and the last one before."""


def defaults_of(book: Rulebook, evidence: Evidence, facts: Sequence[Fact]) -> Mapping[str, Setting]:
    """Defaults by argument; nothing for what depends on a card or version that is not known, or on another engine."""
    if evidence.engine not in ("vllm", "unknown"):
        return {}
    version = _version(evidence)
    found: dict[str, Setting] = {}
    for rule in book.arguments:
        allowed = [default for spec, default in rule.default.items() if version is not None and _holds(spec, version)]
        if allowed:
            found[rule.name] = allowed[0]
        elif rule.default and version is None:
            found[rule.name] = next(iter(rule.default.values()))  # the oldest: the others are told from it by a printed version
    return {**found, **_batch(evidence, facts, version)}


def possible_defaults(book: Rulebook, evidence: Evidence, name: str) -> list[float]:
    """Every default that the versions which the evidence allows give an argument that is a number."""
    rule = next(argument for argument in book.arguments if argument.name == name)
    printed = _version(evidence) if evidence.engine_version else None
    allowed = evidence.engine_version_range or ""
    held = (default for when, default in rule.default.items() if (_holds(when, printed) if printed else meet(when, allowed)))
    return [float(default) for default in held if isinstance(default, int | float)]


def meet(one: str, other: str) -> bool:
    """Do two ranges of versions share one? Then the beginning of one of them lies in the other."""
    return _holds(one, _beginning(other)) or _holds(other, _beginning(one))


def _beginning(spec: str) -> Version:
    return Version(next((s.version for s in SpecifierSet(spec) if s.operator == ">="), "0"))


def _batch(evidence: Evidence, facts: Sequence[Fact], version: Version | None) -> Mapping[str, Setting]:
    """Requests and tokens of a step. The engine of before V1 keeps, in any release, what the last one had that knew no other."""
    total = next((f.fields[name] for f in facts for name in ("total", "total_bytes") if f.fields.get(name)), None)
    gpu = evidence.deployment.gpu
    planning = _planning()
    old = any("older-engine" in f.kinds for f in facts) and (version is None or version >= V1_BY_DEFAULT)
    asked = LAST_BEFORE if old else str(version or planning.newest)
    if gpu is None and total is None and Version(asked) >= V1_BY_DEFAULT:
        return {}
    batch = planning.batch(asked, gpu.value if gpu is not None else "", total)
    if not batch.whole:
        return {"max_num_seqs": batch.seqs, "max_num_batched_tokens": batch.tokens}
    length = evidence.deployment.number("max_model_len")
    if batch.chunk and length is not None and length > CHUNKED_FROM:
        return {"max_num_seqs": batch.seqs, "max_num_batched_tokens": batch.chunk}
    return {"max_num_seqs": batch.seqs, "enable_chunked_prefill": False}


def _version(evidence: Evidence) -> Version | None:
    """The printed version, or the oldest that the wording allows."""
    oldest = next((s.version for s in SpecifierSet(evidence.engine_version_range or "") if s.operator == ">="), None)
    try:
        given = evidence.engine_version or oldest
        return None if given is None else Version(Version(given).base_version)
    except InvalidVersion:
        return None


def _holds(spec: str, version: Version) -> bool:
    return version in SpecifierSet(spec, prereleases=True)


@lru_cache(maxsize=1)
def _planning() -> Planning:
    return load_planning(rules_folder())
