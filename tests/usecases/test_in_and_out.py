import csv
import io
import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from bot.domain.incident import Contribution, Origin
from bot.settings import Settings
from bot.store.errors import StoreError
from bot.usecases.backup import backup, copy, restore
from bot.usecases.export import export, take_in
from bot.usecases.replay import case, replay
from bot.usecases.reply import Unusable
from tests.store.material import LOWER_SEQS, document, paste
from tests.usecases.desks import LOCAL, desk_in


async def lines_of(desk: Any) -> str:
    """What is exported, save the notes of what these tests do."""
    out = io.StringIO()
    await export(desk, out)
    noted = ('"deed": "exported"', '"deed": "imported"', '"deed": "restored"')
    return "".join(line for line in out.getvalue().splitlines(keepends=True) if not any(note in line for note in noted))


async def fill(store: Any) -> None:
    await store.append(Origin("T1", "E1", "C1", "1.1", True), [paste('=HYPERLINK("x")\nnul \x00, "quotes"\r\n', name="")], document())
    error = {"source": 1, "line": 1, "text": "=1+1; '", "kind": "other"}
    await store.append(Origin(), [paste(""), Contribution("answer", "rank=3")], document(first_error=error, engine_version=None))
    await store.record_outcome("local", "1", "same", "U1", "note, with comma", document=document(recommendation=LOWER_SEQS))
    await store.append(Origin(), [paste()], None)
    await store.forget("local", "2")
    await store.set_setting("T1", "digest", {"day": 1})


@pytest.mark.parametrize("form", ["jsonl", "csv"])
async def test_out_and_in_again_loses_nothing(tmp_path: Path, form: Any) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    async with desk_in(tmp_path / "a") as (desk, store), desk_in(tmp_path / "b") as (other, _):
        await fill(store)
        out = io.StringIO(newline="")
        assert (await export(desk, out, form)).document["says"] == "3 incidents written."
        assert (await take_in(other, io.StringIO(out.getvalue(), newline=""), form)).document["says"] == "3 incidents came in."
        assert await lines_of(other) == await lines_of(desk)
        again = await take_in(other, io.StringIO(out.getvalue(), newline=""), form)
        assert again.document["says"] == "0 incidents came in, 3 were there already."


async def test_no_cell_is_a_formula(tmp_path: Path) -> None:
    async with desk_in(tmp_path) as (desk, store):
        await fill(store)
        out = io.StringIO()
        await export(desk, out, "csv")
        cells = [cell for row in csv.reader(io.StringIO(out.getvalue())) for cell in row]
        assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@"))]


@pytest.mark.parametrize(
    ("form", "text", "said"),
    [
        ("jsonl", "{\n", "Line 1 is not JSON"),
        ("jsonl", "[1]\n", "Line 1 is no record of oombot.export/1"),
        ("jsonl", '{"schema": "other/1"}\n', "Line 1 is no record"),
        ("csv", "a,b\n1,2\n", "Row 2 is not as"),
        ("csv", "table,id\nincidents\n", "Row 2 is not as"),
        ("csv", 'table,row\nwatches,"{}"\n', "Line 2 cannot be imported: its watches row has no"),
    ],
)
async def test_what_is_no_export_is_refused_with_its_line(tmp_path: Path, form: Any, text: str, said: str) -> None:
    async with desk_in(tmp_path) as (desk, store):
        with pytest.raises(Unusable, match=said):
            await take_in(desk, io.StringIO(text), form)
        assert (await store.state())["incidents"] == 0


