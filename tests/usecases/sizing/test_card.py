"""Types and quantization methods that a card or a model rules out, as the engine does."""

from typing import Any

import pytest

from bot.usecases.sizing.question import SizingRules, load_sizing, read_question
from bot.usecases.sizing.size import size
from bot.usecases.sizing.values import Refused


@pytest.fixture(scope="module")
def rules() -> SizingRules:
    return load_sizing()


def _question(model_type: str = "gemma3_text", **more: Any) -> dict[str, Any]:
    config = {
        "architectures": ["Gemma3ForCausalLM"], "model_type": model_type, "hidden_size": 1152, "num_hidden_layers": 26,
        "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 256, "intermediate_size": 6912, "vocab_size": 262144,
        "sliding_window": 512, "sliding_window_pattern": 6, "max_position_embeddings": 32768, "torch_dtype": "bfloat16",
    }  # fmt: skip
    return {"config": config, "gpu": "T4-16GB", "max_model_len": 4096, **more}


def test_a_model_that_does_not_take_float16_runs_in_float32_on_a_card_without_bfloat16(rules: SizingRules) -> None:
    old, new = read_question(rules, _question()), read_question(rules, _question(gpu="L4-24GB"))
    assert (old.settings.model_bytes, new.settings.model_bytes) == (4, 2)
    assert any("gemma3_text runs in float32" in said for said in old.assumptions)
    assert not any("float32" in said for said in new.assumptions)
    weights = [size(rules, _question(gpu=gpu)).document["ranks"][0]["weights_bytes"] for gpu in ("T4-16GB", "L4-24GB")]
    assert weights[0] == pytest.approx(2 * weights[1], rel=0.01)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"dtype": "half"}, "the model type gemma3_text does not support float16; take float32"),
        ({"dtype": "float16", "gpu": "L4-24GB"}, "take bfloat16 or float32"),
        ({"dtype": "bfloat16"}, "bfloat16 needs a compute capability of 8.0, and T4-16GB has compute capability 7.5; take float32"),
        ({"quantization": "awq"}, "awq weights not in float32"),
    ],
)
def test_a_type_that_card_or_model_rules_out_is_refused(rules: SizingRules, more: dict[str, Any], said: str) -> None:
    with pytest.raises(Refused, match=said) as refused:
        read_question(rules, _question(**more))
    assert refused.value.by == "engine"


def test_other_models_run_in_float16_on_a_card_without_bfloat16(rules: SizingRules) -> None:
    assert read_question(rules, _question("another")).settings.model_bytes == 2


@pytest.mark.parametrize(
    ("gpu", "version", "method", "least"),
    [
        ("T4-16GB", "0.33.0", {"quant_method": "mxfp4"}, "8.0"),
        ("RTX3090-24GB", "0.33.0", {"quant_method": "mxfp4"}, None),
        ("V100-32GB", "0.33.0", {"quant_method": "awq"}, "7.5"),
        ("T4-16GB", "0.33.0", {"quant_method": "awq"}, None),
        ("V100-32GB", "0.33.0", {"quant_method": "gptq"}, None),
        ("A100-80GB", "0.19.1", {"quant_method": "modelopt", "quant_algo": "FP8"}, "8.9"),
        ("A100-80GB", "0.33.0", {"quant_method": "modelopt", "quant_algo": "FP8"}, None),
        ("A100-80GB", "0.19.1", {"quant_method": "modelopt", "quantization": {"quant_algo": "NVFP4"}}, None),
        ("MI300X", "0.33.0", {"quant_method": "mxfp4"}, None),
    ],
)
def test_a_quantization_without_kernels_for_the_card_is_refused(
    rules: SizingRules, gpu: str, version: str, method: dict[str, Any], least: str | None
) -> None:
    question = _question("llama", gpu=gpu, engine_version=version)
    question["config"]["quantization_config"] = method
    if least is None:
        read_question(rules, question)
        return
    with pytest.raises(Refused, match=f"{method['quant_method']} needs a compute capability of {least}, and {gpu} has"):
        read_question(rules, question)
