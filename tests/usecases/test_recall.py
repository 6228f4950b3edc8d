import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.domain.incident import Origin
from bot.settings import Settings
from bot.store.query import parse
from bot.usecases.desk import Desk, Viewer
from bot.usecases.forget import forget, purge
from bot.usecases.recall import history, show
from bot.usecases.reply import Unusable
from bot.usecases.stats import stats
from tests.store.material import NOW, document, paste
from tests.usecases.desks import LOCAL, desk_in, next_in_line

PRIVATE = Origin("T1", channel="G1", thread="1.1", private=True)


async def test_without_a_store_there_is_no_history() -> None:
    desk = Desk(Settings(), dict, next_in_line, lambda: NOW, None)  # type: ignore[arg-type]
    with pytest.raises(Unusable, match="Nothing is kept here"):
        await history(desk, LOCAL, "")


async def test_what_is_not_there_and_what_may_not_be_seen_sound_the_same(tmp_path: Path) -> None:
    async with desk_in(tmp_path) as (desk, store):
        await store.append(PRIVATE, [paste()], document())
        said = set()
        for viewer in (Viewer("T2"), Viewer("T1", "U1", None, frozenset({"C1"})), Viewer("T1", "U1", None, frozenset())):
            for ask in (show, forget):
                with pytest.raises(Unusable) as refused:
                    await ask(desk, viewer, "D-0001")
                said.add(str(refused.value))
        assert said == {"There is no incident D-0001 that you can see. `oombot history` lists those there are."}
        assert (await show(desk, Viewer("T1", "U1", None, frozenset({"G1"})), "1")).document["id"] == "D-0001"


async def test_history_is_the_contract_s_document(tmp_path: Path) -> None:
    async with desk_in(tmp_path) as (desk, store):
        await store.append(Origin(), [paste()], document())
        await store.record_outcome("local", "1", "fixed", "U1")
        reply = await history(desk, LOCAL, "gpu:h100 card:x", 50)
        assert reply.kind == "history"
        assert json.loads(json.dumps(reply.document)) == reply.document
        assert (reply.document["count"], reply.document["count_text"], reply.warning) == (1, "1", None)
        assert reply.document["ignored"][0].startswith("card: is no field")
        assert reply.document["rows"] == [
            {
                "id": "D-0001", "at": "2026-11-30T12:00:00+00:00", "verdict": "certain", "phase": "graph_capture", "rank": 3, "engine": "vllm",
                "engine_version": "0.20.1", "model": "Qwen/Qwen3-235B-A22B", "gpu": "H100-80GB", "gpu_count": 8, "tp": 8,
                "remedy": "lower-gpu-memory-utilization", "flag": "--gpu-memory-utilization", "direction": "lower", "value": "0.85", "outcome": "fixed",
                "excerpt": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB.", "channel": None, "thread": None,
                "erased": False,
            }
        ]  # fmt: skip
        assert reply.document["counts"] == {
            "phase": {"graph_capture": 1}, "model": {"Qwen/Qwen3-235B-A22B": 1}, "gpu": {"H100-80GB": 1}, "outcome": {"fixed": 1},
        }  # fmt: skip


async def test_never_more_than_fifty_rows(tmp_path: Path) -> None:
    async with desk_in(tmp_path) as (desk, store):
        for _ in range(52):
            await store.append(Origin(), [paste("x")], document())
        first = (await history(desk, LOCAL, "", 1000)).document
        assert (len(first["rows"]), first["count"]) == (50, 52)
        second = (await history(desk, LOCAL, "", 50, before=first["rows"][-1]["id"])).document
        assert [row["id"] for row in second["rows"]] == ["D-0002", "D-0001"]


async def test_show_has_everything_that_was_said_judged_and_tried(tmp_path: Path) -> None:
    async with desk_in(tmp_path) as (desk, store):
        await store.append(Origin(), [paste("the log", redactions=2)], document())
        await store.append(Origin(), [paste("like it")], document())
        await store.record_outcome("local", "2", "same", "U1", "no")
        found = (await show(desk, LOCAL, "d-1")).document
        assert json.loads(json.dumps(found)) == found
        assert (found["id"], found["at"], found["team"], found["erased"]) == ("D-0001", "2026-11-30T12:00:00+00:00", "local", False)
        assert found["contributions"] == [
            {"number": 1, "kind": "paste", "name": None, "author": "U1", "at": "2026-11-30T12:00:00+00:00", "text": "the log", "truncated": False, "redactions": 2}
        ]  # fmt: skip
        assert found["trials"][0]["change"]["flag"] == "--gpu-memory-utilization"
        assert found["trials"][0]["outcome"] is None
        assert [(one["id"], one["outcome"]) for one in found["similar"]] == [("D-0002", "same")]


