"""Evidence that was put into a thread as a file goes with what it was taken from."""

import logging

from slack_sdk.errors import SlackApiError

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
