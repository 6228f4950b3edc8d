"""Quantization settings as checkpoints write them, read into what each module takes."""

from typing import Any

import pytest

from bot.budget.quantization import Storage
from bot.reading.model.quantization_config import UnknownQuantization, read_quantization

LINEAR = ["layers.3.mlp.up_proj"]


def group(bits: int, kind: str, strategy: str, size: int | None = None) -> dict[str, Any]:
    return {"targets": ["Linear"], "weights": {"num_bits": bits, "type": kind, "strategy": strategy, "group_size": size, "symmetric": True}}


def stored(settings: dict[str, Any]) -> Storage:
    found = read_quantization({"quantization_config": settings}, {}).of(LINEAR)
    assert found is not None
    return found


def test_a_modelopt_algorithm_that_we_do_not_know_is_named() -> None:
    with pytest.raises(UnknownQuantization, match="W3A3"):
        read_quantization({"quantization_config": {"quant_method": "modelopt", "quant_algo": "W3A3"}}, {})


def test_compressed_tensors_without_groups_are_refused() -> None:
    with pytest.raises(UnknownQuantization, match="config_groups"):
        read_quantization({"quantization_config": {"quant_method": "compressed-tensors"}}, {})


def test_no_settings_mean_no_quantization() -> None:
    assert read_quantization({}, {}).of(LINEAR) is None


@pytest.mark.parametrize(
    ("settings", "bytes_of_1024_by_1024"),
    [
        ({"quant_method": "fp8", "activation_scheme": "dynamic"}, 1024 * 1024 + 4),
        ({"quant_method": "fp8", "activation_scheme": "static"}, 1024 * 1024 + 8),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, 1024 * 1024 + 4 * 64),
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, 512 * 1024 + 8 * 1024 * 2 + 8 * 512),
        ({"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": True}, 512 * 1024 + 8 * 1024 * 2 + 8 * 512 + 4 * 1024),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, 512 * 1024),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, 1024 * 1024),
        ({"quant_method": "fbgemm_fp8"}, 1024 * 1024 + 4 * 1024),
        ({"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp8_e4m3", "qscheme": "per_tensor"}}}, 1024 * 1024 + 4),
        ({"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp4"}}}, 512 * 1024 + 32 * 1024),
        ({"quant_method": "torchao", "quant_type": {"default": {"_type": "Int8WeightOnlyConfig"}}}, 1024 * 1024 + 2 * 1024),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, 512 * 1024 + 64 * 1024 + 8),
        ({"quant_algo": "FP8"}, 1024 * 1024 + 8),
        ({"quant_method": "compressed-tensors", "config_groups": {"g": group(8, "float", "channel")}}, 1024 * 1024 + 4 * 1024),
        ({"quant_method": "compressed-tensors", "config_groups": {"g": group(8, "int", "tensor")}}, 1024 * 1024 + 4),
        ({"quant_method": "compressed-tensors", "config_groups": {"g": group(4, "int", "group", 128)}}, 512 * 1024 + 8 * 1024 * 2),
        ({"quant_method": "compressed-tensors", "config_groups": {"g": group(4, "float", "tensor_group", 16)}}, 512 * 1024 + 64 * 1024 + 8),
        ({"quant_method": "compressed-tensors", "config_groups": {"g": group(4, "float", "group", 32)}}, 512 * 1024 + 32 * 1024),
    ],
)
def test_a_matrix_takes_what_its_method_stores(settings: dict[str, Any], bytes_of_1024_by_1024: int) -> None:
    assert stored(settings).matrix(1024, 1024) == bytes_of_1024_by_1024


def test_settings_beside_the_config_count_when_it_has_none() -> None:
    beside = {"quantization": {"quant_algo": "NVFP4", "exclude_modules": ["lm_head", "model.layers.3*"]}}
    found = read_quantization({}, {}, beside)
    assert found.of(LINEAR) is None
    assert found.of(["layers.4.mlp.up_proj"]) is not None


def test_settings_inside_the_language_config_count() -> None:
    assert read_quantization({"text_config": {"quantization_config": {"quant_method": "awq"}}}, {}).of(LINEAR) is not None


