"""A sizing question as doors ask it, and where its model comes from."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from bot.domain.tensors import Checkpoint
from bot.hub.error import HubError
from bot.rulebook.load import load_rulebook
from bot.rulebook.model_names import load_model_names
from bot.settings import Settings
from bot.usecases.desk import Desk
from bot.usecases.reply import Unusable
from bot.usecases.sizing.ask import size_arguments, size_words, with_cards, with_model
from bot.usecases.sizing.question import load_sizing
from bot.usecases.sizing.size import size


async def unused(*_: object) -> Mapping[str, Any]:
    raise AssertionError("sizing judges nothing")


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch, tmp_path) -> Desk:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return Desk(settings=Settings(hf_hub_offline="1"), rulebook=load_rulebook, judge=unused, now=lambda: datetime.now(UTC))


def absent(model: str) -> Checkpoint:
    raise HubError(f"the hub has no model {model}")


def config_of(name: str) -> Mapping[str, Any]:
    named = load_model_names().find(name)
    assert named is not None
    return named.config


async def test_words_without_a_model_are_asked_which(desk: Desk) -> None:
    with pytest.raises(
        Unusable, match=r"Which model\? Write for example: llama-3.3-70b on 4xH100 128k fp8 kv \('fubar' was not understood"
    ):
        await size_words(desk, "fubar on 4xH100")


async def test_two_models_are_asked_back_and_no_card_is_refused(desk: Desk) -> None:
    with pytest.raises(Unusable, match=r"Several models are named: meta-llama/Llama-3.3-70B-Instruct, Qwen/Qwen3-32B\. Ask about one"):
        await size_words(desk, "llama-3.3-70b and qwen3-32b on 4xH100")
    for refused in (size_words(desk, "qwen3-32b on 0xH100"), size_arguments(desk, {"model": "qwen3-32b", "gpu": "0xH100"})):
        with pytest.raises(Unusable, match="No card holds no model"):
            await refused


async def test_two_nodes_of_eight_are_sixteen_ranks(desk: Desk) -> None:
    document = (await size_words(desk, "llama-3.1-405b on 2 nodes of 8 H100")).document
    assert len(document["ranks"]) == 16
    assert document["fits"] is True


async def test_words_are_answered_and_say_how_they_were_read(desk: Desk) -> None:
    document = (await size_words(desk, "lama-3.3-70b on 4xH100 128k fp8 kv")).document
    assert document["fits"] is True
    assert (document["model"], document["gpu"]) == ("meta-llama/Llama-3.3-70B-Instruct", "H100-80GB")
    assert document["corrections"] == ["'lama-3.3-70b' is no model we know; read as llama-3.3-70b"]
    assert "--kv-cache-dtype fp8" in document["command"]
    assert document["asked"] == {
        "model": "meta-llama/Llama-3.3-70B-Instruct", "gpu": "H100-80GB", "tensor_parallel_size": 4, "max_model_len": 131072,
        "kv_cache_dtype": "fp8",
    }  # fmt: skip


async def test_arguments_are_answered_like_words(desk: Desk) -> None:
    document = (await size_arguments(desk, {"model": "Qwen/Qwen3-8B", "gpu": "H100", "max_model_len": 8192})).document
    assert document["fits"] is True


@pytest.mark.parametrize(("given", "read"), [
    ({"gpu": "4xH100"}, {"gpu": "H100-80GB", "tensor_parallel_size": 4}),
    ({"gpu": "p4d.24xlarge", "tensor_parallel_size": 2}, {"gpu": "A100-40GB", "tensor_parallel_size": 2}),
    ({"gpu": "8xA100"}, {"gpu": "A100", "tensor_parallel_size": 8}),
    ({"gpu": "H100,H200"}, {"gpu": "H100,H200"}),
    ({"gpu": "H1000"}, {"gpu": "H1000"}),
    ({}, {}),
])  # fmt: skip
def test_a_number_of_cards_in_their_name_is_a_number_of_ranks(given: dict[str, Any], read: dict[str, Any]) -> None:
    assert with_cards(given) == read


def test_a_question_without_any_model_is_refused() -> None:
    with pytest.raises(Unusable, match="There is no model in the question"):
        with_model({"gpu": "H100"}, absent)


def test_a_model_that_neither_hub_nor_rulebook_has_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(Unusable, match=r"the hub has no model Qwen/Qwen3-8C\. Did you mean"):
        with_model({"model": "Qwen/Qwen3-8C"}, absent)


def test_a_config_that_is_given_stays() -> None:
    assert with_model({"model": "x", "config": {"a": 1}}, absent) == {"model": "x", "config": {"a": 1}}


def test_a_hub_id_is_asked_of_the_hub_first_and_its_revision_is_shown() -> None:
    def found(model: str) -> Checkpoint:
        return Checkpoint(model, "hub", "abc123", config_of("qwen3-8b"), None, None)

    question = with_model({"model": "Qwen/Qwen3-8B", "gpu": "H100"}, found)
    assumptions = size(load_sizing(), question).document["assumptions"]
    assert "the model is Qwen/Qwen3-8B from the hub, revision abc123" in assumptions


def test_without_the_hub_a_well_known_id_is_answered_from_the_rulebook_and_says_so() -> None:
    question = with_model({"model": "Qwen/Qwen3-8B"}, absent)
    assert question["assumed"] == ["the model is Qwen/Qwen3-8B as the rulebook knows it (its published config.json)"]


def test_a_short_name_never_asks_the_hub() -> None:
    def forbidden(model: str) -> Checkpoint:
        raise AssertionError(model)

    assert with_model({"model": "qwen3-8b"}, forbidden)["model"] == "Qwen/Qwen3-8B"


@pytest.mark.parametrize(("model", "asked", "shown", "serves"), [
    ("llama-3.3-70b", "awq", "AWQ checkpoint of meta-llama/Llama-3.3-70B-Instruct", "AWQ-CHECKPOINT"),
    ("llama-3.3-70b", "fp8", "meta-llama/Llama-3.3-70B-Instruct", "meta-llama/Llama-3.3-70B-Instruct"),
    ("llama-3.3-70b-gptq", None, "llama-3.3-70b-gptq", "GPTQ-CHECKPOINT"),
])  # fmt: skip
def test_a_checkpoint_that_nobody_named_is_named_as_one_to_be_found(model: str, asked: str | None, shown: str, serves: str) -> None:
    question = {"model": model, "quantization": asked, "gpu": "H200", "tensor_parallel_size": 2}
    document = size(load_sizing(), with_model(question, absent)).document
    assert document["model"] == shown
    assert document["command"].startswith(f"vllm serve {serves} ")


def test_a_batch_line_with_strange_tensors_is_answered_without_them() -> None:
    document = size(load_sizing(), {"config": config_of("qwen3-8b"), "gpu": "H100", "tensors": {"a": 1}}).document
    assert document["fits"] is True


def test_a_budget_that_leaves_less_than_the_context_takes_is_warned_of() -> None:
    risks = size(load_sizing(), {"config": config_of("qwen3-8b"), "gpu": "H100", "gpu_memory_utilization": 0.999}).document["risks"]
    assert len(risks) == 1
    assert risks[0].startswith("the start-up check will refuse utilization 0.999")
    assert size(load_sizing(), {"config": config_of("qwen3-8b"), "gpu": "H100"}).document["risks"] == []


def test_graphs_on_top_of_a_tight_budget_are_warned_of() -> None:
    question = {"config": config_of("llama-3.3-70b"), "gpu": "H100", "tensor_parallel_size": 4, "engine_version": "0.14.1", "gpu_memory_utilization": 0.99,
                "max_num_seqs": 512}  # fmt: skip
    assert [said[:39] for said in size(load_sizing(), question).document["risks"]] == ["CUDA graphs come on top of this version"]


def test_memory_shared_with_the_host_is_said() -> None:
    risks = size(load_sizing(), {"config": config_of("qwen3-0.6b"), "gpu": "DGX Spark", "gpu_memory_utilization": 0.6}).document["risks"]
    assert risks == ["the device shares its memory with the host: page cache and other processes lower what is free at start"]


def test_pictures_kept_out_are_not_encoded() -> None:
    def activations(**more: Any) -> int:
        document = size(load_sizing(), {"config": config_of("qwen3.5-27b"), "gpu": "H100", "max_num_seqs": 32, **more}).document
        return int(document["terms"][0]["bytes"])

    assert activations(limit_mm_per_prompt={"image": 0, "video": 0}) < activations(limit_mm_per_prompt={"image": 1}) == activations()


@pytest.mark.parametrize(
    "words",
    [
        "qwen 2.5 72b instruct awq 2 x L40S 32k",
        "qwen2.5 72b int4 2xL40S",
        "qwen2.5-72b gptq int4 4xL40S",
        "Qwen/Qwen2.5-72B-Instruct-GPTQ-Int8 4xL40S",
    ],
)
async def test_a_checkpoint_that_its_makers_padded_starts_on_two_cards_and_more(desk: Desk, words: str) -> None:
    document = (await size_words(desk, words)).document
    assert document["fits"] is True
    assert any("padded by its makers so that groups of 128 divide" in said for said in document["assumptions"])


async def test_the_padding_is_of_those_checkpoints_alone(desk: Desk) -> None:
    assert config_of("qwen2.5-72b")["intermediate_size"] == 29_568
    assert config_of("Qwen/Qwen2.5-72B-Instruct-AWQ")["intermediate_size"] == 29_696
    refused = "14,784 inputs on each of 2 ranks are not whole groups of 128 .* would not start. Choose tensor parallel size 1 with pipeline"
    with pytest.raises(Unusable, match=refused):
        await size_words(desk, "qwen2.5-72b w4a16 2xL40S")


async def test_the_padded_checkpoint_is_offered_where_the_plain_model_does_not_fit(desk: Desk) -> None:
    document = (await size_words(desk, "qwen2.5-72b 2xL40S 8k")).document
    assert document["ways"][0]["change"] == {"checkpoint": "4-bit AWQ"}


async def test_a_gguf_file_is_refused_in_words(desk: Desk) -> None:
    for model in ("Meta-Llama-3-8B-Instruct.Q4_K_M.gguf", "bartowski/Qwen2.5-7B-Instruct-GGUF", "org/model-gguf:Q4_K_M"):
        with pytest.raises(Unusable, match=r"is a GGUF file: its weights are llama\.cpp's own formats, which are not sized here"):
            await size_arguments(desk, {"model": model, "gpu": "RTX3060-12GB"})
    with pytest.raises(Unusable, match="GGUF"):
        await size_words(desk, "Meta-Llama-3-8B-Instruct.Q4_K_M.gguf on 3060")


async def test_a_checkpoint_named_dynamic_scales_its_activations_as_they_come(desk: Desk) -> None:
    document = (await size_words(desk, "llama-3.3-70b-fp8 2xH100")).document
    assert not any("static" in said for said in document["assumptions"])


@pytest.mark.parametrize(
    ("told", "gpu", "tp"),
    [
        ("a100 40", "A100-40GB", None), ("24gb 3090", "24gb 3090", None), ("2x 24gb 3090", "RTX3090-24GB", 2), ("4x a100 40", "A100-40GB", 4),
        ("a100", "a100", None), ("H100,H200", "H100,H200", None), ("no such card", "no such card", None),
    ],
)  # fmt: skip
def test_a_card_in_an_argument_is_read_as_in_words(told: str, gpu: str, tp: int | None) -> None:
    """What is one card's name as it stands, and what is nobody's, stays: the answer names it, or asks back, as it was typed."""
    asked = with_cards({"gpu": told})
    assert (asked["gpu"], asked.get("tensor_parallel_size")) == (gpu, tp)
