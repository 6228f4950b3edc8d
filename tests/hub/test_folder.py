"""A model's folder, read without its weights."""

import json
from pathlib import Path

import pytest

from bot.domain.tensors import StoredTensor
from bot.hub.error import HubError
from bot.hub.folder import read_folder
from tests.hub.loopback import safetensors

UP = {"model.layers.0.mlp.up_proj.weight": ("BF16", [8, 4], 64)}


def test_a_folder_without_a_config_says_what_to_name(tmp_path: Path) -> None:
    with pytest.raises(HubError, match=r"^this folder has no config\.json: name the one that holds it"):
        read_folder(tmp_path)


@pytest.mark.parametrize("text", ["[1, 2]", "{"])
def test_a_config_that_is_no_table_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(HubError, match=r"config\.json"):
        read_folder(tmp_path)


@pytest.mark.parametrize(
    "content", [b"", b"GGUF\x03\0\0\0\0\0\0\0", b"\x04\0\0\0\0\0\0\0{{{{", (20).to_bytes(8, "little") + b'{"a": {"dtype": "F32"}}']
)
def test_a_file_that_is_no_safetensors_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(HubError, match=r"model\.safetensors"):
        read_folder(tmp_path)


def test_a_file_that_the_index_names_and_that_is_missing_leaves_no_headers(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}}))
    (tmp_path / "one.safetensors").write_bytes(safetensors(UP))
    assert read_folder(tmp_path).tensors is None


def test_config_with_a_bare_infinity_and_headers_are_read(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"time_step_limit": [0.0, Infinity]}')
    (tmp_path / "model.safetensors").write_bytes(safetensors(UP))
    found = read_folder(tmp_path)
    assert (found.where, found.revision, found.config["time_step_limit"][1]) == ("folder", None, float("inf"))
    assert found.tensors == {"model.layers.0.mlp.up_proj.weight": StoredTensor("BF16", 32, 64)}


@pytest.mark.parametrize("index", ['{"weight_map": [1]}', '{"weight_map": {"a": 1, "b": "x.safetensors"}}', "{}", "[" * 100_000])
def test_an_index_that_names_no_files_is_refused(tmp_path: Path, index: str) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors.index.json").write_text(index)
    with pytest.raises(HubError, match=r"model.safetensors.index.json of .* fetch it again"):
        read_folder(tmp_path)
