"""Everything the bot says, in plain words: one reply per incident edited in place, posted once, a refused layout tried plainly."""

import asyncio
import hashlib
import json
import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from slack_sdk.errors import SlackApiError, SlackClientError

from bot.slack.calls import TRIES, Calls, UnsureError
from bot.slack.hosts import Hosts
from bot.slack.installs import Identity, Installs
from bot.slack.render.blocks import Block, line, plainly, rich
from bot.slack.render.escape import cut, escape
from bot.slack.render.limits import FALLBACK, fit
from bot.slack.seen import METADATA, SETTLES, holding, marked, sought
from bot.store.errors import LostClaimError

if TYPE_CHECKING:
    from bot.store.deliveries import OwnReply
    from bot.store.store import Store

log = logging.getLogger(__name__)
REFUSED = "refused"
"""Digest of the note on a post that Slack did not take."""
TWICE = "twice"
"""Kind of the delivery that looks for a second message of one kind."""
LOOK_BACK = (60.0, 600.0)  # seconds after a post whose earlier try had no known end
LOST = 6.0  # seconds in which Slack shows what it made of a call whose connection was lost
# Refusals of a layout, after which the same content is tried once in the oldest blocks, then as text alone.
LAYOUT = frozenset(
    {"invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long", "msg_too_long", "invalid_arguments", "metadata_too_large"}
)
GONE = frozenset({"message_not_found", "cant_update_message", "edit_window_closed", "is_inactive"})


@dataclass(frozen=True, slots=True)
class Place:
    """A thread in a channel."""

    channel: str
    thread: str | None


@dataclass(frozen=True, slots=True)
class Upload:
    """A file for a thread; `alt` is what a screen reader says of a picture."""

    name: str
    data: bytes
    alt: str = ""


