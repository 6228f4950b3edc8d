import asyncio
import contextvars
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import create_async_engine

from bot.domain.incident import Contribution, Origin
from bot.store import deliveries
from bot.store.errors import LostClaimError, UnknownIncidentError
from bot.store.query import parse
from bot.store.schema import sqlite_file
from bot.store.store import Store, open_store
from bot.store.tables import metadata
from tests.store.material import document, paste

SECRET = "zebrafish quarterly numbers"
T1 = Origin("T1", channel="C1", thread="1.1")
TOMORROW = datetime.now(UTC) + timedelta(days=1)


@dataclass(frozen=True)
class Asker:
    team: str = "T1"
    channels: frozenset[str] | None = None
    enterprise: str | None = None


def quoting(text: str = SECRET) -> dict[str, object]:
    return document(
        first_error={"source": 1, "line": 1, "text": text, "kind": "torch_oom"},
        proof=[{"source": 1, "line": 1, "rule": "graph-capture.inside-capture-model", "text": text}],
        summary=text,
        notes=[text],
    )


async def hits(store: Store, words: str) -> int:
    return (await store.search(Asker(), parse(words, TOMORROW))).count


async def test_what_is_not_there_cannot_be_forgotten(store: Store) -> None:
    with pytest.raises(UnknownIncidentError):
        await store.forget("T1", "D-0001")
    assert await store.erase_message("T1", "C1", "1.2") == []
    assert await store.purge(TOMORROW) == 0


async def test_a_forgotten_incident_keeps_what_it_was_and_nothing_that_was_said(store: Store) -> None:
    given = [paste(SECRET, name="zebrafish.log", message="1.2"), Contribution("answer", "rank=3")]
    await store.append(T1, given, quoting())
    await store.record_outcome("T1", "1", "fixed", "U1", SECRET, contributions=[Contribution("outcome", f"fixed: {SECRET}")])
    await store.forget("T1", "1")
    found = await store.load("T1", "1")
    assert found
    assert found.erased
    assert "zebrafish" not in repr(found)
    assert "gpu-node-17" not in repr(found)
    assert [one.text for one in found.contributions] == [None, None, None]
    kept = found.document
    assert (kept["id"], kept["phase"], kept["deployment"]["gpu"]) == ("D-0001", "graph_capture", "H100-80GB")
    assert (kept["rank"], kept["first_error"], kept["proof"], kept["budgets"]) == (None, None, [], [])
    assert [one["flag"] for one in (kept["recommendation"], *kept["alternatives"]) if not one["because"] and not one["command"]] == [
        "--gpu-memory-utilization",
        "--max-num-seqs",
        "--enforce-eager",
    ], "an outcome can still be told"
    assert set(kept) == {*document(), "id", "notes"}, "every entry of the contract is there"
    assert (kept["engine"], kept["engine_version"]) == ("unknown", None)
    assert await store.measured(Asker(), "Qwen/Qwen3-235B-A22B") == []
    assert (await hits(store, "rank:3"), await hits(store, "version:0.20.1")) == (0, 0)
    assert [(trial.change["flag"], trial.result, trial.note) for trial in found.trials] == [("--gpu-memory-utilization", "fixed", None)]
    assert await hits(store, "zebrafish") == 0
    assert await hits(store, "outcome:fixed gpu:h100 phase:graph_capture") == 1


async def test_no_byte_of_it_stays_in_the_file(sqlite_url: str) -> None:
    store = await open_store(sqlite_url)
    await store.append(T1, [paste("quokkasyllable " * 40)], document())
    path = sqlite_file(sqlite_url)
    assert path
    assert "okkasyllable" in _bytes_of(path)  # the index leaves out letters that the word before it has
    await store.forget("T1", "1")
    assert "okkasyllable" not in _bytes_of(path)
    await store.close()


def _bytes_of(path: Path) -> str:
    return "".join(file.read_bytes().decode("latin-1") for file in path.parent.glob(path.name + "*"))


async def test_forgetting_twice_is_harmless(store: Store) -> None:
    await store.append(T1, [paste(SECRET)], quoting())
    await store.forget("T1", "1")
    await store.forget("T1", "1")
    assert await hits(store, "gpu:h100") == 1


async def test_a_deleted_message_takes_along_only_what_it_contributed(store: Store) -> None:
    await store.append(T1, [paste(SECRET, message="1.2")], quoting())
    await store.append(T1, [paste("second paste stays", message="1.3")], quoting(), into="1")
    assert await store.erase_message("T2", "C1", "1.2") == []
    assert await store.erase_message("T1", "C1", "1.2") == ["D-0001"]
    found = await store.load("T1", "1")
    assert found
    assert [one.text for one in found.contributions] == [None, "second paste stays"]
    assert "zebrafish" not in repr(found)
    assert (await hits(store, "zebrafish"), await hits(store, "second")) == (0, 1)


