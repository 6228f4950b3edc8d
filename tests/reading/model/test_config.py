"""config.json -> shape: nested files, silent fields, patterns of layers, and clear refusals."""

from typing import Any

import pytest

from bot.domain.shape import GatedDelta, Heads, KimiDelta, Latent, Mamba2, ModelShape
from bot.reading.model.config import read_shape
from bot.reading.model.kv_settings import kv_dtype_of, kv_scheme_of
from bot.reading.model.numbers import MissingField, stretched
from bot.rulebook.models import UnknownArchitecture, load_models

MODELS = load_models()
DENSE: dict[str, Any] = {
    "num_hidden_layers": 4, "num_attention_heads": 32, "num_key_value_heads": 8, "hidden_size": 4096, "vocab_size": 32000,
    "max_position_embeddings": 8192,
}  # fmt: skip


def read(architecture: str, **fields: Any) -> ModelShape:
    return read_shape({"architectures": [architecture], **fields}, MODELS)


def windows(shape: ModelShape) -> list[int | None]:
    return [cache.window for layer in shape.layers for cache in layer if isinstance(cache, Heads)]


def test_an_unknown_architecture_is_named() -> None:
    with pytest.raises(UnknownArchitecture, match=r"the architecture BespokeForCausalLM is not in rules/models"):
        read("BespokeForCausalLM", **DENSE)


def test_a_file_that_is_no_models_config_is_said_to_be_none() -> None:
    with pytest.raises(UnknownArchitecture, match=r"config\.json names neither `architectures` nor a known `model_type`"):
        read_shape({"hidden_size": 1}, MODELS)


def test_a_missing_field_that_decides_is_named() -> None:
    with pytest.raises(MissingField, match=r"config\.json of LlamaForCausalLM does not say its layers: none of num_hidden_layers"):
        read("LlamaForCausalLM", **{k: v for k, v in DENSE.items() if k != "num_hidden_layers"})


@pytest.mark.parametrize("layers", [0, -4, 10**12])
def test_a_number_of_layers_that_no_model_has_is_refused(layers: int) -> None:
    with pytest.raises(MissingField, match=rf"config\.json of LlamaForCausalLM says {layers} layers; 1 to 4,096 can be planned"):
        read("LlamaForCausalLM", **{**DENSE, "num_hidden_layers": layers})


def test_no_kv_heads_at_all_are_a_slip() -> None:
    with pytest.raises(MissingField, match=r"says 0 for its kv heads; it must be at least 1"):
        read("LlamaForCausalLM", **{**DENSE, "num_key_value_heads": 0})


def test_a_layer_of_a_strange_kind_is_named() -> None:
    with pytest.raises(MissingField, match="has a layer 'quantum_attention' in layer_types"):
        read("Gemma3ForCausalLM", **DENSE, layer_types=["quantum_attention"] * 4)


def test_a_pattern_that_the_file_does_not_give_is_missing() -> None:
    with pytest.raises(MissingField, match="does not say what kind its layers are"):
        read("GraniteMoeHybridForCausalLM", **DENSE)


def test_kv_heads_and_head_dim_follow_from_other_fields_where_the_file_is_silent() -> None:
    plain = {k: v for k, v in DENSE.items() if k != "num_key_value_heads"}
    assert read("LlamaForCausalLM", **plain).layers[0] == (Heads(32, 128, 128),)
    assert read("LlamaForCausalLM", **{**DENSE, "head_dim": 64}).layers[0] == (Heads(8, 64, 64),)


def test_the_model_type_stands_in_for_a_missing_architecture() -> None:
    assert read_shape({"model_type": "qwen3", **DENSE}, MODELS).layers[0] == (Heads(8, 128, 128),)


def test_a_window_holds_for_all_layers_unless_the_file_switches_it_off() -> None:
    assert windows(read("MistralForCausalLM", **DENSE, sliding_window=4096)) == [4096] * 4
    assert windows(read("MistralForCausalLM", **DENSE, sliding_window=None)) == [None] * 4
    assert windows(read("Qwen2ForCausalLM", **DENSE, sliding_window=4096, use_sliding_window=False)) == [None] * 4
    assert windows(read("Qwen2ForCausalLM", **DENSE, sliding_window=4096, use_sliding_window=True)) == [4096] * 4


