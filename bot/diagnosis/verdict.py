"""How sure: certain, likely or open; and when the evidence speaks of no shortage at all."""

import re
from collections.abc import Sequence

from bot.diagnosis.phase import PhaseFinding
from bot.diagnosis.scene import Scene
from bot.domain.diagnosis import Proof, Verdict
from bot.domain.evidence import Fact

_LATE = {"serving", "warmup"}
_SAID_BY_A_PROGRAM = re.compile(
    r"^[\W_]{0,6}(?:[\w.]*(?:Error|Exception|Warning|OutOfResources)\b|\w+ \d\d-\d\d \d\d:|WARNING|ERROR|Sequence group)"
)
_EXCEPTION = re.compile(r"(?<![\w.])[\w.]*(?:Error|Exception)(?::\s|$)")
_OFTEN_ELSE = ("frame.init-device", "frame.serving", "frame.runner")  # much else than memory fails there
_BUFFERS = tuple(
    f"mark.llama-cpp.{step}" for step in ("load-begins", "model-buffer", "kv-begins", "kv-buffer", "compute-buffer", "warming")
)
"""llama.cpp prints each buffer once it stands: the next one failed only where a failure is printed."""
_TOO_EARLY = "mark.vllm.device-ready"  # the worker is up; what it did next does not follow


def choose(scene: Scene, found: Sequence[PhaseFinding]) -> tuple[PhaseFinding | None, Verdict]:
    """The finding to stand by and how sure it is; (None, open) when the evidence cannot decide."""
    short = _memory_evidence(scene)
    other = _other_cause(scene)
    if other is not None and not _device_failure(scene):
        return other, "certain" if other.weight == "decisive" else "likely"
    if scene.error_fact is not None and "undecided" in scene.error_fact.kinds:
        found = [f for f in found if f.weight == "decisive" or f.rule.startswith("prose.")]
    for finding in found:
        if finding.rule in _BUFFERS and not _failed_below(scene, finding):
            continue
        if finding.rule in _OFTEN_ELSE and not short and scene.has("timed-out"):
            continue  # a wait that came to its end says nothing of what was waited for
        if finding.weight == "decisive":
            return finding, "certain" if short or (finding.rule not in _OFTEN_ELSE and not _raised(scene)) else "likely"
        if finding.weight == "strong" or short or (finding.phase not in _LATE and _broken(scene)):
            if finding.weight == "hint" and not short and (finding.phase in _LATE or finding.rule == _TOO_EARLY):
                continue
            if finding.weight == "hint" and finding.phase in _LATE and scene.error is None and scene.has("says-load"):
                continue  # people say that it failed while loading: the log that came further is that of another run
            return finding, "likely"
    return _no_failure(scene)


def _memory_evidence(scene: Scene) -> bool:
    """Does anything speak of a shortage: an error, a pool that is not positive, or people who say so?"""
    return scene.error is not None or any(scene.has(kind) for kind in ("says-oom", "says-sizing", "pool-not-positive"))


def _device_failure(scene: Scene) -> bool:
    """Did an allocation or a check really fail, and not for want of a sane allocator?"""
    fact = scene.error_fact
    if scene.has("shm"):
        return True  # a full /dev/shm is memory, though the system calls it a device
    if fact is None or "connector-pool-full" in fact.kinds:  # a connector does without what it cannot keep
        return False
    return bool(fact.kinds & {"allocation-failed", "memory-error", "host-proof"}) and _broken_state(scene) is None


def _broken_state(scene: Scene) -> Fact | None:
    """What says that the allocator itself was broken, where far more was free than it asked for."""
    return scene.first("allocator-state") if scene.has("free-far-above-tried") else None


def _failed_below(scene: Scene, finding: PhaseFinding) -> bool:
    """Is an allocation that failed printed below the line that the finding rests on?"""
    fact, at = scene.error_fact, finding.proof[0]
    return fact is not None and (fact.source, fact.line) > (at.source, at.line)


def _broken(scene: Scene) -> bool:
    """Did the engine stop with an error, as far as the paste shows? A process that only disappeared may have been killed from outside."""
    gone = {(f.source, f.line) for f in scene.named("process-died")}
    told = any("wrapper" in f.kinds and (f.source, f.line) not in gone for f in scene.facts)
    return told or any((line.source, line.number) not in gone for line in scene.evidence.errors) or bool(scene.evidence.frames)


