"""The review: which phases cost the team most, which changes work, and which rules were wrong."""

import asyncio
import logging
from html import escape
from typing import Any

from aiohttp import web

from bot.store.errors import StoreError
from bot.usecases.reply import Reply
from bot.web.access import viewer_of
from bot.web.door import door_of
from bot.web.showing import page

log = logging.getLogger(__name__)
SPANS = (("", "always"), ("7d", "7 days"), ("30d", "30 days"), ("90d", "90 days"), ("365d", "a year"))
PATIENCE = 0.1  # seconds
CUT = "<!-- the figures -->"


async def review(request: web.Request) -> web.StreamResponse:
    """The figures since a moment in the address, else of all time. Where counting takes a while, the head of the page goes first."""
    door = door_of(request)
    since = request.query.get("since", "").strip()
    asking = asyncio.ensure_future(door.asks.stats(door.desk, viewer_of(request), since or None))
    await asyncio.wait({asking}, timeout=PATIENCE)
    if asking.done():
        return _page(request, since, (await asking).document)
    return await _in_two(request, since, asking)


def _page(request: web.Request, since: str, told: Any) -> web.Response:
    return page(request, "stats.html", told=told, since=since, spans=SPANS)


async def _in_two(request: web.Request, since: str, asking: "asyncio.Future[Reply]") -> web.StreamResponse:
    shell = _page(request, since, None)
    head, _, foot = str(shell.text).partition(CUT)
    response = web.StreamResponse(headers={"Content-Type": shell.headers["Content-Type"]})
    response.cookies.update(shell.cookies)
    await response.prepare(request)
    await response.write(head.encode("utf-8", "replace"))
    try:
        rest = str(_page(request, since, (await asking).document).text).partition(CUT)[2]
    except StoreError as failure:
        log.warning("request %s %s: the store failed: %s", request.method, request.rel_url.raw_path, failure)
        rest = f'<p class="refused" role="alert">{escape(str(failure))}</p>{foot}'
    await response.write(rest.encode("utf-8", "replace"))
    await response.write_eof()
    return response
