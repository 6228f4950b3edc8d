"""Which reports count: those of the last start before the failure, and the engine core's own for the workers of that engine only."""

from collections.abc import Mapping, Sequence

from bot.domain.evidence import Fact, Speaker

BEGINNINGS = ("vllm.banner-version", "vllm.api-version", "vllm.engine-config")
Engine = tuple[str, int | None]
"""(container or stage, engine index): who shares one engine core."""


def current_boot(facts: Sequence[Fact], failure: Fact | None) -> list[Fact]:
    """The facts of the last start before the failure, for each container apart.

    A start begins where the engine introduces itself anew. Two engines that speak in turns are no restart.
    """
    kept: list[Fact] = []
    for group in dict.fromkeys((f.source, f.speaker.group) for f in facts):
        own = [f for f in facts if (f.source, f.speaker.group) == group]
        kept += _last_start(own, failure.order if failure is not None and failure.source == group[0] else None)
    return sorted(kept, key=lambda f: (f.source, f.order))


def _last_start(facts: Sequence[Fact], until: int | None) -> Sequence[Fact]:
    begin = 0
    seen: dict[tuple[str, str], Fact] = {}
    for fact in facts:
        if until is not None and fact.order > until:
            break
        if fact.id not in BEGINNINGS:
            continue
        key = (fact.id, fact.speaker.label)
        before = seen.get(key)
        if before is not None and not _speaks_later(facts, before.speaker, fact):
            begin = fact.order
            seen = {}
        seen[key] = fact
    after = min((f.order for f in facts if until is not None and f.order > until and f.id in BEGINNINGS), default=None)
    return [f for f in facts if f.order >= begin and (after is None or f.order < after)]


def _speaks_later(facts: Sequence[Fact], first: Speaker, second: Fact) -> bool:
    """Does the earlier process go on speaking after the later one began? Then they are two engines side by side."""
    return bool(first.pid) and first.key != second.speaker.key and any(f.order > second.order and f.speaker.key == first.key for f in facts)


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
