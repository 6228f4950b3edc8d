"""What the lines say: every message that the rulebook knows, and every traceback frame."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

from bot.domain.evidence import Fact, Frame, LogLine
from bot.reading.anchored import BEFORE, BEHIND, SHORT, finder_of, matched
from bot.reading.figures import Figures
from bot.reading.prose import Talking, is_unsigned
from bot.reading.said import speech_of
from bot.reading.sieved import sieved
from bot.reading.tracebacks import Tracebacks, next_lines
from bot.rulebook.book import Rulebook
from bot.rulebook.fields import parse
from bot.rulebook.files import FactRule, Moment
from bot.rulebook.patterns import compiled, groups

_RAISED = re.compile(r"[\"')]\s*\w*(?:Error|Exception): ")  # a title that quotes the source line and then what it raised
LATELY = 20
"""Facts among which the same message may stand already."""
"""What people's words hold too; beside any other message of a program they say little."""
_NO_FIGURES = str.maketrans("", "", "0123456789 #█▉▊▋▌▍▎▏")
_RECURS = frozenset({"recurring", "progress", "ready", "capture-bar"})
"""What lines say that differ in nothing but figures: throughput, access, a progress bar with its blocks."""


def read_facts(book: Rulebook, lines: Sequence[LogLine]) -> tuple[list[Fact], list[Frame]]:
    """All facts and frames, in the order of the text. `order` counts both, so that they can be compared."""
    facts: list[Fact] = []
    tracebacks = Tracebacks(lines)
    talking = Talking(book)
    reader = _Reader(book, lines, talking)
    recurring = _Recurring()
    spoken: list[int] = []
    for order, line in enumerate(lines):
        if not line.text or tracebacks.takes(order) or recurring.counts(order, line) or _only_raises(line.text):
            continue
        if line in talking:
            spoken.append(order)
        found = reader.facts_of(order)
        if order and not line.signed and (begun := reader.begun_above(order, found)):
            known = {(fact.id, fact.order) for fact in facts[-LATELY:]}
            facts += [*recurring.last(reader), *(fact for fact in begun if (fact.id, fact.order) not in known)]
        if found:
            facts += [*recurring.last(reader), *found]
            recurring.learn(line, found)
    facts += recurring.last(reader)
    said = list(_said(book, lines, spoken))
    return (sorted([*facts, *said], key=lambda fact: fact.order) if said else facts), tracebacks.frames


def _only_raises(text: str) -> bool:
    """A statement of source code that says nothing of what it raised."""
    return "raise " in text and text.lstrip().startswith("raise ") and not _RAISED.search(text)


def _said(book: Rulebook, lines: Sequence[LogLine], spoken: Sequence[int]) -> Iterator[Fact]:
    """What people say in the lines that are theirs, each at the line where it says so."""
    paragraphs = list(_paragraphs(lines, spoken))
    flowing = [_flowing([lines[order].text for order in paragraph]) for paragraph in paragraphs]
    for paragraph, every in zip(paragraphs, speech_of(book).read(flowing) if flowing else (), strict=True):
        begins = list(accumulate((len(lines[order].text) + 1 for order in paragraph), initial=0)) if every else ()
        for said in every:
            order = paragraph[bisect_right(begins, said.at) - 1]
            yield _of_moment(said.moment, lines[order], order)


def _of_moment(moment: Moment, line: LogLine, order: int) -> Fact:
    return Fact(
        id=moment.id, kinds=frozenset(moment.kinds), fields={}, speaker=line.speaker, source=line.source, line=line.number, text=line.text,
        order=order,
    )  # fmt: skip


def _paragraphs(lines: Sequence[LogLine], spoken: Sequence[int]) -> Iterator[list[int]]:
    """Lines of talk that follow one another, empty ones between them left out."""
    paragraph: list[int] = []
    for order in spoken:
        if paragraph and (
            lines[order].source != lines[order - 1].source
            or (order > paragraph[-1] + 1 and any(line.text.strip() for line in lines[paragraph[-1] + 1 : order]))
        ):
            yield paragraph
            paragraph = []
        paragraph.append(order)
    if paragraph:
        yield paragraph


