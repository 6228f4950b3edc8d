"""What was put into a thread, or taken from a message, goes with what it was taken from; also where that went while it was read."""

import logging
from collections import defaultdict

from slack_sdk.errors import SlackApiError

from bot.slack.inbox import deleted, gone
from bot.slack.intake import Gathered
from bot.slack.outbox import Place
from bot.slack.room import Job, Room

log = logging.getLogger(__name__)
EVIDENCE = "evidence"
"""Kind of the note on the files that show a thread's evidence; their ids stand where another has its ts."""

WITHDRAWN = "withdrawn"


async def withdraw(room: Room, job: Job, place: Place) -> None:
    """Deletes our own files of this thread. One that Slack keeps is logged: its channel's members can delete it."""
    thread = place.thread or ""
    shared = await room.store.reply_of(job.who.team, place.channel, thread, EVIDENCE)
    if shared is None:
        return
    for file in [name for name in shared.ts.split() if name.startswith("F")]:
        try:
            await room.outbox.call(job.who, "files.delete", file=file)
        except SlackApiError as refused:
            log.warning("%s with the evidence of %s stays in Slack: %s", file, shared.incident, refused.response.get("error"))
    await room.store.remember_reply(shared.incident, job.who.team, place.channel, thread, WITHDRAWN, EVIDENCE)


async def withdraw_late(room: Room, job: Job, place: Place, gathered: Gathered) -> None:
    """Erases what this arrival gave of messages and files that were deleted while it was read, or read at an earlier try: whoever worked
    the deletion then found nothing yet."""
    files: defaultdict[str, set[str]] = defaultdict(set)
    for file, message in [*gathered.files, *((file["id"], job.body.get("ts")) for file in job.body.get("files") or ())]:
        files[message or file].add(file)
    for message in {*files, *(c.message for c in gathered.contributions if c.message)}:
        keys = [deleted(place.channel, message), *(gone(file) for file in files[message])]
        if await room.store.arrived(job.who.team, *keys):
            await room.store.erase_message(job.who.team, place.channel, message)
