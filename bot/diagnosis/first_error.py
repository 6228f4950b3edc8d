"""The first error of the evidence: never a wrapper, never a quotation where the thing itself stands."""

import re
from collections.abc import Mapping
from typing import Any

from bot.diagnosis.clock import earlier_by_the_clock
from bot.diagnosis.scene import LONGEST_SHOWN, as_given
from bot.diagnosis.told_twice import BARE, is_headline, logged, where_it_is_whole
from bot.domain.diagnosis import ERROR_KINDS, FirstError
from bot.domain.evidence import Evidence, Fact

CAN_BE_FIRST = frozenset({"allocation-failed", "memory-error", "host-kill"})
"""Kinds of facts that tell of a failure."""
FIGURES = {
    "tried": "tried_bytes",
    "free": "free_bytes",
    "total": "total_bytes",
    "process": "process_bytes",
    "allocated": "allocated_bytes",
    "allowed": "allowed_bytes",
    "unallocated": "reserved_unallocated_bytes",
    "private": "private_pool_bytes",
}
_OF_CHECKS = {"free_at_start_bytes": "free_bytes", "total_bytes": "total_bytes"}
"""What the start-up check calls the same."""
_EXCEPTION_LIKE = re.compile(
    r"^[\W_]{0,6}(?:[\w.]*(?:Error|Exception|OutOfMemory\w*)\b\s*(?:[:(]|$)|"
    r"(?:CUDA|HIP|XPU) (?:error: )?out of memory\b(?! (?:- |(?:when|while|with|after|on|in|at|during|even|for|but)\b)))"
)
_REPORTED = re.compile(r"(?:[A-Za-z][\w.,'-]{0,40}:? ){3,20}(?:[\w.]*OutOfMemoryError: )?(?:CUDA|HIP|XPU) out of memory\b")
_NAMED_LAST = re.compile(r"(?!.{0,400}\bline \d)\S{1,80}[^:\n]{0,200}\s[\w.]+(?:Error|Exception)[\W_]{0,3}$")
_QUOTED = re.compile(r"[\s>*-]{0,8}['\"`“]")
HEADING = re.compile(r"#{1,6} |\[[A-Za-z]{2,12}\]:? ")
"""A title or a heading tells of an error that stands further down."""
RETRIED_WITHIN = 8
"""Lines between an allocation that failed and the engine's word that it goes on without."""


def first_error_fact(evidence: Evidence) -> Fact | None:
    """The earliest allocation failure or self-naming memory error; prose and quotations only where nothing better stands."""
    noticed = {(f.source, f.line) for f in evidence.facts if "notice" in f.kinds}
    candidates = [f for f in evidence.facts if f.kinds & CAN_BE_FIRST and (f.source, f.line) not in noticed]
    ready = max((f.order for f in evidence.facts if "ready" in f.kinds), default=0)
    over = [f.order for f in evidence.facts if "recovers" in f.kinds and f.order < ready]
    candidates = [f for f in candidates if not any(0 <= order - f.order <= RETRIED_WITHIN for order in over)]
    ended = {f.source for f in evidence.facts if "ends-itself" in f.kinds}
    candidates = [f for f in candidates if f.id != "host.killed" or f.source not in ended]  # by the engine's own hand
    if not candidates:
        return None
    above: dict[tuple[str, int, int], list[Fact]] = {}
    for fact in candidates:
        above.setdefault((fact.id, fact.source, fact.line + 1), []).append(fact)
    candidates = [f for f in candidates if not any(_goes_on(g, f) for g in above.get((f.id, f.source, f.line), ()))]
    quoted = {(f.source, f.line) for f in evidence.facts if "quotes-cause" in f.kinds}
    figured = {(f.source, f.line) for f in candidates if "without-figures" not in f.kinds}
    printed = {(f.source, f.line) for f in candidates if not f.kinds & {"without-figures", "retold"}}
    candidates = [f for f in candidates if "retold" not in f.kinds or (f.source, f.line) not in printed]
    standing = {id(f): _standing(f, quoted, figured) for f in candidates}
    if any("sampler_warmup" in f.kinds and _EXCEPTION_LIKE.match(f.text) for f in candidates):
        standing |= {id(f): 5 for f in candidates if in_words(f)}  # who tells of it says less than the engine's own sentence
    printed_at = logged(evidence)
    standing |= {id(f): 1 for f in candidates if standing[id(f)] == 0 and is_headline(f, candidates, printed_at)}
    first = min(candidates, key=lambda f: (standing[id(f)], f.source, f.order))
    alike = [f for f in candidates if standing[id(f)] == standing[id(first)]]
    return earlier_by_the_clock(where_it_is_whole(first, alike), alike)