async def test_forgetting_leaves_the_incident_without_its_words(tmp_path: Path) -> None:
    async with desk_in(tmp_path) as (desk, store):
        await store.append(Origin(), [paste("zebrafish")], document())
        assert "D-0001" in (await forget(desk, LOCAL, "1")).document["says"]
        assert (await show(desk, LOCAL, "1")).document["contributions"][0]["text"] is None
        assert (await history(desk, LOCAL, "zebrafish")).document["count"] == 0
        assert (await history(desk, LOCAL, "phase:graph_capture")).document["rows"][0]["erased"]


async def test_what_is_forgotten_twice_was_erased_once(tmp_path: Path) -> None:
    async with desk_in(tmp_path) as (desk, store):
        await store.append(Origin(), [paste("zebrafish")], document())
        await forget(desk, LOCAL, "1")
        assert (await forget(desk, LOCAL, "1")).document["says"] == (
            "The evidence of D-0001 was erased before; there was nothing left to erase."
        )
        assert [row["deed"] for row in await store.audit(LOCAL)] == ["erased"]


async def test_an_erased_incident_says_what_stays_and_gives_no_reason_that_is_gone(tmp_path: Path) -> None:
    async with desk_in(tmp_path) as (desk, store):
        maybe = document(also_possible=[{"phase": "serving", "because": "requests may have run"}])
        await store.append(Origin(), [paste("zebrafish")], maybe)
        await store.record_outcome("local", "1", "fixed", "U1")
        whole = (await show(desk, LOCAL, "1")).document["diagnosis"]
        assert (whole["summary"], len(whole["also_possible"])) == (maybe["summary"], 1)
        await forget(desk, LOCAL, "1")
        left = (await show(desk, LOCAL, "1")).document["diagnosis"]
        assert left["summary"] == (
            "The evidence is erased. What stays: phase graph capture, model Qwen/Qwen3-235B-A22B, GPU H100-80GB, outcome fixed."
        )
        assert (left["also_possible"], left["avoid"], left["phase"]) == ([], [], "graph_capture")


async def test_a_search_for_a_card_says_how_many_incidents_name_none(tmp_path: Path) -> None:
    async with desk_in(tmp_path) as (desk, store):
        await store.append(Origin(), [paste()], document())
        assert "known" not in (await history(desk, LOCAL, "gpu:h200")).document["ignored"][0]
        await store.append(Origin(), [paste()], document(deployment={"model": "Qwen/Qwen3-8B"}))
        (said,) = (await history(desk, LOCAL, "gpu:h200")).document["ignored"]
        assert said == "No incident here has gpu h200. Seen so far: H100-80GB. 1 incident has no gpu known: its log does not say."
        assert (await history(desk, LOCAL, "gpu:h100")).document["ignored"] == []
        assert "known" not in (await history(desk, LOCAL, "outcome:fixed")).document["ignored"][0]


async def test_retention_of_nought_days_keeps_everything(tmp_path: Path) -> None:
    async with desk_in(tmp_path) as (desk, store):
        await store.append(Origin(), [paste("zebrafish")], document())
        assert "Nothing was erased" in (await purge(replace(desk, settings=Settings(retention_days=0)))).document["says"]
        assert "0 incidents" in (await purge(desk)).document["says"]
        assert (await history(desk, LOCAL, "zebrafish")).document["count"] == 1


async def test_a_review_since_something_that_is_no_time_is_refused(tmp_path: Path) -> None:
    async with desk_in(tmp_path) as (desk, store):
        with pytest.raises(Unusable, match=r"'someday' is no moment: .*12h, 7d or 4w"):
            await stats(desk, LOCAL, "someday")
        await store.append(Origin(), [paste()], document())
        found = (await stats(desk, LOCAL, "7d")).document
        assert (found["schema"], found["since"], found["incidents"]) == ("oombot.stats/1", "2026-11-23T12:00:00+00:00", 1)


def test_signs_without_a_letter_are_said_to_be_left_out() -> None:
    now = datetime(2026, 11, 30, tzinfo=UTC)
    for text in ("(((", '"?!"'):
        assert parse(text, now).ignored == (f"{text}: there is no letter and no figure in it to search for; it is left out.",)
    assert parse("( h100 )", now).words == ("h100",)
