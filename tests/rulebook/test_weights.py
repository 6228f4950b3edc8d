"""The [weights] tables: every file of ours reads, and a mistake is named."""

from pathlib import Path

import pytest

from bot.rulebook.load import RulebookError
from bot.rulebook.models import load_models
from bot.rulebook.weight_options import OPTIONS
from bot.rulebook.weights import check, narrowed


@pytest.fixture
def models(tmp_path: Path) -> Path:
    folder = tmp_path / "models"
    folder.mkdir()
    return folder


def test_a_key_that_nothing_reads_is_named_with_its_file(tmp_path: Path, models: Path) -> None:
    (models / "new.toml").write_text('family = "new"\narchitectures = ["New"]\n[weights]\nqk_nrom = "head"\n')
    with pytest.raises(RulebookError, match=r"new\.toml: \[weights\] has no 'qk_nrom'"):
        load_models(tmp_path)


def test_a_range_that_is_none_is_named() -> None:
    assert list(check({"change": [{"vllm": "0.20 or later"}]})) == [
        "[weights] not a version range: '0.20 or later' (write it as >=0.20,<0.32)"
    ]


def test_an_example_of_another_shape_is_named_with_its_file(tmp_path: Path, models: Path) -> None:
    (models / "new.toml").write_text(
        'family = "new"\narchitectures = ["New"]\n[weights]\n[[weights.example]]\nvllm = "0.32.0"\ntp = "two"\nbytes = 1\nconfig = {}\n'
    )
    (models / "old.toml").write_text("[weights\n")
    with pytest.raises(RulebookError) as broken:
        load_models(tmp_path)
    assert "models/new.toml: [weights] Expected `int`, got `str` - at `$[0].tp`" in str(broken.value)
    assert "models/old.toml: " in str(broken.value)


def test_a_value_of_another_kind_than_the_other_files_give_is_named(tmp_path: Path, models: Path) -> None:
    for name, value in (("a", "true"), ("b", '"yes"'), ("c", "{ full = true }"), ("d", "false")):
        (models / f"{name}.toml").write_text(f'family = "{name}"\nmodel_types = ["{name}"]\n[weights]\nqkv_bias = {value}\n')
    with pytest.raises(RulebookError) as broken:
        load_models(tmp_path)
    assert broken.value.problems == ("models/b.toml: [weights] qkv_bias is a text, and a yes or no everywhere else",)


def test_no_option_is_there_that_no_family_needs() -> None:
    models = load_models()
    tables = [models.general, *(family.weights for family in models.families.values())]
    said = {option for table in tables for one in (table, *table.get("change", ())) for option in one}
    assert set(OPTIONS) - said == set()


def test_every_file_of_ours_reads() -> None:
    assert load_models().by_architecture["LlamaForCausalLM"] == "llama"


def test_a_change_is_laid_over_where_it_holds() -> None:
    table = {"norms": 2, "change": [{"vllm": ">=0.32", "norms": 4}, {"not_gpus": ["H100"], "norms": 6}]}
    assert narrowed(table, "0.31.0", "NVIDIA H100") == {"norms": 2}
    assert narrowed(table, "0.32.0") == {"norms": 4}
    assert narrowed(table, "0.32.0", "NVIDIA A100") == {"norms": 6}
