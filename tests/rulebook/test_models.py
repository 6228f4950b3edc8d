"""Families: a broken file is reported with all its problems."""

from pathlib import Path

import pytest

from bot.rulebook.load import RulebookError
from bot.rulebook.models import Models, UnknownArchitecture, load_models

MODELS = load_models()


def test_no_architecture_belongs_to_two_families() -> None:
    assert len(MODELS.families) >= 80
    assert len(MODELS.by_architecture) >= 150


def folder(tmp_path: Path, **files: str) -> Path:
    models = tmp_path / "models"
    models.mkdir()
    (models / "any.toml").write_text('family = "any"\n[kinds]\nfull = [{ cache = "heads" }]\n[[layers]]\nall = "full"\n')
    for name, text in files.items():
        (models / f"{name}.toml").write_text(text)
    return tmp_path


def problems(tmp_path: Path, **files: str) -> str:
    with pytest.raises(RulebookError) as broken:
        load_models(folder(tmp_path, **files))
    return str(broken.value)


def test_every_problem_is_reported_at_once_with_its_file(tmp_path: Path) -> None:
    told = problems(
        tmp_path,
        a='family = "a"\narchitectures = ["A"]\n[kinds]\nfull = [{ cache = "bucket" }]\n',
        b='family = "b"\narchitectures = ["A"]\n[[layers]]\nall = "sparse"\n',
        c="family = \n",
        d='family = "d"\n',
    )
    assert "models/a.toml: kinds.full: there is no cache 'bucket'; known: heads" in told
    assert "models/b.toml: layers #1: there is no kind 'sparse'" in told
    assert "models/b.toml: A is claimed by a too" in told
    assert "models/c.toml:" in told
    assert "models/d.toml: a family needs architectures or model_types" in told


def test_a_table_that_nothing_reads_and_a_file_of_another_name_are_named(tmp_path: Path) -> None:
    told = problems(tmp_path, a='family = "a"\narchitectures = ["A"]\n[[layer]]\nall = "full"\n', b='family = "c"\narchitectures = ["C"]\n')
    assert "models/a.toml: Object contains unknown field `layer`" in told
    assert "models/b.toml: family = 'c': a file is called like its family" in told


def test_a_cache_reads_only_its_own_attributes_from_known_fields(tmp_path: Path) -> None:
    told = problems(tmp_path, a='family = "a"\narchitectures = ["A"]\n[kinds]\nfull = [{ cache = "heads", colour = 1, window = "w" }]\n')
    assert "heads has no 'colour'" in told
    assert "window = 'w' is not one of [fields]" in told


def test_a_family_that_says_nothing_of_its_tensors_is_named_unless_another_file_weighs_it(tmp_path: Path) -> None:
    told = problems(tmp_path, a='family = "a"\narchitectures = ["A"]\n', b='family = "b"\narchitectures = ["A on 10"]\n')
    assert "models/a.toml: a family needs [weights]" in told
    assert "models/b.toml" not in told


def test_a_layer_rule_names_one_reader(tmp_path: Path) -> None:
    told = problems(tmp_path, a='family = "a"\narchitectures = ["A"]\n[[layers]]\nall = "full"\nevery = "n"\n')
    assert "layers #1: name exactly one of all, list, letters, every, indices, blocks" in told


def test_a_family_takes_from_the_general_file_what_it_does_not_say(tmp_path: Path) -> None:
    models: Models = load_models(folder(tmp_path, a='family = "a"\narchitectures = ["A"]\n[fields]\nheads = "h"\n[weights]\n'))
    family = models.families[models.by_architecture["A"]]
    assert family.layers[0].all == "full"
    assert family.kinds["full"] == [{"cache": "heads"}]


def test_a_model_around_another_has_the_last_word_on_its_tensors(tmp_path: Path) -> None:
    text = 'family = "text"\narchitectures = ["Text"]\n[weights]\nqkv_bias = true\nmlp_bias = true\n'
    around = 'family = "around"\narchitectures = ["Around"]\n[traits]\nlanguage = true\n[weights]\nqkv_bias = false\n'
    models = load_models(folder(tmp_path, text=text, around=around))
    outer, inner = models.find({"architectures": ["Around"]}), models.find({"architectures": ["Text"]})
    assert dict(models.weights(outer, inner, "0.33.0")) == {"qkv_bias": False, "mlp_bias": True}
    assert dict(models.weights(inner, inner, "0.33.0")) == {"qkv_bias": True, "mlp_bias": True}


@pytest.mark.parametrize("config", [
    {"architectures": ["FancyForCausalLM"]},
    {"architectures": ["FancyForCausalLM"], "model_type": "llama"},
    {"model_type": "fancy"},
])  # fmt: skip
def test_a_config_that_names_what_no_file_knows_is_refused_whatever_its_type(config: dict[str, object]) -> None:
    with pytest.raises(UnknownArchitecture, match=r"the architecture (FancyForCausalLM|fancy) is not in rules/models"):
        MODELS.find(config)


def test_a_config_without_names_says_what_to_give() -> None:
    with pytest.raises(UnknownArchitecture, match="names neither `architectures` nor a known `model_type`"):
        MODELS.find({})


def test_the_first_known_name_decides_and_a_type_stands_for_its_class() -> None:
    assert MODELS.find({"architectures": ["FancyForCausalLM", "LlamaForCausalLM"]}).name == "LlamaForCausalLM"
    assert MODELS.find({"model_type": "qwen3_next"}).name == "Qwen3NextForCausalLM"
    assert MODELS.find({"model_type": "qwen2_5_vl"}).name == "qwen2_5_vl"
