"""Tokens revoked or the app removed, in either order: its token is forgotten, and on removal every row, of all that the event names."""

import logging
from datetime import UTC, datetime

from slack_sdk.errors import SlackApiError

from bot.slack.calls import STALE
from bot.slack.inbox import Arrival
from bot.slack.installs import refusal
from bot.slack.room import Job, Room
from bot.slack.surfaces.surface import Surface

log = logging.getLogger(__name__)


def takes(arrival: Arrival) -> bool:
    """`tokens_revoked` and `app_uninstalled`."""
    return arrival.kind == "revoked"


async def work(room: Room, job: Job) -> None:
    """A revoked user token alone changes nothing: the bot uses none. What comes after a new installation ends no new token."""
    tokens = job.body.get("tokens") or {}
    if job.body["event"] == "tokens_revoked" and not tokens.get("bot"):
        return
    came_back = await _came_back(room, job)
    organisation = job.arrival.enterprise if job.body.get("organisation") else None
    if came_back is None:
        await room.installs.remove(job.arrival.enterprise, job.arrival.team)
        if organisation:
            await room.installs.remove(organisation, None)
    if job.body["event"] != "app_uninstalled":
        return
    if organisation:
        await room.store.erase_enterprise(organisation, job.arrival.team or None, came_back)
    else:
        await room.store.erase_team(job.arrival.team, came_back)


async def _came_back(room: Room, job: Job) -> datetime | None:
    """When the app was removed, where it has been installed again since: its token is younger than the event, and Slack takes it."""
    at = job.body.get("at")
    if not isinstance(at, int):
        return None
    newer = await room.installs.given_after(job.arrival.enterprise, job.arrival.team, at)
    if newer is None:
        return None
    try:
        await room.outbox.call(newer, "auth.test")
    except SlackApiError as refused:
        if refusal(refused) in STALE:
            return None
        raise
    log.warning("%s of a token before that of today: the installation stays", job.body["event"])
    return datetime.fromtimestamp(at, UTC)


SURFACE = Surface(name="revoked", takes=takes, work=work)
