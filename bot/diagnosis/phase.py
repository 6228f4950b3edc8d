"""Which phase failed: self-naming messages, then the outermost telling frame, then how far the engine had come, then prose."""

import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass

from bot.diagnosis.scene import Scene, holds, proof, witnesses
from bot.domain.diagnosis import Phase, Possible, Proof
from bot.domain.evidence import Fact, Frame
from bot.rulebook.book import Rulebook
from bot.rulebook.files import Condition, Mark, OuterFrame, PhaseRule

_METHOD = re.compile(r"\W{0,6}(?:Exception in worker|E?rror executing)")
WEIGHTS = ("decisive", "strong", "hint")


@dataclass(frozen=True, slots=True)
class PhaseFinding:
    """One rule's opinion and the line it rests on."""

    phase: Phase
    weight: str
    rule: str
    proof: tuple[Proof, ...]


def findings(book: Rulebook, scene: Scene) -> list[PhaseFinding]:
    """Every opinion, the most trustworthy first: weight, then messages, frames, progress, prose. Less than decisive ones that what
    the engine says rules out are none.
    """
    out = {phase for row in book.ruled_out if holds(scene, any_=row.any, none=row.none) for phase in row.phases}
    named = list(_named(book, scene))
    said = [f for f in named if f.rule.startswith("prose.")]
    found = [*(f for f in named if f not in said), *_framed(book, scene), *said, *_progressed(book, scene, out)]
    kept = (f for f in found if f.weight == "decisive" or f.phase not in out)
    return sorted(kept, key=lambda f: WEIGHTS.index(f.weight))


def _named(book: Rulebook, scene: Scene) -> Iterator[PhaseFinding]:
    for rule in sorted(book.rules, key=lambda rule: rule.id.startswith("prose.")):  # what an engine says goes before what people say
        if holds(scene, all_=rule.all, any_=rule.any, none=rule.none):
            told = [w for c in (*rule.all, *rule.any) for w in witnesses(c, scene)]
            weight = "strong" if rule.weight == "decisive" and (_only_quoted(told) or _of_a_later_failure(told, scene)) else rule.weight
            yield PhaseFinding(rule.phase, weight, rule.id, _proofs(rule, scene))


def _only_quoted(told: Sequence[Fact | Frame]) -> bool:
    """Does a method's name stand in a title or a sentence only, or the message as somebody retells it? People name what they noticed,
    not always what failed.
    """
    titled = (w.id == "vllm.method" and not _METHOD.match(w.text) for w in told if isinstance(w, Fact) and "retold" not in w.kinds)
    return bool(told) and all(isinstance(w, Fact) for w in told) and all(titled)


def _of_a_later_failure(told: Sequence[Fact | Frame], scene: Scene) -> bool:
    """Do only checks and kills speak that came after an allocation had failed? The first failure is the one that is asked about."""
    first = scene.error_fact
    if first is None or "allocation-failed" not in first.kinds or not told:
        return False
    return all(
        isinstance(w, Fact) and w.kinds & {"memory-error", "host-kill"} and (w.source, w.order) > (first.source, first.order) for w in told
    )


def _proofs(rule: PhaseRule, scene: Scene) -> tuple[Proof, ...]:
    lines = scene.evidence.lines
    found = [w for c in (*rule.all, *rule.any) if (w := _telling(c, scene)) is not None and w.line]
    return tuple(dict.fromkeys(proof(w, rule.id, lines) for w in found[:3]))


def _telling(condition: Condition, scene: Scene) -> Fact | Frame | None:
    """The first witness; of the lines of progress above the error the last, which says what was under way."""
    until = scene.error_fact.order if scene.error_fact is not None else 0
    first = next(witnesses(condition, scene), None)
    under_way = (w for w in witnesses(condition, scene) if isinstance(w, Fact) and "progress" in w.kinds and w.order < until)
    return max(under_way, key=lambda w: w.order, default=first)


def _framed(book: Rulebook, scene: Scene) -> Iterator[PhaseFinding]:
    """The first row that holds in the failing speaker's traceback, then the first of the engine core's copy."""
    for of in ("failing", "engine-core"):
        for row in book.outer:
            if row.of == of and (finding := _row(row, scene)) is not None:
                yield finding
                break


