"""Where each piece of a model goes, in models small enough to count by hand."""

import pytest

from bot.budget.quantization import Quantization, Storage
from bot.budget.weights import weights_per_rank
from bot.domain.tensors import Experts, Linear, ModelTensors, Part, Plain, Stretch, Table, TensorGrid, Unplaceable, whole

UP = Linear(("mlp.up_proj",), whole(8), (Part(32),))
NORM = Plain((whole(8),))


def model(*modules: Linear | Experts | Plain, layers: int = 1, stretches: tuple[Stretch, ...] = ()) -> ModelTensors:
    return ModelTensors((modules,) * layers, stretches)


def ranks(tensors: ModelTensors, quantization: Quantization | None = None, **grid: int | bool) -> list[int]:
    return [rank.resident for rank in weights_per_rank(tensors, quantization or Quantization(), TensorGrid(**grid)).ranks]  # type: ignore[arg-type]


def test_columns_that_do_not_divide_are_refused() -> None:
    with pytest.raises(Unplaceable, match=r"mlp\.up_proj: 32 is not divisible by 3"):
        ranks(model(UP), tp=3)


def test_kv_heads_cannot_be_copied_to_an_uneven_number_of_ranks() -> None:
    with pytest.raises(Unplaceable, match="2 heads can be copied evenly to a multiple of 2 ranks, not to 5"):
        ranks(model(Linear(("k",), whole(8), (Part(2, 4, "heads"),))), tp=5)


def test_a_column_is_dealt_and_a_norm_is_copied() -> None:
    assert ranks(model(UP, NORM), tp=4) == [8 * 8 * 2 + 8 * 2] * 4


def test_kv_heads_are_copied_when_there_are_more_ranks() -> None:
    key = Linear(("k",), whole(8), (Part(2, 4, "heads"),))
    assert ranks(model(key), tp=8) == [4 * 8 * 2] * 8


def test_a_table_is_padded_to_64_rows_before_it_is_dealt() -> None:
    table = Stretch("first", (Table("embed_tokens", 100, 8),))
    assert ranks(model(stretches=(table,)), tp=2) == [64 * 8 * 2] * 2


def test_a_table_that_padding_does_not_help_is_refused() -> None:
    with pytest.raises(Unplaceable, match="128 is not divisible by 3"):
        ranks(model(stretches=(Stretch("first", (Table("embed_tokens", 100, 8),)),)), tp=3)


def test_ends_stand_where_they_belong() -> None:
    ends = (Stretch("first", (NORM,)), Stretch("last", (NORM, NORM)), Stretch("every", (NORM,)))
    assert ranks(model(UP, layers=4, stretches=ends), pp=2) == [2 * 512 + 2 * 16, 2 * 512 + 3 * 16]


def test_a_copy_for_the_last_of_several_stages_is_not_made_on_one() -> None:
    ends = (Stretch("last of several", (NORM,)),)
    assert ranks(model(layers=2, stretches=ends)) == [0]
    assert ranks(model(layers=2, stretches=ends), pp=2) == [0, 16]


def test_experts_are_cut_or_dealt_whole() -> None:
    experts = Experts("mlp.experts", 4, 8, 16)
    assert ranks(model(experts), tp=2) == [4 * 3 * 8 * 8 * 2] * 2
    assert ranks(model(experts), tp=2, experts_parallel=True) == [2 * 3 * 8 * 16 * 2 + 4 * 4] * 2


def test_blocks_are_cut_down_until_they_divide_an_expert() -> None:
    block = Storage("FP8", bits=8, block=(128, 128), scale_bytes=4)
    cut = ranks(model(Experts("mlp.experts", 1, 256, 768)), Quantization("FP8", block, block), tp=4)
    assert cut[0] == 3 * 256 * 192 + 4 * (2 * 3 * 4 + 4 * 3)


def test_a_tower_whose_heads_do_not_divide_is_copied() -> None:
    tower = Stretch("every", (Linear(("tower",), whole(8), (Part(6, 2),), quantized=False),), encoder=True)
    assert ranks(model(stretches=(tower,)), tp=4) == [6 * 2 * 8 * 2] * 4


def test_layers_that_a_setting_names_are_weighed_apart() -> None:
    from bot.budget.quantization import Names

    half = Storage("FP8", bits=8)
    quantization = Quantization("FP8", half, half, Names.of(["model.layers.0.mlp.up_proj"]))
    assert ranks(model(UP, layers=3), quantization) == [512 + 256 + 256]