def test_a_mixed_checkpoint_quantizes_what_it_lists() -> None:
    layers = {"model.layers.3.mlp.up_proj": {"quant_algo": "FP8"}, "model.layers.3.mlp.experts.7.up_proj": {"quant_algo": "NVFP4"}}
    found = read_quantization(
        {"quantization_config": {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": layers}}, {}
    )
    held = [found.of([name]) for name in ("layers.3.mlp.up_proj", "layers.3.mlp.experts", "layers.4.mlp.up_proj")]
    assert [one and one.bits for one in held] == [8, 4, None]


def test_experts_kept_in_fp4_beside_fp8_are_read_so() -> None:
    found = read_quantization({"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}, {"expert_storage": "fp4"})
    experts = found.of(["layers.3.ffn.experts"], experts=True)
    assert experts is not None
    assert (experts.bits, stored({"quant_method": "fp8", "weight_block_size": [128, 128]}).bits) == (4, 8)


@pytest.mark.parametrize(
    "settings",
    [{"dynamic": {"-:.*mlp.*": {}}}, {"extra_config": {"model.layers.3.mlp.up_proj": {"bits": 16}}}, {"modules_to_not_convert": ["mlp"]}],
)
def test_what_gptq_settings_leave_alone_is_left_alone(settings: dict[str, Any]) -> None:
    found = read_quantization({"quantization_config": {"quant_method": "gptq", "bits": 4} | settings}, {})
    assert found.of(LINEAR) is None
    assert found.of(["layers.3.self_attn.q_proj"]) is not None


def test_unknown_types_of_quark_and_torchao_are_named() -> None:
    with pytest.raises(UnknownQuantization, match="bfp16"):
        read_quantization({"quantization_config": {"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "bfp16"}}}}, {})
    with pytest.raises(UnknownQuantization, match="Ternary"):
        read_quantization({"quantization_config": {"quant_method": "torchao", "quant_type": "Ternary"}}, {})


def bits(settings: dict[str, Any], name: str, *, experts: bool = False) -> int | None:
    found = read_quantization({"quantization_config": settings}, {}).of([name], experts=experts)
    return found and found.bits


def test_groups_of_compressed_tensors_hold_what_their_patterns_name() -> None:
    fp8, fp4 = group(8, "float", "channel"), group(4, "float", "tensor_group", 16)
    settings = {
        "quant_method": "compressed-tensors",
        "ignore": ["lm_head", "re:.*experts.*"],
        "config_groups": {"a": fp8 | {"targets": ["re:.*self_attn.*"]}, "b": fp4 | {"targets": ["re:.*mlp.(gate|up|down)_proj$"]}},
    }
    assert bits(settings, "layers.3.self_attn.q_proj") == 8
    assert bits(settings, "layers.3.mlp.up_proj") == 4
    assert bits(settings, "layers.3.mlp.experts", experts=True) is None
    assert bits(settings, "layers.3.linear_attn.in_proj") is None


def test_experts_that_are_left_out_one_by_one_are_left_out() -> None:
    settings = {
        "quant_method": "compressed-tensors",
        "ignore": ["model.layers.3.mlp.experts.0.gate_proj"],
        "config_groups": {"a": group(4, "int", "group", 128)},
    }
    assert bits(settings, "layers.3.mlp.experts", experts=True) is None
    assert bits(settings, "layers.4.mlp.experts", experts=True) == 4


@pytest.mark.parametrize(
    "settings",
    [
        {"format": "dense", "config_groups": {}, "sparsity_config": {"sparsity_structure": "2:4"}},
        {"config_groups": {"a": {"targets": ["Linear"], "weights": None}}, "kv_cache_scheme": {"num_bits": 8}},
    ],
)
def test_compressed_tensors_that_quantize_no_weights_leave_them_as_they_are(settings: dict[str, Any]) -> None:
    assert bits({"quant_method": "compressed-tensors", **settings}, LINEAR[0]) is None


def test_modules_with_settings_of_their_own_have_those() -> None:
    gptq = {"quant_method": "gptq", "bits": 4, "group_size": 128, "dynamic": {"+:.*down.*": {"bits": 8}, "-:.*attn.*": {}}}
    assert [bits(gptq, f"layers.3.{name}") for name in ("mlp.up_proj", "mlp.down_proj", "self_attn.q_proj")] == [4, 8, None]
    attention = {"*self_attn*": {"weight": {"dtype": "fp8_e4m3", "qscheme": "per_tensor"}}}
    quark = {"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp4"}}, "layer_quant_config": attention}
    assert [bits(quark, f"layers.3.{name}") for name in ("mlp.up_proj", "self_attn.q_proj")] == [4, 8]
    table = {"_default": {"_type": "Int4WeightOnlyConfig"}, "model.layers.3.self_attn.q_proj": None}
    torchao = {
        "quant_method": "torchao",
        "quant_type": {"default": {"_type": "ModuleFqnToConfig", "_data": {"module_fqn_to_config": table}}},
    }
    assert [bits(torchao, f"layers.3.{name}") for name in ("mlp.up_proj", "self_attn.q_proj")] == [4, None]


@pytest.mark.parametrize("method", ["gguf", "aqlm", "bitnet", "exl3", "gptq_marlin_24"])
def test_a_method_whose_bytes_we_do_not_know_is_named(method: str) -> None:
    with pytest.raises(UnknownQuantization, match=method.replace("_", "-")):
        read_quantization({"quantization_config": {"quant_method": method}}, {})
