"""Bytes of one stored matrix, and which modules a checkpoint leaves alone."""

import pytest

from bot.budget.quantization import Names, Quantization, Storage


def test_four_bits_with_scales_and_zeros_a_group() -> None:
    storage = Storage("AWQ", bits=4, group=128, zero_bits=4)
    assert storage.matrix(4096, 1024) == 4096 * 1024 // 2 + 32 * 1024 * 2 + 32 * 1024 // 2


def test_blocks_that_do_not_divide_count_as_whole_ones() -> None:
    assert Storage("FP8", bits=8, block=(128, 128), scale_bytes=4).matrix(200, 300) == 200 * 300 + 2 * 3 * 4


def test_every_merged_matrix_has_its_own_scalars() -> None:
    assert Storage("FP8", bits=8, scalars=2).matrix(64, 96, merged=3) == 64 * 96 + 3 * 2 * 4


def test_a_group_of_minus_one_is_the_whole_row() -> None:
    assert Storage("GPTQ", bits=4, group=-1).matrix(512, 64) == 512 * 64 // 2 + 64 * 2


@pytest.mark.parametrize(
    ("entry", "name", "held"),
    [
        ("lm_head", "lm_head", True),
        ("lm_head", "layers.0.self_attn.q_proj", False),
        ("model.layers.3.self_attn*", "layers.3.self_attn.q_proj", True),
        ("model.layers.3.self_attn*", "layers.30.self_attn.q_proj", False),
        ("model.language_model.layers.3.mlp.gate", "layers.3.mlp.gate", True),
        ("model.layers.*.self_attn", "layers.7.self_attn.o_proj", True),
        ("re:.*shared_experts.*", "layers.1.mlp.shared_experts.up_proj", True),
        ("re:.*mlp\\.(gate|up|gate_up|down)_proj.*", "layers.0.mlp.down_proj", True),
        ("re:.*mlp\\.(gate|up|gate_up|down)_proj.*", "layers.1.mlp.experts", False),
        ("*.attn.*", "layers.1.attn.wq_b", True),
        ("model.layers.0", "layers.0.mlp.down_proj", True),
        ("mtp.layers.0*", "layers.0.mlp.down_proj", False),
        ("gate", "layers.1.mlp.gate", True),
        ("mlp.gate", "layers.1.mlp.gate", True),
        ("mlp.gate", "layers.1.mlp.gate_proj", False),
        ("re:.*layers\\.(0|1)\\.mlp.*", "layers.1.mlp.up_proj", True),
        ("gate", "layers.1.mlp.gate_proj", False),
    ],
)
def test_an_entry_holds_what_the_checkpoint_means(entry: str, name: str, held: bool) -> None:
    assert Names.of([entry]).holds(name) is held


def test_what_is_named_apart_wins_over_the_rule() -> None:
    fp8, fp4 = Storage("FP8", bits=8), Storage("NVFP4", bits=4)
    mixed = Quantization("mixed", fp8, fp8, assigned={"layers.0.mlp.experts": fp4})
    assert mixed.of(["layers.0.mlp.experts"], experts=True) is fp4
    assert mixed.of(["layers.1.mlp.experts"], experts=True) is fp8


def test_a_pattern_that_names_layers_is_asked_for_each_layer() -> None:
    assert Names.of(["re:.*layers\\.0\\.mlp.*"]).by_layer
    assert not Names.of(["lm_head", "re:.*shared_experts.*"]).by_layer
