"""What the lines say: every message that the rulebook knows, and every traceback frame."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import regex

from bot.domain.evidence import Fact, Frame, LogLine
from bot.reading.anchored import FactFinder, finder_of
from bot.reading.frames import MOST_JOINED, frame_of, is_carets, is_echo
from bot.reading.prose import may_be_prose
from bot.rulebook.book import Rulebook
from bot.rulebook.fields import parse
from bot.rulebook.files import FactRule
from bot.rulebook.patterns import compiled, groups, search

_RAISED = re.compile(r"[\"')]\s*\w*(?:Error|Exception): ")  # a title that quotes the source line and then what it raised


LATELY = 20
"""Facts among which the same message may stand already."""
_NO_FIGURES = str.maketrans("", "", "0123456789 #█▉▊▋▌▍▎▏")
_RECURS = frozenset({"recurring", "progress", "ready", "capture-bar"})
"""What lines say that differ in nothing but figures: throughput, access, a progress bar with its blocks."""


def read_facts(book: Rulebook, lines: Sequence[LogLine]) -> tuple[list[Fact], list[Frame]]:
    """All facts and frames, in the order of the text. `order` counts both, so that they can be compared."""
    finder = finder_of(book)
    facts: list[Fact] = []
    frames: list[Frame] = []
    below_frame: dict[str, int] = {}
    recurring = _Recurring()
    for order, line in enumerate(lines):
        text = line.text
        if not text:
            continue
        frame = frame_of(line, _following(lines, order, MOST_JOINED)) if ".py" in text or 'File "' in text else None
        key = line.speaker.key
        if frame is not None:
            frames.append(replace(frame, order=order))
            below_frame[key] = order
            continue
        echoed = key in below_frame and (is_echo(line) if _follows(lines, below_frame[key], order) else False)
        if echoed:
            if frames and not is_carets(text) and frames[-1].speaker.key == key and not frames[-1].echo:
                frames[-1] = replace(frames[-1], echo=text.strip())
            if text[:1] in " \t" or text.lstrip().startswith(("raise ", "self.", "return ", "^", "~")) or is_carets(text):
                continue
        below_frame.pop(key, None)
        if recurring.counts(order, line) or (text.lstrip().startswith("raise ") and not _RAISED.search(text)):
            continue
        found = _facts_of(finder, lines, order)
        if not line.signed and order and (begun := _begun_above(finder, lines, order, {fact.id for fact in found})):
            known = {(fact.id, fact.order) for fact in facts[-LATELY:]}
            facts += [fact for fact in begun if (fact.id, fact.order) not in known]
        if found:
            facts += [*recurring.last(finder, lines), *found]
            recurring.learn(line, found)
    return [*facts, *recurring.last(finder, lines)], frames


class _Recurring:
    """Lines that differ in nothing but figures from one that was read, where that one told of progress or of a request only.

    They are counted; the last before any other message is read, so that nothing is lost but repetition.
    """

    def __init__(self) -> None:
        self._known: set[tuple[str, str]] = set()
        self._starts: set[tuple[str, str | bool]] = set()
        self._counted: dict[tuple[str, str], tuple[int, int]] = {}

    def counts(self, order: int, line: LogLine) -> bool:
        """Is the line one of them? Then it is counted."""
        if (line.speaker.key, line.text[:1].isdigit() or line.text[:1]) not in self._starts:
            return False
        form = line.speaker.key, line.text.translate(_NO_FIGURES)
        if form in self._known:
            self._counted[form] = order, self._counted.get(form, (0, 0))[1] + 1
        return form in self._known

    def learn(self, line: LogLine, facts: Sequence[Fact]) -> None:
        """The line says these facts: where they only recur, it is the first of its form."""
        if all(fact.kinds <= _RECURS for fact in facts):
            self._known.add((line.speaker.key, line.text.translate(_NO_FIGURES)))
            self._starts.add((line.speaker.key, line.text[:1].isdigit() or line.text[:1]))

    def last(self, finder: FactFinder, lines: Sequence[LogLine]) -> list[Fact]:
        """What the last counted line of each form says, and how many it stands for."""
        counted, self._counted = sorted(self._counted.values()), {}
        return [replace(fact, repeats=times) for order, times in counted for fact in _facts_of(finder, lines, order)]


def _following(lines: Sequence[LogLine], order: int, count: int) -> Sequence[LogLine]:
    """The next lines of the same source."""
    following = lines[order + 1 : order + 1 + count]
    own = lines[order].source
    return following if not following or following[-1].source == own else [line for line in following if line.source == own]


def _follows(lines: Sequence[LogLine], frame_at: int, order: int) -> bool:
    """Is the line at `order` within the few of the same speaker that may be the frame's source?"""
    key = lines[order].speaker.key
    between = sum(line.speaker.key == key for line in lines[frame_at + 1 : order])
    return between < 4


