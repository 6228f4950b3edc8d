"""Who may see what now: asked of Slack as often as Slack lets us, closed where it does not say."""

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from slack_sdk.errors import SlackApiError

from bot.slack.calls import UnsureError
from bot.slack.installs import Identity
from bot.slack.outbox import Outbox
from bot.usecases.desk import Viewer

log = logging.getLogger(__name__)
REMEMBERED = 60.0  # seconds at most: a channel can turn private, a person can leave
# Seconds for each page of an answer: Slack takes 20 calls a minute for the channels of a workspace, 50 for those of a person.
APART = {"conversations.list": 3.0, "users.conversations": 2.0}
PAGES = 20
MEMBERSHIPS = ("public_channel,private_channel,mpim", "public_channel,private_channel", "public_channel")


@dataclass(frozen=True, slots=True)
class Sight:
    """What a person may see, and whether Slack let us find out all of it."""

    viewer: Viewer
    complete: bool
    foreign: bool = False  # of another organisation


class Visibility:
    """Asks Slack for a person's channels and for a channel's privacy."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._seen: dict[tuple[str, ...], tuple[float, Any]] = {}

    async def sight(self, who: Identity, user: str, here: str | None, *, foreign: bool = False) -> Sight:
        """Public channels, and private ones with this person in them. Guests see the channels they are in, foreign members `here` only."""
        own = frozenset({here}) if here else frozenset()
        standing = "foreign" if foreign else await self._standing(who, user)
        if standing == "foreign":
            return Sight(Viewer(who.team, user, who.enterprise, own), complete=True, foreign=True)
        public: frozenset[str] | None = frozenset()
        if standing == "member":
            public = await self._public(who)
        member, complete = None, public is not None and standing != "unknown"
        for types in MEMBERSHIPS:  # what is left out is an optional scope that the app lacks
            member = await self._channels(who, "users.conversations", user=user, types=types)
            if member is not None:
                complete = complete and "private_channel" in types
                break
        direct = await self._direct(who, user)
        channels = own | (public or frozenset()) | (member or frozenset()) | direct
        return Sight(Viewer(who.team, user, who.enterprise, channels), complete)

    async def readers(self, who: Identity, user: str, channel: str) -> Viewer:
        """What all who read an answer there may see: public channels and that one; where other organisations read along, only that one."""
        if channel.startswith("D"):
            return (await self.sight(who, user, channel)).viewer
        public = None if await self.is_shared(who, channel) else await self._public(who)
        return Viewer(who.team, user, who.enterprise, (public or frozenset()) | {channel})

    async def may_touch(self, who: Identity, user: str, channel: str, *, foreign: bool = False) -> bool:
        """May this person settle an incident of that channel? Where Slack does not say, the signed click itself is the proof."""
        if foreign:
            return False
        if channel.startswith("D"):
            return True
        if await self._standing(who, user) == "member" and channel in (await self._public(who) or ()):
            return True
        sight = await self.sight(who, user, None)
        return channel in (sight.viewer.channels or ()) or not sight.complete

    async def may_post(self, who: Identity, user: str, channel: str, *, foreign: bool = False) -> bool:
        """May this person have something posted there? Where Slack does not say, no: a form may name any channel at all."""
        if not foreign and await self._standing(who, user) == "member" and not await self.is_private(who, channel):
            return True
        return channel in ((await self.sight(who, user, None, foreign=foreign)).viewer.channels or ())

    async def is_private(self, who: Identity, channel: str, channel_type: str | None = None) -> bool:
        """Private channels, group and direct messages; also where Slack does not say."""
        if channel.startswith(("D", "G")):
            return True
        info = await self._info(who, channel)
        if info is None:
            return channel_type != "channel"
        return bool(info.get("is_private") or info.get("is_im") or info.get("is_mpim"))

    async def is_shared(self, who: Identity, channel: str) -> bool:
        """Do people of other organisations read it? Also where Slack does not say."""
        if channel.startswith("D"):
            return False
        info = await self._info(who, channel)
        return info is None or bool(info.get("is_ext_shared") or info.get("is_pending_ext_shared"))

    async def is_absent(self, who: Identity, channel: str) -> bool:
        """Does Slack say that the bot is not in it?"""
        return ((await self._info(who, channel)) or {}).get("is_member") is False

    async def _info(self, who: Identity, channel: str) -> Mapping[str, Any] | None:
        key = (who.team, "info", channel)
        if (kept := self._kept(key)) is None:
            try:
                kept = (await self._outbox.call(who, "conversations.info", channel=channel))["channel"]
            except (SlackApiError, UnsureError):
                kept = {}
            self._keep(key, kept)
        return kept or None

    def forget(self, channel: str) -> None:
        """A channel has changed: ask again."""
        self._seen = {key: value for key, value in self._seen.items() if channel not in key and "conversations.list" not in key}

    async def _public(self, who: Identity) -> frozenset[str] | None:
        return await self._channels(who, "conversations.list", types="public_channel", exclude_archived=False)

    async def _channels(self, who: Identity, method: str, **arguments: Any) -> frozenset[str] | None:
        key = (who.team, method, *(str(value) for value in arguments.values()))
        if (kept := self._kept(key)) is not None:
            return frozenset(kept)
        found: set[str] = set()
        cursor, pages = "", 0
        if who.whole_enterprise:
            arguments["team_id"] = who.team
        try:
            while pages < PAGES:
                pages += 1
                page: dict[str, Any] = {"cursor": cursor} if cursor else {}
                answer = await self._outbox.call(who, method, limit=200, **arguments, **page)
                found.update(
                    channel["id"]
                    for channel in answer.get("channels", ())
                    if arguments["types"] != "public_channel" or not channel.get("is_private")
                )
                cursor = (answer.get("response_metadata") or {}).get("next_cursor") or ""
                if not cursor:
                    break
        except (SlackApiError, UnsureError) as refused:
            log.info("%s: %s", method, refused.response.get("error") if isinstance(refused, SlackApiError) else refused)
            return None
        self._keep(key, frozenset(found), APART[method] * pages)
        return frozenset(found)

    async def _standing(self, who: Identity, user: str) -> str:
        """member | guest | foreign (of another organisation) | unknown, where Slack does not say."""
        key = (who.team, "standing", user)
        if (kept := self._kept(key)) is None:
            try:
                info = (await self._outbox.call(who, "users.info", user=user))["user"]
            except (SlackApiError, UnsureError) as refused:
                error = refused.response.get("error") if isinstance(refused, SlackApiError) else str(refused)
                log.info("users.info: %s", error)
                return "member" if error == "unknown_method" else "unknown"  # a Slack played without it has no guests
            kept = _standing_of(info, who)
            self._keep(key, kept)
        return str(kept)

    async def _direct(self, who: Identity, user: str) -> frozenset[str]:
        """The person's own direct message with the bot; opening it again changes nothing."""
        key = (who.team, "direct", user)
        if (kept := self._kept(key)) is None:
            try:
                kept = frozenset({(await self._outbox.call(who, "conversations.open", users=user))["channel"]["id"]})
            except (SlackApiError, UnsureError):
                kept = frozenset()
            self._keep(key, kept)
        return frozenset(kept)

    def _kept(self, key: tuple[str, ...]) -> Any:
        until, value = self._seen.get(key, (0.0, None))
        return value if time.monotonic() < until else None

    def _keep(self, key: tuple[str, ...], value: Any, seconds: float = REMEMBERED) -> None:
        if len(self._seen) > 5_000:
            self._seen.clear()
        self._seen[key] = (time.monotonic() + min(seconds, REMEMBERED), value)


def _standing_of(info: Mapping[str, Any], who: Identity) -> str:
    home, organisation = info.get("team_id"), (info.get("enterprise_user") or {}).get("enterprise_id")
    elsewhere = bool(home) and home != who.team and home != who.enterprise
    if info.get("is_stranger") or (elsewhere and not (organisation and organisation == who.enterprise)):
        return "foreign"
    return "guest" if info.get("is_restricted") or info.get("is_ultra_restricted") else "member"
