import asyncio
from collections.abc import Callable

import pytest

from bot.domain.incident import Origin
from bot.store.errors import LostClaimError
from bot.store.store import Store
from tests.store.material import document, paste


async def test_who_slept_past_the_lease_writes_nothing_beside_the_one_who_took_over(store: Store, later: Callable[[float], None]) -> None:
    await store.deliver("T1", "C1", "t1", "Ev1", "event", b"x")
    slept, taken = asyncio.Event(), asyncio.Event()
    refused: list[str] = []

    async def sleeper() -> None:
        first = await store.claim("sleeper", 30)
        assert first
        slept.set()
        await taken.wait()
        for late in (
            lambda: store.append(Origin("T1", channel="C1", thread="t1"), [paste()], document()),
            lambda: store.fail(first.id, "late", 1.0),
            lambda: store.finish(first.id),
            lambda: store.renew(first.id, 60),
            lambda: store.remember_reply("D-0001", "T1", "C1", "t1", "", "diagnosis"),
        ):
            with pytest.raises(LostClaimError, match=f"delivery {first.id}, try 1"):
                await late()
            refused.append("once")

    async def heir() -> None:
        await slept.wait()
        later(31)
        second = await store.claim("heir", 60)
        assert second
        assert second.attempts == 2
        taken.set()
        while len(refused) < 5:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        assert await store.append(Origin("T1", channel="C1", thread="t1"), [paste()], document()) == "D-0001"
        assert await store.finish(second.id)
        await store.watch("T1", "C1", True, "U1")  # what is done binds nobody

    await asyncio.gather(asyncio.create_task(sleeper()), asyncio.create_task(heir()))
    assert (await store.state())["incidents"] == 1
    assert (await store.backlog())["working"] == 0
