"""The same log again within the hour: the earlier incident is named, and a button asks for a diagnosis of its own all the same."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import floor
from typing import Any

from slack_sdk.errors import SlackApiError

from bot.domain.incident import Contribution, Incident, Origin
from bot.slack.allowance import HOUR
from bot.slack.calls import UnsureError
from bot.slack.intake import moment
from bot.slack.outbox import Place
from bot.slack.render.blocks import Block, actions, button, line, link, rich
from bot.slack.render.limits import VALUE
from bot.slack.render.wording import PHASES
from bot.slack.room import Job, Room
from bot.slack.words import is_evidence, tells_facts
from bot.store.lately import print_of
from bot.store.numbers import micros

ANEW = "anew"


async def repeated(room: Room, job: Job, place: Place, origin: Origin, given: Sequence[Contribution]) -> tuple[list[Block], str] | None:
    """What is said where all of this was diagnosed within the hour, in a place that the asker and the readers here see; else None."""
    texts = [c.text for c in given if c.text and (c.kind == "file" or is_evidence(c.text) or tells_facts(c.text))]
    if not texts or any(c.kind not in ("paste", "file") for c in given):
        return None
    now = room.desk.now()
    for incident, at in await room.store.given_before(origin, texts, now - HOUR):
        kept = await room.store.load(job.who.team, incident)
        if kept is not None and await _is_seen(room, job, place, kept):
            by = (str(job.body.get("ts") or "-"), str(job.body.get("user") or "-"))
            value = " ".join((incident, *by, *(print_of(text)[:12] for text in texts)))
            if len(value) > VALUE:
                return None
            return _message(kept, await _address(room, job, kept), _ago(micros(now) - at), value)
    return None


async def again(room: Room, job: Job) -> list[Contribution]:
    """What the button was shown for, taken from the earlier incident, as said by who said it here; empty when it was erased since."""
    incident, ts, author, *prints = str(job.body["value"]).split(" ")
    kept = await room.store.load(job.who.team, incident)
    known: dict[str, Contribution] = {}
    for c in kept.contributions if kept else ():
        if c.kind in ("paste", "file") and c.text is not None:
            known.setdefault(print_of(c.text)[:12], c)
    if not set(prints) <= set(known):
        return []
    said: dict[str, Any] = {"message": None if ts == "-" else ts, "author": None if author == "-" else author, "at": moment(ts)}
    return [replace(known[one], **said) for one in dict.fromkeys(prints)]


async def _is_seen(room: Room, job: Job, place: Place, earlier: Incident) -> bool:
    """A link tells that something is there: to the asker, and to everyone who reads the answer."""
    channel, user = earlier.origin.channel, job.body.get("user")
    if channel is None or channel == place.channel:
        return channel is not None
    if not user or job.body.get("foreign") or await room.visibility.is_shared(job.who, place.channel):
        return False
    if await room.visibility.is_private(job.who, channel):
        return False
    return channel in ((await room.visibility.sight(job.who, user, None)).viewer.channels or ())


async def _address(room: Room, job: Job, earlier: Incident) -> str | None:
    channel, thread = earlier.origin.channel or "", earlier.origin.thread or ""
    own = await room.store.reply_of(job.who.team, channel, thread, "diagnosis")
    try:
        ts = own.ts if own and own.ts else thread
        return str((await room.outbox.call(job.who, "chat.getPermalink", channel=channel, message_ts=ts))["permalink"])
    except (SlackApiError, UnsureError):
        return None  # its id finds it too


def _message(earlier: Incident, address: str | None, ago: str, value: str) -> tuple[list[Block], str]:
    """Says nothing that would have to be erased with the earlier incident's evidence."""
    what = _what(earlier.document)
    named = earlier.id if address is None else link(address, earlier.id)
    asked = button(ANEW, "Diagnose it anew", value, f"Diagnose this log anew, apart from {earlier.id}")
    blocks = [rich(line("This is the same log as ", named, f", {ago}: {what}.")), actions(asked)]
    return blocks, f"This is the same log as {earlier.id}, {ago}: {what}. {address or ''}".strip()


def _what(document: Mapping[str, Any]) -> str:
    rank = (document.get("rank") or {}).get("number")
    phase = PHASES.get(str(document.get("phase")), PHASES["unknown"])
    return phase if rank is None else f"rank {rank}, {phase}"


def _ago(since: int) -> str:
    minutes = floor(since / 60_000_000)
    return "just now" if minutes < 1 else "a minute ago" if minutes == 1 else f"{minutes} minutes ago"
