"""The read-only HTTP API: the same documents that the pages draw from."""

from aiohttp import web

from bot.usecases.recall import MOST_ROWS
from bot.usecases.reply import Unusable
from bot.web.access import viewer_of
from bot.web.door import door_of
from bot.web.faults import Fault
from bot.web.history import asked
from bot.web.incident import incident_of
from bot.web.openapi import DOCUMENT
from bot.web.sizing import answer_of, named


async def incidents(request: web.Request) -> web.Response:
    """`GET /api/v1/incidents?q=…&phase=…&limit=…&before=D-0187`."""
    door = door_of(request)
    text = request.query.get("limit", str(MOST_ROWS))
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= MOST_ROWS:
        raise Fault(400, "limit", f"limit is “{text[:20]}”: it takes a whole number from 1 to {MOST_ROWS}.")
    before = request.query.get("before") or None
    reply = await door.asks.history(door.desk, viewer_of(request), asked(request.query), int(text), before)
    return web.json_response(reply.document)


async def incident(request: web.Request) -> web.Response:
    """`GET /api/v1/incidents/D-0187`."""
    return web.json_response(await incident_of(request))


async def stats(request: web.Request) -> web.Response:
    """`GET /api/v1/stats?since=…`."""
    door = door_of(request)
    return web.json_response((await door.asks.stats(door.desk, viewer_of(request), request.query.get("since") or None)).document)


async def explanation(request: web.Request) -> web.Response:
    """`GET /api/v1/explain/TOPIC?incident=…`."""
    door = door_of(request)
    try:
        reply = await door.asks.explain(door.desk, viewer_of(request), request.match_info["topic"], request.query.get("incident") or None)
    except Unusable as unknown:
        raise Fault(404, "no such topic", str(unknown)) from unknown
    return web.json_response(reply.document)


async def size(request: web.Request) -> web.Response:
    """`GET /api/v1/size?model=…&gpu=…&tensor_parallel_size=…`; any engine argument that sizing takes, by its short names too."""
    given = named(request.query.items())
    document = await answer_of(request, given)
    beside = [name for name in given if name != "q"] if given.get("q") else []
    if beside:
        said = [f"{name} is not read beside q: say it in the words" for name in beside]
        document = {**document, "corrections": [*document.get("corrections", ()), *said]}
    return web.json_response(document)


async def openapi(request: web.Request) -> web.Response:
    """`GET /api/v1/openapi.json`."""
    return web.json_response(DOCUMENT)
