"""What was changed beside the chat that an incident stands in is due to be drawn anew there: the chat's own door does that."""

import json

from bot.store.numbers import micros
from bot.usecases.desk import Desk, Viewer
from bot.usecases.recall import find, kept

CHANGED = "changed"
"""Kind of the delivery: `incident`, and whether its evidence was `erased`."""


async def show_anew(desk: Desk, viewer: Viewer, incident_id: str, *, erased: bool = False) -> None:
    """Queued behind what was said in that thread. Nothing where the incident stands in no thread."""
    incident = await find(desk, viewer, incident_id)
    channel, thread = incident.origin.channel, incident.origin.thread
    if not channel or not thread:
        return
    key = f"{CHANGED}:{incident.id}:{micros(desk.now())}"
    body = json.dumps({"incident": incident.id, "erased": erased}).encode()
    order = "direct" if channel.startswith("D") else thread
    await kept(desk).deliver(viewer.team, channel, order, key, CHANGED, body, incident.origin.enterprise)
