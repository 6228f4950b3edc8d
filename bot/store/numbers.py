"""Numbers that sort and numbers that people read: incident ids, moments, engine versions. Standard library only."""

import re
from datetime import UTC, datetime

_VERSION = re.compile(r"(\d+(?:\.\d+)*)[.\-_]?(dev|alpha|beta|preview|post|rc|a|b|c)?[.\-_]?(\d+)?", re.IGNORECASE)
_STAGES = {"dev": 0, "a": 1, "alpha": 1, "b": 2, "beta": 2, "preview": 3, "rc": 3, "c": 3, None: 5, "post": 6}
_PLACES = ((0, 9000), (10_000, 9999), (10_000, 9999), (100, 99))  # base and largest value of each part: 18 digits in all, a BIGINT


def label(number: int) -> str:
    """187 as people see it: D-0187."""
    return f"D-{number:04d}"


def number_of(text: str) -> int | None:
    """D-0187, d-187, #187 or 187 as a number; None when it is no incident id."""
    found = re.fullmatch(r"(?:[dD]-?|#)?(\d{1,9})", text.strip())
    return int(found[1]) if found else None


def micros(at: datetime) -> int:
    """Microseconds since 1970, UTC; a moment without a zone is UTC."""
    aware = at if at.tzinfo else at.replace(tzinfo=UTC)
    since = aware - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def clock() -> int:
    """Now, in microseconds."""
    return micros(datetime.now(UTC))


def moment(value: int) -> datetime:
    """The same backwards."""
    return datetime.fromtimestamp(value // 1_000_000, UTC).replace(microsecond=value % 1_000_000)


def stamp(value: int) -> str:
    """Microseconds as ISO 8601 with seconds."""
    return moment(value).isoformat(timespec="seconds")


def version_sort(text: str | None) -> int | None:
    """A version as one integer that sorts as PEP 440 does: four release parts, stage, stage number. None when there is no number in it."""
    found = _VERSION.search(text or "")
    if not found:
        return None
    parts = [int(part) for part in found[1].split(".")][:4]
    return _pack(parts, _STAGES[found[2].lower() if found[2] else None], min(int(found[3] or 0), 999))


def version_span(text: str) -> tuple[int, int] | None:
    """`0.20` as the half-open span of everything that is 0.20.*, pre-releases included."""
    found = re.match(r"v?(\d+(?:\.\d+)*)(.*)", text.strip())
    if not found:
        return None
    parts = [int(part) for part in found[1].split(".")][:4]
    if found[2] not in ("", ".*", ".x"):
        exact = version_sort(text)
        return None if exact is None else (exact, exact + 1)
    return _pack(parts, 0, 0), _pack([*parts[:-1], parts[-1] + 1], 0, 0)


def _pack(parts: list[int], stage: int, number: int) -> int:
    total = 0
    for index, (base, most) in enumerate(_PLACES):
        total = total * base + min(parts[index] if index < len(parts) else 0, most)
    return (total * 10 + stage) * 1000 + number
