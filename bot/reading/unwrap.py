"""Log lines out of what a log system exported: JSON records one a line or pretty-printed, and CSV."""

import csv
import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter
from typing import Any, NamedTuple

from bot.reading.stacks import frame_lines, raised_line, stack

MESSAGE_KEYS = ("message", "textPayload", "log", "msg", "line", "Line", "body", "content", "MESSAGE", "text", "event")
_SURE_KEYS = ("message", "textPayload", "log", "msg", "line", "MESSAGE")
"""Enough without a time; the others stand in any JSON."""
_TIME_KEYS = ("timestamp", "@timestamp", "time", "asctime", "date", "ts", "__REALTIME_TIMESTAMP")
_TELLING = tuple(f'"{key}"' for key in (*_TIME_KEYS, *_SURE_KEYS))
"""Without one of these keys an object is no record of a log."""
_GROUP_KEYS = ("container_name", "pod_name", "containerName", "podName", "pod", "container", "host", "hostname", "service", "_SYSTEMD_UNIT")
_LEVEL_KEYS = ("levelname", "level", "severity", "status")
_ONE_LINE = re.compile(r'^\s*"(?:textPayload|message|log|msg|line|body|MESSAGE)"\s*:\s*"((?:[^"\\]|\\.)*)"?\s*,?\s*\}?,?\s*$')
_HEADER = re.compile(r'"?[\w@. /-]{1,40}"?(?:,"?[\w@. /-]{1,40}"?)*$')
_TOKEN = re.compile(r'"([^"\\]*+(?:\\.[^"\\]*+)*+)"\s*(:?)|"(.+?)\\?$|([{}\[\]:])|([^\s"{}\[\]:,]+)', re.DOTALL)
"""A text, and the colon that makes it a key; one without an end; a bracket, or a colon apart; a figure or a word."""
_LENIENT = json.JSONDecoder(strict=False)
_COLUMNS = {"message", "content", "line", "log", "textpayload", "body", "msg", "jsonpayload.message", "_source.message", "@message"}


class Shipped(NamedTuple):
    """One line of a log, and what its export says about it."""

    number: int
    text: str
    group: str = ""
    at: str | None = None
    level: str | None = None
    part: int = 0  # 0 is the first line of a record


def unwrap(lines: Sequence[tuple[int, str]]) -> Sequence[Shipped]:
    """The lines themselves; those of an export instead where there is one, oldest first."""
    documents: list[Shipped] = []
    while (head := next((text.strip() for _, text in lines if text.strip()), "")) and _pretty(head.rstrip(",")):
        records, end = _tree(lines)
        if not records:
            break
        documents += _oldest_first(records)
        lines = lines[bisect_right(lines, end, key=itemgetter(0)) :]
    return [*documents, *_unwrapped(lines)] if documents else _unwrapped(lines)


def _unwrapped(lines: Sequence[tuple[int, str]]) -> Sequence[Shipped]:
    table = _table(lines)
    if table:
        return _oldest_first(table)
    found: list[Shipped] = []
    ordered = True
    for number, raw in lines:
        first = raw.lstrip()[:1]
        if first == "{" and len(raw) > 20 and (records := list(_record_line(number, raw))):
            found += records
            ordered = ordered and records[0].at is None
        elif first == "[" and '{"' in raw[:200] and (records := _tree([(number, raw)])[0]):
            found += _oldest_first(records)
        elif first == '"' and (match := _ONE_LINE.match(raw)) is not None:
            found += _split(Shipped(number, _unescaped(match[1])))
        else:
            found.append(Shipped(number, raw))
    return found if ordered else _oldest_first(found)


def _pretty(head: str) -> bool:
    """Does a JSON document begin here, over several lines or as an array on one? Lines of JSON records do not count."""
    if head[:1] == "{" and head.endswith("}") and len(head) > 2:
        return any(key in head for key in ('"values"', '"events"', '"data"', '"hits"'))
    return head in ("{", "[", "[{") or head.startswith(('[{"', '[ {"', '{"', "[["))


def _record_line(number: int, raw: str) -> Iterator[Shipped]:
    text = raw.strip().rstrip(",]")  # of an array, the brackets may be lost or stand on other lines
    if not text.endswith("}") or not _may_be_record(text):
        return
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return
    if isinstance(record, dict):
        fields = _flat(record)
        if '"frames"' in text:
            fields["frames"] = "\n".join(stack(record))
        if (shipped := _of_record(number, fields)) is not None:
            yield from _split(shipped)


