"""Families that no engine was seen to count: parameters by hand, matrix by matrix as vLLM's classes make them."""

from typing import Any

import pytest

from bot.domain.tensors import TensorGrid
from bot.reading.model.config import read_shape
from bot.reading.model.numbers import MissingField
from bot.rulebook.models import load_models
from bot.usecases.sizing.question import load_sizing
from bot.usecases.sizing.size import size
from bot.usecases.sizing.weigh import weigh

PANGU: dict[str, Any] = {
    "architectures": ["PanguProMoEV2ForCausalLM"], "hidden_size": 2560, "num_hidden_layers": 4, "num_attention_heads": 32,
    "num_key_value_heads": 8, "qk_nope_dim": 64, "qk_rope_dim": 64, "v_channels": 96, "param_sink_number": 128, "n_routed_experts": 8,
    "n_shared_experts": 1, "first_k_dense_replace": 1, "intermediate_size": 1000, "moe_intermediate_size": 256, "vocab_size": 1024,
    "max_position_embeddings": 4096, "sandwich_norm": True,
}  # fmt: skip
MIMO: dict[str, Any] = {
    "architectures": ["MiMoV2OmniForCausalLM"], "hidden_size": 256, "num_hidden_layers": 1, "num_attention_heads": 4,
    "num_key_value_heads": 4, "head_dim": 64, "v_head_dim": 64, "swa_head_dim": 64, "intermediate_size": 512, "vocab_size": 64,
    "max_position_embeddings": 128,
    "hybrid_layer_pattern": [0], "vision_config": {
        "depth": 2, "hidden_size": 64, "intermediate_size": 96, "num_heads": 4, "num_key_value_heads": 2, "qk_channels": 32,
        "kv_channels": 24, "spatial_merge_size": 2, "temporal_patch_size": 2, "patch_size": 4, "out_hidden_size": 256, "use_sink": True,
    },
    "audio_config": {
        "speech_vocab_size": "9-5", "input_local_dim": 32, "input_local_intermediate_size": 48, "input_local_layers": 3, "group_size": 4,
        "out_hidden_size": 256,
    },
}  # fmt: skip
VOXTRAL: dict[str, Any] = {
    "architectures": ["VoxtralRealtimeForConditionalGeneration"], "downsample_factor": 4, "dtype": "bfloat16",
    "text_config": {
        "model_type": "voxtral_realtime_text", "hidden_size": 3072, "intermediate_size": 9216, "num_hidden_layers": 26, "head_dim": 128,
        "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 131072, "max_position_embeddings": 131072,
        "sliding_window": 8192, "tie_word_embeddings": True,
    },
    "audio_config": {
        "hidden_size": 1280, "intermediate_size": 5120, "num_hidden_layers": 32, "num_attention_heads": 32, "head_dim": 64,
        "num_mel_bins": 128, "sliding_window": 750,
    },
}  # fmt: skip
PARSE: dict[str, Any] = {
    "architectures": ["NemotronParseForConditionalGeneration"], "torch_dtype": "bfloat16", "image_size": [2048, 1648],
    "max_sequence_length": 9000,
    "decoder": {"d_model": 1024, "decoder_layers": 10, "decoder_attention_heads": 16, "decoder_ffn_dim": 4096, "vocab_size": 52352},
    "encoder": {"patch_size": 16, "max_resolution": 2048, "args": {"model": "vit_huge_patch16_224"}},
}  # fmt: skip
TRANSCRIBE: dict[str, Any] = {
    "architectures": ["CohereAsrForConditionalGeneration"], "torch_dtype": "bfloat16", "head": {"num_classes": 16384, "hidden_size": 1024},
    "transf_decoder": {"config_dict": {
        "hidden_size": 1024, "num_layers": 8, "num_attention_heads": 8, "inner_size": 4096, "max_sequence_length": 1024,
    }},
    "encoder": {
        "n_layers": 48, "d_model": 1280, "n_heads": 8, "ff_expansion_factor": 4, "conv_kernel_size": 9, "subsampling_factor": 8,
        "subsampling_conv_channels": 256, "feat_in": 128,
    },
}  # fmt: skip
CROSSED = 2 * (4 * 1024 * 1024 + 4 * 1024) + 2 * 1024 * 4096 + 4096 + 1024 + 3 * 2 * 1024
PARSE_PARTS = (
    10 * CROSSED + 2 * 52352 * 1024 + 2 * 2 * 1024,
    32 * (12 * 1280 * 1280 + 9 * 1280 + 4 * 1280) + 3 * 256 * 1280 + (128 * 128 + 16) * 1280,
    1280 * 1024 + 1024 + 4 * 1024 * 1024 + 3 * 2 * 1024 + 3840 * 1024 + 1024,
)  # the decoder, RADIO, what leads out of it
TRANSCRIBE_PARTS = (
    8 * CROSSED + 2 * 16384 * 1024 + 1024 * 1024 + 2 * 2 * 1024,
    48 * (24 * 1280 * 1280 + 2 * (5120 + 1280) + 4 * 1280 + 3 * 1280 + 2 * 1280 + (9 + 5) * 1280 + 10 * 1280),
    30 * 256 + 2 * (256 * 256 + 256) + 256 * 16 * 1280 + 1280 + 1280 * 1024 + 1024,
)  # the decoder, 48 layers of the conformer, its ends
PANGU_PARTS = (
    4 * (2560 * (32 * 128 + 8 * 128 + 8 * 96) + 32 * 96 * 2560 + 128 + 128 * 8 * (128 + 96) + 4 * 2560),
    3 * 2560 * 1000,
    3 * (2560 * 8 + 8 * 3 * 2560 * 256 + 3 * 2560 * 256),
    2 * 1024 * 2560 + 2560 + 4096 * 64,
)  # attention with norms, the dense feed-forward, experts, ends
MIMO_TEXT = 4 * 256 * 256 + 3 * 256 * 512 + 2 * 256 + 2 * 64 * 256 + 256 + 2 * 128 * 64
MIMO_EYE = (
    2 * (64 * (4 * 32 + 2 * 32 + 2 * 24) + 240 + 4 * 24 * 64 + 64 + 3 * 64 * 96 + 2 * 96 + 64 + 2 * 64 + 4)
    + 3 * 2 * 16 * 64 + 64 + 256 * 256 + 256 * 256 + 8192 * 16
)  # fmt: skip
MIMO_EAR = (9 + 5 + 151936) * 32 + 3 * (4 * 32 * 32 + 3 * 32 + 3 * 32 * 48 + 2 * 32) + 4 * 32 * 256

