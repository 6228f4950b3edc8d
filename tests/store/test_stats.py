from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from bot.domain.incident import Origin
from bot.store.store import Store, open_store
from tests.store.material import LOWER_SEQS, NOW, document, on, paste


@dataclass(frozen=True)
class Asker:
    team: str = "local"
    channels: frozenset[str] | None = None
    enterprise: str | None = None


async def test_an_empty_store_has_empty_figures(store: Store) -> None:
    figures = await store.stats(Asker())
    assert figures == {
        "incidents": 0, "mean_seconds_to_outcome": None, "outcomes": {}, "phases": [], "changes": [], "wrong_rules": [], "models": [], "gpus": [],
    }  # fmt: skip


async def test_the_figures_of_a_review(store: Store) -> None:
    for _ in range(3):
        await store.append(Origin(), [paste()], document())
    await store.append(Origin(), [paste()], on("Qwen/Qwen2.5-7B", "L4-24GB", phase="serving"))
    await store.append(Origin("T9"), [paste()], document())
    await store.record_outcome("local", "1", "same", "U1", document=document(recommendation=LOWER_SEQS))
    await store.record_outcome("local", "1", "fixed", "U1")
    await store.record_outcome("local", "2", "fixed", "U1")
    await store.record_outcome("local", "4", "wrong", "U1")
    figures = await store.stats(Asker())
    assert figures["incidents"] == 4
    assert figures["outcomes"] == {"fixed": 2, "open": 1, "wrong": 1}
    assert [(one["phase"], one["count"], one["fixed"]) for one in figures["phases"]] == [("graph_capture", 3, 2), ("serving", 1, 0)]
    works = {(one["phase"], one["remedy"]): (one["tried"], one["fixed"], one["same"]) for one in figures["changes"]}
    assert works[("graph_capture", "lower-gpu-memory-utilization")] == (2, 1, 1)
    assert works[("graph_capture", "lower-max-num-seqs")] == (1, 1, 0)
    assert figures["wrong_rules"] == [{"rule": "graph-capture.inside-capture-model", "count": 1}]
    assert figures["gpus"] == [{"name": "H100-80GB", "count": 3, "fixed": 2}, {"name": "L4-24GB", "count": 1, "fixed": 0}]
    assert figures["mean_seconds_to_outcome"] is not None


async def test_the_sums_that_are_kept_and_the_rows_say_the_same_after_whatever_happened(store: Store, tmp_path: Path) -> None:
    for number in range(8):
        origin = Origin("T1", channel=f"C{number % 2}")
        await store.append(origin, [paste(at=NOW - timedelta(days=30 + number))], document(phase=("serving", "profiling")[number % 3 % 2]))
    await store.append(Origin("T1"), [paste(at=NOW - timedelta(days=30))], document(phase="unknown", recommendation=None, proof=[]))
    await _alike(store)
    for number, result in enumerate(("fixed", "same", "wrong", "moved", "other", "fixed", "same", None, "wrong"), 1):
        if result:
            await store.record_outcome(
                "T1", str(number), result, "U1", document=document(recommendation=LOWER_SEQS) if result == "same" else None
            )
    await _alike(store)
    await store.record_outcome("T1", "2", "fixed", "U1")  # the second trial of it
    await store.record_outcome("T1", "3", "same", "U1")  # another word about the same trial
    await store.undo_outcome("T1", "1", "U1")
    await store.undo_outcome("T1", "7", "U1", document=document())
    await store.judge("T1", "6", document(phase="graph_capture"))
    await store.forget("T1", "5")
    await store.erase_message("T1", "C1", "1.1")
    figures = await _alike(store)
    assert (figures["incidents"], figures["changes"][0]["tried"]) == (9, 3)
    assert figures["mean_seconds_to_outcome"] > 86_400
    other = await open_store(f"sqlite+aiosqlite:///{tmp_path / 'other.db'}")
    await other.import_rows([record async for record in store.export_rows()])
    assert await _alike(other) == figures
    await other.close()


async def _alike(store: Store) -> dict[str, Any]:
    """The figures of all time, which must be those since long ago for everybody."""
    for who in (Asker("T1", frozenset({"C1"})), Asker("T1", frozenset()), Asker("T2"), Asker("T1")):
        kept, counted = await store.stats(who), await store.stats(who, NOW - timedelta(days=9_999))
        for name in kept:
            in_any_order = [sorted(one[name], key=str) if isinstance(one[name], list) else one[name] for one in (kept, counted)]
            assert in_any_order[0] == in_any_order[1], name
    return kept


async def test_figures_are_of_a_time_and_of_what_may_be_seen(store: Store) -> None:
    await store.append(Origin("T1", channel="G1", private=True), [paste(at=NOW - timedelta(days=9))], document())
    await store.append(Origin("T1", channel="C1"), [paste()], document())
    assert (await store.stats(Asker("T1"), NOW - timedelta(days=1)))["incidents"] == 1
    assert (await store.stats(Asker("T1", frozenset({"C1"}))))["incidents"] == 1
    assert (await store.stats(Asker("T1", frozenset())))["incidents"] == 0