def _may_be_record(text: str) -> bool:
    for key in _TELLING:
        if key in text:
            return True
    return "\\u" in text  # a key may be written so


def _flat(record: Mapping[str, Any], depth: int = 0) -> dict[str, str]:
    """Text fields by their last name; outer ones win."""
    flat: dict[str, str] = {}
    inside: dict[str, str] = {}
    for name, value in record.items():
        if isinstance(value, str):
            flat[name] = value
        elif isinstance(value, dict):
            inside = _flat(value, depth + 1) | inside if depth < 6 else inside
        elif isinstance(value, int | float) and not isinstance(value, bool):
            flat[name] = str(value)
    return inside | flat if inside else flat


def _first(keys: Sequence[str], fields: Mapping[str, str]) -> str | None:
    """The first of these keys that is there."""
    for key in keys:  # every record is asked, and next() takes twice the time
        if key in fields:
            return key
    return None


def _of_record(number: int, fields: Mapping[str, str]) -> Shipped | None:
    said, timed = _first(MESSAGE_KEYS, fields), _first(_TIME_KEYS, fields)
    if said is None or (timed is None and _first(_SURE_KEYS, fields) is None):
        return None
    message = fields[said]
    for value in fields.values():  # the traceback stands apart: exc_info, exception, stack_trace, error.stack, …
        if '", line ' in value and value.strip() not in message:
            message += "\n" + value
            break
    process = fields.get("processName")
    if process and "levelname" in fields:
        message = f"({process} pid={fields.get('process', 0)}) {message}"
    elif (rank := fields.get("rank", "")).isdecimal():
        message = f"[rank{rank}]: {message}"
    named = dict.fromkeys(fields[k] for k in _GROUP_KEYS[:2] if fields.get(k))
    group = ".".join(named) or next((fields[k] for k in _GROUP_KEYS if fields.get(k)), "")
    level = next((fields[k].upper() for k in _LEVEL_KEYS if fields.get(k, "").isalpha()), None)
    engine = level if process else None  # a log system's severity is the stream's, not the engine's
    return Shipped(number, message, group, None if timed is None else fields[timed], engine)


def _split(shipped: Shipped) -> Iterator[Shipped]:
    """A record of several lines as its lines, all at one place of the export."""
    if "\n" not in shipped.text and "\r" not in shipped.text:
        yield shipped
        return
    for part, text in enumerate(shipped.text.rstrip("\n").split("\n")):
        yield shipped._replace(text=text.rstrip("\r"), part=part)


def _oldest_first(records: Sequence[Shipped]) -> Sequence[Shipped]:
    """Turned around when the export lists the newest first; lines of one record keep their order."""
    times = [r.at for r in records if r.at]
    if len(times) < 2 or times[0] <= times[-1] or sum(a >= b for a, b in pairwise(times)) < 0.8 * (len(times) - 1):
        return records
    blocks: list[list[Shipped]] = []
    for record in records:
        if blocks and record.part:
            blocks[-1].append(record)
        else:
            blocks.append([record])
    return [record for block in reversed(blocks) for record in block]


def _unescaped(text: str) -> str:
    """What stands between quotation marks, as it is meant."""
    if "\\" not in text:
        return text
    try:
        return str(_LENIENT.raw_decode(f'"{text}"')[0])
    except ValueError:
        return text


@dataclass(slots=True)
class _Open:
    """An object or array that is being read."""

    kind: str
    key: str | None
    fields: dict[str, str]
    places: dict[str, int]
    inner: list[tuple[int, dict[str, str]]]
    items: list[tuple[str, int]]


