"""The log beside the diagnosis: which lines to show, which of them speak for the verdict, and how to link to one."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from bot.reading.large import numbered
from bot.reading.read import LONG_ANSWER
from bot.reading.text import split_lines

WHOLE = 40  # lines: a source of no more is shown as it is
AROUND = 4  # lines shown on either side of a telling one
SLIT = 3  # lines: a gap of no more is closed
WIDEST = 2000  # characters of a line


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a source. `marks` says why it is highlighted; `gap` is how many lines before it are not shown."""

    number: int
    anchor: str
    text: str
    marks: tuple[str, ...] = ()
    first: bool = False
    gap: int = 0


@dataclass(frozen=True, slots=True)
class Source:
    """One paste or file. `left_out` is how many lines after the last shown one there are; `text` None is erased."""

    number: int
    title: str
    lines: Sequence[Line]
    count: int
    left_out: int = 0
    erased: bool = False
    truncated: bool = False


def anchor(source: int, line: int) -> str:
    """The link target of a line: #L15 in the first source, #S2L15 in the second."""
    return f"L{line}" if source == 1 else f"S{source}L{line}"


def marks_of(diagnosis: Mapping[str, Any]) -> dict[tuple[int, int], list[str]]:
    """(source, line) -> why it matters: the first error, a proof, the figures read from it."""
    marks: dict[tuple[int, int], list[str]] = {}
    error = diagnosis.get("first_error")
    if error:
        marks.setdefault((error["source"], error["line"]), []).append("first error")
    for proof in diagnosis.get("proof") or ():
        known = marks.setdefault((proof["source"], proof["line"]), [])
        known += [] if "proof" in known else ["proof"]
    for budget in diagnosis.get("budgets") or ():
        for figure, line in (budget.get("lines") or {}).items():
            reason = figure.removesuffix("_bytes").replace("_", " ")
            known = marks.setdefault(((budget.get("sources") or {}).get(figure, 1), line), [])
            if reason not in known:
                known.append(reason)
    return marks


def sources_of(contributions: Sequence[Mapping[str, Any]], diagnosis: Mapping[str, Any], whole: bool = False) -> list[Source]:
    """Every contribution that is evidence, each with the lines worth showing. Sources count as reading counts them."""
    marks = marks_of(diagnosis)
    evidence = [one for one in contributions if _is_evidence(one)]
    return [_source(number, one, marks, whole) for number, one in enumerate(evidence, 1)]


def _is_evidence(one: Mapping[str, Any]) -> bool:
    return one["kind"] in ("paste", "file") or (one["kind"] == "answer" and len(one.get("text") or "") > LONG_ANSWER)


def _source(number: int, one: Mapping[str, Any], marks: Mapping[tuple[int, int], list[str]], whole: bool) -> Source:
    title = one.get("name") or {"file": "file", "answer": "answer"}.get(one["kind"], "pasted text")
    if one.get("text") is None:
        return Source(number, title, (), 0, erased=True)
    texts = dict(numbered(split_lines(one["text"].removesuffix("\n"))))
    count = max(texts, default=0)
    mine = {line: tuple(why) for (source, line), why in marks.items() if source == number}
    shown = sorted(texts if whole else _worth_showing(mine, count) & texts.keys())
    lines = list(_lines(number, texts, shown, mine))
    return Source(number, title, lines, count, count - (shown[-1] if shown else 0), truncated=bool(one.get("truncated")))


def _worth_showing(marks: Iterable[int], count: int) -> set[int]:
    if count <= WHOLE:
        return set(range(1, count + 1))
    wanted: set[int] = set()
    for line in marks:
        wanted.update(range(max(1, line - AROUND), min(count, line + AROUND) + 1))
    if not wanted:
        return set(range(1, min(count, WHOLE) + 1))
    ordered = sorted(wanted | {0, count + 1})
    for above, below in pairwise(ordered):
        if below - above - 1 <= SLIT:
            wanted.update(range(above + 1, below))
    return wanted


def _lines(source: int, texts: Mapping[int, str], shown: Sequence[int], marks: Mapping[int, tuple[str, ...]]) -> Iterator[Line]:
    before = 0
    for number in shown:
        text = texts[number]
        cut = text if len(text) <= WIDEST else f"{text[:WIDEST]} … ({len(text) - WIDEST:,} more characters)"
        why = marks.get(number, ())
        yield Line(number, anchor(source, number), cut, why, "first error" in why, number - before - 1)
        before = number
