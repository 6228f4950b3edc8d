import asyncio
import hashlib
from dataclasses import replace

import pytest
from sqlalchemy import Connection, func, select
from sqlalchemy.ext.asyncio import create_async_engine

from bot.domain.incident import Contribution, Origin
from bot.store import index
from bot.store.errors import UnknownIncidentError
from bot.store.query import parse
from bot.store.store import Store, open_store
from bot.usecases.desk import Viewer
from tests.store.conftest import postgres_database
from tests.store.material import EAGER, LOG, LOWER_SEQS, NOW, document, paste

T1 = Origin("T0000001", "E1", "C1", "171.1", private=True)
GATE = 7  # an advisory lock


async def test_another_team_finds_nothing(store: Store) -> None:
    await store.append(T1, [replace(paste(), message="171.1")], document())
    assert await store.load("T0000002", "D-0001") is None
    assert await store.of_message("T0000002", "C1", "171.1") is None
    assert await store.by_thread("T0000002", "C1", "171.1") is None
    with pytest.raises(UnknownIncidentError):
        await store.judge("T0000002", "D-0001", document())
    with pytest.raises(UnknownIncidentError):
        await store.record_outcome("T0000002", "D-0001", "fixed", "U9")
    with pytest.raises(UnknownIncidentError):
        await store.forget("T0000002", "D-0001")
    with pytest.raises(UnknownIncidentError):
        await store.append(Origin("T0000002"), [paste()], None, into="D-0001")


async def test_the_incident_of_a_message_is_the_newest_that_it_was_part_of_also_where_that_was_erased(store: Store) -> None:
    for _ in range(2):
        await store.append(T1, [replace(paste(), message="171.2")], document())
    await store.erase_message("T0000001", "C1", "171.2")
    found = await store.of_message("T0000001", "C1", "171.2")
    assert found is not None
    assert (found.id, [c.text for c in found.contributions]) == ("D-0002", [None])
    assert await store.of_message("T0000001", "C2", "171.2") is None
    assert await store.of_message("T0000001", "C1", "171.3") is None


async def test_what_is_no_id_finds_nothing(store: Store) -> None:
    await store.append(Origin(), [paste()], document())
    for text in ("", "D-", "0", "D-9999", "D-0001; DROP TABLE incidents", "99999999999"):
        assert await store.load("local", text) is None


async def test_ids_count_per_team(store: Store) -> None:
    assert await store.append(Origin(), [paste()], document()) == "D-0001"
    assert await store.append(T1, [paste()], document()) == "D-0001"
    assert await store.append(Origin(), [paste()], document()) == "D-0002"


async def test_a_turn_that_could_not_be_kept_gives_its_number_to_nobody_twice(store: Store) -> None:
    with pytest.raises(TypeError):
        await store.append(T1, [paste()], {"proof": 3})
    kept = [await store.append(T1, [paste()], document()) for _ in range(2)]
    assert kept in (["D-0001", "D-0002"], ["D-0002", "D-0003"])  # PostgreSQL leaves one out rather than let all others wait


async def test_many_new_incidents_at_once_have_numbers_of_their_own_though_of_one_moment(url: str) -> None:
    first, second = await open_store(url), await open_store(url)
    given = [paste(at=NOW) for _ in range(20)]
    ids = await asyncio.gather(*((first, second)[n % 2].append(T1, [one], document()) for n, one in enumerate(given)))
    assert sorted(ids) == [f"D-{n:04d}" for n in range(1, 21)]
    await first.close()
    await second.close()