def _facts_of(finder: FactFinder, lines: Sequence[LogLine], order: int) -> list[Fact]:
    """What one line says."""
    rules = finder.rules_of(lines[order], lines[order + 1] if order + 1 < len(lines) else None)
    return list(_matched(finder, rules.values(), lines, order)) if rules else []


def _begun_above(finder: FactFinder, lines: Sequence[LogLine], order: int, known: set[str]) -> list[Fact]:
    """Messages that a break parted before the words they are known by: what a line without a head ends, the line above begins."""
    above, line = lines[order - 1], lines[order]
    if above.source != line.source or not above.text.strip():
        return []
    rules = finder.rules_of(line, None)
    broken = [rule for rule in rules.values() if rule.id not in known and rule.pattern and "prose" not in rule.kinds]
    return list(_matched(finder, broken, lines, order - 1)) if broken else []


def _matched(finder: FactFinder, rules: Iterable[FactRule], lines: Sequence[LogLine], order: int) -> Iterator[Fact]:
    line, following = lines[order], _following(lines, order, 8)
    words: frozenset[int] | None = None
    for rule in rules:
        patterns: Sequence[str] = (rule.pattern,)
        if "prose" in rule.kinds:
            if not may_be_prose(rule, line):
                continue
            words = finder.prose.words(line, following) if words is None else words
            patterns = finder.prose.patterns(rule, words)
        fields = _captured(rule, patterns, line, following)
        if fields is not None:
            yield Fact(
                id=rule.id, kinds=frozenset(rule.kinds), fields=fields, speaker=line.speaker, source=line.source, line=line.number,
                text=line.text, order=order,
            )  # fmt: skip


def _captured(rule: FactRule, patterns: Sequence[str], line: LogLine, following: Sequence[LogLine]) -> dict[str, Any] | None:
    if not rule.pattern:
        return {}
    best: dict[str, Any] | None = None
    for text in _readings(rule, line, following) if patterns else ():
        match = next((m for pattern in patterns if (m := _search(pattern, text)) is not None and m.start() <= len(line.text)), None)
        if match is None:  # also what begins in the next line: it is that line's
            continue
        fields = _parsed(rule, groups(match))
        if best is None or len(fields) > len(best):
            best = fields
        if len(best) == len(rule.fields) or (not rule.spans and (not following or following[0].signed)):
            break
    return best


def _search(pattern: str, text: str) -> "regex.Match[str] | None":
    """The first match; a time limit costs more than most searches, so short texts go without."""
    return search(pattern, text) if len(text) > 1500 else compiled(pattern).search(text)


def _readings(rule: FactRule, line: LogLine, following: Sequence[LogLine]) -> Iterator[str]:
    """The line as it stands, then joined with what follows: hard wrap, flowing text, or either. Prose never runs on into a log."""
    yield line.text
    prose = "prose" in rule.kinds
    spans = max(rule.spans, 1)
    tail: list[str] = []
    for nxt in following[:spans]:
        if (nxt.signed and nxt.speaker != line.speaker) or not nxt.text.strip() or (prose and nxt.level is not None):
            break
        tail.append(nxt.text)
    if tail:
        yield line.text.rstrip() + " " + " ".join(t.strip() for t in tail)
    if tail and not prose:
        yield line.text + "".join(t.lstrip() for t in tail)
        yield line.text + "".join(tail)


def _parsed(rule: FactRule, captured: dict[str, str]) -> dict[str, Any]:
    """What was captured, as values. A figure that cannot be one is left out: what the line says stays said."""
    fields: dict[str, Any] = {}
    for name, value in captured.items():
        try:
            parsed = parse(rule.fields.get(name, "text"), value)
        except ValueError:
            continue
        whole = name.partition("__")[0]  # kv_cache_bytes__1, kv_cache_bytes__2: parts of one figure
        fields[whole] = parsed if whole == name or whole not in fields else fields[whole] + parsed
    return fields