_HEADING = re.compile(r"\s{0,3}#{1,6} ")


def _flowing(texts: Sequence[str]) -> str:
    """The lines as one text: a sentence goes on in a line that begins with a small letter, quoted or not; else it ends with its line,
    as a heading does.
    """
    return "".join(
        text + (" " if after.lstrip(" #>")[:1].islower() and not _HEADING.match(text) else "\n")
        for text, after in zip(texts, [*texts[1:], ""], strict=True)
    )


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
        if not self._starts or (line.speaker.key, line.text[:1].isdigit() or line.text[:1]) not in self._starts:
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

    def last(self, reader: "_Reader") -> list[Fact]:
        """What the last counted line of each form says, and how many it stands for."""
        counted, self._counted = sorted(self._counted.values()), {}
        return [replace(fact, repeats=times) for order, times in counted for fact in reader.facts_of(order)]


class _Reader:
    """What single lines say. A text is read once under each rule: eight ranks say the same."""

    def __init__(self, book: Rulebook, lines: Sequence[LogLine], talking: Talking) -> None:
        self._finder = finder = finder_of(book)
        self._figures = Figures(book)
        self._lines = lines
        self._anchored = sieved(finder.anchored(lines), lines, self._figures, talking)
        self._read: dict[tuple[str, str, int], dict[str, Any] | None] = {}
        self._breaks: dict[tuple[str, str], Mapping[str, FactRule]] = {}

    def facts_of(self, order: int) -> list[Fact]:
        """What the line at this place says."""
        rules = self._anchored.get(order, {})
        if broken := self._broken(order):
            rules = {**rules, **broken}
        if not rules:
            return []
        found = list(self._matched(rules.values(), order))
        return [fact for fact in found if "retold" not in fact.kinds or not _printed(fact, found)]

    def _broken(self, order: int) -> Mapping[str, FactRule]:
        """The rules with an anchor in the break behind the line, if it may go on there."""
        if order + 1 == len(self._lines):
            return {}
        line, after = self._lines[order], self._lines[order + 1]
        if after.source != line.source or (after.signed and after.speaker.key != line.speaker.key):
            return {}
        parted = line.text, after.text
        if parted not in self._breaks:
            self._breaks[parted] = self._finder.broken(*parted)
        return self._breaks[parted]

    def begun_above(self, order: int, said: Sequence[Fact]) -> list[Fact]:
        """Messages that a break parted before the words they are known by: what a line without a head ends, the line above begins."""
        rules = self._anchored.get(order)
        if rules is None:
            return []
        above, line = self._lines[order - 1], self._lines[order]
        if above.source != line.source or not above.text.strip():
            return []
        known = {fact.id for fact in said}
        broken = [rule for rule in rules.values() if rule.id not in known and rule.pattern and "prose" not in rule.kinds]
        return list(self._matched(broken, order - 1)) if broken else []

    def _matched(self, rules: Iterable[FactRule], order: int) -> Iterator[Fact]:
        line = self._lines[order]
        going_on = _GoingOn(line, next_lines(self._lines, order, 8))
        unsigned = is_unsigned(line)
        own = self._anchored.get(order, {})
        for rule in rules:
            if "prose" in rule.kinds and not unsigned:
                continue
            fields = self._captured(rule, going_on, alone=rule.id in own)
            if fields is not None and _falls_short(rule, fields):
                yield Fact(
                    id=rule.id, kinds=frozenset(rule.kinds), fields=fields, speaker=line.speaker, source=line.source, line=line.number,
                    text=line.text, order=order, at=line.at,
                )  # fmt: skip

    def _captured(self, rule: FactRule, going_on: "_GoingOn", *, alone: bool) -> dict[str, Any] | None:
        """What the rule captures of the line, if a text that it needs stands in it, or of it and what follows: where the line goes on,
        more of its fields may stand there.
        """
        if not rule.pattern:
            return {}
        within = len(going_on.line.text)
        best = self._fields(rule, going_on.line.text, within) if alone else None
        enough = 0 if not rule.spans and going_on.ends else len(rule.fields)
        if best is not None and len(best) >= enough:
            return best
        for text in going_on.joined(rule):
            fields = self._fields(rule, text, within, at_break=best is None and within > SHORT)
            if fields is not None and (best is None or len(fields) > len(best)):
                best = fields
                if len(best) >= enough:
                    break
        return best

    def _fields(self, rule: FactRule, text: str, within: int, *, at_break: bool = False) -> dict[str, Any] | None:
        """What the rule captures; None where it does not match, or only what begins in the next line: that is the next line's."""
        known = (rule.id, text, within)  # the same text, joined from other lines, may begin elsewhere
        if known not in self._read:
            if rule.figure and not self._figures.stand_in(text, rule.id):
                match = None
            elif len(text) <= SHORT:
                match = compiled(rule.pattern).search(text)
            else:
                match = matched(rule, text, within - BEFORE, within + BEHIND) if at_break else matched(rule, text)
            self._read[known] = None if match is None or match.start() > within else _parsed(rule, groups(match))
        return self._read[known]


