import asyncio
import time
from collections.abc import Callable

import pytest

from bot.store.store import Store, open_store


async def deliver(store: Store, key: str, thread: str | None = "1.1", channel: str = "C1") -> bool:
    return await store.deliver("T1", channel, thread, key, "event", key.encode())


async def test_the_same_key_is_kept_once(store: Store) -> None:
    assert await deliver(store, "Ev1")
    assert not await deliver(store, "Ev1")
    assert await store.deliver("T2", "C1", "1.1", "Ev1", "event", b"another team's")


async def test_ten_at_once_with_one_key_are_one(store: Store) -> None:
    kept = await asyncio.gather(*(deliver(store, "Ev1") for _ in range(10)))
    assert sorted(kept) == [False] * 9 + [True]


async def test_nothing_waits_in_an_empty_store(store: Store) -> None:
    assert await store.claim("w1", 30) is None


async def test_a_delivery_comes_back_as_it_was_given(store: Store) -> None:
    await store.deliver("T1", "C1", "1.1", "Ev1", "event", b"\x00payload", enterprise="E1")
    found = await store.claim("w1", 30)
    assert found
    assert (found.team, found.channel, found.thread, found.key, found.kind, found.payload) == (
        "T1",
        "C1",
        "1.1",
        "Ev1",
        "event",
        b"\x00payload",
    )
    assert (found.enterprise, found.attempts) == ("E1", 1)


async def test_a_thread_is_worked_in_order_one_at_a_time(store: Store) -> None:
    await deliver(store, "a1", "1.1")
    await deliver(store, "a2", "1.1")
    await deliver(store, "b1", "2.2")
    first, other = await store.claim("w1", 30), await store.claim("w2", 30)
    assert first
    assert other
    assert (first.key, other.key) == ("a1", "b1")
    assert await store.claim("w3", 30) is None
    assert await store.finish(first.id)
    second = await store.claim("w1", 30)
    assert second
    assert second.key == "a2"


async def test_what_has_no_thread_waits_for_nobody(store: Store) -> None:
    await deliver(store, "a", None)
    await deliver(store, "b", None)
    assert {(await store.claim("w", 30)).key for _ in range(2)} == {"a", "b"}  # type: ignore[union-attr]


async def test_a_failed_delivery_keeps_its_thread_waiting_until_its_time(store: Store, later: Callable[[float], None]) -> None:
    await deliver(store, "a1")
    await deliver(store, "a2")
    first = await store.claim("w1", 30)
    assert first
    assert await store.fail(first.id, "Slack answered 500", retry_after=60)
    assert await store.claim("w1", 30) is None
    later(61)
    again = await store.claim("w1", 30)
    assert again
    assert (again.key, again.attempts) == ("a1", 2)


async def test_a_delivery_given_up_lets_its_thread_go_on(store: Store) -> None:
    await deliver(store, "a1")
    await deliver(store, "a2")
    first = await store.claim("w1", 30)
    assert first
    await store.fail(first.id, "no such channel", retry_after=None)
    second = await store.claim("w1", 30)
    assert second
    assert second.key == "a2"
    assert (await store.backlog())["failed"] == 1


async def test_an_expired_lease_is_claimed_again(store: Store, later: Callable[[float], None]) -> None:
    await deliver(store, "a1")
    await store.claim("w1", 30)
    assert await store.claim("w2", 30) is None
    later(31)
    taken = await store.claim("w2", 30)
    assert taken
    assert (taken.key, taken.attempts) == ("a1", 2)


async def test_a_renewed_lease_is_not(store: Store, later: Callable[[float], None]) -> None:
    await deliver(store, "a1")
    mine = await store.claim("w1", 30)
    assert mine
    assert await store.renew(mine.id, 90)
    later(31)
    assert await store.claim("w2", 30) is None


async def test_what_is_done_stays_done(store: Store) -> None:
    await deliver(store, "a1")
    mine = await store.claim("w1", 30)
    assert mine
    assert await store.finish(mine.id)
    assert not await store.finish(mine.id)
    assert not await store.renew(mine.id, 30)
    assert not await store.fail(mine.id, "late", 1)
    assert not await deliver(store, "a1")
    assert await store.claim("w1", 30) is None


async def test_the_backlog_is_counted(store: Store, later: Callable[[float], None]) -> None:
    await deliver(store, "a1")
    later(3_600)
    await deliver(store, "a2")
    await store.claim("w1", 30)
    backlog = await store.backlog()
    assert (backlog["waiting"], backlog["working"], backlog["failed"]) == (1, 1, 0)
    assert 3_600 <= backlog["oldest_seconds"] < 7_200


