"""rules/architectures.toml: which releases have a class of their own for a model."""

from pathlib import Path

import pytest

from bot.rulebook.architectures import load_architectures
from bot.rulebook.load import RulebookError
from bot.rulebook.models import load_models


def test_a_model_that_every_release_has_raises_no_doubt() -> None:
    assert load_architectures().doubt("LlamaForCausalLM", "0.33.0") is None
    assert load_architectures().doubt("BespokeForCausalLM", "0.33.0") is None


@pytest.mark.parametrize(("architecture", "version", "why"), [
    ("BaichuanForCausalLM", "0.23.0", None),
    ("BaichuanForCausalLM", "0.24.0", "0.23.0 was the last that had"),
    ("HYV4ForCausalLM", "0.33.0rc1", None),
    ("HYV4ForCausalLM", "0.19.1", "0.28.0 had none yet"),
])  # fmt: skip
def test_a_release_without_the_models_class_is_said_to_be_one(architecture: str, version: str, why: str | None) -> None:
    doubt = load_architectures().doubt(architecture, version)
    assert doubt is None if why is None else f"{architecture} has no class of its own in vLLM {version} ({why})" in str(doubt)


def test_every_architecture_in_it_has_a_family() -> None:
    known, listed = load_models().by_architecture, load_architectures()
    assert set(listed.last) | set(listed.not_yet) <= set(known)


def test_a_release_that_is_none_is_reported(tmp_path: Path) -> None:
    (tmp_path / "architectures.toml").write_text('[last]\n"soon" = ["X"]\n[not_yet]\n')
    with pytest.raises(RulebookError, match=r"architectures\.toml: 'soon' is no release"):
        load_architectures(tmp_path)