VOXTRAL_TEXT = 26 * (3072 * (32 + 8 + 8 + 32) * 128 + 3 * 3072 * 9216 + 2 * 3072 + 2 * 3072 * 32) + 131072 * 3072 + 3072 + 131072 * 128
VOXTRAL_EAR = (
    32 * (4 * 1280 * 2048 + 3 * 2048 + 1280 + 3 * 1280 * 5120 + 1280 + 2 * 1280)
    + 3 * 128 * 1280 + 1280 + 3 * 1280 * 1280 + 1280 + 1280 + 5120 * 3072 + 3072 * 3072 + 4 * 131072 * 64
)  # fmt: skip


def resident(config: dict[str, Any], tp: int = 1, **more: Any) -> int:
    return weigh(config, load_models(), TensorGrid(tp), engine_version="0.33.0", **more).ranks[0].resident


@pytest.mark.parametrize(
    ("config", "parameters"),
    [
        (PANGU, sum(PANGU_PARTS)),
        (MIMO, MIMO_TEXT + MIMO_EYE + MIMO_EAR),
        (PARSE, sum(PARSE_PARTS)),
        (TRANSCRIBE, sum(TRANSCRIBE_PARTS)),
        (VOXTRAL, VOXTRAL_TEXT + VOXTRAL_EAR),
        ({name: value for name, value in MIMO.items() if name != "audio_config"}, MIMO_TEXT + MIMO_EYE),
    ],
)
def test_a_model_has_the_parameters_of_its_classes(config: dict[str, Any], parameters: int) -> None:
    assert resident(config) == 2 * parameters


def test_what_is_left_out_of_an_ear_is_said() -> None:
    said = weigh(MIMO, load_models(), TensorGrid(), engine_version="0.33.0").assumptions
    assert any("sound tokenizer" in one for one in said)


def test_an_ear_that_hears_word_by_word_keeps_its_own_window_beside_the_text_of_the_model() -> None:
    question = {"config": VOXTRAL, "engine_version": "0.33.0", "gpu": "H100-80GB", "max_model_len": 45000, "max_num_batched_tokens": 2048}
    kv = size(load_sizing(), question).document["kv"]
    page = 16 * 32 * 4 * 2 * 64 * 2  # a block of an ear's layer; eight times as many tokens of the text fill one
    text, ear = -(-(8192 - 1 + 4096) // 128) + 1, -(-(750 - 1 + 4096) // 16) + 1
    assert kv["request_bytes"] == (text + ear) * 32 * page


@pytest.mark.parametrize("layers", [0, 10**9])
def test_an_ear_of_as_many_layers_as_no_model_has_is_refused(layers: int) -> None:
    config = {**VOXTRAL, "audio_config": {**VOXTRAL["audio_config"], "num_hidden_layers": layers}}
    with pytest.raises(MissingField, match=f"says {layers} layers; 1 to 4,096 can be planned"):
        read_shape(config, load_models())


@pytest.mark.parametrize(("config", "layers", "seen"), [(PARSE, 10, 128 * 25 + 1), (TRANSCRIBE, 8, 437)])
def test_what_was_seen_or_heard_is_kept_once_and_no_token_more(config: dict[str, Any], layers: int, seen: int) -> None:
    question = {"config": config, "engine_version": "0.33.0", "gpu": "H100-80GB", "max_num_batched_tokens": 256, "max_num_seqs": 8}
    kv = size(load_sizing(), question | {"max_model_len": 256}).document["kv"]
    assert kv["request_bytes"] == (256 // 16 + -(-seen // 16)) * 16 * layers * 2 * 1024 * 2