class Outbox:
    """What stands once has its intent stored first; a refused layout is tried plainly once. `call` is one Web API call of any kind."""

    def __init__(self, store: "Store", installs: Installs, hosts: Hosts) -> None:
        self._store = store
        self._installs = installs
        self._hosts = hosts
        self.calls = Calls(installs)
        self.call = self.calls.call

    async def post(self, who: Identity, place: Place, kind: str, blocks: Sequence[Block], text: str) -> str:
        """Posts once, also when a worker died on the way; `kind` tells the messages of one thread apart. The ts."""
        before = await self._store.reply_of(who.team, place.channel, place.thread or "", kind)
        if before is not None and before.ts:
            return before.ts
        ts, _ = await self._posted(who, place, kind, blocks, text, None, _begun(before))
        await self._remember(who, place, kind, ts, None, None)
        return ts

    async def _posted(
        self, who: Identity, place: Place, kind: str, blocks: Sequence[Block], text: str, incident: str | None, begun: float | None
    ) -> tuple[str, bool]:
        """The ts, and whether the message was there before. `begun`: when an earlier try was (Unix seconds), whose end is not known.

        Before each call its intent is stored, which a worker that has lost its claim cannot; who finds an intent looks in Slack first,
        and once more later on, should Slack carry the earlier call out only then.
        """
        doubted = begun is not None
        metadata = {"event_type": METADATA, "event_payload": {"kind": kind}}

        async def intend() -> None:
            await self._store.remember_reply(incident, who.team, place.channel, place.thread or "", "", kind)

        for _ in range(TRIES):
            if begun is not None:
                mine = marked(kind, as_sent(blocks, text)[1])
                if found := await sought(self.call, who, place.channel, place.thread, mine, begun):
                    return str(found["ts"]), True
            try:
                answer = await self.laid_out(
                    who, "chat.postMessage", blocks, text, channel=place.channel, thread_ts=place.thread, metadata=metadata,
                    unfurl_links=False, unfurl_media=False, fence=intend,
                )  # fmt: skip
            except UnsureError as unsure:
                log.warning("post of %s in %s: %s", kind, place.channel, unsure)
                begun = time.time() - (SETTLES if unsure.ended else SETTLES - LOST)
                doubted |= not unsure.ended
                await asyncio.sleep(0.5)
                continue
            except SlackApiError:
                await self._store.remember_reply(incident, who.team, place.channel, place.thread or "", "", kind, REFUSED)
                raise
            if doubted:
                await self._doubt(who, place, kind, as_sent(blocks, text)[1], str(answer["ts"]))
            return str(answer["ts"]), False
        raise UnsureError(f"{kind} could not be posted")

    async def _doubt(self, who: Identity, place: Place, kind: str, text: str, ts: str) -> None:
        """Whether Slack carried out both is looked at later."""
        since = None if place.thread else str(float(ts) - LOOK_BACK[-1])
        body = json.dumps({"channel": place.channel, "thread": place.thread or "", "kind": kind, "text": text, "since": since}).encode()
        with suppress(LostClaimError):  # then the heir sees to it
            for after in LOOK_BACK:
                await self._store.deliver(
                    who.team, place.channel, None, f"{TWICE}:{ts}:{after:.0f}", TWICE, body, who.enterprise, after=after
                )

    async def _remember(self, who: Identity, place: Place, kind: str, ts: str, incident: str | None, digest: str | None) -> None:
        """Notes the message that stands. A worker that lost its claim while it posted takes its own back, if its heir posted another."""
        try:
            await self._store.remember_reply(incident, who.team, place.channel, place.thread or "", ts, kind, digest)
        except LostClaimError:
            end = time.monotonic() + SETTLES
            while (heirs := await self._store.reply_of(who.team, place.channel, place.thread or "", kind)) is not None:
                if heirs.ts or time.monotonic() > end:
                    break
                await asyncio.sleep(1.0)
            if heirs is not None and heirs.ts not in ("", ts):
                log.warning("%s in %s was posted twice: one is taken back", kind, place.channel)
                await self.call(who, "chat.delete", channel=place.channel, ts=ts)
            raise

    async def update(self, who: Identity, channel: str, ts: str, blocks: Sequence[Block], text: str) -> None:
        """Edits in place. SlackApiError when the message is gone."""
        await self.laid_out(who, "chat.update", blocks, text, channel=channel, ts=ts)

    async def reply(self, who: Identity, place: Place, incident: str | None, kind: str, blocks: Sequence[Block], text: str) -> str:
        """The one message of that kind in the thread: posted the first time, edited after. The ts."""
        digest = _digest(blocks, text)
        before = await self._store.reply_of(who.team, place.channel, place.thread or "", kind)
        if before is not None and before.ts and before.digest == digest:
            return before.ts
        ts, stale, begun = before.ts if before else "", True, _begun(before)
        for _ in range(2):
            if not ts:
                ts, stale = await self._posted(who, place, kind, blocks, text, incident, begun)
            if not stale:
                break
            try:
                await self.update(who, place.channel, ts, blocks, text)
                break
            except SlackApiError as refused:
                if refused.response.get("error") not in GONE:
                    raise
                ts, begun = "", None
        await self._remember(who, place, kind, ts, incident, digest)
        return ts

    async def edit(self, who: Identity, place: Place, incident: str, kind: str, blocks: Sequence[Block], text: str) -> bool:
        """The same where it stands already: what was never said there, or is gone from Slack, is not said now. False where it is gone, or
        Slack lets nobody edit it any more."""
        digest = _digest(blocks, text)
        before = await self._store.reply_of(who.team, place.channel, place.thread or "", kind)
        if before is None or not before.ts or before.digest == digest:
            return True
        try:
            await self.update(who, place.channel, before.ts, blocks, text)
        except SlackApiError as refused:
            if refused.response.get("error") not in GONE:
                raise
            log.info("the message of %s is gone or cannot be edited: %s", incident, refused.response.get("error"))
            return False
        await self._remember(who, place, kind, before.ts, incident, digest)
        return True

    async def react(self, who: Identity, channel: str, ts: str, on: bool) -> None:
        """The :eyes: on a message while it is worked on; a refusal is of no consequence. No answer waits until they may be put on."""
        method = "reactions.add" if on else "reactions.remove"
        try:
            await self.call(who, method, patient=not on, channel=channel, timestamp=ts, name="eyes")
        except (SlackClientError, UnsureError) as refused:
            log.debug("reaction in %s: %s", channel, refused)

    async def upload(
        self, who: Identity, place: Place, kind: str, files: Sequence[Upload], comment: str, since: str | None
    ) -> Sequence[str]:
        """Files into the thread as one message: their ids. SlackApiError when Slack refuses. Its intent is stored as that of a post is.

        `since`: the ts before which an upload of the same name is an older one.
        """
        before = await self._store.reply_of(who.team, place.channel, place.thread or "", kind)
        mine = holding(files[0].name)
        begun = None if before is None or before.ts else _begun(before)
        if begun is not None and (found := await sought(self.call, who, place.channel, place.thread, mine, begun, since)):
            return [str(file["id"]) for file in found["files"]]
        done = []
        for file in files:
            seen: dict[str, Any] = {"alt_txt": file.alt} if file.alt else {}
            opened = await self.call(who, "files.getUploadURLExternal", filename=file.name, length=len(file.data), **seen)
            if not self._hosts.may_download(opened["upload_url"]) or self._installs.session is None:
                raise UnsureError("Slack named an upload address that is not its own")
            async with self._installs.session.post(opened["upload_url"], data=file.data, allow_redirects=False) as answer:
                if answer.status != 200:
                    raise UnsureError(f"upload of {file.name}: status {answer.status}")
            done.append({"id": opened["file_id"], "title": file.name})

        async def intend() -> None:
            await self._store.remember_reply(None, who.team, place.channel, place.thread or "", "", kind)

        await self.call(
            who, "files.completeUploadExternal", fence=intend, files=done, channel_id=place.channel, thread_ts=place.thread,
            initial_comment=comment,
        )  # fmt: skip
        return [file["id"] for file in done]

    async def laid_out(self, who: Identity, method: str, blocks: Sequence[Block], text: str, **arguments: Any) -> dict[str, Any]:
        """One call that shows blocks; a layout that Slack refuses is tried in the oldest blocks, then as text alone."""
        shown, short = as_sent(blocks, text)
        try:
            return await self.call(who, method, text=short, blocks=shown, **arguments)
        except SlackApiError as refused:
            if refused.response.get("error") not in LAYOUT:
                raise
            log.warning("%s refused the layout: %s %s", method, refused.response.get("error"), refused.response.get("response_metadata"))
        try:
            return await self.call(who, method, text=short, blocks=plainly(shown), **arguments)
        except SlackApiError as refused:
            if refused.response.get("error") not in LAYOUT:
                raise
        return await self.call(who, method, text=short, blocks=[], **arguments)


def _begun(before: "OwnReply | None") -> float | None:
    """When an earlier try was whose end is not known (Unix seconds). One that Slack refused has ended, and left nothing."""
    return None if before is None or before.digest == REFUSED else before.at


def _digest(blocks: Sequence[Block], text: str) -> str:
    return hashlib.sha256(json.dumps([list(blocks), text], sort_keys=True).encode()).hexdigest()


def as_sent(blocks: Sequence[Block], text: str) -> tuple[list[Block], str]:
    """Blocks and text as Slack gets them. Callers give plain words: here they become inert, and a block where there is none."""
    return list(blocks) or [fit(rich(line(text)))], escape(cut(text, FALLBACK)).strip() or "–"
