"""Which channels get a weekly digest, and when it is due; every replica looks, and the queue's key lets each week through once."""

import asyncio
import json
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from bot.slack.installs import Identity
from bot.store.audit import Deed
from bot.usecases.digest import week_of

if TYPE_CHECKING:
    from bot.store.store import Store

log = logging.getLogger(__name__)
EVERY = 1800.0  # seconds
SETTING = "slack.digests"


async def switch(store: "Store", who: Identity, channel: str, on: bool, now: datetime, *, by: str, private: bool) -> None:
    """On or off in a channel. The first digest comes with the week after this one."""
    entry = {channel: {"week": week_of(now), "enterprise": who.enterprise}} if on else {}

    def switched(chosen: dict[str, Any] | None) -> dict[str, Any] | None:
        return {**{one: kept for one, kept in (chosen or {}).items() if one != channel}, **entry} or None

    deed = Deed("digest on" if on else "digest off", by, who.team, who.enterprise, channel, private)
    await store.change_setting(who.team, SETTING, switched, deed)


async def is_on(store: "Store", team: str, channel: str) -> bool:
    """Whether a channel gets one."""
    return channel in (await store.setting(team, SETTING) or {})


async def look(store: "Store", now: datetime) -> bool:
    """Hands every digest that is due to the queue; whether there was a new one."""
    week, new = week_of(now), False
    for team, chosen in (await store.settings_named(SETTING)).items():
        for channel, entry in chosen.items():
            if entry["week"] != week:
                body = json.dumps({"channel": channel, "week": week}).encode()
                new |= await store.deliver(team, channel, None, f"digest:{channel}:{week}", "digest", body, entry["enterprise"])
    return new


async def run(store: "Store", wake: Callable[[], None]) -> None:
    """Looks every half an hour."""
    while True:
        try:
            if await look(store, datetime.now(UTC)):
                wake()
        except Exception:  # the top of a background task: ended, it would be silent for good
            log.exception("digests could not be looked through")
        await asyncio.sleep(EVERY)
