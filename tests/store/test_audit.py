"""The audit trail: what is noted, once and in the same transaction; who may read it; and when it goes."""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from bot.domain.incident import Origin
from bot.store.audit import Deed
from bot.store.errors import UnknownIncidentError
from bot.store.numbers import moment
from bot.store.store import Store, open_store
from tests.store.material import NOW, document, paste


@dataclass(frozen=True)
class Asker:
    team: str = "T1"
    channels: frozenset[str] | None = None
    enterprise: str | None = None


async def deeds(store: Store, who: Asker | None = None) -> list[tuple[str | None, str, str | None, str | None]]:
    return [(row["by"], row["deed"], row["about"], row["channel"]) for row in await store.audit(who)]


async def test_what_did_not_happen_is_not_noted(store: Store) -> None:
    with pytest.raises(UnknownIncidentError):
        await store.forget("T1", "7", "U1")
    await store.watch("T1", "C1", False, "U1")
    assert await deeds(store) == []


async def test_an_erasure_is_noted_once_without_a_word_of_the_evidence(store: Store) -> None:
    await store.append(Origin("T1", "E1", "C1", "1.1", True), [paste(message="1.2")], document())
    await store.forget("T1", "1", "U1")
    await store.forget("T1", "1", "U2")  # a second try, and somebody who comes late: nothing is left
    assert await store.audit(None) == [
        {"at": (await store.audit(None))[0]["at"], "team": "T1", "channel": "C1", "by": "U1", "deed": "erased", "about": "D-0001"}
    ]


async def test_what_came_after_an_erasure_can_be_erased_and_is_noted(store: Store) -> None:
    await store.append(Origin("T1", channel="C1"), [paste()], document())
    await store.forget("T1", "1", "U1")
    await store.append(Origin("T1", channel="C1"), [paste()], document(), into="D-0001")
    await store.forget("T1", "1", "U2")
    assert [by for by, *_ in await deeds(store)] == ["U2", "U1"]


async def test_a_switch_is_noted_when_it_changes_something(store: Store) -> None:
    for by, on in (("U1", True), ("U2", True), ("U3", False)):
        await store.watch("T1", "C1", on, by)
    on = Deed("digest on", "U4", "T1", channel="C1")
    for _ in range(2):
        await store.change_setting("T1", "slack.digests", lambda _: {"C1": 1}, on)
    assert await deeds(store) == [
        ("U4", "digest on", None, "C1"), ("U3", "watch off", None, "C1"), ("U1", "watch on", None, "C1"),
    ]  # fmt: skip


async def test_an_installation_is_noted_and_the_renewal_of_its_token_is_not(store: Store) -> None:
    await store.save_install("T1", b"sealed", by="U1")
    await store.save_install("T1", b"sealed anew")
    assert await deeds(store) == [("U1", "installed", None, None)]
    assert [record["row"]["about"] async for record in store.export_rows() if record.get("table") == "audit"] == [None]


async def test_a_workspace_that_leaves_leaves_one_line(store: Store) -> None:
    await store.watch("T1", "C1", True, "U1")
    await store.watch("T2", "C2", True, "U2")
    await store.erase_team("T1")
    assert await deeds(store, Asker()) == [(None, "uninstalled", None, None)]
    assert await deeds(store, Asker("T2")) == [("U2", "watch on", None, "C2")]


async def test_everyone_reads_of_the_channels_that_they_see_and_of_the_whole_database(store: Store) -> None:
    await store.watch("T1", "C1", True, "U1")
    await store.watch("T1", "C2", True, "U1", private=True)
    await store.watch("T2", "C1", True, "U9")
    await store.save_install("T1", b"sealed", by="U1")
    await store.note(Deed("exported", "account ops"))
    seen = [("account ops", "exported", None, None), ("U1", "installed", None, None)]
    assert await deeds(store, Asker(channels=frozenset())) == seen
    assert await deeds(store, Asker(channels=frozenset({"C1"}))) == [*seen, ("U1", "watch on", None, "C1")]
    assert len(await deeds(store)) == 5


async def test_two_deeds_of_one_moment_are_both_kept(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.store.audit.clock", lambda: 1_796_000_000_000_000)
    for number in range(3):
        await store.note(Deed("imported", None, about=str(number)))
    assert [about for _, _, about, _ in await deeds(store)] == ["2", "1", "0"]


async def test_it_is_kept_as_long_as_evidence_is(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for days in (100, 10):
        at = NOW - timedelta(days=days)
        monkeypatch.setattr("bot.store.audit.clock", lambda at=at: int(at.timestamp() * 1_000_000))
        await store.note(Deed("exported", "account ops", about=f"{days}"))
    await store.purge(NOW - timedelta(days=90))
    assert [about for _, _, about, _ in await deeds(store)] == ["10"]
    assert moment(int(at.timestamp() * 1_000_000)) == at


async def test_it_moves_with_an_export(store: Store, tmp_path: Path) -> None:
    await store.watch("T1", "C1", True, "U1")
    records = [record async for record in store.export_rows()]
    other = await open_store(f"sqlite+aiosqlite:///{tmp_path}/other.db")
    await other.import_rows(records)
    await other.import_rows(records)
    assert await other.audit(None) == await store.audit(None)
    await other.close()
