"""Families that no engine count is at hand for are held to the number of parameters that their makers publish.

Where a line of published_sizes.jsonl says what was `seen`, it was compared with that on 2026-11-30. Of the other lines nobody noted where
they come from, and many are from memory: only that config and published number agree speaks for them.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from bot.usecases.sizing.question import load_sizing
from bot.usecases.sizing.size import answer, size_batch

MODELS: list[dict[str, Any]] = [
    json.loads(line) for line in Path(__file__).with_name("published_sizes.jsonl").read_text(encoding="utf-8").splitlines()
]


def weights(config: dict[str, Any], **question: Any) -> int:
    asked = {"config": config, "gpu": "B200", "engine_version": "0.32.0", "kv_cache_memory_bytes": 10**11, **question}
    held = answer(load_sizing(), asked).ranks[0].weights
    assert held is not None
    return held


@pytest.mark.parametrize("model", MODELS, ids=[model["model"] for model in MODELS])
def test_a_model_has_as_many_parameters_as_published(model: dict[str, Any]) -> None:
    assert weights(model["config"]) / 2e9 == pytest.approx(model["billions"], rel=0.02)


COUNTED = [model for model in MODELS if "bytes_per_token" in model]


@pytest.mark.parametrize("model", COUNTED, ids=[model["model"] for model in COUNTED])
def test_a_token_takes_what_layers_heads_and_their_size_multiply_to(model: dict[str, Any]) -> None:
    asked = {"config": model["config"], "gpu": "B200", "engine_version": "0.32.0", "kv_cache_memory_bytes": 10**11}
    assert answer(load_sizing(), asked).plan.bytes_per_token[0] == model["bytes_per_token"]


@pytest.mark.parametrize("model", MODELS, ids=[model["model"] for model in MODELS])
def test_two_ranks_hold_more_than_half_each_and_less_than_all(model: dict[str, Any]) -> None:
    question = {"id": 1, "config": model["config"], "gpu": "B200", "tensor_parallel_size": 2, "kv_cache_memory_bytes": 10**11}
    (told,) = size_batch(load_sizing(), [json.dumps(question)])
    if "error" in told:
        assert told["refused_by"] == "engine"
        return
    whole = weights(model["config"])
    assert whole / 2 <= told["ranks"][0]["weights_bytes"] < whole


def test_an_odd_feed_forward_is_refused_by_the_engine_with_both_numbers() -> None:
    jais = next(model["config"] for model in MODELS if model["model"] == "jais-13b")
    question = json.dumps({"id": 1, "config": jais, "gpu": "B200", "tensor_parallel_size": 2})
    (told,) = size_batch(load_sizing(), [question])
    assert told == {"id": 1, "error": "mlp.c_fc: 13653 is not divisible by 2 ranks", "refused_by": "engine"}


def test_layers_with_heads_of_their_own_are_weighed_one_by_one() -> None:
    config = {
        "architectures": ["LagunaForCausalLM"], "hidden_size": 2048, "num_hidden_layers": 2, "num_attention_heads": 48, "head_dim": 128,
        "num_key_value_heads": 8, "intermediate_size": 8192, "vocab_size": 1024, "max_position_embeddings": 1024,
        "layer_types": ["full_attention", "sliding_attention"], "sliding_window": 512,
    }  # fmt: skip
    alike, apart = weights(config), weights({**config, "num_attention_heads_per_layer": [48, 64]})
    assert apart - alike == 2 * 16 * 128 * 2048 * 2  # sixteen heads more in queries and output, two bytes each


@pytest.mark.parametrize("name", ["Zamba2-7B", "Llama-3.2-11B-Vision", "bart-large"])
def test_a_class_without_pipeline_parallelism_is_refused_on_two_stages(name: str) -> None:
    config = next(model["config"] for model in MODELS if model["model"] == name)
    question = json.dumps({"id": 1, "config": config, "gpu": "B200", "pipeline_parallel_size": 2})
    (told,) = size_batch(load_sizing(), [question])
    assert told["refused_by"] == "engine"
    assert "does not support pipeline parallelism; pipeline parallel size 2 must be 1" in told["error"]


def test_mellums_windows_and_step_1s_slopes_are_read() -> None:
    small = {"hidden_size": 2048, "num_hidden_layers": 4, "num_attention_heads": 16, "vocab_size": 1024, "max_position_embeddings": 32768}
    mellum = small | {
        "architectures": ["MellumForCausalLM"], "num_key_value_heads": 4, "head_dim": 128, "intermediate_size": 8192, "sliding_window": 1024,
        "layer_types": ["sliding_attention"] * 3 + ["full_attention"], "num_experts": 8, "num_experts_per_tok": 2,
        "moe_intermediate_size": 512, "mlp_layer_types": ["dense"] + ["sparse"] * 3,
    }  # fmt: skip
    question = {"config": mellum, "gpu": "H100", "engine_version": "0.33.0"}
    assert answer(load_sizing(), question).plan.bytes_per_token[0] == 2 * 4 * 128 * 2  # one layer of four keeps every token
    step = small | {"architectures": ["Step1ForCausalLM"], "num_attention_groups": 2, "intermediate_size": 4096}
    assert answer(load_sizing(), {**question, "config": step}).plan.bytes_per_token[0] == 4 * 2 * 2 * 128 * 2
    attention = 2048 * (16 + 2 * 2) * 128 + 2048 * 2048
    assert weights(step) == 2 * (4 * (attention + 3 * 2048 * 4096 + 2 * 2048) + 1024 * 2048 + 2048)


@pytest.mark.parametrize("name", ["gte-Qwen2-7B", "bge-m3", "siglip-so400m-patch14-384"])
def test_a_model_that_attends_both_ways_keeps_nothing(name: str) -> None:
    config = next(model["config"] for model in MODELS if model["model"] == name)
    told = answer(load_sizing(), {"config": config, "gpu": "H100-80GB", "kv_cache_memory_bytes": 10**9})
    assert told.plan.request_bytes == (0,)


def test_clip_reads_its_text_backwards_only_and_keeps_a_cache_for_it() -> None:
    config = next(model["config"] for model in MODELS if model["model"] == "clip-vit-large-patch14")
    told = answer(load_sizing(), {"config": config, "gpu": "H100-80GB", "kv_cache_memory_bytes": 10**9})
    assert told.plan.bytes_per_token == (12 * 2 * 12 * 64 * 2,)


def test_whisper_turbo_keeps_its_four_decoder_layers_not_its_encoders_thirty_two() -> None:
    config = next(model["config"] for model in MODELS if model["model"] == "whisper-large-v3-turbo")
    told = answer(load_sizing(), {"config": config, "gpu": "H100-80GB", "kv_cache_memory_bytes": 10**9})
    assert told.plan.bytes_per_block == (4 * 2 * 20 * 64 * 2 * 16,)
