"""App Home: the incidents of a person's channels, with filters, page by page, and which changes worked."""

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from slack_sdk.errors import SlackApiError

from bot.slack.inbox import Arrival
from bot.slack.render.home import FILTERS, ROWS, home_view
from bot.slack.room import Job, Room
from bot.slack.surfaces.surface import Surface

log = logging.getLogger(__name__)
MOST_PAGES = 200  # ids in private_metadata, which takes 3,000 characters


def takes(arrival: Arrival) -> bool:
    """The Home tab was opened."""
    return arrival.kind == "home"


async def work(room: Room, job: Job) -> None:
    """Publishes the newest state."""
    await show_home(room, job, {})


def turned(body: Mapping[str, Any]) -> list[str]:
    """The pages above the one that a click leads to, each by the id of its last row: what arrives meanwhile moves none of them."""
    try:
        above = [str(last) for last in json.loads(body.get("meta") or "[]")]
    except ValueError:
        above = []
    match body["action"]:
        case "home_older":
            return [*above, str(body["value"])][-MOST_PAGES:]
        case "home_newer":
            return above[:-1]
    return []


async def show_home(room: Room, job: Job, chosen: Mapping[str, Any], above: Sequence[str] = ()) -> None:
    """`chosen` by filter: `home_model`, `home_gpu`, …; `above`: see `turned`."""
    body = job.body
    sight = await room.visibility.sight(job.who, body["user"], body.get("channel") if not body.get("home") else None)
    picked = {name: str(chosen[f"home_{name}"]) for name in FILTERS if chosen.get(f"home_{name}") not in (None, "", "any")}
    query = " ".join(f'{name}:"{value}"' if " " in value else f"{name}:{value}" for name, value in picked.items())
    every = (await room.asks.history(room.desk, sight.viewer, "", limit=ROWS)).document
    shown = every
    if query or above:
        shown = (await room.asks.history(room.desk, sight.viewer, query, limit=ROWS, before=above[-1] if above else None)).document
    stats = (await room.asks.stats(room.desk, sight.viewer)).document
    view = home_view(every, shown, stats, picked, above, complete=sight.complete)
    try:
        await room.outbox.call(job.who, "views.publish", user_id=body["user"], view=view)
    except SlackApiError as refused:
        error = refused.response.get("error")
        if error == "not_enabled":
            log.warning("Home is switched off for the app: App Home, Show Tabs, Home Tab")
            return
        if error not in ("invalid_blocks", "invalid_arguments", "view_too_large"):
            raise
        plain = home_view(every, shown, stats, picked, above, complete=sight.complete, native=False)
        await room.outbox.call(job.who, "views.publish", user_id=body["user"], view=plain)


SURFACE = Surface(name="home", takes=takes, work=work)
