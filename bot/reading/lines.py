"""Peels the signatures off each line: who speaks, at which level, from which source line."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from bot.domain.evidence import LogLine, Speaker
from bot.reading.text import clean
from bot.rulebook.book import Rulebook, texts
from bot.rulebook.files import FormatRule
from bot.rulebook.patterns import compiled

NOBODY = Speaker(key="", role="unknown")
_PART = re.compile(r"([A-Z]+)(\d+)")
_GLUED = re.compile(
    r"(?<=\S)(?<!\) )(?=\((?:Worker|EngineCore|VllmWorker|RayWorker|APIServer)[\w ]*(?: rank=\d+)? ?pid=\d+[^)]*\) (?:\(|INFO|ERROR|WARNING|DEBUG|File))"
    r"|(?<=[^\s\])|]) ?(?=(?:INFO|ERROR|WARNING|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d \[?[\w./]+\.py:\d+\])"
)
_REPEATED = re.compile(r"\s*\[repeated (\d+)x across cluster\].*$")
_JSON_TEXT = re.compile(r'^\s*"(?:textPayload|message|log|msg|line|body)"\s*:\s*"((?:[^"\\]|\\.)*)"?,?\s*$')
_JSON_KEYS = ("message", "textPayload", "log", "msg", "line", "body", "content", "text")
_ROLES = {"rank": "worker", "ray-worker": "worker", "sglang": "worker", "tensorrt-llm": "worker", "tgi": "worker", "lmdeploy": "worker"}
_SPLIT = re.compile(r"\r+|(?<=[\d\]s%])(?=\(Worker_)")
MOST_SIGNATURES = 8


class Signatures:
    """The rulebook's formats, ready to be tried at the start of a line."""

    def __init__(self, book: Rulebook) -> None:
        self._formats = [(rule, texts(rule.anchor), compiled(rule.pattern)) for rule in book.formats]

    def peel(self, text: str) -> tuple[str, list[tuple[FormatRule, dict[str, str]]]]:
        """What is left of a line, and the signatures that stood before it, outermost first."""
        found: list[tuple[FormatRule, dict[str, str]]] = []
        while len(found) < MOST_SIGNATURES:
            stripped = text.lstrip(" \t") if found or text[:1] in " \t" else text
            head = stripped[:200]
            for rule, anchors, pattern in self._formats:
                if not any(anchor in head for anchor in anchors):
                    continue
                match = pattern.match(stripped)
                if match is not None and match.end() > 0:
                    found.append((rule, {k: v for k, v in match.groupdict().items() if v is not None}))
                    text = stripped[match.end() :]
                    break
            else:
                return (stripped if found and not stripped.startswith(("File ", "Traceback")) else text), found
        return text, found


@lru_cache(maxsize=8)
def signatures_of(book: Rulebook) -> Signatures:
    """One Signatures for each rulebook."""
    return Signatures(book)


def sign(book: Rulebook, source: int, lines: Iterable[tuple[int, str]]) -> Iterator[LogLine]:
    """LogLines of numbered text lines. A line glued from several, or rewritten by a progress bar, gives several of one number."""
    peel = signatures_of(book).peel
    previous: Speaker | None = None
    for number, raw in lines:
        for piece in _pieces(_unwrap_json(raw)):
            text, found = peel(clean(piece))
            line = _log_line(source, number, text, found)
            previous = line.speaker
            yield line
    del previous


def _pieces(raw: str) -> Sequence[str]:
    parts = [p for p in _SPLIT.split(raw) if p.strip()] if "\r" in raw or "(Worker_" in raw else [raw]
    pieces: list[str] = []
    for part in parts or [raw]:
        if len(part) > 120:
            pieces += [p for p in _GLUED.split(part) if p]
        else:
            pieces.append(part)
    return pieces or [raw]


def _unwrap_json(raw: str) -> str:
    head = raw.lstrip()[:1]
    if head == '"':
        match = _JSON_TEXT.match(raw)
        if match is not None:
            try:
                return str(json.loads(f'"{match[1]}"')).rstrip("\n")
            except ValueError:
                return match[1]
    if head == "{" and raw.rstrip().rstrip(",").endswith("}") and len(raw) > 20:
        return _json_message(raw.strip().rstrip(",")) or raw
    return raw


def _json_message(raw: str) -> str | None:
    try:
        record = json.loads(raw)
    except ValueError:
        return None
    if not isinstance(record, dict):
        return None
    inner: Any = next((record[k] for k in _JSON_KEYS if isinstance(record.get(k), str)), None)
    if inner is None and isinstance(record.get("jsonPayload"), dict):
        inner = record["jsonPayload"].get("message")
    if not isinstance(inner, str):
        return None
    process, level = record.get("processName"), record.get("levelname") or record.get("level")
    if isinstance(process, str) and isinstance(level, str):
        return f"({process} pid={record.get('process', 0)}) {level} {inner}".rstrip("\n")
    return inner.rstrip("\n")


def _log_line(source: int, number: int, text: str, found: list[tuple[FormatRule, dict[str, str]]]) -> LogLine:
    fields: dict[str, str] = {}
    named: tuple[FormatRule, dict[str, str]] | None = None
    group: list[str] = []
    rank: str | None = None
    for rule, values in found:
        fields |= values
        if "container" in values:
            group.append(values["container"])
        if rule.role == "rank":
            rank = values["rank"]
        if rule.role and (rule.role != "rank" or named is None):
            named = (rule, values)
    repeats = 1
    if "[repeated" in text and (repeated := _REPEATED.search(text)):
        repeats, text = int(repeated[1]) + 1, text[: repeated.start()]
    return LogLine(
        source=source, number=number, text=text, speaker=_speaker(named, ".".join(group), rank), repeats=repeats, signed=bool(found),
        level=fields.get("level"), at=fields.get("at"), file=fields.get("file"),
        file_line=int(fields["file_line"]) if "file_line" in fields else None,
    )  # fmt: skip


def _speaker(named: tuple[FormatRule, dict[str, str]] | None, group: str, rank: str | None) -> Speaker:
    if named is None:
        return NOBODY if not group else Speaker(key=f"|{group}", group=group)
    rule, values = named
    label = values.get("label", "").strip() or (f"rank {values['rank']}" if "rank" in values else rule.role)
    pid = values.get("pid", "")
    parts = {k.lower(): int(v) for k, v in _PART.findall(values.get("parts", ""))}
    if (number := values.get("rank", rank)) is not None:
        parts["rank"] = int(number)
    if "engine" in values:
        parts["engine"] = int(values["engine"])
    key = f"{label}|{pid}|{values.get('ip', '')}|{group}"
    return Speaker(
        key=key, role=_ROLES.get(rule.role, rule.role) or "unknown", label=label, pid=int(pid) if pid.isdigit() else None,
        ip=values.get("ip"), group=group, parts=parts,
    )  # fmt: skip
