import asyncio
from typing import Any

from bot.store.store import Store, open_store


async def test_a_workspace_that_never_installed_has_nothing(store: Store) -> None:
    assert await store.find_install("T1") is None
    assert not await store.delete_install("T1")


async def test_an_installation_is_kept_replaced_and_deleted(store: Store) -> None:
    await store.save_install("T1", b"sealed", by="U1")
    await store.save_install("T1", b"sealed again", by="U1")
    assert await store.find_install("T1") == b"sealed again"
    assert await store.find_install("T2") is None
    assert await store.installs() == [(None, "T1")]
    assert await store.delete_install("T1")
    assert await store.find_install("T1") is None


async def test_an_organisation_s_installation_serves_its_workspaces(store: Store) -> None:
    await store.save_install("", b"organisation", enterprise="E1")
    await store.save_install("T2", b"its own", enterprise="E1")
    assert await store.find_install("T1", enterprise="E1") == b"organisation"
    assert await store.find_install("T2", enterprise="E1") == b"its own"
    assert await store.find_install("T1", enterprise="E2") is None


async def test_a_channel_is_watched_only_where_a_member_said_so(store: Store) -> None:
    assert not await store.watched("T1", "C1")
    await store.watch("T1", "C1", True, "U1")
    assert await store.watched("T1", "C1")
    assert not await store.watched("T2", "C1")
    await store.watch("T1", "C1", False, "U1")
    assert not await store.watched("T1", "C1")


async def test_a_setting_is_json_and_belongs_to_its_team(store: Store) -> None:
    assert await store.setting("T1", "digest") is None
    await store.set_setting("T1", "digest", {"channel": "C1", "day": 1})
    assert await store.setting("T1", "digest") == {"channel": "C1", "day": 1}
    assert await store.setting("T2", "digest") is None
    assert await store.settings_named("digest") == {"T1": {"channel": "C1", "day": 1}}
    await store.set_setting("T1", "digest", None)
    assert await store.setting("T1", "digest") is None


async def test_two_replicas_that_change_one_setting_lose_nothing(store: Store, url: str) -> None:
    def crossed_out(number: int) -> Any:
        return lambda noted: {key: value for key, value in noted.items() if key != f"D-{number}"} or None

    other = await open_store(url)
    both = (store, other)
    await asyncio.gather(*(both[n % 2].change_setting("T1", "noted", lambda noted, n=n: {f"D-{n}": n, **(noted or {})}) for n in range(40)))
    assert await store.setting("T1", "noted") == {f"D-{n}": n for n in range(40)}
    await asyncio.gather(*(both[n % 2].change_setting("T1", "noted", crossed_out(n)) for n in range(40)))
    assert await other.settings_named("noted") == {}
    await other.close()
