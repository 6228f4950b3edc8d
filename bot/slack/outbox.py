"""Everything the bot says, in plain words: one reply per incident edited in place, rate limits obeyed, a refused layout tried plainly."""

import asyncio
import hashlib
import json
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError, SlackRequestError

from bot.slack.hosts import Hosts
from bot.slack.installs import Identity, Installs
from bot.slack.render.blocks import Block, line, plainly, rich
from bot.slack.render.escape import cut, escape
from bot.slack.render.limits import FALLBACK, fit

if TYPE_CHECKING:
    from bot.store.store import Store

log = logging.getLogger(__name__)
TRIES = 5
LONGEST_WAIT = 300.0  # seconds
METADATA = "oombot_reply"
# Refusals of a layout, after which the same content is tried once in the oldest blocks, then as text alone.
LAYOUT = frozenset(
    {"invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long", "msg_too_long", "invalid_arguments", "metadata_too_large"}
)
STALE = frozenset({"token_expired", "invalid_auth", "token_revoked", "account_inactive"})
GONE = frozenset({"message_not_found", "cant_update_message", "edit_window_closed", "is_inactive"})


class UnsureError(Exception):
    """A call failed in a way that leaves open whether Slack carried it out."""


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
    """Calls wait for the channel's Retry-After; a refused layout is tried plainly once."""

    def __init__(self, store: "Store", installs: Installs, hosts: Hosts) -> None:
        self._store = store
        self._installs = installs
        self._hosts = hosts
        self._not_before: dict[str, float] = {}

    async def call(self, who: Identity, method: str, *, sure: bool = False, **arguments: Any) -> dict[str, Any]:
        """One Web API call. Waits out 429, retries 5xx and lost connections; SlackApiError when Slack refuses.

        `sure`: the call must not be carried out twice, so UnsureError is raised where it may have been.
        """
        lane = f"{who.team}:{method}:{arguments.get('channel', '')}"
        for attempt in range(1, TRIES + 1):
            await asyncio.sleep(max(0.0, self._not_before.get(lane, 0.0) - time.monotonic()))
            try:
                answer = await getattr(self._installs.client(who.token), method.replace(".", "_"))(**arguments)
            except SlackApiError as refused:
                status = refused.response.status_code
                if status == 429:
                    self._not_before[lane] = time.monotonic() + _retry_after(refused)
                    continue
                if refused.response.get("error") in STALE:
                    self._installs.doubt(who)
                if status < 500:
                    raise
                if sure:
                    raise UnsureError(f"{method}: {status}") from refused
            except (aiohttp.ClientError, TimeoutError, SlackRequestError) as lost:
                if sure or attempt == TRIES:
                    raise UnsureError(f"{method}: {type(lost).__name__}") from lost
            else:
                return dict(answer.data)
            await asyncio.sleep(min(0.2 * 2**attempt, 5.0))
        raise UnsureError(f"{method}: still refused after {TRIES} tries")

    async def post(
        self, who: Identity, place: Place, kind: str, blocks: Sequence[Block], text: str, *, doubtful: bool, since: str | None = None
    ) -> str:
        """Posts once; `kind` tells messages of one thread apart. `doubtful`: an earlier try may have posted, so look first. The ts."""
        for _ in range(TRIES):
            if doubtful and (found := await self._find(who, place, kind, since)):
                return found
            await self._store.still_held()
            metadata = {"event_type": METADATA, "event_payload": {"kind": kind}}
            try:
                answer = await self._laid_out(
                    who,
                    "chat.postMessage",
                    blocks,
                    text,
                    channel=place.channel,
                    thread_ts=place.thread,
                    metadata=metadata,
                    unfurl_links=False,
                    unfurl_media=False,
                    sure=True,
                )
            except UnsureError as unsure:
                log.warning("post of %s in %s: %s", kind, place.channel, unsure)
                doubtful = True
                await asyncio.sleep(0.5)
                continue
            return str(answer["ts"])
        raise UnsureError(f"{kind} could not be posted")

    async def update(self, who: Identity, channel: str, ts: str, blocks: Sequence[Block], text: str) -> None:
        """Edits in place. SlackApiError when the message is gone."""
        await self._laid_out(who, "chat.update", blocks, text, channel=channel, ts=ts)

    async def reply(
        self, who: Identity, place: Place, incident: str | None, kind: str, blocks: Sequence[Block], text: str, *, doubtful: bool
    ) -> str:
        """The one message of that kind in the thread: posted the first time, edited after. The ts."""
        digest = hashlib.sha256(json.dumps([list(blocks), text], sort_keys=True).encode()).hexdigest()
        before = await self._store.reply_of(who.team, place.channel, place.thread or "", kind)
        if before is not None:
            if before.digest == digest:
                return before.ts
            try:
                await self.update(who, place.channel, before.ts, blocks, text)
            except SlackApiError as refused:
                if refused.response.get("error") not in GONE:
                    raise
                before = None
        if before is None:
            ts = await self.post(who, place, kind, blocks, text, doubtful=doubtful)
            if doubtful:
                await self.update(who, place.channel, ts, blocks, text)
        else:
            ts = before.ts
        await self._store.remember_reply(incident, who.team, place.channel, place.thread or "", ts, kind, digest)
        return ts

    async def whisper(self, who: Identity, place: Place, user: str, text: str, blocks: Sequence[Block] | None = None) -> None:
        """Only `user` sees it; it is gone after a reload. In a direct message it is an ordinary message."""
        if place.channel.startswith("D"):
            await self._laid_out(who, "chat.postMessage", blocks or (), text, channel=place.channel, thread_ts=place.thread,
                                 unfurl_links=False, unfurl_media=False)  # fmt: skip
            return
        try:
            await self._laid_out(who, "chat.postEphemeral", blocks or (), text, channel=place.channel, user=user, thread_ts=place.thread)
        except SlackApiError as refused:
            # The person has left, or the bot may not speak there: nothing that another try would mend.
            log.warning("a word to one person in %s: %s", place.channel, refused.response.get("error"))

    async def react(self, who: Identity, channel: str, ts: str, on: bool) -> None:
        """The :eyes: on a message while it is worked on; a refusal is of no consequence."""
        try:
            await self.call(who, "reactions.add" if on else "reactions.remove", channel=channel, timestamp=ts, name="eyes")
        except (SlackClientError, UnsureError) as refused:
            log.debug("reaction in %s: %s", channel, refused)

    async def respond(self, url: str, text: str, blocks: Sequence[Block] | None = None, *, replace: bool = False) -> bool:
        """Answers a command or a click by its response URL: five times within half an hour. False when it could not be said."""
        if not self._hosts.may_answer(url) or self._installs.session is None:
            log.warning("response URL refused: it is not Slack's")
            return False
        full, short = as_sent(blocks or (), text)
        body: dict[str, Any] = {"text": short, "response_type": "ephemeral", "replace_original": replace}
        for shown in (full, plainly(full), None):
            if shown:
                body["blocks"] = list(shown)
            else:
                body.pop("blocks", None)
            for attempt in range(3):
                try:
                    async with self._installs.session.post(
                        url, json=body, allow_redirects=False, timeout=aiohttp.ClientTimeout(total=15)
                    ) as answer:
                        if answer.status == 200:
                            return True
                        if answer.status in (404, 410):
                            return False
                        wait = (
                            float(answer.headers.get("Retry-After", 0.3 * 2**attempt))
                            if answer.status == 429 or answer.status >= 500
                            else 0
                        )
                except (aiohttp.ClientError, TimeoutError):
                    wait = 0.3 * 2**attempt
                if wait == 0:
                    break
                await asyncio.sleep(min(wait, LONGEST_WAIT))
        return False

    async def upload(self, who: Identity, place: Place, files: Sequence[Upload], comment: str) -> None:
        """Files into the thread as one message; SlackApiError when Slack refuses."""
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
        await self.call(
            who,
            "files.completeUploadExternal",
            sure=True,
            files=done,
            channel_id=place.channel,
            thread_ts=place.thread,
            initial_comment=comment,
        )

    async def _laid_out(self, who: Identity, method: str, blocks: Sequence[Block], text: str, **arguments: Any) -> dict[str, Any]:
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

    async def _find(self, who: Identity, place: Place, kind: str, since: str | None) -> str | None:
        """A message of ours of that kind already in the thread; None when there is none, or Slack does not let us look."""
        try:
            if place.thread is None:
                answer = await self.call(
                    who, "conversations.history", channel=place.channel, oldest=since or "0", limit=100, include_all_metadata=True
                )
            else:
                answer = await self.call(
                    who, "conversations.replies", channel=place.channel, ts=place.thread, limit=200, include_all_metadata=True
                )
        except SlackApiError:
            return None
        return next((str(m["ts"]) for m in answer.get("messages", ()) if _is_ours(m, who, kind)), None)


def as_sent(blocks: Sequence[Block], text: str) -> tuple[list[Block], str]:
    """Blocks and text as Slack gets them. Callers give plain words: here they become inert, and a block where there is none."""
    return list(blocks) or [fit(rich(line(text)))], escape(cut(text, FALLBACK)).strip() or "–"


def _is_ours(message: Mapping[str, Any], who: Identity, kind: str) -> bool:
    metadata = message.get("metadata") or {}
    own = message.get("bot_id") == who.bot_id or message.get("user") == who.bot_user
    return own and metadata.get("event_type") == METADATA and (metadata.get("event_payload") or {}).get("kind") == kind


def _retry_after(refused: SlackApiError) -> float:
    headers = {key.lower(): value for key, value in dict(refused.response.headers).items()}
    try:
        return min(float(headers.get("retry-after", 1)), LONGEST_WAIT)
    except ValueError:
        return 1.0
