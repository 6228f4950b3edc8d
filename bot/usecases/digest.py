"""The weekly digest of one channel: what was seen there in the last seven days, and what worked."""

from datetime import datetime, timedelta

from bot.usecases.desk import Desk, Viewer
from bot.usecases.reply import Reply
from bot.usecases.stats import stats

MONDAY_AT = timedelta(hours=8)  # UTC: when a new week's digest is due


def week_of(moment: datetime) -> str:
    """Which week's digest is the newest that is due, such as `2026-W49`; it changes on Monday at eight, UTC."""
    return (moment - MONDAY_AT).strftime("%G-W%V")


async def digest(desk: Desk, team: str, enterprise: str | None, channel: str) -> Reply:
    """A stats document of the channel's own incidents only: whoever reads the channel, guests of another workspace too, may see those."""
    return await stats(desk, Viewer(team, None, enterprise, frozenset({channel})), "7d")
