"""How many diagnoses a person and a channel get within an hour; beyond that it is said when there are more."""

from datetime import timedelta
from math import ceil

from bot.slack.outbox import Place
from bot.slack.room import Job, Room
from bot.store.lately import ASKED
from bot.store.numbers import micros

HOUR = timedelta(hours=1)
_MINUTE = 60_000_000  # microseconds
_REFUSED = "beyond the measure"
"""Begins the kind of the note on a message that was refused; the sentence stands where another has its digest."""


async def used_up(room: Room, job: Job, place: Place) -> str | None:
    """The sentence that says when again; None while there is room. Asked before anything is fetched or read.

    A try after a crash is not asked again: what it kept the first time must not count against it, and what it refused stays refused.
    """
    note = f"{_REFUSED}:{job.arrival.key}"
    if job.again:
        before = await room.store.reply_of(job.who.team, place.channel, "", note)
        return before.digest if before else None
    said = await _no_room(room, job, place)
    if said:
        await room.store.remember_reply(None, job.who.team, place.channel, "", "", note, said)
    return said


async def _no_room(room: Room, job: Job, place: Place) -> str | None:
    now = room.desk.now()
    ago = micros(now - HOUR)
    lately = await room.store.lately(job.who.team, place.channel, job.body.get("user"), now - HOUR)
    person, channel = room.settings.diagnoses_per_person, room.settings.diagnoses_per_channel
    for whose, most, moments in (("You have", person, lately.by_person), ("This channel has", channel, lately.in_channel)):
        if most and len(moments) >= most:
            wait = max(1, ceil((moments[-most] - ago) / _MINUTE))
            when = "in a minute" if wait == 1 else f"in {wait} minutes"
            had = "1 diagnosis" if most == 1 else f"{most} diagnoses"
            return f"{whose} had {had} within the hour, which is all I give. This one was not read: send it again {when}."
    return None


async def had_read(room: Room, job: Job, place: Place, ts: str, author: str | None) -> None:
    """A message counts for who asked, whoever wrote it."""
    user = job.body.get("user")
    if user and author != user:
        await room.store.remember_reply(None, job.who.team, "", ASKED, user, f"{ASKED}:{place.channel}:{ts}")


async def say_so(room: Room, job: Job, place: Place, said: str) -> None:
    """To the person alone; where another bot wrote, once an hour to the channel."""
    user = job.body.get("user")
    if not user or job.body.get("bot"):
        hour = int(room.desk.now().timestamp() // HOUR.total_seconds())
        await room.outbox.post(job.who, Place(place.channel, None), f"limit:{hour}", [], said)
    else:
        await room.asides.alone(job.who, place, user, said, about=job.arrival.key, name="allowance")