@pytest.mark.postgres
async def test_nobody_waits_for_a_number_while_a_turn_is_being_written(migrated_postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that is being written stands still in the middle of its transaction; another gets its number all the same."""
    async with postgres_database(migrated_postgres) as url:
        store, gate = await open_store(url), create_async_engine(url)
        put, still = index.put, asyncio.Event()

        def stopped(connection: Connection, rows: object) -> None:
            if not still.is_set():
                still.set()
                connection.execute(select(func.pg_advisory_xact_lock(GATE)))
            put(connection, rows)  # type: ignore[arg-type]

        monkeypatch.setattr(index, "put", stopped)
        async with gate.begin() as closed:
            await closed.execute(select(func.pg_advisory_xact_lock(GATE)))
            held = asyncio.create_task(store.append(T1, [paste()], document()))
            await still.wait()
            assert await asyncio.wait_for(store.append(T1, [paste()], document()), 60) == "D-0002"
            assert not held.done()
        assert await held == "D-0001"
        await gate.dispose()
        await store.close()


@pytest.mark.parametrize("written", ["D-0001", "d-0001", "d-1", "D1", "1", "#1", " 1 "])
async def test_an_id_may_be_written_many_ways(store: Store, written: str) -> None:
    await store.append(Origin(), [paste()], document())
    found = await store.load("local", written)
    assert found
    assert found.id == "D-0001"


async def test_everything_comes_back_as_it_was(store: Store) -> None:
    given = Contribution("file", LOG, name="worker.log", author="U1", message="171.2", at=NOW, redactions=2, truncated=True)
    found = await store.load("T0000001", await store.append(T1, [given], document()))
    assert found
    assert found.origin == T1
    assert found.opened == NOW
    assert found.contributions == (given,)
    assert found.document == document(id="D-0001")
    assert [trial.change for trial in found.trials] == [document()["recommendation"]]
    assert not found.erased


async def test_the_document_may_come_later(store: Store) -> None:
    name = await store.append(Origin(), [paste()], None)
    early = await store.load("local", name)
    assert early
    assert (early.document, early.trials) == ({}, ())
    await store.judge("local", name, document())
    late = await store.load("local", name)
    assert late
    assert late.document["id"] == name
    assert len(late.trials) == 1


async def test_a_second_paste_joins_the_first(store: Store) -> None:
    name = await store.append(T1, [paste("first")], document())
    assert await store.append(T1, [paste("second"), Contribution("answer", "rank=3")], document(verdict="likely"), into="1") == name
    found = await store.load("T0000001", name)
    assert found
    assert [one.text for one in found.contributions] == ["first", "second", "rank=3"]
    assert found.document["verdict"] == "likely"


async def test_the_newest_incident_of_a_thread_is_found(store: Store) -> None:
    await store.append(T1, [paste()], document())
    await store.append(T1, [paste()], document())
    assert await store.by_thread("T0000001", "C1", "171.1") == "D-0002"
    assert await store.by_thread("T0000001", "C1", "171.9") is None


async def test_incidents_of_the_same_microsecond_do_not_collide(store: Store) -> None:
    names = [await store.append(Origin(), [paste()], document()) for _ in range(3)]
    assert names == ["D-0001", "D-0002", "D-0003"]


async def test_a_text_above_one_megabyte_is_cut_at_a_line_and_says_so(store: Store) -> None:
    name = await store.append(Origin(), [paste("a line of a log\n" * 100_000)], document())
    found = await store.load("local", name)
    assert found
    text = found.contributions[0].text
    assert text
    assert len(text) <= 1_000_000
    assert text.endswith("a line of a log\n")
    assert found.contributions[0].truncated


async def test_odd_texts_survive(store: Store) -> None:
    for odd in ("", "nul \x00 inside", "stray \udcff surrogate", "rtl \u202e and 🙂", "'; DROP TABLE incidents; --"):
        name = await store.append(Origin(), [paste(odd)], document(first_error={"text": odd, "kind": "other"}))
        found = await store.load("local", name)
        assert found
        assert found.contributions[0].text == odd
        assert found.document["first_error"]["text"] == odd


async def test_a_document_with_nothing_in_it_is_kept(store: Store) -> None:
    open_one = {
        "phase": "unknown",
        "verdict": "open",
        "rank": None,
        "first_error": None,
        "budgets": [],
        "recommendation": None,
        "proof": [],
    }
    found = await store.load("local", await store.append(Origin(), [paste()], open_one))
    assert found
    assert found.trials == ()


async def test_figures_beyond_any_machine_are_not_stored_as_numbers(store: Store) -> None:
    wild = document(budgets=[{"rank": 10**30, "label": "x", "weights_bytes": 10**40, "kv_cache_bytes": 5}])
    found = await store.load("local", await store.append(Origin(), [paste()], wild))
    assert found
    assert found.document["budgets"] == wild["budgets"]


async def test_the_hash_is_of_the_text_as_kept(store: Store) -> None:
    await store.append(Origin(), [paste()], document())
    [record] = [record async for record in store.export_rows() if "incident" in record]
    assert record["contributions"][0]["sha256"] == hashlib.sha256(LOG.encode()).hexdigest()


async def test_the_same_recommendation_opens_no_second_trial(store: Store) -> None:
    name = await store.append(Origin(), [paste()], document())
    await store.judge("local", name, document(verdict="likely"))
    found = await store.load("local", name)
    assert found
    assert len(found.trials) == 1


async def test_another_recommendation_opens_the_next_trial(store: Store) -> None:
    name = await store.append(Origin(), [paste()], document())
    await store.judge("local", name, document(recommendation=LOWER_SEQS))
    found = await store.load("local", name)
    assert found
    assert [(trial.number, trial.change["id"]) for trial in found.trials] == [
        (1, "lower-gpu-memory-utilization"),
        (2, "lower-max-num-seqs"),
    ]


async def test_an_outcome_belongs_to_the_newest_trial(store: Store) -> None:
    name = await store.append(Origin(), [paste()], document())
    trial = await store.record_outcome("local", name, "same", "U1", "still at 0.85", document=document(recommendation=LOWER_SEQS))
    assert (trial.number, trial.result, trial.note, trial.by) == (1, "same", "still at 0.85", "U1")
    assert trial.at is not None
    found = await store.load("local", name)
    assert found
    assert [(one.number, one.result) for one in found.trials] == [(1, "same"), (2, None)]


async def test_an_outcome_without_any_recommendation_has_a_place(store: Store) -> None:
    name = await store.append(Origin(), [paste()], document(phase="unknown", verdict="open", recommendation=None))
    trial = await store.record_outcome("local", name, "wrong", "U1")
    assert (trial.number, trial.change, trial.result) == (1, {}, "wrong")


async def test_undo_without_an_outcome_is_nothing(store: Store) -> None:
    name = await store.append(Origin(), [paste()], document())
    assert await store.undo_outcome("local", name, "U1") is None


async def test_undo_takes_back_the_result_and_the_trial_that_it_opened(store: Store) -> None:
    name = await store.append(Origin(), [paste()], document())
    await store.record_outcome("local", name, "same", "U1", document=document(recommendation=LOWER_SEQS))
    await store.undo_outcome("local", name, "U1", document=document())
    found = await store.load("local", name)
    assert found
    assert [(one.number, one.change["id"], one.result) for one in found.trials] == [(1, "lower-gpu-memory-utilization", None)]
    await store.record_outcome("local", name, "same", "U1", document=document(recommendation=EAGER))
    again = await store.load("local", name)
    assert again
    assert [(one.number, one.change["id"]) for one in again.trials] == [(1, "lower-gpu-memory-utilization"), (3, "eager")]


async def test_every_word_about_a_trial_is_kept(store: Store) -> None:
    name = await store.append(Origin(), [paste()], document())
    await store.record_outcome("local", name, "fixed", "U1")
    await store.undo_outcome("local", name, "U2")
    await store.record_outcome("local", name, "moved", "U3")
    [record] = [record async for record in store.export_rows() if "incident" in record]
    assert [(said["result"], said["by"]) for said in record["outcomes"]] == [("fixed", "U1"), ("undo", "U2"), ("moved", "U3")]


async def test_walking_meets_every_incident_that_may_be_seen(store: Store) -> None:
    for _ in range(3):
        await store.append(T1, [paste()], document())
    await store.append(Origin("T0000001", channel="C2"), [paste()], document())

    class Member:
        team, enterprise, channels = "T0000001", None, frozenset({"C1"})

    assert [incident.id async for incident in store.walk(Member())] == ["D-0001", "D-0002", "D-0003"]


async def test_names_that_no_index_could_hold_are_kept_short(store: Store) -> None:
    long = document(engine_version="9" * 4_000, proof=[{"source": 1, "line": 1, "rule": f"{'r' * 90}.{n}", "text": ""} for n in range(40)])
    long["deployment"] = {"model": "m" * 4_000, "gpu": "g" * 4_000}
    incident = await store.append(Origin("T1"), [paste()], long)
    kept = await store.load("T1", incident)
    assert kept
    assert kept.document["deployment"]["model"] == "m" * 4_000
    [row] = (await store.search(Viewer("T1"), parse("model:mmm rule:rrr", NOW))).rows
    assert (len(row["model"]), len(row["rules"].split())) == (200, 5)
