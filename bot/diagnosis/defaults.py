"""What was in force where nobody said anything: vLLM's own defaults of that version on that card."""

from collections.abc import Mapping, Sequence

from bot.budget.activations import CHUNKED_FROM
from bot.diagnosis.figures import implied_total
from bot.domain.deployment import Setting
from bot.domain.evidence import Evidence, Fact
from bot.rulebook.book import Rulebook
from bot.rulebook.planning import load_planning
from bot.rulebook.versions import USUAL, UnknownVersion, holds, meet, oldest, release

LAST_OF_V0 = "0.7.3"
"""The last release whose defaults were those of the V0 engine, which keeps them in any later one."""
FIRST_OF_V1 = "0.8.0"
"""The first release whose defaults were those of the V1 engine, which had them before."""


def defaults_of(book: Rulebook, evidence: Evidence, facts: Sequence[Fact]) -> Mapping[str, Setting]:
    """Defaults by argument; nothing for what depends on a card or version that is not known, or on another engine."""
    if evidence.engine not in ("vllm", "unknown"):
        return {}
    version = _version(evidence)
    found: dict[str, Setting] = {}
    for rule in book.arguments:
        allowed = [default for spec, default in rule.default.items() if version is not None and holds(spec, version)]
        if allowed:
            found[rule.name] = allowed[0]
        elif rule.default and version is None:
            found[rule.name] = next(iter(rule.default.values()))  # the oldest: the others are told from it by a printed version
    share = evidence.deployment.number("gpu_memory_utilization") or found.get("gpu_memory_utilization")
    return {**found, **_batch(evidence, facts, version, share)}


def possible_defaults(book: Rulebook, evidence: Evidence, name: str) -> list[float]:
    """Every default that the versions which the evidence allows give an argument that is a number."""
    rule = next(argument for argument in book.arguments if argument.name == name)
    printed = _version(evidence) if evidence.engine_version else None
    allowed = evidence.engine_version_range or ""
    held = (default for when, default in rule.default.items() if (holds(when, printed) if printed else meet(when, allowed)))
    return [float(default) for default in held if isinstance(default, int | float)]


def _implied(evidence: Evidence, facts: Sequence[Fact], share: Setting | None) -> int | None:
    """The card that weights and pool make up at this share of it, where no line says how large it is."""
    weights, pools = ([float(f.fields[name]) for f in facts if name in f.fields] for name in ("weights_bytes", "kv_cache_bytes"))
    if evidence.engine != "vllm" or not weights or not pools or not isinstance(share, int | float) or share <= 0:
        return None
    total = implied_total(max(weights), min(pools), share)
    return None if total is None else round(total)


def _batch(evidence: Evidence, facts: Sequence[Fact], version: str | None, share: Setting | None) -> Mapping[str, Setting]:
    """Requests and tokens of a step."""
    total = next((f.fields[name] for f in facts for name in ("total", "total_bytes") if f.fields.get(name)), None)
    gpu = evidence.deployment.gpu
    if gpu is None and total is None:
        total = _implied(evidence, facts, share)
    planning = load_planning()
    asked = _counted_as(evidence, facts, version) or planning.newest
    if gpu is None and total is None and not holds(USUAL["v0"], asked):
        return {}
    batch = planning.batch(asked, gpu.value if gpu is not None else "", total)
    if not batch.whole:
        return {"max_num_seqs": batch.seqs, "max_num_batched_tokens": batch.tokens}
    length = evidence.deployment.number("max_model_len")
    if batch.chunk and length is not None and length > CHUNKED_FROM:
        return {"max_num_seqs": batch.seqs, "max_num_batched_tokens": batch.chunk}
    return {"max_num_seqs": batch.seqs, "enable_chunked_prefill": False}


def _counted_as(evidence: Evidence, facts: Sequence[Fact], version: str | None) -> str | None:
    """The release by whose batch a start counts: that of the engine it runs, where a release has both or the wording allows both."""
    if any("older-engine" in f.kinds for f in facts):
        return version if version is not None and holds(USUAL["v0"], version) else LAST_OF_V0
    either = evidence.engine_version is None and meet(USUAL["v1"], evidence.engine_version_range or "")
    newer = either or any("vllm/v1/" in frame.path for frame in evidence.frames)
    return FIRST_OF_V1 if newer and version is not None and holds(USUAL["v0"], version) else version


def _version(evidence: Evidence) -> str | None:
    """The printed version, or the oldest that the wording allows."""
    given = evidence.engine_version or oldest(evidence.engine_version_range or "")
    try:
        return None if given is None else release(given)
    except UnknownVersion:
        return None
