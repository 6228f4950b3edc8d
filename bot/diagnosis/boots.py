"""Which reports count: those of the last start before the failure, and the engine core's own for the workers of that engine only."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from bot.diagnosis.first_error import HEADING, in_words
from bot.domain.evidence import Fact, Speaker
from bot.rulebook.versions import USUAL, UnknownVersion, holds

BEGINNINGS = ("vllm.banner-version", "vllm.api-version", "vllm.args-given", "vllm.engine-config")
_COME_FAR = frozenset({"budget", "ready", "kv-sized", "graphs-captured"})
_RAISED = frozenset(
    {"allocation-failed", "free_memory_check", "no_cache_blocks", "context_exceeds_cache", "too_few_state_blocks", "profiling_assert"}
)
_CAPTURES = ("vllm.capture-begins", "vllm.graphs-captured")
_POOL = ("vllm.available-kv", "vllm.kv-size", "vllm.blocks", "vllm.max-concurrency", "vllm.v0-terms", "vllm.kv-pinned")
REFUSED = 500
"""The first of HTTP's answers by which a server says that it failed."""
Engine = tuple[str, int | None]
"""(container or stage, engine index): who shares one engine core."""


def current_boot(facts: Sequence[Fact], failure: Fact | None) -> list[Fact]:
    """The facts of the last start before the failure, for each container apart.

    A start begins where the engine introduces itself anew. Two engines that speak in turns are no restart.
    """
    if failure is not None and _is_title(facts, failure):
        failure = None  # the log below it is the story of that failure
    kept: list[Fact] = []
    for group in dict.fromkeys((f.source, f.speaker.group) for f in facts):
        own = [f for f in facts if (f.source, f.speaker.group) == group]
        kept += _last_start(own, failure if failure is not None and failure.source == group[0] else None)
    return sorted(kept, key=lambda f: (f.source, f.order))


def without_later_start(facts: Sequence[Fact], up: Fact | None) -> list[Fact]:
    """The same facts without what stands behind `up`, the mark of a later start: it tells nothing of the one that failed."""
    return [f for f in facts if up is None or f.source != up.source or f.order < up.order or not f.kinds & {"progress", "ready"}]


def came_up_later(facts: Sequence[Fact], failure: Fact | None) -> Fact | None:
    """The first word after an allocation or a check has failed that an engine serves, where none had said so before."""
    if failure is None or not failure.kinds & _RAISED or not _in_its_place(facts, failure):
        return None
    own = (f for f in facts if f.source == failure.source and f.speaker.group == failure.speaker.group and "ready" in f.kinds)
    said = [f for f in own if f.fields.get("status", 200) < REFUSED]  # a front end outlives its engine, and answers for it
    return None if not said or said[0].order < failure.order else said[0]


def _in_its_place(facts: Sequence[Fact], failure: Fact) -> bool:
    """Does the error stand in its log's own order, and not on top of the log or quoted from its end?"""
    own = [f for f in facts if f.source == failure.source and f.id != failure.id and "progress" in f.kinds]
    retold = not failure.speaker.label and (in_words(failure) or HEADING.match(failure.text))
    if retold or any(f.order > failure.order and f.text == failure.text for f in facts if f.id == failure.id):
        return False
    return bool(failure.at or failure.speaker.label) or any(f.order < failure.order for f in own) or all("ready" in f.kinds for f in own)


def _is_title(facts: Sequence[Fact], failure: Fact) -> bool:
    """Does somebody name the error in a few words, above the log of the start that ended in it?"""
    told = "without-figures" in failure.kinds and not failure.speaker.label
    return told and all(f.order > failure.order for f in facts if f.kinds & {"budget", "progress"} or f.id in BEGINNINGS)


def _last_start(facts: Sequence[Fact], failure: Fact | None) -> Sequence[Fact]:
    until = failure.order if failure is not None else None
    marks = [f for f in facts if f.id in BEGINNINGS] or _loaded_again(facts)
    begin = 0
    seen: dict[tuple[str, str], Fact] = {}
    for fact in marks:
        if until is not None and fact.order > until:
            break
        before = seen.get((fact.id, fact.speaker.label))
        if before is None and not seen and _of_an_earlier_start(facts, fact):
            begin = fact.order
        elif before is not None and not _speaks_later(facts, before.speaker, fact):
            begin, seen = fact.order, {}
        seen[fact.id, fact.speaker.label] = fact
    after = min((f.order for f in (*marks, *_namesakes(facts, failure)) if until is not None and f.order > until), default=None)
    first = min((f.order for f in marks), default=0)
    kept = [f for f in facts if (begin <= f.order and (after is None or f.order < after)) or _always(f, first)]
    printed = {name for f in kept if f.order >= begin and "prose" not in f.kinds for name in f.fields}
    return [f for f in kept if f.order >= begin or "budget" not in f.kinds or not f.fields.keys() <= printed]