def test_gemma_2_and_gpt_oss_alternate_and_begin_with_a_window() -> None:
    assert windows(read("Gemma2ForCausalLM", **DENSE)) == [4096, None, 4096, None]
    assert windows(read("GptOssForCausalLM", **DENSE)) == [128, None, 128, None]


def test_the_first_gemma_3_files_name_no_pattern_and_few_fields() -> None:
    gemma = read("Gemma3ForConditionalGeneration", text_config={"model_type": "gemma3_text", "hidden_size": 3840, "num_hidden_layers": 12})
    assert windows(gemma) == [4096] * 5 + [None] + [4096] * 5 + [None]
    assert gemma.layers[5] == (Heads(4, 256, 256),)
    assert gemma.max_positions == 131_072


def test_a_listed_pattern_wins_over_the_usual_one() -> None:
    kinds = ["full_attention", "sliding_attention", "full_attention", "full_attention"]
    assert windows(read("Gemma3ForCausalLM", **DENSE, sliding_window=512, layer_types=kinds)) == [None, 512, None, None]


def test_gemma_3n_shares_the_caches_of_its_last_layers() -> None:
    assert read("Gemma3nForCausalLM").shared_layers == 15


def test_gemma_4_has_heads_of_two_kinds() -> None:
    fields = {**DENSE, "head_dim": 256, "global_head_dim": 512, "num_global_key_value_heads": 2, "sliding_window": 1024}
    shape = read("Gemma4ForConditionalGeneration", text_config={**fields, "layer_types": ["sliding_attention"] * 3 + ["full_attention"]})
    assert shape.layers[0] == (Heads(8, 256, 256, window=1024),)
    assert shape.layers[3] == (Heads(2, 512, 512),)


def test_gemma_4_may_list_the_sizes_of_its_wide_layers_one_by_one() -> None:
    fields = {**DENSE, "head_dim": 256, "layer_types": ["sliding_attention"] * 3 + ["full_attention"], "sliding_window": 1024}
    wide = {"per_layer_config": {"3": {"head_dim": 512, "num_key_value_heads": 2}}}
    assert read("Gemma4ForConditionalGeneration", text_config={**fields, **wide}).layers[3] == (Heads(2, 512, 512),)


def test_llama_4_attends_in_chunks_but_in_every_fourth_layer() -> None:
    shape = read("Llama4ForConditionalGeneration", text_config={**DENSE, "attention_chunk_size": 8192})
    assert [cache.chunk for layer in shape.layers for cache in layer if isinstance(cache, Heads)] == [8192, 8192, 8192, None]


def test_mixtures_of_cohere_have_a_window_one_token_wider_than_the_file_says() -> None:
    kinds = ["full_attention", *["sliding_attention"] * 3]
    assert windows(read("Cohere2MoeForCausalLM", **DENSE, sliding_window=4096, layer_types=kinds)) == [None, 4097, 4097, 4097]


def test_layers_behind_the_last_whole_stretch_have_attention() -> None:
    fields = {**DENSE, "num_hidden_layers": 7, "head_dim": 128, "layer_group_size": 3, "kv_lora_rank": 512}
    kinds = [type(layer[0]) for layer in read("BailingMoeV3ForCausalLM", **fields).layers]
    assert kinds == [KimiDelta, KimiDelta, Latent, KimiDelta, KimiDelta, Latent, Latent]


def test_layers_that_run_twice_keep_two_caches_and_the_second_has_a_window() -> None:
    assert windows(read("IQuestLoopCoderForCausalLM", **DENSE)) == [None, 64] * 4
    assert len(read("OuroForCausalLM", **DENSE, total_ut_steps=3).layers) == 12


