"""Tokens revoked or the app removed, in either order: its token is forgotten, and on removal the evidence, of all that the event names."""

from bot.slack.inbox import Arrival
from bot.slack.room import Job, Room
from bot.slack.surfaces.surface import Surface


def takes(arrival: Arrival) -> bool:
    """`tokens_revoked` and `app_uninstalled`."""
    return arrival.kind == "revoked"


async def work(room: Room, job: Job) -> None:
    """A revoked user token alone changes nothing: the bot uses none."""
    tokens = job.body.get("tokens") or {}
    if job.body["event"] == "tokens_revoked" and not tokens.get("bot"):
        return
    await room.installs.remove(job.arrival.enterprise, job.arrival.team)
    organisation = job.arrival.enterprise if job.body.get("organisation") else None
    if organisation:
        await room.installs.remove(organisation, None)
    if job.body["event"] != "app_uninstalled":
        return
    if organisation:
        await room.store.erase_enterprise(organisation, job.arrival.team or None)
    else:
        await room.store.erase_team(job.arrival.team)


SURFACE = Surface(name="revoked", takes=takes, work=work)
