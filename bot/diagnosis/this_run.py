"""The run that is judged: of one engine, since its error last moved, with its first error and what follows from its figures."""

from dataclasses import replace

from bot.diagnosis.boots import came_up_later, current_boot, with_rehearsals_named, without_later_start
from bot.diagnosis.defaults import defaults_of
from bot.diagnosis.derived import derived_facts, of_defaults
from bot.diagnosis.failing import failing_speaker
from bot.diagnosis.first_error import CAN_BE_FIRST, as_first_error, first_error_fact
from bot.diagnosis.host_pools import of_host_pools
from bot.diagnosis.scene import Scene
from bot.domain.evidence import Evidence, Fact
from bot.rulebook.book import Rulebook

VLLM_PROCESSES = ("Worker", "VllmWorker", "EngineCore")


def scene_of(book: Rulebook, evidence: Evidence) -> Scene:
    """What the rules may look at: this run of this engine, its first error, and what follows from figures."""
    evidence = _this_run(evidence)
    fact = first_error_fact(evidence)
    evidence = _one_engine(book, evidence, fact)
    error = None if fact is None else as_first_error(fact, evidence)
    up = came_up_later(evidence.facts, fact)
    told = without_later_start(current_boot(evidence.facts, fact), up)
    told = with_rehearsals_named(told, evidence.engine_version)
    evidence = replace(evidence, facts=tuple(told))
    later = [replace(up, id="derived.came-up-later", kinds=frozenset({"came-up-later"}), fields={})] if up is not None else []
    facts = [*evidence.facts, *derived_facts(book, evidence, fact), *of_host_pools(evidence), *later]
    defaults = defaults_of(book, evidence, facts)
    return Scene(evidence, [*facts, *of_defaults(evidence, defaults, fact)], failing_speaker(evidence, fact), error, fact, defaults)


def _one_engine(book: Rulebook, evidence: Evidence, fact: Fact | None) -> Evidence:
    """Where two engines speak in one paste, the one whose process failed first; what the others say of themselves is left out."""
    speaks = {rule.id: rule.engine for rule in book.facts if rule.engine}
    failed = speaks.get(fact.id) if fact is not None else None
    if failed is None and fact is not None and fact.speaker.label.startswith(VLLM_PROCESSES):
        failed = "vllm"
    if failed is None:
        return evidence
    kept = tuple(f for f in evidence.facts if speaks.get(f.id, failed) == failed)
    return replace(evidence, engine=failed, facts=kept)


def _this_run(evidence: Evidence) -> Evidence:
    """The evidence of the newest run alone; how the engine was started may stand in an earlier one."""
    begin = _begin(evidence)
    if begin == (1, 0):
        return evidence
    return replace(
        evidence,
        facts=tuple(f for f in evidence.facts if (f.source, f.line) >= begin),
        frames=tuple(f for f in evidence.frames if (f.source, f.line) >= begin),
        errors=tuple(line for line in evidence.errors if (line.source, line.number) >= begin),
        speakers=tuple(line for line in evidence.speakers if (line.source, line.number) >= begin) or evidence.speakers,
    )


def _begin(evidence: Evidence) -> tuple[int, int]:
    """(source, line) where it begins: below the words that what stands above is fixed, where another error stands below them."""
    fixed = ((f.source, f.line) for f in evidence.facts if "says-moved-on" in f.kinds)
    failed = max(((f.source, f.line) for f in evidence.facts if f.kinds & CAN_BE_FIRST), default=(0, 0))
    return max([(evidence.since, 0), *(place for place in fixed if place < failed)])
