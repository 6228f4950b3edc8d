"""Signatures at the start of a line: which of the rulebook's formats stand there, and what they say together."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import regex

from bot.domain.evidence import Speaker
from bot.rulebook.book import Rulebook, texts
from bot.rulebook.files import FormatRule
from bot.rulebook.patterns import TIMEOUT, quick

MOST_SIGNATURES = 8
NOBODY = Speaker(key="", role="unknown")
_PART = re.compile(r"([A-Z]+)(\d+)")
_ROLES = {"rank": "worker", "ray-worker": "worker", "sglang": "worker", "tensorrt-llm": "worker", "tgi": "worker", "lmdeploy": "worker"}
_LOOK, _ANCHORED, _REMEMBERED = 3, 200, 20_000
Candidate = tuple[int, Sequence[str], "regex.Pattern[str]"]
"""The number of a format, the texts one of which it holds, and its pattern."""
Match = re.Match[str] | regex.Match[str]
Signature = tuple[FormatRule, dict[str, str]]


@dataclass(frozen=True, slots=True)
class Head:
    """What stood before a message. `carriers`: what every part of a broken line has again; `bare`: nothing else stood there."""

    signatures: Sequence[Signature] = ()
    speaker: Speaker = NOBODY
    level: str | None = None
    at: str | None = None
    file: str | None = None
    file_line: int | None = None
    carriers: tuple[str, ...] = ()
    bare: bool = True
    partial: bool = False


UNSIGNED = Head()


class Signatures:
    """The formats, tried at the start of a line again and again; by its first letters, most of them are not tried at all."""

    def __init__(self, book: Rulebook) -> None:
        self._rules = list(book.formats)
        self._formats: list[Candidate] = [
            (number, texts(rule.anchor) or [""], regex.compile(rule.pattern, regex.VERBOSE | regex.VERSION1))
            for number, rule in enumerate(self._rules)
        ]
        self._by_start: dict[str, list[Candidate]] = {}
        self._heads: dict[tuple[str | int, ...], Head] = {}

    def peel(self, text: str, group: str = "") -> tuple[str, Head]:
        """What is left of a line, and what its signatures say; `group` is the container that an export names."""
        matches: list[tuple[int, Match]] = []
        rest = text
        while len(matches) < MOST_SIGNATURES:
            stripped = rest.lstrip(" \t")
            found = self._match(stripped) if stripped else None
            if found is None or found[1].end() == 0:
                break
            matches.append(found)
            rest = stripped[found[1].end() :]
        if not matches:
            return text, self._head(matches, group) if group else UNSIGNED
        stripped = rest.lstrip(" \t")
        rest = rest if stripped.startswith(("File ", "Traceback")) else stripped
        return rest, self._head(matches, group, text[: len(text) - len(rest)])

    def _head(self, matches: Sequence[tuple[int, Match]], group: str, signed: str = "") -> Head:
        """The same text under the same formats says the same, so that each head is put together once."""
        key: tuple[str | int, ...] = (group, signed, *(number for number, _ in matches))
        head = self._heads.get(key)
        if head is None:
            if len(self._heads) >= _REMEMBERED:
                self._heads.clear()
            head = self._heads[key] = head_of([self._signature(number, match) for number, match in matches], group)
        return head

    def _signature(self, number: int, match: Match) -> Signature:
        return self._rules[number], {k: v for k, v in match.groupdict().items() if v is not None}

    def _match(self, text: str) -> tuple[int, Match] | None:
        """The first format that stands at the beginning."""
        start = text[:_LOOK]
        candidates = self._by_start.get(start)
        if candidates is None:
            candidates = self._starting(start)
        head = text[:_ANCHORED]
        for number, anchors, pattern in candidates:
            for anchor in anchors:
                if anchor in head:
                    match = quick(self._rules[number].pattern).match(text) if len(text) < 1000 else _bounded(pattern, text)
                    if match is not None:
                        return number, match
                    break
        return None

    def _starting(self, start: str) -> list[Candidate]:
        """The formats that may begin so."""
        if len(self._by_start) >= _REMEMBERED:
            self._by_start.clear()
        found = [one for one in self._formats if one[2].match(start, partial=True) is not None]
        return self._by_start.setdefault(start, found)


def _bounded(pattern: "regex.Pattern[str]", text: str) -> Match | None:
    """A match under the time limit, which costs more than most matches."""
    try:
        return pattern.match(text, timeout=TIMEOUT)
    except TimeoutError:
        return None


@lru_cache(maxsize=8)
def signatures_of(book: Rulebook) -> Signatures:
    """One Signatures for each rulebook."""
    return Signatures(book)


def head_of(found: Sequence[Signature], group: str = "") -> Head:
    """What signatures say together, outermost first; the last process named speaks, a rank line only where nobody else does."""
    fields: dict[str, str] = {}
    named: Signature | None = None
    groups = [group] if group else []
    rank: str | None = None
    for rule, values in found:
        fields |= values
        if "container" in values:
            groups.append(values["container"])
        if rule.role == "rank":
            rank = values["rank"]
        if rule.role and (rule.role != "rank" or named is None):
            named = (rule, values)
    if named is not None and "ip" in fields:
        named = (named[0], named[1] | {"ip": fields["ip"]})  # Ray's tag stands outside the worker's own
    carriers = tuple(rule.id for rule, _ in found if carries(rule))
    return Head(
        signatures=found, speaker=_speaker(named, ".".join(groups), rank), level=fields.get("level"), at=fields.get("at"),
        file=fields.get("file"), file_line=int(fields["file_line"]) if "file_line" in fields else None,
        carriers=carriers, bare=len(carriers) == len(found),
        partial=any(values.get("stream") == "P" for _, values in found),
    )  # fmt: skip


def carries(rule: FormatRule) -> bool:
    """Is it the signature of what carries an engine's line (a container, a quote), which every broken part has again?"""
    return not rule.role and "(?P<level>" not in rule.pattern and "(?P<file>" not in rule.pattern


def _speaker(named: Signature | None, group: str, rank: str | None) -> Speaker:
    if named is None:
        return Speaker(key=f"|{group}", group=group) if group else NOBODY
    rule, values = named
    return _process(rule.role, tuple(values.items()), group, rank)


@lru_cache(maxsize=4096)
def _process(role: str, signed: tuple[tuple[str, str], ...], group: str, rank: str | None) -> Speaker:
    """The same signature in the same group is the same process."""
    values = dict(signed)
    label = values.get("label", "").strip() or (f"rank {values['rank']}" if "rank" in values else role)
    pid = values.get("pid", "")
    parts = {k.lower(): int(v) for k, v in _PART.findall(values.get("parts", ""))}
    if (number := values.get("rank", rank)) is not None:
        parts["rank"] = int(number)
    if "engine" in values:
        parts["engine"] = int(values["engine"])
    return Speaker(
        key=f"{label}|{pid}|{values.get('ip', '')}|{group}", role=_ROLES.get(role, role) or "unknown", label=label,
        pid=int(pid) if pid.isdigit() else None, ip=values.get("ip"), group=group, parts=parts,
    )  # fmt: skip
