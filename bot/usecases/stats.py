"""A review: which phases cost the team most, which changes work, how long it took, which rules were wrong."""

from datetime import datetime

from bot.store.numbers import moment
from bot.store.query import parse
from bot.usecases.desk import Desk, Viewer, kept
from bot.usecases.reply import Reply, Unusable


async def stats(desk: Desk, viewer: Viewer, since: str | None = None) -> Reply:
    """Figures of what the viewer may see; `since` as in a search: 7d, 4w, 2026-11-01."""
    start = _moment(desk, since)
    figures = await kept(desk).stats(viewer, start)
    document = {"schema": "oombot.stats/1", "since": start.isoformat(timespec="seconds") if start else None, **figures}
    return Reply("stats", document)


def _moment(desk: Desk, since: str | None) -> datetime | None:
    if not since:
        return None
    asked = parse(f"since:{since}", desk.now())
    if asked.since is None:
        raise Unusable(f"{since[:40]!r} is no moment: since takes a span such as 12h, 7d or 4w, yesterday, or a date such as 2026-11-30.")
    return moment(asked.since)