def _loaded_again(facts: Sequence[Fact]) -> list[Fact]:
    """Where no engine introduces itself: the loads of a process that has counted its pool since its load before, each another start."""
    again: list[Fact] = []
    loaded: dict[str, bool] = {}  # by process: has it counted its pool since?
    for fact in facts:
        if fact.id == "vllm.model-loading":
            again += [fact] if loaded.get(fact.speaker.key) else []
            loaded[fact.speaker.key] = False
        elif fact.id in _POOL:
            loaded[fact.speaker.key] = True
    return again


def _namesakes(facts: Sequence[Fact], failure: Fact | None) -> Sequence[Fact]:
    """What an engine says that has the failed one's name and is another process: it was started in its place."""
    if failure is None or failure.speaker.role != "engine-core" or failure.speaker.pid is None:
        return []
    of_name = [f for f in facts if f.speaker.label == failure.speaker.label and f.speaker.pid not in (None, failure.speaker.pid)]
    before = {f.speaker.pid for f in of_name if f.order < failure.order}
    return [f for f in of_name if f.speaker.pid not in before]


def _of_an_earlier_start(facts: Sequence[Fact], first: Fact) -> bool:
    """Does the paste begin in the middle of a start: an engine had come further before it introduced itself?"""
    return any(f.order < first.order and f.kinds & _COME_FAR for f in facts)


def _always(fact: Fact, first: int) -> bool:
    """What people wrote, and what stands before the first start without telling how far one came: the command, the title."""
    return "prose" in fact.kinds or (fact.order < first and not fact.kinds & {*_COME_FAR, "progress", "allocation-failed", "memory-error"})


def _speaks_later(facts: Sequence[Fact], first: Speaker, second: Fact) -> bool:
    """Does the earlier process go on speaking after the later one began? Then they are two engines side by side."""
    return bool(first.pid) and first.key != second.speaker.key and any(f.order > second.order and f.speaker.key == first.key for f in facts)


def with_rehearsals_named(facts: Sequence[Fact], version: str | None) -> list[Fact]:
    """The same facts; a capture between the load and the first word of the pool is the estimate of what graphs will take.

    Model runner V2 captures once while it profiles, from 0.29 on, with the lines of the real capture.
    """
    named: list[Fact] = []
    for group in dict.fromkeys((f.source, f.speaker.group) for f in facts):
        own = [f for f in facts if (f.source, f.speaker.group) == group]
        loaded = min((f.order for f in own if f.id == "vllm.model-loading"), default=None)
        pool = min((f.order for f in own if f.id in _POOL), default=None if _before_rehearsals(version) else own[-1].order + 1)
        span = range(0) if loaded is None or pool is None else range(loaded, pool)
        named += [_estimate(f) if f.id in _CAPTURES and f.order in span else f for f in own]
    return sorted(named, key=lambda f: (f.source, f.order))


def _before_rehearsals(version: str | None) -> bool:
    try:
        return version is None or not holds(USUAL["v2"], version)
    except UnknownVersion:
        return True


def _estimate(capture: Fact) -> Fact:
    took = capture.fields.get("graph_bytes")
    kinds = frozenset({"budget", "progress"})
    return replace(capture, id="vllm.graph-estimate", kinds=kinds, fields={} if took is None else {"graph_estimate_bytes": took})


def engine_of(speaker: Speaker) -> Engine:
    """The engine that a process belongs to: its container, and its data-parallel index where it names one."""
    return speaker.group, speaker.parts.get("engine") if speaker.role == "engine-core" else speaker.parts.get("dp")


def shared_with(speaker: Speaker, wide: Mapping[Engine, Sequence[Fact]]) -> Sequence[Fact]:
    """What the engine core of that process reported; none where several cores could be meant."""
    group, index = engine_of(speaker)
    exact = wide.get((group, index))
    if exact is not None:
        return exact
    others = [facts for (name, _), facts in wide.items() if name == group]
    return others[0] if len(others) == 1 else ()