async def test_an_erased_incident_can_be_added_to(store: Store) -> None:
    await store.append(T1, [paste(SECRET)], quoting())
    await store.forget("T1", "1")
    await store.append(T1, [paste("a new log")], document(phase="serving"), into="1")
    assert (await hits(store, "new log phase:serving"), await hits(store, "zebrafish")) == (1, 0)


async def test_retention_erases_what_nobody_touched_since(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.store.store._PURGE_PAGE", 2)
    for _ in range(5):
        await store.append(T1, [paste(SECRET)], quoting())
    between = datetime.now(UTC)
    await store.append(T1, [paste("young")], document(), into="3")
    assert await store.purge(between) == 4
    assert await hits(store, "zebrafish") == 1
    assert await store.purge(between) == 0
    aged = await store.load("T1", "1")
    assert aged
    assert "zebrafish" not in repr(aged)
    assert (aged.document["rank"]["number"], aged.document["budgets"][0]["kv_cache_bytes"]) == (3, 38_311_008_993)
    assert len(await store.measured(Asker(), "Qwen/Qwen3-235B-A22B")) == 5, "diagnoses stay longer than evidence"


async def test_retention_erases_the_rest_of_what_was_erased_in_part(store: Store) -> None:
    await store.append(T1, [paste(SECRET, message="1.2")], quoting())
    await store.append(T1, [paste("zebrafish too", message="1.3")], quoting(), into="1")
    await store.record_outcome(
        "T1", "1", "other", "U1", "zebrafish again", contributions=[Contribution("outcome", "other: zebrafish again")]
    )
    assert await store.erase_message("T1", "C1", "1.2") == ["D-0001"]
    between = datetime.now(UTC)
    await store.append(T1, [paste("zebrafish", message="1.4"), paste("young", message="1.5")], document())
    await store.erase_message("T1", "C1", "1.5")
    assert await store.purge(between) == 1
    first, second = await store.load("T1", "1"), await store.load("T1", "2")
    assert first
    assert second
    assert "zebrafish" not in repr(first)
    assert [one.text for one in second.contributions] == ["zebrafish", None], "it is not past its days"
    assert await store.purge(between) == 0


async def _rows_of(url: str, team: str) -> dict[str, int]:
    """How many rows of each table name a team, read without the store."""
    engine = create_async_engine(url)
    async with engine.connect() as connection:
        counts = {}
        for table in metadata.sorted_tables:
            if "team" in table.c and (table.name != "search" or engine.dialect.name == "postgresql"):
                query = select(func.count()).select_from(table).where(table.c.team == team)
                counts[table.name] = (await connection.execute(query)).scalar_one()
    await engine.dispose()
    return {name: count for name, count in counts.items() if count}


async def _live(store: Store, team: str, enterprise: str | None = None) -> None:
    """A workspace with a row in every table."""
    origin = Origin(team, enterprise, "C1", "1.1")
    await store.append(origin, [paste(SECRET)], quoting())
    await store.append(origin, [paste(SECRET)], quoting())
    await store.record_outcome(team, "1", "fixed", "U1", "it worked")
    await store.save_install(team, b"sealed", by="U1")
    await store.watch(team, "C1", True, "U1", enterprise=enterprise)
    await store.set_setting(team, "slack.digests", {"C1": 1})
    await store.remember_reply("D-0001", team, "C1", "1.1", "9.1", "diagnosis")
    await store.deliver(team, "C1", "1.1", "Ev1", "event", SECRET.encode(), enterprise)


async def test_a_workspace_that_left_leaves_no_row_but_the_line_that_says_so_and_its_last_number(store: Store, url: str) -> None:
    await _live(store, "T1")
    await _live(store, "T2")
    before = await _rows_of(url, "T2")
    assert set(before) >= {table.name for table in metadata.sorted_tables if "team" in table.c} - {"search"}, "a table is not lived in"
    assert await store.erase_team("T1") == 2
    assert await _rows_of(url, "T1") == {"counters": 1, "audit": 1}
    assert await _rows_of(url, "T2") == before
    assert await hits(store, "zebrafish") == 0
    assert (await store.stats(Asker()))["incidents"] == 0
    assert (await store.search(Asker("T2"), parse("zebrafish", TOMORROW))).count == 2
    assert await store.erase_team("T1") == 0
    assert (await _rows_of(url, "T1"))["audit"] == 1, "a second try says it once"
    assert await store.append(Origin("T1"), [paste("x")], document()) == "D-0003", "an old button never means a new incident"


async def test_no_word_of_a_workspace_that_left_stays_in_the_file(sqlite_url: str) -> None:
    store = await open_store(sqlite_url)
    await store.append(T1, [paste("quokkasyllable " * 40)], document())
    await store.append(Origin("T2"), [paste("numbat " * 40)], document())
    await store.erase_team("T1")
    path = sqlite_file(sqlite_url)
    assert path
    assert "okkasyllable" not in _bytes_of(path)
    assert "umbat" in _bytes_of(path)
    await store.close()


async def test_what_a_workspace_that_came_back_has_kept_since_stays(store: Store, url: str) -> None:
    await _live(store, "T1")
    left = datetime.now(UTC)
    await store.save_install("T1", b"sealed anew", by="U1")
    await store.append(Origin("T1", None, "C1", "2.1"), [paste("a new log", at=None)], document())
    assert await store.erase_team("T1", left) == 2
    assert await store.find_install("T1") == b"sealed anew"
    assert await store.load("T1", "1") is None
    assert await store.load("T1", "3") is not None
    assert (await _rows_of(url, "T1"))["incidents"] == 1
    assert (await hits(store, "zebrafish"), await hits(store, "new log")) == (0, 1)


async def test_what_is_worked_on_when_a_workspace_leaves_writes_nothing_more(store: Store, url: str) -> None:
    await store.deliver("T1", "C1", "1.1", "message:1", "message", SECRET.encode())
    await store.claim("w", 30)
    worker = asyncio.current_task()
    assert worker is not None
    await store.deliver("T1", None, None, "event:1", "revoked", b"{}")

    async def leave() -> None:
        await store.claim("w", 30)
        await store.erase_team("T1")
        await store.finish(deliveries.HELD.get()[0])  # type: ignore[index]

    await asyncio.create_task(leave(), context=contextvars.Context())
    with pytest.raises(LostClaimError):
        await store.append(T1, [paste(SECRET)], quoting())
    deliveries.HELD.set(None)
    assert set(await _rows_of(url, "T1")) <= {"deliveries", "audit", "counters"}
    assert not await store.deliver("T1", None, None, "event:1", "revoked", b"{}"), "the same event again is known"


async def test_an_organisation_that_left_takes_its_workspaces_along_but_not_one_with_an_installation_of_its_own(store: Store) -> None:
    for team, enterprise in (("T1", "E1"), ("T2", "E1"), ("T3", "E1"), ("T4", "E2"), ("T5", None)):
        await store.append(Origin(team, enterprise), [paste(SECRET)], quoting())
    await store.watch("T6", "C1", True, "U1", enterprise="E1")
    await store.save_install("T3", b"sealed", "E1")
    assert await store.erase_enterprise("E1", "T5") == 3
    gone = [team for team in ("T1", "T2", "T3", "T4", "T5") if await store.load(team, "1") is None]
    assert gone == ["T1", "T2", "T5"]
    assert not await store.watched("T6", "C1")


async def test_every_row_that_is_kept_for_a_delivery_names_its_organisation(store: Store, url: str) -> None:
    await store.deliver("T1", "C1", "1.1", "message:1", "message", b"{}", "E1")
    await store.claim("w", 30)
    await store.remember_reply(None, "T1", "C1", "1.1", "9.1", "diagnosis")
    await store.change_setting("T1", "slack.reminders", lambda _: {"D-0001": {}})
    await store.watch("T1", "C1", True, "U1", enterprise="E1", private=True)
    deliveries.HELD.set(None)
    engine = create_async_engine(url)
    async with engine.connect() as connection:
        for name in ("replies", "settings", "watches"):
            rows = (await connection.execute(select(metadata.tables[name]))).mappings().all()
            assert [row["enterprise"] for row in rows] == ["E1"], name
    await engine.dispose()


async def test_what_a_delivery_carried_is_gone_when_it_is_done(sqlite_url: str) -> None:
    store = await open_store(sqlite_url)
    await store.deliver("T1", "C1", "1.1", "Ev1", "event", b"quokkasyllable " * 40)
    found = await store.claim("w", 30)
    assert found
    await store.finish(found.id)
    await store.append(T1, [paste("x")], document())
    await store.forget("T1", "1")  # empties the write-ahead log
    path = sqlite_file(sqlite_url)
    assert path
    assert "okkasyllable" not in _bytes_of(path)
    await store.close()


async def test_what_was_said_once_is_not_remembered_for_ever(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    await store.remember_reply(None, "T1", "C1", "1.1", "9.1", "hint:1.1")
    await store.remember_reply("D-0001", "T1", "C1", "1.1", "9.2", "diagnosis")
    await store.purge(datetime.now(UTC))
    assert await store.reply_of("T1", "C1", "1.1", "hint:1.1") is not None, "Slack may still send it again"
    monkeypatch.setattr("bot.store.erasure._DONE_DAYS", -1)
    await store.purge(datetime.now(UTC))
    assert await store.reply_of("T1", "C1", "1.1", "hint:1.1") is None
    assert await store.reply_of("T1", "C1", "1.1", "diagnosis") is not None
