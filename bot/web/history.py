"""Past incidents: one search line, filters in the URL, and counts as small charts."""

from collections.abc import Mapping
from typing import Any

from aiohttp import web

from bot.store.query import FIELDS, MOMENTS
from bot.usecases.recall import MOST_ROWS
from bot.web.access import viewer_of
from bot.web.charts import bars, narrowed
from bot.web.door import door_of
from bot.web.showing import page

FILTERS = (*FIELDS, *MOMENTS)


def asked(query: Mapping[str, str]) -> str:
    """The URL's filters as one line of the search syntax: `q` as typed, every other filter as `field:value`."""
    parts = [query.get("q", "").strip()]
    for name in FILTERS:
        value = query.get(name, "").strip().replace('"', "")
        if value:
            parts.append(f'{name}:"{value}"' if " " in value else f"{name}:{value}")
    return " ".join(part for part in parts if part)


async def history(request: web.Request) -> web.Response:
    """The list, the filters in force, and counts by phase, model, GPU and outcome."""
    door = door_of(request)
    query = {name: value for name, value in request.query.items() if name == "q" or name in FILTERS}
    before = request.query.get("before") or None
    reply = await door.asks.history(door.desk, viewer_of(request), asked(query), MOST_ROWS, before)
    document: Mapping[str, Any] = reply.document
    charts = [(name, bars(document["counts"].get(name) or {}, name, query)) for name in ("phase", "outcome", "model", "gpu")]
    rows = document["rows"]
    older = narrowed(query, before=rows[-1]["id"]) if len(rows) == MOST_ROWS else ""
    active = [(name, value, narrowed(query, **{name: ""})) for name, value in query.items() if value]
    return page(
        request,
        "history.html",
        found=document,
        query=query,
        charts=charts,
        active=active,
        searched=asked(query),
        older=older,
        before=before,
        newest=narrowed(query),
    )
