"""What our own incidents measured, in place of estimates."""

from datetime import UTC, datetime
from typing import Any

import pytest

from bot.domain.incident import Contribution, Origin
from bot.domain.size import GIB, MIB
from bot.rulebook.load import load_rulebook
from bot.rulebook.model_names import load_model_names
from bot.settings import Settings
from bot.store.errors import StoreError
from bot.store.store import open_store
from bot.usecases.desk import Desk, Viewer
from bot.usecases.sizing.ask import size_words
from bot.usecases.sizing.measured import measured_terms
from bot.usecases.sizing.question import load_sizing
from bot.usecases.sizing.size import size

ROW: dict[str, Any] = {
    "id": "D-0187", "engine_version": "0.26.0", "rank": 0, "label": "Worker_TP0", "gpu": "H100-80GB", "tp": 1, "batched_tokens": 8192,
    "weights_bytes": 15 * GIB, "activation_peak_bytes": 3 * GIB, "non_torch_bytes": None, "consumed_bytes": 16 * GIB, "graph_bytes": None,
    "graph_estimate_bytes": None, "kv_cache_bytes": 50 * GIB, "total_bytes": None,
}  # fmt: skip


def terms(rows: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    named = load_model_names().find("llama-3.1-8b")
    assert named is not None
    question = {
        "config": named.config,
        "gpu": "H100",
        "engine_version": "0.26.1",
        "max_num_batched_tokens": 8192,
        "max_model_len": 8192,
        **more,
    }
    return {term["name"]: term for term in size(load_sizing(), question, measured_terms(rows)).document["terms"]}


@pytest.mark.parametrize("other", [
    {"gpu": "H200-141GB"}, {"tp": 2}, {"batched_tokens": 2048}, {"batched_tokens": None}, {"engine_version": "0.25.1"}, {"engine_version": None},
    {"engine_version": "nightly"},
])  # fmt: skip
def test_a_start_that_differs_is_not_used(other: dict[str, Any]) -> None:
    assert terms([ROW | other])["activations"]["basis"].startswith("estimated")


def test_one_start_alone_stands_for_a_little_more_and_a_little_less() -> None:
    found = terms([ROW])
    assert (found["activations"]["bytes"], found["activations"]["basis"]) == (3 * GIB, "measured D-0187")
    assert found["activations"]["range"] == [3 * GIB - round(0.3 * GIB), 3 * GIB + round(0.3 * GIB)]
    assert found["non-torch"]["bytes"] == GIB  # consumed less weights
    assert found["non-torch"]["range"] == [GIB - 128 * MIB, GIB + 128 * MIB]
    assert found["CUDA graphs"]["basis"].startswith("estimated")


def test_several_starts_give_their_middle_and_their_ends() -> None:
    rows = [ROW | {"id": f"D-{n:04}", "activation_peak_bytes": n * GIB} for n in (1, 2, 4)]
    found = terms(rows)["activations"]
    assert (found["bytes"], found["range"], found["basis"]) == (2 * GIB, [GIB, 4 * GIB], "measured D-0001, D-0002, D-0004")


def test_a_printed_peak_that_holds_the_graph_estimate_is_counted_without_it() -> None:
    row = ROW | {"engine_version": "0.33.0", "graph_estimate_bytes": GIB}
    found = terms([row], engine_version="0.33.0")
    assert found["activations"]["bytes"] == 2 * GIB
    assert (found["CUDA graphs"]["bytes"], found["CUDA graphs"]["inside_budget"]) == (GIB, True)
    assert terms([row | {"graph_estimate_bytes": None}], engine_version="0.33.0")["activations"]["basis"].startswith("estimated")


async def test_the_teams_own_start_is_found_in_its_history_and_only_by_those_who_may_see_it(tmp_path) -> None:  # type: ignore[no-untyped-def]
    async def unused(*_: object) -> dict[str, Any]:
        raise AssertionError("sizing judges nothing")

    store = await open_store(f"sqlite+aiosqlite:///{tmp_path / 'oombot.db'}")
    try:
        document = {
            "engine_version": "0.26.0", "phase": "kv_cache_sizing",
            "deployment": {
                "model": "meta-llama/Llama-3.1-8B-Instruct", "gpu": "H100-80GB", "tensor_parallel_size": 1, "max_num_batched_tokens": 8192,
            },
            "budgets": [{name: ROW[name] for name in ROW if name.endswith("_bytes")} | {"rank": 0, "label": "Worker_TP0"}],
        }  # fmt: skip
        said = [Contribution("paste", "a log", at=datetime(2026, 11, 30, tzinfo=UTC))]
        kept = await store.append(Origin(team="T1", channel="C1", private=True), said, document)
        desk = Desk(settings=Settings(hf_hub_offline="1"), rulebook=load_rulebook, judge=unused, now=lambda: datetime.now(UTC), store=store)
        words = "llama-3.1-8b on H100 8k batched 8k vllm 0.26.0"
        seen = (await size_words(desk, words, Viewer(team="T1", channels=frozenset({"C1"})))).document["terms"][0]["basis"]
        unseen = (await size_words(desk, words, Viewer(team="T1", channels=frozenset()))).document["terms"][0]["basis"]
    finally:
        await store.close()
    assert seen == f"measured {kept}"
    assert unseen.startswith("estimated")


async def test_a_database_that_is_away_leaves_the_estimates_and_is_named() -> None:
    class Away:
        async def measured(self, *_: object) -> list[dict[str, Any]]:
            raise StoreError("the database is locked.")

    desk = Desk(Settings(hf_hub_offline="1"), load_rulebook, None, lambda: datetime.now(UTC), Away())  # type: ignore[arg-type]
    told = (await size_words(desk, "llama-3.1-8b on H100 8k", Viewer(team="T1"))).document
    assert told["terms"][0]["basis"].startswith("estimated")
    assert told["assumptions"][-1] == "what was measured here is left out: the database is locked."