def test_a_model_with_pictures_reads_as_the_language_model_inside_it() -> None:
    inner = {**DENSE, "model_type": "exaone4_5_text", "sliding_window": 4096, "sliding_window_pattern": "LLLG"}
    assert windows(read("Exaone4_5_ForConditionalGeneration", model_type="exaone4_5", text_config=inner)) == [4096, 4096, 4096, None]


def test_falcon_7b_is_multi_query_whatever_its_file_says() -> None:
    fields = {"num_hidden_layers": 1, "num_attention_heads": 71, "num_kv_heads": 71, "hidden_size": 4544, "multi_query": True}
    assert read("FalconForCausalLM", **fields, new_decoder_architecture=False).layers == ((Heads(1, 64, 64),),)
    assert read("FalconForCausalLM", **{**fields, "num_kv_heads": 8}, new_decoder_architecture=True).layers == ((Heads(8, 64, 64),),)


def test_nemotron_nas_names_heads_layer_by_layer() -> None:
    blocks = [{"attention": {"n_heads_in_group": 8, "no_op": False}}, {"attention": {"n_heads_in_group": None, "no_op": True}}]
    shape = read("DeciLMForCausalLM", num_attention_heads=64, hidden_size=8192, num_hidden_layers=2, block_configs=blocks)
    assert shape.layers == ((Heads(8, 128, 128),), ())


def test_letters_name_state_attention_and_feed_forward() -> None:
    shape = read("NemotronHForCausalLM", **DENSE, hybrid_override_pattern="M-*E", mamba_num_heads=64, mamba_head_dim=64, n_groups=8)
    assert shape.layers == ((Mamba2(4096, 8, 64, 64, 128, 4),), (), (Heads(8, 128, 128),), ())
    assert shape.state_dtype == "float32"


def test_a_layer_may_have_the_name_that_transformers_gave_it_later() -> None:
    state = {
        "mamba_n_heads": 48, "mamba_d_head": 64, "mamba_d_state": 128, "mamba_n_groups": 1, "mamba_d_conv": 4, "mamba_expand": 2,
    }  # fmt: skip
    former = read("GraniteMoeHybridForCausalLM", **DENSE, **state, layer_types=["mamba", "mamba", "mamba", "attention"])
    present = read("GraniteMoeHybridForCausalLM", **DENSE, **state, layer_types=["linear_attention"] * 3 + ["full_attention"])
    assert [type(layer[0]) for layer in present.layers] == [Mamba2, Mamba2, Mamba2, Heads]
    assert present.layers == former.layers


def test_listed_indices_name_attention_and_the_first_layer_may_be_1() -> None:
    bamba = read("BambaForCausalLM", **DENSE, attn_layer_indices=[2], mamba_expand=2, mamba_n_heads=128, mamba_d_state=128)
    assert [len(layer) and type(layer[0]).__name__ for layer in bamba.layers] == ["Mamba2", "Mamba2", "Heads", "Mamba2"]
    linear = {"kda_layers": [1, 2, 3], "full_attn_layers": [4], "num_heads": 32, "head_dim": 128, "short_conv_kernel_size": 4}
    kimi = read("KimiLinearForCausalLM", **DENSE, kv_lora_rank=512, linear_attn_config=linear)
    assert kimi.layers == ((KimiDelta(32, 128, 4),),) * 3 + ((Latent(576),),)


def test_a_period_and_an_offset_name_attention() -> None:
    jamba = read("JambaForCausalLM", **{**DENSE, "num_hidden_layers": 8}, mamba_expand=2, attn_layer_period=4, attn_layer_offset=2)
    assert [type(layer[0]).__name__ for layer in jamba.layers] == ["Mamba1", "Mamba1", "Heads", "Mamba1"] * 2


def test_qwen_3_next_attends_in_every_fourth_layer() -> None:
    shape = read("Qwen3NextForCausalLM", **DENSE, head_dim=256)
    assert shape.layers[:3] == ((GatedDelta(16, 32, 128, 128, 4),),) * 3
    assert shape.layers[3] == (Heads(8, 256, 256),)


