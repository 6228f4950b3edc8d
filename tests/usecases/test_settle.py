import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bot.domain.incident import Contribution, Origin
from bot.usecases.desk import Viewer
from bot.usecases.recall import history, show
from bot.usecases.reply import Unusable
from bot.usecases.settle import settle, undo
from tests.store.material import LOWER_SEQS, document, paste
from tests.usecases.desks import LOCAL, desk_in


def stubborn(_: Sequence[Contribution], __: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """A judge that knows nothing of outcomes."""
    return document()


async def test_an_outcome_that_is_none_is_refused(tmp_path: Path) -> None:
    async with desk_in(tmp_path) as (desk, store):
        await store.append(Origin(), [paste()], document())
        with pytest.raises(Unusable, match="fixed, moved, same, wrong, other"):
            await settle(desk, LOCAL, "1", "better")
        with pytest.raises(Unusable, match="no incident D-0009"):
            await settle(desk, LOCAL, "D-0009", "fixed")
        with pytest.raises(Unusable, match="no outcome that could be taken back"):
            await undo(desk, LOCAL, "1")


async def test_a_note_as_long_as_a_log_is_refused(tmp_path: Path) -> None:
    async with desk_in(tmp_path) as (desk, store):
        await store.append(Origin(), [paste()], document())
        with pytest.raises(Unusable, match="3,001 characters: it takes 3,000"):
            await settle(desk, LOCAL, "1", "fixed", "n" * 3_001)
        await settle(desk, LOCAL, "1", "fixed", "n" * 3_000)


async def test_another_team_settles_nothing(tmp_path: Path) -> None:
    async with desk_in(tmp_path) as (desk, store):
        await store.append(Origin("T1", channel="C1"), [paste()], document())
        for viewer in (Viewer("T2"), Viewer("T1", "U1", None, frozenset({"C2"}))):
            with pytest.raises(Unusable):
                await settle(desk, viewer, "1", "fixed")
            with pytest.raises(Unusable):
                await undo(desk, viewer, "1")


async def test_fixed_earns_the_workload_test(tmp_path: Path) -> None:
    async with desk_in(tmp_path) as (desk, store):
        await store.append(Origin(), [paste()], document())
        found = (await settle(desk, LOCAL, "1", "fixed")).document
        assert json.loads(json.dumps(found)) == found
        assert (found["schema"], found["id"], found["trial"], found["outcome"], found["next"]) == (
            "oombot.outcome/1",
            "D-0001",
            1,
            "fixed",
            None,
        )
        assert (
            found["says"]
            == "Noted: lowering --gpu-memory-utilization to 0.85 fixed it. A start is not yet proof: give it the workload test."
        )
        told = " ".join(found["checklist"]).lower()
        assert all(word in told for word in ("longest input", "longest output", "multimodal", "concurrency", "cancelled", "sustained run"))


@pytest.mark.parametrize("judge", [None, stubborn])
async def test_same_takes_the_change_back_and_offers_the_next(tmp_path: Path, judge: Any) -> None:
    async with desk_in(tmp_path, *([judge] if judge else [])) as (desk, store):
        await store.append(Origin(), [paste()], document())
        found = (await settle(desk, LOCAL, "1", "same", "at 0.85 too")).document
        assert found["next"] == LOWER_SEQS
        assert found["diagnosis"]["recommendation"] == LOWER_SEQS
        assert found["says"].endswith("so take it back. Next: lower --max-num-seqs to 256.")
        kept = await store.load("local", "1")
        assert kept
        assert [(trial.result, trial.note, trial.change["id"]) for trial in kept.trials] == [
            ("same", "at 0.85 too", "lower-gpu-memory-utilization"),
            (None, None, "lower-max-num-seqs"),
        ]
        said = kept.contributions[-1]
        assert (said.kind, said.text, said.name) == ("outcome", "same: at 0.85 too", "lower-gpu-memory-utilization")


async def test_what_was_made_with_another_value_is_recorded_with_that_one_until_it_is_taken_back(tmp_path: Path) -> None:
    async with desk_in(tmp_path) as (desk, store):
        await store.append(Origin(), [paste()], document())
        found = (await settle(desk, LOCAL, "1", "fixed", "it worked with 0.8")).document
        assert found["says"].startswith("Noted: lowering --gpu-memory-utilization to 0.8 fixed it.")
        assert (await show(desk, LOCAL, "1")).document["trials"][0]["change"]["value"] == "0.8"
        assert (await history(desk, LOCAL, "")).document["rows"][0]["value"] == "0.8"
        await undo(desk, LOCAL, "1")
        assert (await show(desk, LOCAL, "1")).document["trials"][0]["change"]["value"] == "0.85"
        assert (await history(desk, LOCAL, "")).document["rows"][0]["value"] == "0.85"


async def test_same_again_and_again_ends_with_a_request_for_a_longer_log(tmp_path: Path) -> None:
    async with desk_in(tmp_path) as (desk, store):
        await store.append(Origin(), [paste()], document())
        offered = [(await settle(desk, LOCAL, "1", "same")).document for _ in range(3)]
        assert [one["next"] and one["next"]["id"] for one in offered] == ["lower-max-num-seqs", "eager", None]
        assert "add a longer log" in offered[-1]["says"]


async def test_a_judge_that_repeats_itself_is_not_repeated(tmp_path: Path) -> None:
    async with desk_in(tmp_path, stubborn) as (desk, store):
        await store.append(Origin(), [paste()], document())
        offered = [(await settle(desk, LOCAL, "1", "same")).document["next"] for _ in range(3)]
        assert [one and one["id"] for one in offered] == ["lower-max-num-seqs", "eager", None]


async def test_moved_asks_for_the_new_log(tmp_path: Path) -> None:
    async with desk_in(tmp_path) as (desk, store):
        await store.append(Origin(), [paste()], document())
        found = (await settle(desk, LOCAL, "1", "moved")).document
        assert "Add the new log to D-0001" in found["says"]
        assert (found["next"], found["checklist"]) == (None, [])


async def test_wrong_names_the_rule_that_spoke(tmp_path: Path) -> None:
    async with desk_in(tmp_path) as (desk, store):
        await store.append(Origin(), [paste()], document())
        assert "graph-capture.inside-capture-model" in (await settle(desk, LOCAL, "1", "wrong")).document["says"]
        assert (await store.stats(LOCAL))["wrong_rules"] == [{"rule": "graph-capture.inside-capture-model", "count": 1}]


async def test_undo_brings_the_change_back(tmp_path: Path) -> None:
    async with desk_in(tmp_path) as (desk, store):
        await store.append(Origin(), [paste()], document())
        await settle(desk, LOCAL, "1", "same")
        found = (await undo(desk, LOCAL, "1")).document
        assert (found["outcome"], found["trial"], found["diagnosis"]["recommendation"]["id"]) == (None, 1, "lower-gpu-memory-utilization")
        kept = await store.load("local", "1")
        assert kept
        assert [(trial.number, trial.result) for trial in kept.trials] == [(1, None)]
        assert kept.contributions[-1].text == "undo"
        again = (await settle(desk, LOCAL, "1", "same")).document
        assert again["next"]["id"] == "lower-max-num-seqs"


async def test_undo_of_fixed_judges_nothing_anew(tmp_path: Path) -> None:
    async with desk_in(tmp_path) as (desk, store):
        await store.append(Origin(), [paste()], document())
        await settle(desk, LOCAL, "1", "fixed")
        await undo(desk, LOCAL, "1")
        kept = await store.load("local", "1")
        assert kept
        assert kept.trials[0].result is None


async def test_an_undo_that_is_heard_twice_is_carried_out_once_and_answered_alike(tmp_path: Path) -> None:
    async with desk_in(tmp_path) as (desk, store):
        await store.append(Origin(), [paste()], document())
        for result in ("fixed", "moved"):
            await settle(desk, LOCAL, "1", result)
        first, again = [(await undo(desk, LOCAL, "1", message="1700000000.1")).document for _ in range(2)]
        assert (first["outcome"], again["outcome"]) == ("fixed", "fixed")
        assert first["says"] == again["says"]


async def test_undo_lets_stand_what_was_said_of_the_change_before(tmp_path: Path) -> None:
    async with desk_in(tmp_path) as (desk, store):
        await store.append(Origin(), [paste()], document())
        for result in ("fixed", "moved", "wrong"):
            await settle(desk, LOCAL, "1", result)
        for stands in ("moved", "fixed"):
            found = (await undo(desk, LOCAL, "1")).document
            assert (found["outcome"], found["trial"]) == (stands, 1)
            assert found["says"].endswith(f"has the outcome {stands} again.")
            assert (await show(desk, LOCAL, "1")).document["trials"][0]["outcome"] == stands
        assert (await store.stats(LOCAL))["outcomes"] == {"fixed": 1}
        assert (await undo(desk, LOCAL, "1")).document["outcome"] is None


async def test_an_outcome_without_a_recommendation_is_kept(tmp_path: Path) -> None:
    async with desk_in(tmp_path) as (desk, store):
        await store.append(Origin(), [paste()], document(phase="unknown", verdict="open", recommendation=None, alternatives=[], proof=[]))
        found = (await settle(desk, LOCAL, "1", "wrong", "it was the driver")).document
        assert "none that quoted a line" in found["says"]


UNDECIDED = document(phase="unknown", verdict="open", recommendation=None, alternatives=[], proof=[])


@pytest.mark.parametrize("result", ["fixed", "moved", "same"])
async def test_a_change_that_was_never_suggested_has_no_outcome(tmp_path: Path, result: str) -> None:
    async with desk_in(tmp_path, lambda *_: UNDECIDED) as (desk, store):
        await store.append(Origin(), [paste()], UNDECIDED)
        with pytest.raises(Unusable, match=f"D-0001 has suggested no change, so none can have had the outcome '{result}'"):
            await settle(desk, LOCAL, "1", result)
        kept = await store.load("local", "1")
        assert kept
        assert (kept.trials, [one.kind for one in kept.contributions]) == ((), ["paste"])


async def test_a_diagnosis_without_a_change_can_be_called_wrong_and_that_taken_back(tmp_path: Path) -> None:
    async with desk_in(tmp_path, lambda *_: UNDECIDED) as (desk, store):
        await store.append(Origin(), [paste()], UNDECIDED)
        await settle(desk, LOCAL, "1", "wrong")
        assert (await undo(desk, LOCAL, "1")).document["says"] == "Taken back: D-0001 has no outcome again."
        kept = await store.load("local", "1")
        assert kept
        assert kept.trials == ()
        with pytest.raises(Unusable, match="no outcome that could be taken back"):
            await undo(desk, LOCAL, "1")


async def test_an_older_outcome_without_a_change_is_taken_back_and_the_incident_shown(tmp_path: Path) -> None:
    async with desk_in(tmp_path, lambda *_: {**UNDECIDED, "recommendation": LOWER_SEQS}) as (desk, store):
        await store.append(Origin(), [paste()], {**UNDECIDED, "recommendation": {}})
        await store.record_outcome("local", "1", "same", None)
        found = (await undo(desk, LOCAL, "1")).document
        assert found["diagnosis"]["recommendation"] == LOWER_SEQS, "what is judged today stands: there is nothing to bring back"
        shown = (await show(desk, LOCAL, "1")).document
        assert [(trial["change"]["id"], trial["outcome"]) for trial in shown["trials"]] == [("lower-max-num-seqs", None)]


async def test_an_older_document_with_an_empty_change_recommends_nothing(tmp_path: Path) -> None:
    async with desk_in(tmp_path) as (desk, store):
        await store.append(Origin(), [paste()], {**UNDECIDED, "recommendation": {}})
        shown = (await show(desk, LOCAL, "1")).document
        assert shown["diagnosis"]["recommendation"] is None


async def test_an_erased_incident_can_still_be_settled(tmp_path: Path) -> None:
    async with desk_in(tmp_path, lambda *_: pytest.fail("there is nothing to judge from")) as (desk, store):
        await store.append(Origin(), [paste()], document())
        await store.forget("local", "1")
        found = (await settle(desk, LOCAL, "1", "same")).document
        assert found["next"]["id"] == "lower-max-num-seqs"


async def test_what_was_said_before_and_comes_late_changes_no_outcome(tmp_path: Path) -> None:
    early, later = (datetime(2026, 11, 30, 12, minute, tzinfo=UTC) for minute in (0, 5))
    async with desk_in(tmp_path) as (desk, store):
        await store.append(Origin(), [paste()], document())
        await settle(desk, LOCAL, "1", "fixed", message="b", at=later)
        for _ in range(2):  # heard twice, kept once
            told = (await settle(desk, LOCAL, "1", "same", message="a", at=early)).document
            assert told["outcome"] == "fixed"
        undone = (await undo(desk, LOCAL, "1", message="c", at=early)).document
        assert undone["says"].startswith("What was said after it stands. Noted: lowering")
        shown = (await show(desk, LOCAL, "1")).document
        assert [trial["outcome"] for trial in shown["trials"]] == ["fixed"]
        assert [one["text"] for one in shown["contributions"][1:]] == ["fixed", "same", "undo"]
        assert (await settle(desk, LOCAL, "1", "moved", message="d", at=later + timedelta(1))).document["outcome"] == "moved"