def spoilt(spoil: Any, record: dict[str, Any]) -> str:
    spoil(record)
    return json.dumps(record)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda r: r.update(incident=None), "its incident is no object"),
        (lambda r: r.update(incident={}), "its incident has no key"),
        (lambda r: r["incident"].pop("team"), "its incident has no team"),
        (lambda r: r["incident"].update(team=7), "team of its incident is not text"),
        (lambda r: r["incident"].update(model="\udcff"), "model of its incident is not text"),
        (lambda r: r["incident"].update(key=2**70), "key of its incident is not a whole number"),
        (lambda r: r["incident"].update(private="yes"), "private of its incident is not true or false"),
        (lambda r: r["incident"].update(mood="good"), "its incident has a field 'mood' that this version does not know"),
        (lambda r: r.update(contributions={}), "its contributions are no list"),
        (lambda r: r.update(contributions=["x"]), "its contributions 1 is no object"),
        (lambda r: r["contributions"][0].update(text=[1]), "text of its contributions 1 is not text"),
        (lambda r: r["contributions"][0].update(incident=5), "its contributions 1 belongs to another incident"),
        (lambda r: r["diagnoses"][0].update(document="x"), "document of its diagnoses 1 is not an object"),
        (lambda r: r.update(table="deliveries", row={}), "there is no table 'deliveries' that can be imported"),
        (lambda r: r.update(table="watches", row=[]), "its watches row is no object"),
    ],
)
async def test_a_record_of_another_kind_is_refused_with_its_line_and_what_is_wrong(tmp_path: Path, spoil: Any, said: str) -> None:
    async with desk_in(tmp_path) as (desk, store):
        await store.append(Origin(), [paste()], document())
        good = (await lines_of(desk)).splitlines()[0]
        with pytest.raises(Unusable, match=rf"^Line 2 cannot be imported: {said}\. Nothing was imported"):
            await take_in(desk, io.StringIO(f"{good}\n{spoilt(spoil, json.loads(good))}\n"))
        assert (await store.state())["incidents"] == 1


@pytest.mark.parametrize("line", ["[" * 100_000, '{"a":' * 50_000])
async def test_a_bottomless_record_is_no_json(tmp_path: Path, line: str) -> None:
    async with desk_in(tmp_path) as (desk, _):
        with pytest.raises(Unusable, match=r"Line 1 is not JSON \(it is nested too deeply"):
            await take_in(desk, io.StringIO(line))