def _goes_on(above: Fact, fact: Fact) -> bool:
    """Is the fact the second line of a message that was read with the line above it, where the same stands?"""
    return (
        above.speaker == fact.speaker
        and bool(fact.fields)
        and fact.fields.items() <= above.fields.items()
        and not _EXCEPTION_LIKE.match(fact.text)
    )


def _standing(fact: Fact, quoted: set[tuple[int, int]], figured: set[tuple[int, int]]) -> int:
    place = (fact.source, fact.line)
    if "without-figures" in fact.kinds and place in figured:
        return 9
    if "undecided" in fact.kinds or "engine-wrapper" in fact.kinds:
        return 4
    if place in quoted:
        return 3
    if fact.id == "host.kernel-oom" and "victim" not in fact.fields:
        return 1  # the line that names whom the kernel killed says it all
    if "nccl" in fact.kinds or fact.id in ("host.exit-9", "host.exit-137", "torch.allocator-warning"):
        return 2
    if in_words(fact) or "retold" in fact.kinds:
        return 1
    if fact.kinds & {"memory-error", "host-kill"} and (HEADING.match(fact.text) or _names_alone(fact)):
        return 1
    return 0


def _names_alone(fact: Fact) -> bool:
    """Does a line that nothing signs end with an exception's bare name, as a title does?"""
    return not fact.speaker.label and _NAMED_LAST.match(fact.text) is not None


def in_words(fact: Fact) -> bool:
    """Does the error stand in a title or a sentence, not where a program raises it?"""
    return fact.id in BARE and not _EXCEPTION_LIKE.match(fact.text)


def in_a_report(fact: Fact) -> bool:
    """Do words that no program puts there stand before PyTorch's message, as where a title quotes it?"""
    return fact.id == "torch.oom" and not fact.speaker.label and _REPORTED.match(fact.text) is not None


def raised_here(fact: Fact) -> bool:
    """Does the line stand as a program raised it, or quoted as that, or give its figures, and not only tell of it?"""
    return bool(fact.fields.get("tried") or _EXCEPTION_LIKE.match(fact.text) or _QUOTED.match(fact.text))


def as_first_error(fact: Fact, evidence: Evidence) -> FirstError:
    """The contract's first_error of a fact."""
    kind = next((k for k in ERROR_KINDS if k in fact.kinds), "other")
    if kind == "torch_oom" and "HIP out of memory" in fact.text:
        kind = "hip_oom"
    if kind == "torch_oom" and "XPU out of memory" in fact.text:
        kind = "xpu_oom"
    told = _told_below(fact, evidence)
    beside = _told_beside(told, evidence) if "torch_oom" in told.kinds else {}
    figures = {name: told.fields.get(field, beside.get(field)) for field, name in FIGURES.items()}
    figures |= {name: fact.fields[field] for field, name in _OF_CHECKS.items() if fact.fields.get(field) is not None}
    other, allocated = told.fields.get("other"), told.fields.get("allocated")
    if figures["process_bytes"] is None and other and allocated and other >= allocated:
        figures["process_bytes"] = other  # of several pids that a container cannot match, the one that can hold what PyTorch allocated
    return FirstError(fact.source, fact.line, as_given(fact, evidence.lines)[:LONGEST_SHOWN], kind, figures)


def _told_beside(fact: Fact, evidence: Evidence) -> Mapping[str, Any]:
    """The figures of the same failure that its line gives in somebody's words, of two the first."""
    words = [f.fields for f in evidence.facts if (f.source, f.line) == (fact.source, fact.line) and {"retold", "torch_oom"} <= f.kinds]
    return {field: value for fields in reversed(words) for field, value in fields.items()}


def _told_below(fact: Fact, evidence: Evidence) -> Fact:
    """The same failure as PyTorch tells it right below a line of the allocator beneath it, which has no figures."""
    if "cumem" not in fact.kinds:
        return fact
    below = (
        f for f in evidence.facts if f.source == fact.source and 0 < f.line - fact.line <= RETRIED_WITHIN and f.speaker == fact.speaker
    )
    return next((f for f in below if "allocation-failed" in f.kinds and not f.kinds & {"without-figures", "retold"}), fact)
