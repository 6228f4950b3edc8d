"""The one search syntax: `gpu:h100 -phase:graph_capture version:>=0.20 since:7d "exact words" words`."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from bot.store.index import words_of
from bot.store.numbers import micros

FIELDS = {
    "gpu": "gpu", "model": "model", "family": "family", "phase": "phase", "verdict": "verdict", "outcome": "outcome", "engine": "engine",
    "version": "version", "rank": "rank", "tp": "tp", "flag": "flag", "remedy": "remedy", "error": "error_kind", "rule": "rule",
    "channel": "channel",
}  # fmt: skip
"""What people write before the colon, and the column or count that it asks."""

MOMENTS = ("since", "until")
ORDERED = ("version", "rank", "tp")

_PIECE = re.compile(r'(?P<field>[A-Za-z_-]+):(?!//)(?P<value>"[^"]*"|\S*)|"(?P<phrase>[^"]*)"|(?P<word>\S+)')
_ID = re.compile(r"[dD]-\d{1,9}")
_EXCLUDED = re.compile(r"-[^\W\d_][\w.]{3,}")
"""Not --a-flag, and not the short -tp of a start."""
_AGO = re.compile(r"(\d{1,5})\s*(m|h|d|w)", re.IGNORECASE)
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@dataclass(frozen=True, slots=True)
class Term:
    """One field condition: `sign` is one of = != >= > <= <; != is met by every other value that is known."""

    field: str
    sign: str
    value: str


@dataclass(frozen=True, slots=True)
class Query:
    """What was asked. `words` are phrases of small letters and digits, a trailing `*` for a beginning; moments in microseconds.

    `numbers`: the incidents that were named by their ids; empty: any.
    """

    terms: tuple[Term, ...] = ()
    words: tuple[str, ...] = ()
    since: int | None = None
    until: int | None = None
    ignored: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    wordless: bool = False
    """Only signs were asked for, which stand in no index: nothing is found by them."""


def parse(text: str, now: datetime) -> Query:
    """Read a query. What cannot be understood is left out and answered with what is known, one sentence each."""
    terms: list[Term] = []
    words: list[str] = []
    ignored: list[str] = []
    numbers: list[int] = []
    moments: dict[str, int] = {}
    wordless = False
    for piece in _PIECE.finditer(text):
        field = (piece["field"] or "").lower()
        if _ID.fullmatch(piece[0]):
            numbers.append(int(piece[0][2:]))
        elif _EXCLUDED.fullmatch(piece["word"] or ""):
            ignored.append(f"{piece[0][:40]}: a word cannot be excluded, only a field's value, as in -engine:sglang; it is left out.")
        elif not field or (not piece["value"] and field not in (*FIELDS, *MOMENTS)):  # `RuntimeError:` of a line that was copied is a word
            said = _phrase(piece["phrase"], piece["word"] or piece["field"])
            words += said
            if not said:
                wordless = True
                ignored.append(f"{piece[0][:40]}: there is no letter and no figure in it to search for; it is left out.")
        elif field in MOMENTS:
            at = _moment(piece["value"].strip('"'), now)
            if at is None:
                ignored.append(
                    f"{piece[0]}: {field} takes a span such as 12h, 7d or 4w, yesterday, or a date such as 2026-11-30; it is left out."
                )
            else:
                moments[field] = at
        elif field.removeprefix("-") in FIELDS:
            _field(field, piece["value"].strip('"'), terms, ignored)
        else:
            known = ", ".join((*FIELDS, *MOMENTS))
            ignored.append(f"{field}: is no field. Fields are {known}; words without a colon are searched in the logs.")
    wordless = wordless and not (terms or words or moments or numbers)
    return Query(tuple(terms), tuple(_joined(words)), moments.get("since"), moments.get("until"), tuple(ignored), tuple(numbers), wordless)


def _field(field: str, value: str, terms: list[Term], ignored: list[str]) -> None:
    without, field = field.startswith("-"), field.removeprefix("-")
    found = re.fullmatch(r"(>=|<=|==|>|<|=)?\s*(.*)", value)
    sign, bare = (found[1] or "=", found[2]) if found else ("=", value)
    sign = "=" if sign == "==" else sign
    if not bare:
        ignored.append(f"{field}: has no value. For example: {_EXAMPLES.get(field, field + ':…')}")
    elif sign != "=" and field not in ORDERED:
        ignored.append(f"{field}:{value}: only {', '.join(ORDERED)} can be compared.")
    elif without and (sign != "=" or field == "rule"):
        ignored.append(f"-{field}:{value}: only a value can be excluded, and no rule; it is left out.")
    else:
        terms.append(Term(FIELDS[field], "!=" if without else sign, bare))


_EXAMPLES = {"gpu": "gpu:h100", "phase": "phase:graph_capture", "version": "version:>=0.20", "flag": "flag:max-num-seqs"}


def _phrase(phrase: str | None, word: str | None) -> list[str]:
    said = words_of(phrase if phrase is not None else word or "")
    if not said:
        return []
    return [said + "*" if phrase is None and (word or "").endswith("*") else said]


OUT_OF_MEMORY = "out of memory"
_WRITTEN = ("outofmemoryerror", "outofmemoryexception")


def spellings(word: str) -> tuple[str, ...]:
    """A phrase of a query and the other ways in which logs write it: what people call out of memory is one word in an exception's name."""
    if OUT_OF_MEMORY not in word:
        return (word,)
    return (word, *(word.replace(OUT_OF_MEMORY, written) for written in _WRITTEN))


def _joined(words: list[str]) -> list[str]:
    """Words with `out`, `of`, `memory` in a row as the phrase that they are: apart they say nothing."""
    parts = OUT_OF_MEMORY.split()
    for start in range(len(words) - len(parts) + 1):
        if words[start : start + len(parts)] == parts:
            return [*words[:start], OUT_OF_MEMORY, *_joined(words[start + len(parts) :])]
    return words


_DAYS = {"today": 0, "yesterday": 1}


def _moment(text: str, now: datetime) -> int | None:
    if text.lower() in _DAYS:
        return micros(now.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=_DAYS[text.lower()]))
    ago = _AGO.fullmatch(text)
    if ago:
        return micros(now - timedelta(**{_UNITS[ago[2].lower()]: int(ago[1])}))
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return micros(at if at.tzinfo else at.replace(tzinfo=UTC))
