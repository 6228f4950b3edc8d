"""App Home: the incidents of a person's channels, with filters, and which changes worked."""

from collections.abc import Mapping
from typing import Any

from slack_sdk.errors import SlackApiError

from bot.slack.inbox import Arrival
from bot.slack.render.home import FILTERS, home_view
from bot.slack.room import Job, Room
from bot.slack.surfaces.surface import Surface


def takes(arrival: Arrival) -> bool:
    """The Home tab was opened."""
    return arrival.kind == "home"


async def work(room: Room, job: Job) -> None:
    """Publishes the newest state."""
    await show_home(room, job, {})


async def show_home(room: Room, job: Job, chosen: Mapping[str, Any]) -> None:
    """`chosen` by filter: `home_model`, `home_gpu`, …"""
    body = job.body
    sight = await room.visibility.sight(job.who, body["user"], body.get("channel") if not body.get("home") else None)
    picked = {name: str(chosen[f"home_{name}"]) for name in FILTERS if chosen.get(f"home_{name}") not in (None, "", "any")}
    query = " ".join(f'{name}:"{value}"' if " " in value else f"{name}:{value}" for name, value in picked.items())
    every = (await room.asks.history(room.desk, sight.viewer, "", limit=50)).document
    shown = (await room.asks.history(room.desk, sight.viewer, query, limit=50)).document if query else every
    stats = (await room.asks.stats(room.desk, sight.viewer)).document
    view = home_view(every, shown, stats, picked, complete=sight.complete)
    try:
        await room.outbox.call(job.who, "views.publish", user_id=body["user"], view=view)
    except SlackApiError as refused:
        if refused.response.get("error") not in ("invalid_blocks", "invalid_arguments", "view_too_large"):
            raise
        plain = home_view(every, shown, stats, picked, complete=sight.complete, native=False)
        await room.outbox.call(job.who, "views.publish", user_id=body["user"], view=plain)


SURFACE = Surface(name="home", takes=takes, work=work)