def _other_cause(scene: Scene) -> PhaseFinding | None:
    """A fact that names a cause other than memory."""
    if (state := _broken_state(scene)) is not None:
        return _finding("not-oom.allocator-state", state.source, state.line, state.text, "strong")
    fact = _named_cause(scene)
    retried = scene.first("recovers")
    if fact is None and retried is not None and scene.error is None and scene.has("ready"):
        return _finding("not-oom.recovered", retried.source, retried.line, retried.text, "strong")
    if fact is None and not _memory_evidence(scene):
        raised = scene.first("other-exception")
        return None if raised is None else _finding(raised.id, raised.source, raised.line, raised.text, "strong")
    if fact is None:
        return None
    told = not fact.speaker.label and not _SAID_BY_A_PROGRAM.search(fact.text)  # people quote such sentences too
    weight = "strong" if told or fact.kinds & {"peer", "mig", "slots", "after-another"} else "decisive"
    return _finding(fact.id, fact.source, fact.line, fact.text, weight)


def _named_cause(scene: Scene) -> Fact | None:
    """The first message of another cause; one that only says that something failed before it where no other and nothing of memory is."""
    said = sorted(scene.named("not-oom"), key=lambda fact: "after-another" in fact.kinds)
    return None if not said or ("after-another" in said[0].kinds and _memory_evidence(scene)) else said[0]


def _no_failure(scene: Scene) -> tuple[PhaseFinding | None, Verdict]:
    """A log that came up and shows no error is no failure; nor is a question about how memory is used."""
    asks = scene.first("asks") if scene.has("ready") or not scene.has("progress") else None  # it shows a start that never ended
    broke = any(scene.has(kind) for kind in ("says-failure", "says-oom", "host-kill", "process-died"))
    silent = scene.error is None and not broke and not _broken(scene)
    if asks is not None and silent and _is_of_an_engine(scene):
        return _finding("not-oom.question", asks.source, asks.line, asks.text, "strong"), "likely"
    ready = scene.first("ready")
    quiet = not scene.evidence.errors and not scene.evidence.frames and not scene.has("wrapper") and not _traceback_begins(scene)
    stop = scene.first("stop")
    stopped = stop is not None and _nothing_broke_above(scene, stop)
    said = scene.named("says-failure")
    if scene.error is not None or any(not stopped or stop is None or (f.source, f.line) < (stop.source, stop.line) for f in said):
        return None, "open"
    if scene.has("says-oom"):
        return None, "open"  # the log that came up is that of another run
    if ready is not None and (quiet or stopped):
        return _finding("not-oom.ready", ready.source, ready.line, ready.text, "strong"), "likely"
    if stop is not None and stopped and scene.has("asked-to-stop"):
        return _finding("not-oom.stopped", stop.source, stop.line, stop.text, "strong"), "likely"
    return None, "open"


def _is_of_an_engine(scene: Scene) -> bool:
    """Does anything beside the question mark say that it is a question for us?"""
    return scene.has("of-this-field") or any("asks" not in fact.kinds for fact in scene.evidence.facts)


def _raised(scene: Scene) -> bool:
    """Does the text name an exception? Where it shows no shortage either, the frame says when it was raised and not that memory ran out."""
    return any(_EXCEPTION.search(text) for text in scene.evidence.lines.values())


def _traceback_begins(scene: Scene) -> bool:
    return any("Traceback (most recent call last)" in text for text in scene.evidence.lines.values())


def _nothing_broke_above(scene: Scene, stop: Fact) -> bool:
    """Was the engine asked to stop before anything failed? What it prints while it stops is no failure."""
    broke = [(line.source, line.number) for line in scene.evidence.errors]
    broke += [(f.source, f.line) for f in scene.facts if f.kinds & {"wrapper", "host-kill"}]
    broke += [(frame.source, frame.line) for frame in scene.evidence.frames]
    return all(place >= (stop.source, stop.line) for place in broke)


def _finding(rule: str, source: int, line: int, text: str, weight: str) -> PhaseFinding:
    return PhaseFinding("not_oom", weight, rule, (Proof(source, line, rule, text[:600]),))
