"""What was changed beside the chat that an incident stands in is due to be drawn anew there: the chat's own door does that."""

from bot.usecases.desk import Desk, Viewer, kept
from bot.usecases.recall import find


async def show_anew(desk: Desk, viewer: Viewer, incident_id: str) -> None:
    """Queued behind what was said in that thread. Nothing where the incident stands in no thread; what is erased queues itself."""
    incident = await find(desk, viewer, incident_id)
    await kept(desk).show_anew(viewer.team, incident.id)
