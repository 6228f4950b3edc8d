"""Erasure on request and by age."""

from datetime import timedelta

from bot.usecases.audit import account
from bot.usecases.desk import Desk, Viewer, kept
from bot.usecases.recall import find
from bot.usecases.reply import Reply, notice
from bot.usecases.wording import incidents


async def forget(desk: Desk, viewer: Viewer, incident_id: str) -> Reply:
    """Erase an incident's evidence; what it was stays. The audit trail has it once, however often it is asked for."""
    incident = await find(desk, viewer, incident_id)
    if incident.erased and not any(one.text for one in incident.contributions):
        return notice(f"The evidence of {incident.id} was erased before; there was nothing left to erase.")
    await kept(desk).forget(viewer.team, incident.id, viewer.user or account())
    says = f"The evidence of {incident.id} is erased: its texts, its words in the search and the lines quoted from it."
    return notice(f"{says} Its phase, model, GPU, changes and outcome stay.")


async def purge(desk: Desk) -> Reply:
    """Erase evidence older than OOMBOT_RETENTION_DAYS; 0 keeps everything."""
    kept_for = desk.settings.retention_days
    if kept_for <= 0:
        return notice("Evidence is kept for ever here (OOMBOT_RETENTION_DAYS is 0). Nothing was erased.")
    count = await kept(desk).purge(desk.now() - timedelta(days=kept_for))
    return notice(f"The evidence of {incidents(count)} older than {kept_for} days is erased.")