def test_an_indexer_may_serve_several_layers() -> None:
    fields = {**DENSE, "num_hidden_layers": 8, "kv_lora_rank": 512, "qk_rope_head_dim": 64, "index_head_dim": 128}
    assert [len(layer) for layer in read("DeepseekV32ForCausalLM", **fields).layers] == [2] * 8
    shared = read("GlmMoeDsaForCausalLM", **fields, index_topk_freq=4, index_skip_topk_offset=3)
    assert [len(layer) for layer in shared.layers] == [2, 2, 2, 1, 1, 1, 2, 1]


def test_a_picture_model_is_read_by_its_language_models_family() -> None:
    text = {"architectures": ["DeepseekV3ForCausalLM"], "model_type": "kimi_k2", **DENSE, "kv_lora_rank": 512, "qk_rope_head_dim": 64}
    shape = read("KimiK25ForConditionalGeneration", text_config=text)
    assert (shape.family, shape.architecture) == ("deepseek-v2", "KimiK25ForConditionalGeneration")
    assert shape.layers[0] == (Latent(576),)


def test_whisper_keeps_its_own_tokens_and_the_encoded_sound() -> None:
    shape = read("WhisperForConditionalGeneration", d_model=1280, decoder_layers=1, decoder_attention_heads=20, max_source_positions=1500)
    assert shape.layers == ((Heads(20, 64, 64), Heads(20, 64, 64, cross=True)),)
    assert shape.encoder_tokens == 1500


def test_infinity_is_no_number_that_decides() -> None:
    with pytest.raises(MissingField, match="num_hidden_layers"):
        read("LlamaForCausalLM", **{**DENSE, "num_hidden_layers": float("inf")})


@pytest.mark.parametrize(("scaling", "length"), [
    (None, 8_192),
    ({"rope_type": "llama3", "factor": 8.0}, 8_192),
    ({"type": "linear", "factor": 2.0}, 16_384),
    ({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4_096}, 16_384),
    ({"rope_type": "longrope", "factor": 32.0}, 8_192),
])  # fmt: skip
def test_rope_scaling_stretches_the_context_of_some_types(scaling: Any, length: int) -> None:
    assert stretched(8_192, scaling, "llama") == length


def test_a_stated_length_wins_and_none_is_no_limit() -> None:
    assert read("CohereForCausalLM", **DENSE, model_max_length=131_072).max_positions == 131_072
    assert read("Mamba2ForCausalLM", num_hidden_layers=1, hidden_size=4096, expand=2).max_positions is None


@pytest.mark.parametrize(("inline", "beside", "kept"), [
    (None, {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}}, "fp8_e4m3"),
    ({"producer": {"name": "modelopt"}, "quant_algo": "FP8", "kv_cache_scheme": "FP8"}, None, None),
    ({"quant_method": "modelopt", "kv_cache_scheme": {"dynamic": False, "num_bits": 8, "type": "float"}}, None, "fp8_e4m3"),
    ({"quant_method": "modelopt", "kv_cache_quant_algo": "NVFP4"}, None, "nvfp4"),
    ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, {"quantization": {"kv_cache_quant_algo": "FP8"}}, None),
    ({"quant_method": "fp8"}, None, None),
    ({"quant_method": "compressed-tensors", "kv_cache_scheme": {"num_bits": 8, "type": "float"}}, None, None),
    (None, None, None),
])  # fmt: skip
def test_only_modelopt_checkpoints_ask_for_their_own_kv_cache(inline: Any, beside: Any, kept: str | None) -> None:
    raw = {"quantization_config": inline} if inline else {}
    assert kv_dtype_of(raw, raw, beside) == kept


def test_a_scheme_in_compressed_tensors_is_no_order_but_a_calibration() -> None:
    settings = {"quant_method": "compressed-tensors", "kv_cache_scheme": {"num_bits": 8, "type": "float", "strategy": "tensor"}}
    assert kv_scheme_of({"quantization_config": settings}, {}) == "fp8"
    assert kv_scheme_of({"quantization_config": settings | {"kv_cache_scheme": None}}, {}) is None
    assert kv_scheme_of({"quantization_config": settings | {"quant_method": "fp8"}}, {}) is None
    assert kv_scheme_of({}, {}) is None
