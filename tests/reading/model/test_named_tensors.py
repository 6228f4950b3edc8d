"""Checkpoints of architectures that no file knows, placed by what their tensors are called."""

from typing import Any

import pytest

from bot.domain.tensors import StoredTensor, TensorGrid
from bot.reading.model.tensor_fields import MissingField
from bot.rulebook.weights import UnknownWeights, load_weights
from bot.usecases.sizing.weigh import weigh

RULES = load_weights()
FANCY: dict[str, Any] = {"architectures": ["FancyForCausalLM"], "num_hidden_layers": 2, "num_attention_heads": 8, "num_key_value_heads": 2}


def tensors(**sizes: int) -> dict[str, StoredTensor]:
    return {name.replace("__", "."): StoredTensor("BF16", size, 2 * size) for name, size in sizes.items()}


LAYERS = tensors(
    model__layers__0__self_attn__q_proj__weight=64,
    model__layers__0__self_attn__k_proj__weight=16,
    model__layers__0__input_layernorm__weight=8,
    model__layers__1__mlp__experts__0__up_proj__weight=32,
    model__layers__2__mtp__eh_proj__weight=1000,
)
ENDS = tensors(model__embed_tokens__weight=80, model__norm__weight=8, lm_head__weight=80, model__visual__patch_embed__weight=40)


def ranks(told: dict[str, StoredTensor], tp: int = 1, pp: int = 1, **config: Any) -> list[int]:
    found = weigh(FANCY | config, RULES, TensorGrid(tp, pp), engine_version="0.33.0", tensors=told)
    return [rank.resident for rank in found.ranks]


def test_without_headers_the_architecture_is_refused() -> None:
    with pytest.raises(UnknownWeights, match="FancyForCausalLM"):
        weigh(FANCY, RULES, TensorGrid(), engine_version="0.33.0")


def test_a_config_that_does_not_count_its_layers_is_refused() -> None:
    with pytest.raises(MissingField, match="num_hidden_layers"):
        ranks(LAYERS, num_hidden_layers=None)


def test_drafter_layers_beyond_the_models_own_are_left_out() -> None:
    assert ranks(LAYERS) == [2 * (64 + 16 + 8 + 32)]


def test_matrices_are_dealt_and_norms_copied() -> None:
    assert ranks(LAYERS, 2) == [2 * (32 + 8 + 8 + 16)] * 2


def test_keys_are_copied_when_there_are_more_ranks_than_heads() -> None:
    assert ranks(tensors(model__layers__0__self_attn__k_proj__weight=16), 4) == [2 * 8] * 4


def test_ends_stand_on_their_stages_and_towers_on_all() -> None:
    assert ranks(ENDS, 1, 2) == [2 * (80 + 40), 2 * (8 + 80 + 40)]


def test_the_answer_says_that_names_decided() -> None:
    found = weigh(FANCY, RULES, TensorGrid(), engine_version="0.33.0", tensors=LAYERS)
    assert found.assumptions[0].startswith("weights from safetensors headers, placed by name, ")
    assert "no file in rules/models says how this architecture is made" in found.assumptions[1]
