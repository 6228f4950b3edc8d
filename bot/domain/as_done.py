"""A change as somebody made it: where the word on how it ended names another value than was suggested, that one."""

import re
from collections.abc import Mapping
from typing import Any

_VALUE = r"(?P<value>(?:\d+(?:[.,]\d+)*|\.\d+)k?)"
_END = r"(?=\s*(?:$|[,;:!)?]|\.(?:\s|$)|(?:instead|now|then|and|or|but|too|here)\b))"
_SAID = re.compile(rf"(?:\b(?:with|at|to|using|is|needs?|needed)\s+(?:only\s+|just\s+|about\s+)?|=\s*){_VALUE}{_END}", re.IGNORECASE)
_BEGINS = re.compile(rf"(?<![\w.]){_VALUE}\s+(?:it is\b|did\b|was\b|works?\b|worked\b|fixed\b|helped\b|is enough\b)", re.IGNORECASE)
_DENIED = re.compile(r"(?:\b(?:not|nor|never|than|from|until)|n['’]t)\b[^,;.]{0,12}$", re.IGNORECASE)


def as_done(change: Mapping[str, Any], note: str | None) -> Mapping[str, Any]:
    """`change` with the one other value that `note` names (“it worked with 0.85”), and without a command that says otherwise."""
    told = _told(change, note or "")
    if told is None:
        return change
    further = (_figure(told) < _figure(change["value"])) == (change.get("direction") == "lower")
    direction = change["direction"] if further and change.get("direction") in ("lower", "raise") else "set"
    return {**change, "value": told, "direction": direction, "command": None}


def _told(change: Mapping[str, Any], note: str) -> str | None:
    """The value, where the change has a figure and exactly one other of its kind is named and not denied."""
    suggested = _figure(change.get("value"))
    if not change.get("flag") or suggested != suggested:
        return None
    found = {}
    for pattern in (_SAID, _BEGINS, re.compile(rf"{re.escape(str(change['flag']))}[ =]+{_VALUE}")):
        for said in pattern.finditer(note):
            figure = _figure(said["value"])
            if figure != suggested and (figure <= 1) == (suggested <= 1) and not _DENIED.search(note, 0, said.start()):
                found[figure] = said["value"]
    return next(iter(found.values())) if len(found) == 1 else None


def _figure(value: Any) -> float:
    """As a number, NaN for what is none; 32k is 32,768."""
    text = str(value).replace(",", "").lower()
    try:
        return float(text.removesuffix("k")) * (1024 if text.endswith("k") else 1)
    except ValueError:
        return float("nan")
