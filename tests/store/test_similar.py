from dataclasses import dataclass

import pytest

from bot.domain.incident import Origin
from bot.store.derived import family_of
from bot.store.store import Store
from tests.store.material import LOWER_SEQS, document, on, paste

T1 = Origin("T1", channel="C1")


@dataclass(frozen=True)
class Asker:
    team: str = "T1"
    channels: frozenset[str] | None = None
    enterprise: str | None = None


async def test_nothing_is_similar_in_an_empty_store(store: Store) -> None:
    assert await store.similar(T1, document()) == []
    assert await store.precedents(T1, document()) == []
    assert await store.measured(Asker(), "Qwen/Qwen3-235B-A22B") == []


async def test_an_open_diagnosis_has_no_neighbours(store: Store) -> None:
    await store.append(T1, [paste()], document())
    assert await store.similar(T1, {"phase": "unknown", "deployment": {}}) == []


async def test_the_nearest_stand_first(store: Store) -> None:
    await store.append(T1, [paste()], on("Qwen/Qwen3-8B", "H100-80GB"))  # 1: same family, GPU, tp
    await store.append(T1, [paste()], on("mistralai/Mixtral-8x7B", "H100-80GB"))  # 2: another family
    await store.append(T1, [paste()], on("Qwen/Qwen3-32B", "A100-80GB"))  # 3: another GPU
    await store.append(T1, [paste()], on("Qwen/Qwen3-8B", "H100-80GB", engine_version="0.9.0"))  # 4: another time
    await store.append(T1, [paste()], document(phase="serving"))  # 5: another phase
    await store.append(T1, [paste()], on("google/gemma-3-27b", "L4-24GB"))  # 6: nothing in common but the phase
    found = await store.similar(T1, document())
    assert [one["id"] for one in found] == ["D-0001", "D-0003", "D-0004", "D-0002"]
    assert [one["id"] for one in await store.similar(T1, document(), leave_out="D-0001")] == ["D-0003", "D-0004", "D-0002"]


async def test_no_more_than_five_are_similar(store: Store) -> None:
    for _ in range(6):
        await store.append(T1, [paste()], document())
    assert [one["id"] for one in await store.similar(T1, document())] == ["D-0006", "D-0005", "D-0004", "D-0003", "D-0002"]


async def test_one_with_an_outcome_stands_before_one_without(store: Store) -> None:
    await store.append(T1, [paste()], document())
    await store.append(T1, [paste()], document())
    await store.record_outcome("T1", "1", "fixed", "U1")
    found = await store.similar(T1, document())
    assert [(one["id"], one["outcome"], one["flag"], one["value"]) for one in found] == [
        ("D-0001", "fixed", "--gpu-memory-utilization", "0.85"),
        ("D-0002", None, "--gpu-memory-utilization", "0.85"),
    ]


async def test_precedents_are_trials_with_a_result(store: Store) -> None:
    await store.append(T1, [paste()], document())
    await store.record_outcome("T1", "1", "same", "U1", document=document(recommendation=LOWER_SEQS))
    await store.record_outcome("T1", "1", "fixed", "U1")
    await store.append(T1, [paste()], document())
    tried = await store.precedents(T1, document(), leave_out="D-0002")
    assert [(one["remedy"], one["outcome"], one["id"], one["phase"]) for one in tried] == [
        ("lower-gpu-memory-utilization", "same", "D-0001", "graph_capture"),
        ("lower-max-num-seqs", "fixed", "D-0001", "graph_capture"),
    ]


async def test_a_public_channel_is_told_nothing_of_private_ones(store: Store) -> None:
    await store.append(Origin("T1", channel="G9", private=True), [paste()], document())
    await store.append(Origin("T2", channel="C1"), [paste()], document())
    await store.record_outcome("T1", "1", "fixed", "U1")
    assert await store.similar(T1, document()) == []
    assert await store.precedents(T1, document()) == []
    assert await store.measured(T1, "Qwen/Qwen3-235B-A22B") == []
    assert len(await store.similar(Origin("T1", channel="G9", private=True), document())) == 1
    assert len(await store.similar(Asker(channels=frozenset({"C1"})), document())) == 0
    assert len(await store.similar(Asker(channels=frozenset({"G9"})), document())) == 1


async def test_a_channel_that_turns_private_takes_its_rows_along(store: Store) -> None:
    await store.append(Origin("T1", channel="C5"), [paste()], document())
    assert len(await store.similar(T1, document())) == 1
    await store.channel_became("T1", "C5", private=True)
    assert await store.similar(T1, document()) == []
    await store.channel_became("T1", "C5", private=False)
    assert len(await store.similar(T1, document())) == 1


async def test_measured_terms_come_with_their_incident_the_newest_first(store: Store) -> None:
    await store.append(T1, [paste()], document(engine_version="0.11.0"))
    await store.append(T1, [paste()], document())
    await store.append(T1, [paste()], on("/models/qwen3-235b-a22b/", "H100-80GB", tp=4))
    found = await store.measured(Asker(), "Qwen/Qwen3-235B-A22B")
    assert [(one["id"], one["activation_peak_bytes"], one["rank"], one["batched_tokens"]) for one in found] == [
        ("D-0003", 3_200_000_000, 3, 8192),
        ("D-0002", 3_200_000_000, 3, 8192),
        ("D-0001", 3_200_000_000, 3, 8192),
    ]
    assert await store.measured(Asker(), "Qwen/Qwen3-8B") == []


async def test_measured_terms_of_a_model_out_of_the_hubs_cache_are_those_of_its_name(store: Store) -> None:
    place = "/cache/hub/models--Qwen--Qwen3-235B-A22B/snapshots/bb46c15ee4bb"
    await store.append(T1, [paste()], document(deployment=document()["deployment"] | {"model": place}))
    assert len(await store.measured(Asker(), "Qwen/Qwen3-235B-A22B")) == len(await store.measured(Asker(), place)) > 0


async def test_a_new_judgement_replaces_the_measured_terms(store: Store) -> None:
    await store.append(T1, [paste()], document())
    await store.judge("T1", "1", document(budgets=[]))
    assert await store.measured(Asker(), "Qwen/Qwen3-235B-A22B") == []


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("Qwen/Qwen2.5-72B-Instruct", "qwen2.5"),
        ("meta-llama/Llama-3.3-70B", "llama-3.3"),
        ("mistralai/Mixtral-8x7B-v0.1", "mixtral"),
        ("/models/deepseek-v3/", "deepseek-v3"),
        ("openai/gpt-oss-120b", "gpt-oss"),
        ("/root/.cache/huggingface/hub/models--Qwen--Qwen2.5-7B-Instruct/snapshots/bb46c15ee4bb56c5b63245ef50fd7637234d6f75", "qwen2.5"),
        ("/models--Qwen--Qwen1.5-7B-Chat", "qwen1.5"),
        ("70B", None),
        (None, None),
    ],
)
def test_a_family_is_the_name_before_the_size(model: str | None, family: str | None) -> None:
    assert family_of(model) == family
