"""Counts as rows of bars: what is drawn, what it says in words, and where a click leads."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from bot.web import phrases

MOST = 8


@dataclass(frozen=True, slots=True)
class Bar:
    """One row: `share` is of the longest bar, in percent; `link` narrows the list to this value."""

    label: str
    count: int
    share: float
    link: str
    chosen: bool


def narrowed(query: Mapping[str, str], **changed: str) -> str:
    """The list's address with some filters changed; an empty one is taken away."""
    kept = {name: value for name, value in {**query, **changed}.items() if value}
    return f"/history?{urlencode(kept)}" if kept else "/history"


def bars(counts: Mapping[str, int], name: str, query: Mapping[str, str]) -> list[Bar]:
    """The most frequent values first. A value that is chosen already leads back to all of them."""
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:MOST]
    most = max((count for _, count in ordered), default=1) or 1
    return [_bar(value, count, most, name, query) for value, count in ordered]


def _bar(value: str, count: int, most: int, name: str, query: Mapping[str, str]) -> Bar:
    chosen = query.get(name) == value
    label = phrases.phase(value) if name == "phase" else phrases.OUTCOME_SAID.get(value, "none yet") if name == "outcome" else value
    return Bar(label or "(none)", count, round(100 * count / most, 1), narrowed(query, **{name: "" if chosen else value}), chosen)
