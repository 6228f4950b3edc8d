"""Words to one person alone. Nobody can look for them in Slack, so their intent is stored, and without a known end they are offered."""

import asyncio
import hashlib
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

import aiohttp
from slack_sdk.errors import SlackApiError

from bot.slack.calls import LONGEST_WAIT, TRIES, UnsureError
from bot.slack.hosts import Hosts
from bot.slack.installs import Identity, Installs
from bot.slack.offers import offer
from bot.slack.outbox import REFUSED, Outbox, Place, as_sent
from bot.slack.render.blocks import Block, plainly

if TYPE_CHECKING:
    from bot.store.deliveries import OwnReply
    from bot.store.store import Store

log = logging.getLogger(__name__)
SAID = "said"
"""Stands where another note has its ts: words to one person have none."""
BEGUN = "begun"
MOST_BEGUN = 3  # the words, the offer, and once more the offer: a process that dies of saying it must not say it for ever
Fence = Callable[[], Awaitable[None]]


class Asides:
    """The ways to one person: the response URL of what they did, a place where others do not see it, a direct message."""

    def __init__(self, outbox: Outbox, store: "Store", installs: Installs, hosts: Hosts) -> None:
        self._outbox = outbox
        self._store = store
        self._installs = installs
        self._hosts = hosts

    async def alone(
        self,
        who: Identity,
        place: Place,
        user: str,
        text: str,
        blocks: Sequence[Block] = (),
        *,
        about: str,
        name: str = "",
        url: str | None = None,
        replace: bool = False,
        answering: str = "you",
        anew: str | None = None,
        elsewhere: bool = True,
    ) -> bool:
        """By the first way that Slack leaves open, once `about` one arrival, however often that is tried. False when there is none.

        `name` is for words that may read otherwise the next time; `answering` and `anew` are for the offer; `replace`: in place of what
        was clicked, which may be done again. Without `elsewhere` only the response URL is a way. UnsureError where the end is not known:
        whoever tries again finds the intent.
        """
        kind = f"word:{about}:{name or _digest(text, blocks)}"
        if not url and place.channel.startswith("D"):
            return await self._directly(who, place, kind, text, blocks)
        before = await self._store.reply_of(who.team, place.channel, user, kind)
        begun = _begun(before)
        if begun >= MOST_BEGUN:
            log.error("%s is given up: %s tries ended while it was said", kind, begun)
            return True
        if before is not None and before.ts:
            return True

        async def note(ts: str, digest: str) -> None:
            await self._store.remember_reply(None, who.team, place.channel, user, ts, kind, digest)

        async def intend() -> None:
            await note("", f"{BEGUN} {begun + 1}")

        if url and replace and await self.respond(url, text, blocks, replace=True):
            await note(SAID, "")
            return True
        if begun:
            log.warning("whether %s was told is not known", kind)
            text, blocks = offer(text, blocks, answering, anew)
        told = url and await self.respond(url, text, blocks, fence=intend)
        if elsewhere:
            try:
                told = told or (place.channel and await self._whisper(who, place, user, kind, text, blocks, intend))
            except UnsureError as unsure:
                if unsure.ended:
                    await note("", REFUSED)
                raise
            if not told:
                await note("", REFUSED)
                told = await self._tell(who, user, kind, text, blocks)
        await note(SAID if told else "", "" if told else REFUSED)
        return bool(told)

    async def tell(self, who: Identity, user: str, text: str, *, about: str) -> bool:
        """A direct message, once `about` one arrival."""
        return await self._tell(who, user, f"word:{about}:{_digest(text, ())}", text, ())

    async def _tell(self, who: Identity, user: str, kind: str, text: str, blocks: Sequence[Block]) -> bool:
        """A refusal is logged and gives False: there is no other way left to this person."""
        try:
            direct = (await self._outbox.call(who, "conversations.open", users=user))["channel"]["id"]
            return await self._directly(who, Place(direct, None), kind, text, blocks)
        except (SlackApiError, UnsureError) as refused:
            log.warning("a direct message: %s", refused.response.get("error") if isinstance(refused, SlackApiError) else refused)
            return False

    async def _directly(self, who: Identity, place: Place, kind: str, text: str, blocks: Sequence[Block]) -> bool:
        """Where nobody else reads along it is an ordinary message, which can be looked for."""
        await self._outbox.post(who, place, kind, blocks, text)
        return True

    async def _whisper(self, who: Identity, place: Place, user: str, kind: str, text: str, blocks: Sequence[Block], fence: Fence) -> bool:
        """Only `user` sees it; it is gone after a reload. False when Slack does not let it be said there."""
        if place.channel.startswith("D"):
            try:
                return await self._directly(who, place, kind, text, blocks)
            except SlackApiError as refused:  # two other people's
                log.warning("a word to one person in %s: %s", place.channel, refused.response.get("error"))
                return False
        for attempt in range(TRIES):
            try:
                await self._outbox.laid_out(
                    who, "chat.postEphemeral", blocks, text, channel=place.channel, user=user, thread_ts=place.thread, fence=fence
                )
            except SlackApiError as refused:
                # The person has left, or the bot may not speak there: nothing that another try would mend.
                log.warning("a word to one person in %s: %s", place.channel, refused.response.get("error"))
                return False
            except UnsureError as unsure:
                if not unsure.ended or attempt == TRIES - 1:  # an error status is Slack's word that nothing was done
                    raise
                await asyncio.sleep(0.2 * 2**attempt)
            else:
                break
        return True

    async def respond(
        self, url: str, text: str, blocks: Sequence[Block] = (), *, replace: bool = False, fence: Fence | None = None
    ) -> bool:
        """Answers a command or a click by its response URL: five times within half an hour. False when it could not be said.

        `fence` is passed right before every try; with one, a try whose end is not known raises UnsureError, and is not made again.
        """
        if not self._hosts.may_answer(url) or self._installs.session is None:
            log.warning("response URL refused: it is not Slack's")
            return False
        full, short = as_sent(blocks, text)
        body: dict[str, Any] = {"text": short, "response_type": "ephemeral", "replace_original": replace}
        for shown in (full, plainly(full), None):
            if shown:
                body["blocks"] = list(shown)
            else:
                body.pop("blocks", None)
            for attempt in range(3):
                status, wait = await self._responded(url, body, fence)
                if status == 200:
                    return True
                if status in (404, 410):
                    return False
                if 0 < status < 500 and status != 429:
                    break
                await asyncio.sleep(min(0.3 * 2**attempt if wait is None else wait, LONGEST_WAIT))
        return False

    async def _responded(self, url: str, body: dict[str, Any], fence: Fence | None) -> tuple[int, float | None]:
        """Status of one try, 0 where there was none, and the wait that Slack asks for (seconds)."""
        if fence is not None:
            await fence()
        assert self._installs.session is not None
        limit = aiohttp.ClientTimeout(total=15)
        try:
            async with self._installs.session.post(url, json=body, allow_redirects=False, timeout=limit) as answer:
                held = answer.headers.get("Retry-After", "") if answer.status == 429 else ""
                return answer.status, float(held) if held.isdecimal() else None
        except aiohttp.ClientConnectorError:
            return 0, None
        except (aiohttp.ClientError, TimeoutError) as lost:
            if fence is not None:
                raise UnsureError(f"response URL: {type(lost).__name__}") from lost
            return 0, None


def _begun(before: "OwnReply | None") -> int:
    """How often it was begun without a known end."""
    if before is None or before.ts or not (before.digest or "").startswith(BEGUN):
        return 0
    return int((before.digest or "").removeprefix(BEGUN))


def _digest(text: str, blocks: Sequence[Block]) -> str:
    return hashlib.sha256(json.dumps([list(blocks), text], sort_keys=True).encode()).hexdigest()[:12]
