from dataclasses import dataclass
from datetime import timedelta

from bot.domain.incident import Origin
from bot.store.store import Store
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


async def test_figures_are_of_a_time_and_of_what_may_be_seen(store: Store) -> None:
    await store.append(Origin("T1", channel="G1", private=True), [paste(at=NOW - timedelta(days=9))], document())
    await store.append(Origin("T1", channel="C1"), [paste()], document())
    assert (await store.stats(Asker("T1"), NOW - timedelta(days=1)))["incidents"] == 1
    assert (await store.stats(Asker("T1", frozenset({"C1"}))))["incidents"] == 1
    assert (await store.stats(Asker("T1", frozenset())))["incidents"] == 0
