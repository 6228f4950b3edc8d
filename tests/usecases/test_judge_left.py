"""What is left of an incident of which a part was erased."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bot.domain.incident import Contribution, Origin
from bot.usecases.desk import Desk
from bot.usecases.judge_left import judge_left
from bot.usecases.settle import settle
from tests.store.material import document, paste
from tests.usecases.desks import LOCAL, desk_in

HERE = Origin(channel="C1", thread="1.1")


def by_what_is_left(desk: Desk) -> Desk:
    """A judge whose summary names the words that it could read."""

    async def judge(said: Sequence[Contribution], _: object) -> dict[str, Any]:
        words = " ".join(one.text for one in said if one.text and one.kind == "paste")
        found = document(summary=f"read: {words}")
        nothing = {"first_error": None, "budgets": [], "phase": "unknown", "proof": [], "engine": "unknown", "deployment": {}}
        return found if "memory" in words else found | nothing

    return replace(desk, judge=judge)


async def test_what_others_gave_is_judged_anew_and_alone(tmp_path: Path) -> None:
    async with desk_in(tmp_path) as (plain, store):
        desk = by_what_is_left(plain)
        given = [paste("no memory here", message="1.1"), paste("and no memory there", message="1.2")]
        await store.append(HERE, given, document(also_failed=["Worker_TP4"]))
        await store.erase_message("local", "C1", "1.2")
        await judge_left(desk, "local", "D-0001")
        left = await store.load("local", "D-0001")
        assert left is not None
        assert left.document["summary"] == "read: no memory here"
        assert "Worker_TP4" not in repr(left)
        await judge_left(replace(desk, judge=plain.judge), "local", "D-0001")
        assert (await store.load("local", "D-0001")) == left, "it is judged once"
        assert (await settle(desk, LOCAL, "D-0001", "same")).document["diagnosis"]["summary"] == "read: no memory here"


async def test_what_shows_nothing_by_itself_leaves_what_the_incident_was(tmp_path: Path) -> None:
    async with desk_in(tmp_path) as (plain, store):
        desk = by_what_is_left(plain)
        given = [paste("no memory here", message="1.1"), paste("thanks", message="1.2"), Contribution("answer", "rank=3", message="1.3")]
        await store.append(HERE, given, document())
        await store.erase_message("local", "C1", "1.1")
        await judge_left(desk, "local", "D-0001")
        left = await store.load("local", "D-0001")
        assert left is not None
        assert (left.document["summary"], left.document["phase"]) == ("", "graph_capture")
        await store.forget("local", "D-0001")
        await judge_left(desk, "local", "D-0001")
        assert (await store.load("local", "D-0001")).document["summary"] == ""  # type: ignore[union-attr]
