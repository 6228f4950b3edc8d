"""What people write after the colon, as the exact values that were ever stored: `gpu:h100` is H100-80GB."""

import re
from collections.abc import Sequence

from sqlalchemy import Connection

from bot.store import rollups
from bot.store.hits import INTEGERS, Values
from bot.store.numbers import version_sort, version_span
from bot.store.query import Term
from bot.store.sight import Sight

_LOOSE = ("gpu", "model", "family", "flag", "remedy", "rule", "error_kind")  # a part of the value is enough


def resolve(connection: Connection, who: Sight, terms: Sequence[Term]) -> tuple[Values | None, tuple[str, ...]]:
    """The values that fulfil the terms; None where a field can match nothing, with a sentence that says what could."""
    values: dict[str, list[str]] = {}
    unseen: list[str] = []
    for term in terms:
        known = rollups.values(connection, who.team, term.field, who.channels)
        matching = [value for value in known if _fits(term, value) is (term.sign != "!=")]
        if matching and term.sign == "!=":
            unseen += filter(None, [_without(connection, who, term.field, sum(known.values())).strip()])
        if not matching:
            seen = ", ".join(list(known)[:8]) or "nothing yet"
            sign = {"=": "", "!=": "other than "}.get(term.sign, term.sign)
            said = f"No incident here has {term.field} {sign}{term.value}. Seen so far: {seen}."
            unseen.append(said + _without(connection, who, term.field, sum(known.values())))
        values[term.field] = [value for value in values[term.field] if value in matching] if term.field in values else matching
    possible = all(values.values())
    return (values if possible else None), tuple(unseen)


def _without(connection: Connection, who: Sight, field: str, known: int) -> str:
    """How many incidents a field says nothing about: what is looked for may be among them."""
    if field in ("rule", "channel", "outcome"):
        return ""
    missing = sum(rollups.values(connection, who.team, "total", who.channels).values()) - known
    if missing <= 0:
        return ""
    log = "its log does not say" if missing == 1 else "their logs do not say"
    return f" {missing:,} incident{'s have' if missing > 1 else ' has'} no {field} known: {log}."


def _fits(term: Term, value: str) -> bool:
    if term.field == "version":
        return _version_fits(term, value)
    if term.field in INTEGERS:
        return term.value.isdigit() and _compare(int(value), term.sign, int(term.value))
    wanted, have = _letters(term.value), _letters(value)
    return wanted in have if term.field in _LOOSE else wanted == have


def _version_fits(term: Term, value: str) -> bool:
    have, span = version_sort(value), version_span(term.value)
    if have is None or span is None:
        return term.sign in ("=", "!=") and _letters(term.value) == _letters(value)
    if term.sign in ("=", "!="):
        return span[0] <= have < span[1]
    exact = version_sort(term.value) or 0
    # PEP 440: 0.20rc1 is not "less than 0.20" for people who ask for older releases, and everything of 0.20.* is not "greater".
    bound = {">=": exact, "<": span[0], ">": span[1] - 1, "<=": span[1] - 1}[term.sign]
    return _compare(have, term.sign, bound)


def _compare(have: int, sign: str, wanted: int) -> bool:
    return {">=": have >= wanted, ">": have > wanted, "<=": have <= wanted, "<": have < wanted}.get(sign, have == wanted)


def _letters(text: str) -> str:
    return re.sub(r"[\W_]+", "", text).lower()
