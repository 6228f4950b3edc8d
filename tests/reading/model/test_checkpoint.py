"""Tensor headers gathered into modules, and what they change in a rank's weights."""

from typing import Any

from bot.domain.tensors import StoredTensor, TensorGrid
from bot.reading.model.checkpoint import stored_modules
from bot.rulebook.models import load_models
from bot.usecases.sizing.weigh import weigh

MODELS = load_models()
SMALL: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"], "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2, "num_attention_heads": 8,
    "num_key_value_heads": 8, "head_dim": 32, "vocab_size": 1024, "max_position_embeddings": 64, "tie_word_embeddings": False,
}  # fmt: skip


def floats(*names: str, elements: int = 256 * 256, dtype: str = "BF16") -> dict[str, StoredTensor]:
    return {name: StoredTensor(dtype, elements, elements * (4 if dtype == "F32" else 2)) for name in names}


def test_index_vectors_that_the_engine_does_not_keep_are_left_out() -> None:
    assert stored_modules(floats("model.layers.0.mlp.up_proj.g_idx"), 2) == {}


def test_weights_scales_and_zeros_of_a_module_are_one() -> None:
    tensors = {
        "model.layers.0.mlp.up_proj.qweight": StoredTensor("I32", 16, 64),
        "model.layers.0.mlp.up_proj.scales": StoredTensor("F16", 8, 16),
    }
    assert stored_modules(tensors, 2) == {"layers.0.mlp.up_proj": 80}


def test_float32_checkpoints_are_loaded_in_the_models_dtype() -> None:
    assert stored_modules(floats("layers.0.mlp.up_proj.weight", elements=10, dtype="F32"), 2) == {"layers.0.mlp.up_proj": 20}


def test_all_experts_of_a_layer_are_one_module() -> None:
    names = ["language_model.model.layers.1.mlp.experts.0.w1.weight", "language_model.model.layers.1.mlp.experts.7.w2.weight"]
    assert stored_modules(floats(*names, elements=4), 2) == {"layers.1.mlp.experts": 16}
    assert stored_modules(floats("layers.1.mlp.experts.gate_up_proj_blocks", elements=4), 2) == {"layers.1.mlp.experts": 8}


def ranks(config: dict[str, Any], tensors: dict[str, StoredTensor] | None, tp: int = 1, **more: Any) -> tuple[int, str]:
    found = weigh(config, MODELS, TensorGrid(tp), engine_version="0.32.0", tensors=tensors, **more)
    return found.ranks[0].resident, found.assumptions[0]


def test_headers_of_an_unquantized_model_change_nothing_but_the_basis() -> None:
    attention = floats(*(f"model.layers.{i}.self_attn.{n}_proj.weight" for i in range(2) for n in "qkvo"))
    bare, headed = ranks(SMALL, None, 2), ranks(SMALL, attention, 2)
    assert bare[0] == headed[0]
    assert bare[1].startswith("weights from config.json by architecture, ")
    assert headed[1].startswith("weights from safetensors headers, placed by architecture, ")


def test_a_matrix_that_is_stored_narrower_than_the_config_says_is_held_so() -> None:
    narrow = {"model.layers.0.self_attn.o_proj.weight": StoredTensor("F8_E4M3", 65536, 65536),
              "model.layers.0.self_attn.o_proj.weight_scale": StoredTensor("F32", 1, 4)}  # fmt: skip
    assert ranks(SMALL, None)[0] - ranks(SMALL, narrow)[0] == 65536 - 4
    assert ranks(SMALL, None, 4)[0] - ranks(SMALL, narrow, 4)[0] == (65536 - 4) // 4


def test_a_fused_matrix_counts_for_its_parts() -> None:
    fused = {"model.layers.0.self_attn.qkv_proj.weight": StoredTensor("F8_E4M3", 3 * 65536, 3 * 65536),
             "model.layers.0.self_attn.qkv_proj.weight_scale": StoredTensor("F32", 1, 4)}  # fmt: skip
    assert ranks(SMALL, None)[0] - ranks(SMALL, fused)[0] == 3 * 65536 - 4


def test_half_of_a_merged_matrix_is_not_taken_for_the_whole() -> None:
    assert ranks(SMALL, floats("model.layers.0.self_attn.q_proj.weight", elements=1))[0] == ranks(SMALL, None)[0]


def test_online_quantization_does_not_keep_what_the_checkpoint_stores() -> None:
    attention = floats(*(f"model.layers.{i}.self_attn.{n}_proj.weight" for i in range(2) for n in "qkvo"))
    assert ranks(SMALL, attention, quantization="fp8") == ranks(SMALL, None, quantization="fp8")
