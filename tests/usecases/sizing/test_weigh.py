"""What a rank holds, beside figures that vLLM's own model classes gave for the same config.json and grid."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.budget.weights import Weights
from bot.domain.tensors import TensorGrid, Unplaceable
from bot.reading.model.numbers import MissingField
from bot.reading.model.quantization_config import UnknownQuantization
from bot.rulebook.models import UnknownArchitecture, load_models
from bot.usecases.sizing.weigh import weigh

MODELS = load_models()
LLAMA_8B: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"], "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
    "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 131072, "tie_word_embeddings": False,
}  # fmt: skip
LLAMA_1B: dict[str, Any] = LLAMA_8B | {
    "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "head_dim": 64, "tie_word_embeddings": True,
}  # fmt: skip
QWEN3_30B_FP8: dict[str, Any] = {
    "architectures": ["Qwen3MoeForCausalLM"], "hidden_size": 2048, "intermediate_size": 6144, "moe_intermediate_size": 768, "num_experts": 128,
    "num_hidden_layers": 48, "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "vocab_size": 151936,
    "max_position_embeddings": 40960, "tie_word_embeddings": False, "decoder_sparse_step": 1, "mlp_only_layers": [],
    "quantization_config": {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128]},
}  # fmt: skip
GPT_OSS_20B: dict[str, Any] = {
    "architectures": ["GptOssForCausalLM"], "hidden_size": 2880, "intermediate_size": 2880, "num_local_experts": 32, "num_hidden_layers": 24,
    "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 201088, "max_position_embeddings": 131072,
    "rope_scaling": {"rope_type": "yarn", "factor": 32.0, "original_max_position_embeddings": 4096}, "tie_word_embeddings": False,
    "quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn", "lm_head"]},
}  # fmt: skip
QWEN25_VL: dict[str, Any] = {
    "architectures": ["Qwen2_5_VLForConditionalGeneration"], "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28,
    "num_attention_heads": 28, "num_key_value_heads": 4, "vocab_size": 152064, "max_position_embeddings": 128000, "tie_word_embeddings": False,
    "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]},
    "vision_config": {
        "depth": 32, "hidden_size": 1280, "intermediate_size": 3420, "num_heads": 16, "out_hidden_size": 3584, "patch_size": 14,
        "spatial_merge_size": 2, "temporal_patch_size": 2,
    },
}  # fmt: skip
KIMI_K2: dict[str, Any] = {
    "architectures": ["DeepseekV3ForCausalLM"], "hidden_size": 7168, "intermediate_size": 18432, "moe_intermediate_size": 2048,
    "n_routed_experts": 384, "n_shared_experts": 1, "first_k_dense_replace": 1, "moe_layer_freq": 1, "num_hidden_layers": 61,
    "num_attention_heads": 64, "num_key_value_heads": 64, "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64, "v_head_dim": 128, "vocab_size": 163840, "max_position_embeddings": 131072, "tie_word_embeddings": False,
    "quantization_config": {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128]},
}  # fmt: skip
QWEN35_27B: dict[str, Any] = {
    "architectures": ["Qwen3_5ForConditionalGeneration"],
    "text_config": {
        "hidden_size": 5120, "intermediate_size": 17408, "num_hidden_layers": 64, "num_attention_heads": 24, "num_key_value_heads": 4,
        "head_dim": 256, "full_attention_interval": 4, "linear_num_key_heads": 16, "linear_num_value_heads": 48, "linear_key_head_dim": 128,
        "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4, "vocab_size": 248320, "max_position_embeddings": 262144,
        "attn_output_gate": True,
        "rope_parameters": {"mrope_interleaved": True, "mrope_section": [11, 11, 10], "rope_type": "default", "partial_rotary_factor": 0.25},
    },
    "vision_config": {
        "depth": 27, "hidden_size": 1152, "intermediate_size": 4304, "num_heads": 16, "num_position_embeddings": 2304,
        "out_hidden_size": 5120, "patch_size": 16, "spatial_merge_size": 2, "temporal_patch_size": 2, "deepstack_visual_indexes": [],
    },
    "tie_word_embeddings": False,
}  # fmt: skip


def weighed(
    config: dict[str, Any], tp: int = 1, pp: int = 1, *, version: str = "0.32.0", gpu: str = "NVIDIA H100 80GB HBM3", **more: Any
) -> Weights:
    grid = {key: more.pop(key) for key in ("dp", "experts_parallel", "encoder_data") if key in more}
    return weigh(config, MODELS, TensorGrid(tp, pp, **grid), engine_version=version, gpu=gpu, **more)


def test_an_architecture_that_no_file_knows_is_refused_by_name() -> None:
    with pytest.raises(UnknownArchitecture, match="FancyForCausalLM"):
        weighed(LLAMA_8B | {"architectures": ["FancyForCausalLM"]})


def test_a_field_that_decides_and_is_missing_is_named() -> None:
    with pytest.raises(MissingField, match="hidden_size"):
        weighed({key: value for key, value in LLAMA_8B.items() if key != "hidden_size"})


@pytest.mark.parametrize("mischief", [{"num_hidden_layers": 10**9}, {"num_hidden_layers": -1}, {"hidden_size": float("inf")}])
def test_a_count_that_nobody_can_mean_is_refused_at_once(mischief: dict[str, Any]) -> None:
    with pytest.raises(MissingField, match=r"config\.json has"):
        weighed(LLAMA_8B | mischief)


def test_a_tower_with_a_billion_layers_is_refused_at_once() -> None:
    with pytest.raises(MissingField, match="layers in its tower"):
        weighed(QWEN25_VL | {"vision_config": QWEN25_VL["vision_config"] | {"depth": 10**9}})


def test_a_grid_of_a_billion_ranks_is_refused_at_once() -> None:
    with pytest.raises(Unplaceable, match="between 1 and 65,536"):
        weighed(LLAMA_8B, 10**9)


@pytest.mark.parametrize(
    "wrong",
    [
        {"num_attention_heads": 0},
        {"hidden_size": "large"},
        {"rope_scaling": "yarn"},
        {"quantization_config": {"quant_method": "awq", "bits": "x"}},
    ],
)
def test_a_field_of_the_wrong_kind_is_an_answer_and_no_traceback(wrong: dict[str, Any]) -> None:
    with pytest.raises(MissingField, match=r"config\.json has"):
        weighed(LLAMA_8B | wrong)


def test_heads_that_do_not_divide_are_refused_as_the_engine_does() -> None:
    with pytest.raises(Unplaceable, match="32 is not divisible by 5"):
        weighed(LLAMA_8B, tp=5)


def test_a_vocabulary_that_does_not_divide_is_refused_with_its_size() -> None:
    with pytest.raises(Unplaceable, match="100352 is not divisible by 5"):
        weighed(LLAMA_8B | {"num_attention_heads": 40, "num_key_value_heads": 10, "intermediate_size": 17920, "vocab_size": 100352}, tp=5)


@pytest.mark.parametrize("settings", [
    {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True},
    {"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": False},
    {"quant_method": "fp8", "weight_block_size": [128, 128]},
])  # fmt: skip
def test_a_quantized_matrix_that_would_be_cut_within_a_piece_is_refused_as_the_engine_does(settings: dict[str, Any]) -> None:
    qwen = LLAMA_8B | {"hidden_size": 8192, "intermediate_size": 29568, "num_attention_heads": 64, "quantization_config": settings}
    with pytest.raises(Unplaceable, match=r"mlp\.down_proj: its 3,696 inputs on each of 8 ranks are not whole (groups|blocks) of 128"):
        weighed(qwen, tp=8)
    assert weighed(qwen | {"intermediate_size": 29696}, tp=8).ranks


def test_blocks_of_experts_are_cut_down_only_from_029_on() -> None:
    with pytest.raises(Unplaceable, match="experts: 192 of their intermediate size on each rank are not whole blocks of 128"):
        weighed(QWEN3_30B_FP8, tp=4, version="0.28.0")
    assert weighed(QWEN3_30B_FP8, tp=4, version="0.29.0").ranks


def test_what_020_added_cannot_be_quantized_to_before() -> None:
    with pytest.raises(
        Unplaceable, match=r"--quantization fp8_per_tensor: this version cannot quantize to it while loading; it can to fp8, "
    ):
        weighed(LLAMA_8B, version="0.19.1", quantization="fp8_per_tensor")


def test_an_unknown_quantization_is_refused_by_name() -> None:
    with pytest.raises(UnknownQuantization, match="half-bit"):
        weighed(LLAMA_8B | {"quantization_config": {"quant_method": "half_bit"}})


def test_an_unknown_quantization_argument_is_refused_by_name() -> None:
    with pytest.raises(UnknownQuantization, match="--quantization half_bit"):
        weighed(LLAMA_8B, quantization="half_bit")


@pytest.mark.parametrize(
    ("config", "tp", "counted"),
    [
        (LLAMA_8B, 1, 16_060_522_496 + 33_554_944),
        (LLAMA_8B, 8, 2_008_031_232 + 33_554_944),
        (LLAMA_1B, 1, 2_471_628_800 + 16_777_472),
        (LLAMA_1B, 2, 1_235_881_984 + 16_777_472),
        (QWEN3_30B_FP8, 1, 31_174_545_792 + 10_486_528),
        (QWEN3_30B_FP8, 8, 3_945_064_832 + 10_486_528),
        (GPT_OSS_20B, 2, 6_998_169_216 + 33_554_816),
        (QWEN25_VL, 4, 4_148_900_736 + 131_727_808),
        (QWEN35_27B, 4, 13_686_305_976 + 34_144_512),
    ],
)
def test_a_rank_holds_what_the_engine_counted(config: dict[str, Any], tp: int, counted: int) -> None:
    ranks = weighed(config, tp).ranks
    assert len(ranks) == tp
    assert ranks[0].resident == pytest.approx(counted, rel=1e-4)


@pytest.mark.parametrize(
    ("settings", "counted"),
    [
        ({"quant_method": "fp8", "activation_scheme": "static"}, 9_081_202_688),
        ({"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": False}, 5_727_854_592),
        ({"quant_method": "gptq", "bits": 8, "group_size": 128, "desc_act": False}, 9_244_778_496),
    ],
)
def test_a_quantized_llama_is_as_large_as_the_engine_counted(settings: dict[str, Any], counted: int) -> None:
    assert weighed(LLAMA_8B | {"quantization_config": settings}).ranks[0].resident == pytest.approx(counted + 33_554_944, rel=1e-4)


def test_awq_on_70b_is_as_large_as_the_engine_counted() -> None:
    large = {"hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 80, "num_attention_heads": 64}
    config = LLAMA_8B | large | {"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True}}
    assert weighed(config, 2).ranks[0].resident == pytest.approx(19_885_211_648 + 33_555_712, rel=1e-4)


def test_tied_embeddings_stand_on_the_first_and_on_the_last_stage() -> None:
    first, last = (rank.resident for rank in weighed(LLAMA_1B, 1, 2).ranks)
    assert first == pytest.approx(1_498_480_640 + 16_777_344, rel=1e-5)
    assert last == pytest.approx(1_498_484_736 + 16_777_344, rel=1e-5)


def test_the_odd_layer_goes_to_the_stage_before_the_last() -> None:
    three = weighed(KIMI_K2, 8, 2)
    assert three.ranks[0].resident == pytest.approx(64_910_609_312 + 16_777_712, rel=2e-3)
    assert three.ranks[8].resident == pytest.approx(64_835_140_416 + 16_777_696, rel=2e-3)


def test_latent_attention_keeps_its_absorbed_copies_beside_the_projection() -> None:
    unquantized = {key: value for key, value in KIMI_K2.items() if key != "quantization_config"}
    without = weighed(unquantized | {"kv_lora_rank": 0, "num_hidden_layers": 1}, 8).ranks[0].resident
    copies = 64 // 8 * (128 + 128) * 512 * 2
    projections = (64 // 8 * (128 + 128) * 512 + 512 * 7168 + 512) * 2
    assert weighed(unquantized | {"num_hidden_layers": 1}, 8).ranks[0].resident - without == copies + projections


def test_a_tower_is_split_or_copied_as_asked() -> None:
    assert weighed(QWEN25_VL, 4, encoder_data=True).ranks[0].resident == pytest.approx(5_161_214_976 + 131_727_808, rel=1e-4)


def test_from_033_on_only_the_first_stage_has_the_tower() -> None:
    before, after = (weighed(QWEN35_27B, 4, 2, version=version).ranks[4].resident for version in ("0.32.0", "0.33.0"))
    assert before == pytest.approx(7_597_503_992 + 34_144_384, rel=1e-4)
    assert after == pytest.approx(7_360_210_624 + 33_554_560, rel=1e-4)


def test_gpt_oss_is_padded_further_where_marlin_runs_it() -> None:
    assert weighed(GPT_OSS_20B, gpu="NVIDIA A100-SXM4-80GB").ranks[0].resident == pytest.approx(14_679_227_520 + 33_554_816, rel=1e-4)


def test_expert_parallel_ranks_hold_whole_experts_and_no_padding() -> None:
    assert weighed(GPT_OSS_20B, 2, experts_parallel=True).ranks[0].resident == pytest.approx(6_883_055_232 + 33_557_888, rel=1e-4)


def test_uneven_experts_go_to_the_first_ranks() -> None:
    ranks = weighed(QWEN3_30B_FP8 | {"num_experts": 126}, 4, experts_parallel=True).ranks
    assert [rank.resident for rank in ranks] == sorted((rank.resident for rank in ranks), reverse=True)
    assert ranks[0].resident > ranks[3].resident


def test_data_parallel_replicas_share_the_experts_but_not_the_rest() -> None:
    alone, shared = (weighed(QWEN3_30B_FP8, 1, dp=dp, experts_parallel=True).ranks[0].resident for dp in (1, 2))
    expert = 3 * 2048 * 768 + 4 * 3 * (2048 // 128) * (768 // 128)
    assert alone - shared == 48 * 64 * expert - 4 * 48 * 128


def test_shared_experts_are_copied_where_ranks_keep_tokens_of_their_own() -> None:
    half, own = (weighed(KIMI_K2, 2, dp=dp, experts_parallel=True) for dp in (1, 2))
    routed = 60 * 96 * (3 * 7168 * 2048 + 4 * 3 * 56 * 16)
    shared = 60 * (3 * 7168 * 1024 + 4 * 3 * 56 * 8)
    assert half.ranks[0].resident - own.ranks[0].resident == routed - shared
    assert own.assumptions[-1] == "shared experts copied to every rank: expert, tensor and data parallelism together"


def test_online_quantization_needs_one_layer_more_while_it_loads() -> None:
    rank = weighed(LLAMA_8B, quantization="fp8").ranks[0]
    layer = 2 * (4096 * (4096 + 2 * 1024) + 4096 * 4096 + 3 * 4096 * 14336 + 2 * 4096)
    assert rank.resident == pytest.approx(9_081_202_688 + 33_554_944, rel=1e-4)
    assert rank.peak == rank.resident + layer


def test_before_015_an_online_quantized_model_stood_on_the_card_in_full_first() -> None:
    found = weighed(LLAMA_8B, quantization="fp8", version="0.13.0")
    assert found.ranks[0].peak > weighed(LLAMA_8B).ranks[0].resident > found.ranks[0].resident
    assert (
        found.assumptions[-1]
        == "the checkpoint is converted after all of it has been loaded: a rank needs up to 15.19 GiB for weights while loading"
    )


def test_a_prequantized_checkpoint_needs_no_more_while_it_loads() -> None:
    rank = weighed(QWEN3_30B_FP8).ranks[0]
    assert rank.peak == rank.resident


def test_the_answer_says_what_it_rests_on() -> None:
    assert weighed(LLAMA_8B).assumptions == ("weights from config.json by architecture, not quantized",)


def test_a_model_that_the_engine_does_not_split_says_so() -> None:
    starcoder = {
        "architectures": ["GPTBigCodeForCausalLM"], "n_embd": 6144, "n_layer": 40, "n_head": 48, "n_inner": 24576, "n_positions": 8192,
        "multi_query": True, "vocab_size": 49152,
    }  # fmt: skip
    assert round(weighed(starcoder, 8, version="0.32.0").ranks[0].resident / 1e9, 1) == 25.2
    assert round(weighed(starcoder, 8, version="0.19.1").ranks[0].resident / 1e9, 1) == 4.1


def test_a_picture_model_takes_its_language_model_from_another_family() -> None:
    wrapped = {
        "architectures": ["LlavaForConditionalGeneration"],
        "text_config": LLAMA_1B | {"tie_word_embeddings": False},
        "vision_config": {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096,
                          "image_size": 336, "patch_size": 14},
    }  # fmt: skip
    bare = weighed(LLAMA_1B | {"tie_word_embeddings": False}).ranks[0].resident
    assert 0.55e9 < weighed(wrapped).ranks[0].resident - bare < 0.65e9


@settings(max_examples=40, deadline=None)
@given(
    heads=st.sampled_from([8, 16, 32]),
    kv=st.sampled_from([1, 2, 8]),
    experts=st.sampled_from([0, 8]),
    method=st.sampled_from([None, {"quant_method": "awq", "bits": 4, "group_size": 64, "zero_point": True}]),
)
def test_more_ranks_never_hold_more_each_and_never_less_together(heads: int, kv: int, experts: int, method: dict[str, Any] | None) -> None:
    config: dict[str, Any] = LLAMA_8B | {
        "hidden_size": 1024, "num_attention_heads": heads, "num_key_value_heads": kv, "intermediate_size": 4096, "num_hidden_layers": 3,
        "head_dim": 64,
    }  # fmt: skip
    if experts:
        config |= {"architectures": ["Qwen3MoeForCausalLM"], "num_experts": experts, "moe_intermediate_size": 1024}
    if method:
        config |= {"quantization_config": method}
    each = [weighed(config, tp).ranks[0].resident for tp in (1, 2, 4, 8)]
    assert each == sorted(each, reverse=True)
    assert all(rank * tp >= each[0] for rank, tp in zip(each, (1, 2, 4, 8), strict=True))
    if kv == 8:
        copied = [(tp * rank - each[0]) / (tp - 1) for rank, tp in zip(each[1:], (2, 4, 8), strict=True)]
        assert copied == [copied[0]] * 3, "what is copied to every rank is the same whatever their number"


@pytest.mark.parametrize(("scaling", "rows"), [
    ({"rope_type": "linear", "factor": 8.0}, 8 * 131072),
    ({"type": "dynamic", "factor": 2.0}, 2 * 131072),
    ({"type": "dynamic", "factor": 1.0, "alpha": 1000.0}, 131072),
    ({"type": "longrope", "original_max_position_embeddings": 4096}, 131072 + 4096),
    ({"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 40960}, 163840),
    ({"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 8192}, 131072),
])  # fmt: skip
def test_the_table_of_positions_is_as_long_as_its_scaling_makes_it(scaling: dict[str, Any], rows: int) -> None:
    plain = weighed(LLAMA_8B | {"max_position_embeddings": 131072, "rope_scaling": None}).ranks[0].resident
    scaled = weighed(LLAMA_8B | {"max_position_embeddings": 131072, "rope_scaling": scaling}).ranks[0].resident
    assert scaled - plain == (rows - 131072) * 128 * 2


def test_only_gemma_3s_layers_without_a_window_have_a_stretched_table() -> None:
    config = {
        "architectures": ["Gemma3ForCausalLM"], "model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240,
        "num_hidden_layers": 34, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "max_position_embeddings": 131072,
    }  # fmt: skip
    linear = {"rope_type": "linear", "factor": 8.0}
    plain = weighed(config).ranks[0].resident
    assert weighed(config | {"rope_scaling": linear}).ranks[0].resident - plain == 7 * 131072 * 256 * 2
    by_kind = {"full_attention": linear, "sliding_attention": {"rope_type": "default"}}
    assert weighed(config | {"rope_parameters": by_kind}).ranks[0].resident - plain == 7 * 131072 * 256 * 2


def test_a_tower_whose_heads_cannot_be_dealt_has_its_attention_copied_and_its_feed_forward_dealt() -> None:
    text = {
        "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 2,
        "num_attention_heads": 8, "num_key_value_heads": 4, "vocab_size": 1024, "max_position_embeddings": 1024,
    }  # fmt: skip
    vision = {"hidden_size": 3200, "intermediate_size": 12800, "num_hidden_layers": 45, "patch_size": 14, "image_size": 448}
    config = {"architectures": ["InternVLChatModel"], "model_type": "internvl_chat", "llm_config": text}
    odd = weighed(config | {"vision_config": vision | {"num_attention_heads": 25}}, 2).ranks[0].resident
    even = weighed(config | {"vision_config": vision | {"num_attention_heads": 20}}, 2).ranks[0].resident
    matrices, biases = 4 * 3200 * 3200, 3 * 3200
    assert odd - even == pytest.approx(45 * (matrices + biases), rel=1e-3)  # two bytes each, of which the other rank would have half


def test_a_model_that_reads_text_only_has_no_tower() -> None:
    whole, text = weighed(QWEN25_VL, 4).ranks[0].resident, weighed(QWEN25_VL, 4, text_only=True).ranks[0].resident
    assert whole - text == pytest.approx(2 * 676e6 / 4, rel=0.05)  # a tower and merger of 676 M parameters, dealt to four ranks
