"""What one forward pass moves, from config.json."""

from typing import Any

from bot.domain.overheads import ForwardShape
from bot.reading.model.config import read_shape
from bot.reading.model.forward_shape import forward_shape
from bot.rulebook.model_names import load_model_names
from bot.usecases.sizing.question import load_sizing


def shape_of(name: str, **more: Any) -> ForwardShape:
    named = load_model_names().find(name)
    assert named is not None
    config = {**named.config, **more}
    return forward_shape(config, read_shape(config, load_sizing().models, None))


def test_a_text_model_has_no_tower_and_no_latents() -> None:
    assert shape_of("llama-3.1-8b") == ForwardShape(4096, 14336, 128256, 32, expert_intermediate=14336)


def test_experts_without_a_width_of_their_own_have_the_models() -> None:
    shape = shape_of("gpt-oss-120b")
    assert (shape.experts_per_token, shape.expert_intermediate) == (4, 2880)


def test_latents_are_projected_up_for_every_head() -> None:
    assert shape_of("deepseek-v3").context_bytes == 128 * (128 + 128) * 2


def test_an_indexers_latents_are_not_projected_up() -> None:
    assert shape_of("minimax-m2.5").context_bytes == 0


def test_hyper_connections_run_several_hidden_states_beside_each_other() -> None:
    assert (shape_of("deepseek-v4-flash").streams, shape_of("deepseek-v3").streams) == (4, 1)


def test_a_tower_with_a_fixed_picture_counts_its_patches_and_a_merging_one_its_most() -> None:
    assert shape_of("gemma-3-27b").vision == (1152, 4304, 64 * 64)
    assert shape_of("qwen3.5-27b").vision == (1152, 4304, 65536)


def test_a_tower_that_says_nothing_of_its_width_is_left_out() -> None:
    assert shape_of("gemma-3-27b", vision_config={"model_type": "x"}).vision is None