def _tree(lines: Sequence[tuple[int, str]]) -> tuple[list[Shipped], int]:
    """(records of a JSON document, cut off or whole, each at the line of its message; the line that it ends on)."""
    stack = [_Open("[", None, {}, {}, [], [])]
    key: str | None = None
    text = ""
    end = number = 0
    for number, string, colon, mark, word in _tokens(lines):
        top = stack[-1]
        if mark in ("{", "[") and len(stack) < 200:
            stack.append(_Open(mark, key or top.key, {}, {}, [], []))
            key, text = None, ""
        elif mark in ("}", "]") and len(stack) > 1:
            _close(stack.pop(), stack[-1])
            key = None
            if len(stack) == 1:
                end = number
                break
        elif mark or colon:
            key = _unescaped(string) if colon else text
        else:
            text = word or _unescaped(string)
            if top.kind == "[":
                top.items.append((text, number))
            elif key is not None:
                top.fields[key], top.places[key], key = text, number, None
    while len(stack) > 1:
        _close(stack.pop(), stack[-1])
    shipped = [_of_record(place, fields) for place, fields in stack[0].inner]
    return [line for record in shipped if record is not None for line in _split(record)], end or number


def _tokens(lines: Sequence[tuple[int, str]]) -> Iterator[tuple[int, str, str, str, str]]:
    """(line, text, its colon, bracket or colon apart, word) of each.

    A text that ends nowhere was cut off with the export; elsewhere its quotation mark is one too many.
    """
    last = next((number for number, text in reversed(lines) if text.strip()), 0)
    for number, given in lines:
        for text, colon, endless, mark, word in _TOKEN.findall(given):
            if endless and number != last:
                yield from ((number, "", "", mark, word) for _, _, _, mark, word in _TOKEN.findall(endless.replace('"', " ")))
            else:
                yield number, text or endless, colon, mark, word


def _close(done: _Open, parent: _Open) -> None:
    """What an object says about itself passes to the records inside it; one without records tells its parent."""
    if done.kind == "[":
        if len(done.items) == 2 and done.key == "values":
            (at, _), (line, number) = done.items
            done.inner.append((number, {"timestamp": at, "line": line}))
        parent.inner += done.inner
        return
    message = _first(MESSAGE_KEYS, done.fields)
    if done.key == "frames":
        done.inner += [(done.places["filename"], {"message": line}) for line in frame_lines(done.fields)]
    elif done.inner:
        said = done.places.get("exc_value", done.places.get("value", 0))
        done.inner += [(said, {"message": line}) for line in raised_line(done.fields)]
    for _, fields in done.inner:
        for name, value in done.fields.items():
            fields.setdefault(name, value)
    if message is not None and not done.inner:
        done.inner.append((done.places[message], done.fields))
    elif not done.inner:
        for name, value in done.fields.items():
            parent.fields.setdefault(name, value)
            parent.places.setdefault(name, done.places[name])
    parent.inner += done.inner


def _table(lines: Sequence[tuple[int, str]]) -> list[Shipped]:
    """Rows of a CSV whose header names a message column."""
    start = next((n for n, (_, text) in enumerate(lines[:5]) if text.strip()), None)
    if start is None or "," not in lines[start][1] or not _HEADER.match(lines[start][1].strip()):
        return []
    names = [name.strip().strip('"').lower() for name in lines[start][1].strip().split(",")]
    column = next((n for n, name in enumerate(names) if name in _COLUMNS), None)
    if column is None:
        return []
    found: list[Shipped] = []
    for number, cells in _rows(lines[start + 1 :]):
        fields = dict(zip(names, cells, strict=False))
        if column < len(cells):
            at = next((fields[k] for k in ("date", "time", "timestamp", "@timestamp", "tsns") if fields.get(k)), None)
            group = next((fields[k] for k in ("pod_name", "pod", "container_name", "container", "host", "service") if fields.get(k)), "")
            first = cells[column]
            inner = list(_record_line(number, first)) if first.startswith("{") else []
            found += inner or [Shipped(number + n, text, group, at, None, n) for n, text in enumerate(first.split("\n"))]
    return found


def _rows(lines: Sequence[tuple[int, str]]) -> Iterator[tuple[int, list[str]]]:
    """(line of the row's beginning, its cells); a quoted cell may run over lines."""
    held: list[str] = []
    first = 0
    quotes = 0
    for number, text in lines:
        first = first if held else number
        held.append(text)
        quotes += text.count('"')
        if quotes % 2 and len(held) < 2000:
            continue
        row = "\n".join(held)
        held, quotes = [], 0
        if row.strip():
            yield first, _cells(row)
    if held:
        yield first, _cells("\n".join(held))


def _cells(row: str) -> list[str]:
    try:
        return next(csv.reader([row]))
    except csv.Error:  # a cell of more than 128 KiB, a return outside quotation marks
        return row.split(",")