async def test_a_reply_is_remembered_and_replaced(store: Store) -> None:
    assert await store.reply_of("T1", "C1", "1.1", "diagnosis") is None
    await store.remember_reply("D-0007", "T1", "C1", "1.1", "9.9", "diagnosis", "abc")
    await store.remember_reply("D-0007", "T1", "C1", "1.1", "9.9", "diagnosis", "def")
    found = await store.reply_of("T1", "C1", "1.1", "diagnosis")
    assert found
    assert (found.ts, found.digest, found.incident) == ("9.9", "def", "D-0007")
    assert await store.reply_of("T2", "C1", "1.1", "diagnosis") is None
    assert await store.reply_of("T1", "C1", "1.1", "question") is None


@pytest.mark.parametrize("deliveries", [300])
async def test_two_replicas_lose_nothing_double_nothing_and_keep_the_order(url: str, deliveries: int) -> None:
    first, second = await open_store(url), await open_store(url)
    for number in range(deliveries):
        await first.deliver("T1", "C1", f"thread-{number % 20}", f"Ev{number:04d}", "event", b"x")
    worked: list[tuple[str, str]] = []

    async def work(store: Store, name: str, dies_after: int | None = None) -> None:
        count = 0
        while True:
            dies = count + 1 == dies_after
            found = await store.claim(name, 1 if dies else 600)  # a slow machine must not run out what a living worker holds
            if found is None:
                backlog = await store.backlog()
                if not backlog["waiting"] + backlog["working"]:
                    return
                await asyncio.sleep(0.02)
                continue
            if dies:
                return  # killed with a delivery in its hands
            count += 1
            worked.append((found.thread or "", found.key))
            await store.finish(found.id)

    await asyncio.gather(work(first, "a1", dies_after=30), work(first, "a2", dies_after=40), work(second, "b1"), work(second, "b2"))
    await first.close()
    await second.close()
    assert sorted(key for _, key in worked) == [f"Ev{number:04d}" for number in range(deliveries)]
    for thread in {thread for thread, _ in worked}:
        keys = [key for of, key in worked if of == thread]
        assert keys == sorted(keys)


async def test_what_a_dead_worker_held_is_claimed_at_once(store: Store) -> None:
    await store.deliver("T1", "C1", "1.1", "Ev1", "event", b"x")
    await store.deliver("T1", "C1", "2.1", "Ev2", "event", b"x")
    first = await asyncio.create_task(store.claim("dead", 60))
    assert await asyncio.create_task(store.claim("alive", 60))
    assert await store.release(lambda worker: False) == 0
    assert await store.release(lambda worker: worker == "dead") == 1
    again = await store.claim("heir", 60)
    assert first
    assert again
    assert (again.id, again.attempts) == (first.id, 2)


async def test_a_post_that_was_begun_is_known_by_its_empty_ts(store: Store) -> None:
    begun = time.time()
    await store.remember_reply("D-0007", "T1", "C1", "1.1", "", "diagnosis")
    found = await store.reply_of("T1", "C1", "1.1", "diagnosis")
    assert found is not None
    assert (found.ts, found.digest) == ("", None)
    assert begun - 1 <= found.at <= time.time() + 1


async def test_what_is_due_later_is_not_worked_before_and_holds_nothing_else_up(store: Store) -> None:
    assert await store.deliver("T1", "C1", None, "later", "twice", b"{}", after=0.4)
    assert await store.deliver("T1", "C1", None, "now", "message", b"{}")
    first = await store.claim("w", 5)
    assert first is not None
    assert first.key == "now"
    assert await store.claim("w", 5) is None
    await asyncio.sleep(0.5)
    then = await store.claim("w", 5)
    assert then is not None
    assert then.key == "later"


async def test_what_arrived_is_known_by_its_key_whether_it_is_done_or_not(store: Store) -> None:
    assert not await store.arrived("T1", "delete:C1:1.0")
    await store.deliver("T1", "C1", "1.0", "delete:C1:1.0", "delete", b"{}")
    assert await store.arrived("T1", "delete:C1:1.0")
    assert not await store.arrived("T2", "delete:C1:1.0")
    claimed = await store.claim("w", 5)
    assert claimed is not None
    await store.finish(claimed.id)
    assert await store.arrived("T1", "delete:C1:1.0")