async def test_a_field_that_may_be_empty_may_be_missing_in_some_records(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    async with desk_in(tmp_path / "a") as (desk, store), desk_in(tmp_path / "b") as (other, _):
        await store.append(Origin(), [paste()], document())
        await store.append(Origin(), [paste()], document())
        first, second, *beside = (json.loads(line) for line in (await lines_of(desk)).splitlines())
        del first["incident"]["rules"], second["contributions"][0]["name"]
        text = "\n".join(json.dumps(record) for record in (first, second, *beside))
        assert (await take_in(other, io.StringIO(text))).document["says"] == "2 incidents came in."


async def test_a_bad_line_after_good_ones_imports_none_of_them(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    async with desk_in(tmp_path / "a") as (desk, store), desk_in(tmp_path / "b") as (other, target):
        await fill(store)
        with pytest.raises(Unusable, match="Nothing was imported"):
            await take_in(other, io.StringIO(await lines_of(desk) + "broken\n"))
        assert (await target.state())["incidents"] == 0


async def test_a_backup_can_be_put_back(tmp_path: Path) -> None:
    async with desk_in(tmp_path) as (desk, store):
        await fill(store)
        before = await lines_of(desk)
        kept = tmp_path / "kept.db"
        assert f"{kept} holds the whole database" in (await backup(desk.settings, kept)).document["says"]
        await store.append(Origin(), [paste("later")], document())
        with pytest.raises(Unusable, match=r"holds 4 incidents already.*--replace"):
            await restore(desk.settings, kept)
        with pytest.raises(Unusable, match="the database itself"):
            await restore(desk.settings, tmp_path / "oombot.db", replace=True)
        aside = tmp_path / "oombot.db.replaced-1"
        assert not aside.exists()
        says = (await restore(desk.settings, kept, replace=True)).document["says"]
        assert f"3 incidents. What was there before is in {aside}." in says
        assert await lines_of(desk) == before
        with pytest.raises(Unusable, match="holds 3 incidents"):
            await restore(desk.settings, aside)
        assert "oombot.db.replaced-2" in (await restore(desk.settings, aside, replace=True)).document["says"]
        assert len((await lines_of(desk)).splitlines()) > len(before.splitlines())


async def test_a_backup_goes_into_an_empty_place_without_a_question_and_beside_a_damaged_one_with(tmp_path: Path) -> None:
    async with desk_in(tmp_path) as (desk, store):
        await fill(store)
        kept = tmp_path / "kept.db"
        await backup(desk.settings, kept)
    other = Settings(database_url=f"sqlite+aiosqlite:///{tmp_path}/other.db")
    assert (await restore(other, kept)).document["says"].endswith("3 incidents.")
    (tmp_path / "other.db").write_text("no database " * 100)
    with pytest.raises(Unusable, match="nobody can tell what it holds"):
        await restore(other, kept)
    says = (await restore(other, kept, replace=True)).document["says"]
    assert "3 incidents" in says
    assert (tmp_path / "other.db.replaced-1").read_text().startswith("no database")


async def test_backups_are_for_sqlite_and_say_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(Unusable, match="pg_dump"):
        await backup(Settings(database_url="postgresql+asyncpg://bot@127.0.0.1/oombot"), tmp_path / "x")
    with pytest.raises(Unusable, match="nothing to back up"):
        await backup(Settings(database_url=f"sqlite+aiosqlite:///{tmp_path}/none.db"), tmp_path / "x")


async def test_a_copy_goes_into_an_empty_database_only(tmp_path: Path) -> None:
    async with desk_in(tmp_path) as (desk, store):
        await fill(store)
        url = f"sqlite+aiosqlite:///{tmp_path}/copy.db"
        assert (await copy(desk, url)).document["says"].startswith("3 incidents copied to")
        with pytest.raises(StoreError, match="already has incidents"):
            await copy(desk, url)


@pytest.mark.parametrize(("in_line", "ranked", "same"), [(True, True, 1), (False, True, 0), (True, False, 0)])
async def test_what_the_history_had_ranked_down_is_no_change_of_the_rules(tmp_path: Path, in_line: bool, ranked: bool, same: int) -> None:
    def change(name: str, value: str | None) -> dict[str, Any]:
        return {"id": name, "flag": None, "direction": None, "value": value}

    down, stop = change("lower-gpu-memory-utilization", "0.85"), change("stop-other-process", None)

    def today(contributions: Sequence[Contribution], _: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        return {**document(), "recommendation": down, "alternatives": [stop] if in_line else []}

    async with desk_in(tmp_path, today) as (desk, store):
        notes = ["--gpu-memory-utilization did not help in D-0004, so it stands further down."] if ranked else []
        await store.append(Origin(), [paste("log")], {**document(), "recommendation": stop, "alternatives": [down], "notes": notes})
        found = (await replay(desk, LOCAL)).document
        assert (found["same"], found["changed_count"]) == (same, 1 - same)


async def test_replay_says_what_today_s_rules_would_change_and_keeps_nothing(tmp_path: Path) -> None:
    def today(contributions: Sequence[Contribution], _: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        text = contributions[0].text or ""
        if "breaks" in text:
            raise ValueError("a rule that cannot be")
        return document(phase="serving", verdict="likely") if "moved" in text else document()

    async with desk_in(tmp_path, today) as (desk, store):
        for text in ("stays", "moved", "breaks", "erased"):
            await store.append(Origin(), [paste(text)], document())
        await store.append(Origin("T1"), [paste("moved")], document())
        await store.forget("local", "4")
        await store.record_outcome("local", "2", "wrong", "U1")
        counted: list[int] = []
        found = (await replay(desk, LOCAL, counted.append)).document
        assert (found["judged"], found["same"], found["erased"], found["changed_count"]) == (3, 1, 1, 1)
        assert found["changed"] == [
            {
                "id": "D-0002",
                "before": {
                    "verdict": "certain",
                    "phase": "graph_capture",
                    "rank": 3,
                    "remedy": "lower-gpu-memory-utilization",
                    "value": "0.85",
                },
                "after": {"verdict": "likely", "phase": "serving", "rank": 3, "remedy": "lower-gpu-memory-utilization", "value": "0.85"},
                "outcome": "wrong",
            }
        ]
        assert found["failed"] == [{"id": "D-0003", "says": "ValueError: a rule that cannot be"}]
        kept = await store.load("local", "2")
        assert kept
        assert kept.document["phase"] == "graph_capture"


async def test_a_wrong_diagnosis_becomes_a_case(tmp_path: Path) -> None:
    async with desk_in(tmp_path) as (desk, store):
        await store.append(Origin(), [paste("the log\n"), Contribution("answer", "rank=3")], document())
        await store.record_outcome("local", "1", "wrong", "U1")
        await case(desk, LOCAL, "1", tmp_path / "cases", "serving")
        folder = tmp_path / "cases" / "d-0001-graph-capture-qwen-qwen3-235b-a22b"
        assert (folder / "paste.log").read_text() == "the log\n"
        assert tomllib.loads((folder / "expect.toml").read_text()) == {"phase": "serving", "rank": 3}
        with pytest.raises(Unusable, match="is there already"):
            await case(desk, LOCAL, "1", tmp_path / "cases")
        await store.forget("local", "1")
        with pytest.raises(Unusable, match="is erased"):
            await case(desk, LOCAL, "1", tmp_path / "other")
