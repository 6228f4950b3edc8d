"""The verbs that work the same by slash command, by mention in a thread, and in a direct message."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches

from slack_sdk.errors import SlackApiError

from bot.domain.incident import RESULTS, Incident
from bot.settings import Settings
from bot.slack import digests
from bot.slack.calls import is_final
from bot.slack.conversation import eyes_off, eyes_on, give_alone, incident_of, place_of, show
from bot.slack.hint import hint
from bot.slack.installs import refusal
from bot.slack.intake import moment
from bot.slack.offers import quoted, reading
from bot.slack.outbox import Place
from bot.slack.render.audit import audit_message
from bot.slack.render.blocks import Block
from bot.slack.render.diagnosis import diagnosis_message
from bot.slack.render.escape import cut
from bot.slack.render.explanation import explanation_message
from bot.slack.render.history import history_message, stats_message
from bot.slack.render.notices import HELP, HINT, HINT_HERE
from bot.slack.render.sizing import sizing_message
from bot.slack.render.wording import as_asked_here
from bot.slack.room import Job, Room
from bot.slack.talk import asks_to_size, is_thanks, only_asks, told_outcome
from bot.slack.visibility import Sight
from bot.slack.withdrawn import withdraw
from bot.slack.words import VERBS, Verb, incident, verb
from bot.usecases.reply import Unusable

log = logging.getLogger(__name__)
SHARED = frozenset({"size", "explain", "watch", "unwatch"})
"""Verbs whose answer may be read by the channel; what comes out of the history is for the asker alone."""


HOUSE_ONLY = frozenset({"forget", "outcome", "watch", "unwatch", "settings", "audit"})
"""Verbs that members of another workspace in a shared channel may not use."""
OURS_ONLY = "Only members of the workspace that installed me can do this."


@dataclass(frozen=True, slots=True)
class Asked:
    """A verb with who asked it, where, and what this person may see."""

    verb: Verb
    job: Job
    sight: Sight
    here: str | None  # the incident of this thread


Said = tuple[Sequence[Block], str]


async def answer(room: Room, job: Job, said: Verb) -> Said:
    """Blocks and text for a verb; what cannot be done is a sentence."""
    body = job.body
    sight = await room.visibility.sight(job.who, body["user"], body.get("channel"), foreign=bool(body.get("foreign")))
    here = None
    if body.get("thread_ts") and body.get("channel"):
        found = await incident_of(room, job, Place(body["channel"], body["thread_ts"]))
        here = found.id if found else None
    if sight.foreign and said.name in HOUSE_ONLY:
        return [], OURS_ONLY
    try:
        return await _ANSWERS[said.name](room, Asked(said, job, sight, here))
    except Unusable as unusable:
        return [], as_asked_here(str(unusable))


async def run_verb(room: Room, job: Job, said: Verb) -> None:
    """Answers a verb that was said in a message."""
    body = job.body
    place = place_of(body)
    blocks, text = await answer(room, job, said)
    if said.name not in SHARED and not place.channel.startswith("D"):
        await room.asides.alone(
            job.who, place, body["user"], text, blocks, about=job.arrival.key, name="answer",
            answering=quoted(body["text"]), anew=reading(said, body),
        )  # fmt: skip
        return
    try:
        await room.outbox.post(job.who, place, f"{said.name}:{body['ts']}", blocks, text)
    except SlackApiError as refused:
        if not await give_alone(room, job, place, refused, blocks, text, anew=reading(said, body)):
            raise


async def addressed(room: Room, job: Job, read: Callable[[Room, Job], Awaitable[bool]]) -> None:
    """What is said to the bot itself: a verb is run, all else is read; a hint when `read` returns False, so found nothing to read."""
    body = job.body
    asked = verb(body["text"])
    if asked is not None and not body["files"]:
        await run_verb(room, job, asked)
        return
    await eyes_on(room, job)
    try:
        if not await read(room, job):
            await _nothing_read(room, job)
    finally:
        await eyes_off(room, job)


async def outcome_in_words(room: Room, job: Job, known: Incident) -> bool:
    """“Same error”, said to the bot about an incident, is recorded as its button would; False when it says nothing of the kind."""
    result = told_outcome(job.body["text"]) if not job.body["files"] else None
    if result is None:
        return False
    await run_verb(room, job, Verb("outcome", f"{known.id} {result} {job.body['text']}"))
    return True


async def _nothing_read(room: Room, job: Job) -> None:
    """A question is answered by its sizing or its topic; beside that, and to all else but thanks for an answer, what can be sent."""
    known = await incident_of(room, job, place_of(job.body))
    if known is not None and is_thanks(job.body["text"]):
        return
    await hint(room, job, await _asked(room, job), HINT if known is None else HINT_HERE)


async def _asked(room: Room, job: Job) -> Said | None:
    text = job.body["text"]
    for name in ("size", "explain") if asks_to_size(text) else ("explain",) if only_asks(text) else ():
        blocks, said = await answer(room, job, Verb(name, text))
        if blocks:  # without: a sentence that says why not
            return blocks, said
    return None


async def _size(room: Room, asked: Asked) -> Said:
    channel = asked.job.body.get("channel")
    viewer = await room.visibility.readers(asked.job.who, asked.job.body["user"], channel) if channel else asked.sight.viewer
    reply = await room.asks.size_words(room.desk, asked.verb.rest, viewer)
    return sizing_message(reply.document, asked.verb.rest)


async def _history(room: Room, asked: Asked) -> Said:
    reply = await room.asks.history(room.desk, asked.sight.viewer, asked.verb.rest, limit=50)
    return history_message(reply.document, complete=asked.sight.complete)


async def _show(room: Room, asked: Asked) -> Said:
    wanted = incident(asked.verb.rest) or asked.here
    if wanted is None:
        return [], "Which one? For example: show D-0187"
    reply = await room.asks.show(room.desk, asked.sight.viewer, wanted)
    # What is near it is what this person may see, not what the channel was shown.
    diagnosis = {**reply.document["diagnosis"], "similar": reply.document["similar"]}
    return diagnosis_message(diagnosis, reply.document.get("trials") or ())


async def _forget(room: Room, asked: Asked) -> Said:
    wanted = incident(asked.verb.rest)
    if wanted is None:
        return [], "Which one? For example: forget D-0187"
    reply = await room.asks.forget(room.desk, asked.sight.viewer, wanted)
    return [], str(reply.document["says"])


async def _outcome(room: Room, asked: Asked) -> Said:
    words = [word for word in asked.verb.rest.split() if not incident(word)]
    wanted = incident(asked.verb.rest) or asked.here
    at = next((at for at, word in enumerate(words) if word.lower() in (*RESULTS, "undo")), None)
    if wanted is None or at is None:
        return [], "For example: outcome D-0187 fixed (or moved, same, wrong, other, undo)"
    body = asked.job.body
    viewer, said_at = asked.sight.viewer, moment(body.get("at") or body.get("ts"))
    if words[at].lower() == "undo":
        reply = await room.asks.undo(room.desk, viewer, wanted, message=asked.job.arrival.key, at=said_at)
    else:
        note = " ".join(words[at + 1 :]) or None
        reply = await room.asks.settle(room.desk, viewer, wanted, words[at].lower(), note, message=asked.job.arrival.key, at=said_at)
    await room.asks.show_anew(room.desk, viewer, wanted)
    return [], str(reply.document["says"])


async def _stats(room: Room, asked: Asked) -> Said:
    reply = await room.asks.stats(room.desk, asked.sight.viewer, asked.verb.rest or None)
    return stats_message(reply.document)


async def _explain(room: Room, asked: Asked) -> Said:
    reply = await room.asks.explain(room.desk, asked.sight.viewer, asked.verb.rest, asked.here)
    return explanation_message(reply.document)


async def _watch(room: Room, asked: Asked) -> Said:
    return await _switch(room, asked, on=True)


async def _unwatch(room: Room, asked: Asked) -> Said:
    return await _switch(room, asked, on=False)


async def _switch(room: Room, asked: Asked, *, on: bool) -> Said:
    body, who = asked.job.body, asked.job.who
    channel, rest = body.get("channel"), asked.verb.rest.strip().lower()
    on = on and rest not in ("off", "stop", "no")
    if not channel or channel.startswith("D"):
        return [], "Here I read everything anyway. Say it in a channel."
    if on and rest not in ("", "on"):
        return [], await _is_watched(room, asked, channel)
    private = await room.visibility.is_private(who, channel, body.get("channel_type"))
    await room.store.watch(who.team, channel, on, body["user"], enterprise=who.enterprise, private=private)
    if on and await room.visibility.is_absent(who, channel):
        return [], "I am not in this channel, so I hear nothing of it yet. Invite me: then I watch it. “watch off” ends it."
    if on:
        return (
            [],
            "Watching: I answer here when a message or file shows that memory ran out, and stay quiet otherwise. “watch off” ends it.",
        )
    return [], "No longer watching: I answer here when I am asked."


async def _is_watched(room: Room, asked: Asked, channel: str) -> str:
    on = await room.store.watched(asked.job.who.team, channel)
    return f"This channel: {'watched (“watch off” ends it)' if on else 'not watched (“watch” starts it)'}"


async def _digest(room: Room, asked: Asked, on: bool) -> Said:
    channel = asked.job.body.get("channel")
    if not channel or channel.startswith("D"):
        return [], "A digest goes to a channel. Say it there."
    private = await room.visibility.is_private(asked.job.who, channel, asked.job.body.get("channel_type"))
    await digests.switch(room.store, asked.job.who, channel, on, room.desk.now(), by=asked.job.body["user"], private=private)
    if on:
        return [], "On Mondays this channel gets a digest of its week: what failed, and what worked. “settings digest off” ends it."
    return [], "No weekly digest here."


async def _settings(room: Room, asked: Asked) -> Said:
    if (words := asked.verb.rest.lower().split())[:1] == ["digest"]:
        return await _digest(room, asked, on=words[1:] in ([], ["on"]))
    shown = []
    for item in fields(Settings):
        value = getattr(room.settings, item.name)
        text = ("set" if value else "not set") if item.metadata["secret"] else str(value if value not in (None, "") else "not set")
        if item.name in ("retention_days", "public_url", "secret_key", "slack_app_token", "slack_signing_secret"):
            shown.append(f"{item.metadata['env']}: {text} ({item.metadata['meaning']})")
    channel = asked.job.body.get("channel")
    if channel and not channel.startswith("D"):
        weekly = await digests.is_on(room.store, asked.job.who.team, channel)
        shown.append(await _is_watched(room, asked, channel))
        shown.append(f"Weekly digest: {'on (“settings digest off” ends it)' if weekly else 'off (“settings digest on” starts it)'}")
    return [], "\n".join(shown)


async def _audit(room: Room, asked: Asked) -> Said:
    return audit_message((await room.asks.audit(room.desk, asked.sight.viewer)).document)


async def _help(room: Room, asked: Asked) -> Said:
    return [], HELP


async def _unknown(room: Room, asked: Asked) -> Said:
    word = cut(asked.verb.rest.split()[0], 40)
    if word.lower() in VERBS:
        return (
            [],
            f"That is too long for “{word.lower()}”: it takes at most 1,000 characters. Send a log as a message or a file.",
        )
    near = get_close_matches(word.lower(), VERBS, n=1, cutoff=0.7)
    return [], f"I do not know “{word}”." + (f" Did you mean “{near[0]}”?" if near else "") + f"\n{HELP}"


async def refresh(room: Room, job: Job, incident_id: str, *, erased: bool = False) -> bool:
    """Shows an incident's one message as it is now, wherever it stands; where the bot may no longer write, it stays as it is: False.

    `erased`: its evidence has just been, so what was shared of it goes too.
    """
    kept = await room.store.load(job.who.team, incident_id)
    if kept is None or not kept.origin.channel or not kept.origin.thread:
        return True
    place = Place(kept.origin.channel, kept.origin.thread)
    if erased:
        await withdraw(room, job, place)
    try:
        return await show(room, job, place, kept.document)
    except SlackApiError as refused:
        if not is_final(refused):
            raise
        log.info("the message of %s is out of reach: %s", incident_id, refusal(refused))
        return False


_ANSWERS: Mapping[str, Callable[[Room, Asked], Awaitable[Said]]] = {
    "size": _size,
    "history": _history,
    "show": _show,
    "forget": _forget,
    "outcome": _outcome,
    "stats": _stats,
    "explain": _explain,
    "watch": _watch,
    "unwatch": _unwatch,
    "settings": _settings,
    "audit": _audit,
    "help": _help,
    "unknown": _unknown,
}


def first_word(text: str) -> Verb:
    """A slash command's text as a verb; none is `help`, an incident id alone is `show`, else `unknown`."""
    found = verb(text, typed_as_command=True)
    if found is not None:
        return found
    return Verb("show", text) if incident(text) and len(text.split()) == 1 else Verb("unknown" if text.strip() else "help", text)