def _row(row: OuterFrame, scene: Scene) -> PhaseFinding | None:
    if not holds(scene, any_=row.any, none=row.none, of=row.of):
        return None
    witness = next(w for c in row.any for w in witnesses(c, scene, row.of))
    proofs = (proof(witness, row.id, scene.evidence.lines),)
    weight = row.weight if scene.own_frames() or row.of != "failing" or scene.failing is None else "strong"
    for inside in row.inside:
        if holds(scene, any_=inside.any, none=inside.none, of=row.of):
            inner = max((w for c in inside.any for w in witnesses(c, scene, row.of) if w.line), key=lambda w: w.order, default=None)
            more = (proof(inner, row.id + ".inside", scene.evidence.lines),) if inner is not None and inner.line != witness.line else ()
            by_progress = inner is not None and not isinstance(inner, Frame)  # a mark of another line, not a frame of this traceback
            told = max(weight, "strong", key=WEIGHTS.index) if by_progress else weight
            return PhaseFinding(inside.phase, told, row.id, (*proofs, *more))
    found = (w for c in row.any for w in witnesses(c, scene, row.of))
    if row.bare and any(isinstance(w, Frame) and _is_last(w, scene) for w in found) and not scene.first("vllm.graphs-captured"):
        return PhaseFinding(row.bare, "strong", row.id, proofs)
    return PhaseFinding(row.phase, weight, row.id, proofs)


def _is_last(frame: Frame, scene: Scene) -> bool:
    """Is the traceback cut right below this frame?"""
    return not any(f.order > frame.order and f.speaker == frame.speaker for f in scene.evidence.frames)


def last_mark(book: Rulebook, scene: Scene) -> tuple[Mark, Fact] | None:
    """The last line of progress before the failure, in the failing process' own part of the paste."""
    marks = {mark.fact: mark for mark in book.marks}
    until = scene.error_fact.order if scene.error_fact is not None and "without-figures" not in scene.error_fact.kinds else 10**9
    if scene.error_fact is not None and scene.error_fact.speaker.key:
        until = min(until, scene.error_fact.order)
    group = scene.failing.group if scene.failing is not None else None
    before = [f for f in scene.facts if f.id in marks and f.order <= until and (not group or f.speaker.group in ("", group))]
    order = {mark.fact: n for n, mark in enumerate(book.marks)}
    if not before:  # the error was put on top, or the newest line is shown first
        before = sorted((f for f in scene.facts if f.id in marks), key=lambda f: order[f.id])[-1:]
    if not before:
        return None
    # lines of one second may come out of order: of the last few, the one furthest along counts
    last = max(before, key=lambda f: (f.source, f.order))
    near = [f for f in before if f.source == last.source and last.order - f.order <= 2]
    furthest = max(near, key=lambda f: order[f.id])
    return marks[furthest.id], furthest


def _progressed(book: Rulebook, scene: Scene, out: Set[str]) -> Iterator[PhaseFinding]:
    found = last_mark(book, scene)
    if found is None:
        return
    mark, fact = found
    then = next((phase for phase in (mark.then, *mark.also) if phase not in out), mark.then)
    yield PhaseFinding(then, "hint", f"mark.{mark.fact}", (proof(fact, f"mark.{mark.fact}", scene.evidence.lines),))


def _allocated(scene: Scene) -> bool:
    """Was it an allocation that failed, which no check makes?"""
    return scene.error_fact is not None and "allocation-failed" in scene.error_fact.kinds


def also_possible(book: Rulebook, scene: Scene, chosen: PhaseFinding, found: list[PhaseFinding]) -> tuple[Possible, ...]:
    """Other phases that a finding of at least the same weight, or the last mark, leaves open. None when the verdict is certain."""
    if chosen.weight == "decisive":
        return ()
    others: dict[Phase, str] = {}
    for finding in found:
        if finding.phase != chosen.phase and finding.weight != "hint":
            others.setdefault(finding.phase, f"line {finding.proof[0].line} speaks for it" if finding.proof else "figures speak for it")
    mark = last_mark(book, scene) if chosen.phase != "not_oom" else None  # how far it came is no sign that memory was short
    if mark is not None:
        for phase in (mark[0].then, *mark[0].also):
            if phase != chosen.phase and not (phase == "kv_cache_sizing" and _allocated(scene)):
                others.setdefault(phase, f"line {mark[1].line} is the last sign of how far it came")
    return tuple(Possible(phase, why) for phase, why in list(others.items())[:2])
