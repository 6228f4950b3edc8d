"""The review: which phases cost the team most, which changes work, and which rules were wrong."""

from aiohttp import web

from bot.web.access import viewer_of
from bot.web.door import door_of
from bot.web.showing import page

SPANS = (("", "always"), ("7d", "7 days"), ("30d", "30 days"), ("90d", "90 days"), ("365d", "a year"))


async def review(request: web.Request) -> web.Response:
    """The figures since a moment in the address, else of all time."""
    door = door_of(request)
    since = request.query.get("since", "").strip()
    reply = await door.asks.stats(door.desk, viewer_of(request), since or None)
    return page(request, "stats.html", told=reply.document, since=since, spans=SPANS)
