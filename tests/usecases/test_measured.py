from pathlib import Path
from typing import Any

from bot.domain.incident import Origin
from bot.usecases.desk import Viewer
from bot.usecases.measured import measured_terms
from bot.usecases.size import size
from bot.usecases.size_question import load_sizing
from tests.store.material import document, paste
from tests.usecases.desks import LOCAL, desk_in

QUESTION: dict[str, Any] = {
    "model": "acme/Llama-3.3-70B-Instruct",
    "config": {
        "architectures": ["LlamaForCausalLM"], "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 128,
        "hidden_size": 8192, "intermediate_size": 28672, "vocab_size": 128256, "max_position_embeddings": 131072, "torch_dtype": "bfloat16",
    },
    "gpu": "H100-80GB", "tensor_parallel_size": 4, "engine_version": "0.20.2", "max_num_batched_tokens": 8192,
}  # fmt: skip


def start(**other: Any) -> dict[str, Any]:
    """A diagnosis of a start whose engine reported its terms."""
    deployment = {"model": "/models/Llama-3.3-70B-Instruct", "gpu": "H100-80GB", "tensor_parallel_size": 4, "max_num_batched_tokens": 8192}
    budget = {
        "rank": 0,
        "label": "TP0",
        "activation_peak_bytes": 3_000_000_000,
        "non_torch_bytes": 1_100_000_000,
        "graph_bytes": 900_000_000,
    }
    return document(
        engine_version="0.20.0",
        deployment=deployment | other,
        budgets=[budget, budget | {"rank": 1, "activation_peak_bytes": 3_500_000_000}],
    )


async def terms(desk: Any, viewer: Viewer = LOCAL, **other: Any) -> dict[str, tuple[int, str]]:
    question = QUESTION | other
    told = size(load_sizing(), question, await measured_terms(desk, viewer, question)).document
    return {term["name"]: (term["bytes"], term["basis"]) for term in told["terms"]}


async def test_nothing_stored_leaves_the_estimates(tmp_path: Path) -> None:
    async with desk_in(tmp_path) as (desk, _):
        assert await measured_terms(desk, LOCAL, QUESTION) is None
        assert await measured_terms(desk, LOCAL, {"config": {}}) is None


async def test_a_stored_start_replaces_the_estimate_and_is_named(tmp_path: Path) -> None:
    async with desk_in(tmp_path) as (desk, store):
        await store.append(Origin(), [paste()], start())
        found = await terms(desk)
        assert found["activations"] == (3_500_000_000, "measured D-0001")
        assert found["non-torch"] == (1_100_000_000, "measured D-0001")
        assert found["CUDA graphs"] == (900_000_000, "measured D-0001")


async def test_another_card_grid_version_or_batch_measures_nothing_for_this_one(tmp_path: Path) -> None:
    async with desk_in(tmp_path) as (desk, store):
        await store.append(Origin(), [paste()], start())
        for other in ({"gpu": "H200-141GB"}, {"tensor_parallel_size": 8}, {"engine_version": "0.21.0"}, {"pipeline_parallel_size": 2}):
            assert not [basis for _, basis in (await terms(desk, **other)).values() if "measured D-" in basis]
        found = await terms(desk, max_num_batched_tokens=2048)
        assert "measured D-" not in found["activations"][1]
        assert found["non-torch"][1] == "measured D-0001"


async def test_stages_of_a_pipeline_are_no_measure(tmp_path: Path) -> None:
    async with desk_in(tmp_path) as (desk, store):
        await store.append(Origin(), [paste()], start(pipeline_parallel_size=2))
        assert await measured_terms(desk, LOCAL, QUESTION) is None


async def test_several_starts_give_a_range_and_the_newest_is_named(tmp_path: Path) -> None:
    async with desk_in(tmp_path) as (desk, store):
        await store.append(Origin(), [paste()], start())
        await store.append(Origin(), [paste()], start())
        assert (await terms(desk))["activations"] == (3_500_000_000, "measured D-0002 and 1 more")


async def test_what_may_not_be_seen_is_not_measured(tmp_path: Path) -> None:
    async with desk_in(tmp_path) as (desk, store):
        await store.append(Origin("T1", channel="G1", private=True), [paste()], start())
        assert await measured_terms(desk, Viewer("T1", "U1", None, frozenset({"C1"})), QUESTION) is None
        assert await measured_terms(desk, Viewer("T1", "U1", None, frozenset({"G1"})), QUESTION) is not None