def _falls_short(rule: FactRule, fields: Mapping[str, Any]) -> bool:
    """Is each figure that the rule says to be below another one below it, where the line gives both?"""
    return all(fields[less] < fields[more] for less, more in rule.below.items() if less in fields and more in fields)


def _printed(retold: Fact, found: Sequence[Fact]) -> bool:
    """Does the line hold the message as an engine prints it, with all that a looser reading of the line says?"""
    said = retold.kinds - {"prose", "retold"}
    return any(said <= f.kinds and "retold" not in f.kinds and retold.fields.keys() <= f.fields.keys() for f in found)


class _GoingOn:
    """A line with what follows it, as one text: hard wrap, flowing text, or either. Prose never runs on into a log."""

    def __init__(self, line: LogLine, following: Sequence[LogLine]) -> None:
        self.line = line
        self.ends = not following or following[0].signed
        self._following = following
        self._joined: dict[tuple[int, bool], Sequence[str]] = {}

    def joined(self, rule: FactRule) -> Sequence[str]:
        """The texts in which a rule may find what begins in the line."""
        how = rule.spans, "prose" in rule.kinds
        if how not in self._joined:
            self._joined[how] = self._texts(*how)
        return self._joined[how]

    def _texts(self, spans: int, prose: bool) -> Sequence[str]:
        tail = self._tail(spans, prose)
        if not tail:
            return ()
        text = self.line.text
        spaced = f"{text.rstrip()} {' '.join(map(str.strip, tail))}"
        if prose:
            return (spaced,)
        tight, loose = "".join(map(str.lstrip, tail)), "".join(tail)
        return (spaced, text + tight) if loose == tight else (spaced, text + tight, text + loose)

    def _tail(self, spans: int, prose: bool) -> Sequence[str]:
        """The lines behind this one that may go on with what it says."""
        tail: list[str] = []
        for nxt in self._following[: max(spans, 1)]:
            empty = not nxt.text or nxt.text.isspace()
            if empty and spans > 1 and not prose and not nxt.signed:
                continue  # a paragraph for each part of the message
            if empty or (nxt.signed and nxt.speaker != self.line.speaker) or (prose and nxt.level is not None):
                break
            tail.append(nxt.text)
        return tail


def _parsed(rule: FactRule, captured: dict[str, str]) -> dict[str, Any]:
    """What was captured, as values. A figure that cannot be one is left out: what the line says stays said."""
    fields: dict[str, Any] = {}
    for name, value in captured.items():
        try:
            parsed = parse(rule.fields.get(name, "text"), value)
        except ValueError:
            continue
        whole, _, part = name.partition("__")  # kv_cache_bytes__1, kv_cache_bytes__2: parts of one figure
        if part.startswith("times_"):  # free__times_banks: of each of them
            parsed *= fields.get(part.removeprefix("times_"), 1)
        fields[whole] = parsed if not part or whole not in fields else fields[whole] + parsed
    return fields
