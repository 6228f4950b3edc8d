"""The desk of a command: this machine's database, the rulebook, and judging in this process."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TypeVar

from bot.domain.incident import LOCAL_TEAM
from bot.rulebook.load import load_rulebook
from bot.settings import Settings
from bot.usecases.desk import Desk, Viewer
from bot.usecases.judge import judged_here

LOCAL = Viewer(team=LOCAL_TEAM)
T = TypeVar("T")


@asynccontextmanager
async def opened_desk(settings: Settings) -> AsyncIterator[Desk]:
    """A Desk over the settings' database, closed afterwards. StoreError when it cannot be opened."""
    from bot.store.store import open_store

    store = await open_store(settings.database)
    try:
        yield Desk(settings=settings, rulebook=load_rulebook, judge=judged_here, now=lambda: datetime.now(UTC), store=store)
    finally:
        await store.close()


def asked(settings: Settings, ask: Callable[[Desk], Awaitable[T]]) -> T:
    """What a use case answers at this desk. StoreError when the database cannot be opened."""

    async def asking() -> T:
        async with opened_desk(settings) as desk:
            return await ask(desk)

    return asyncio.run(asking())
