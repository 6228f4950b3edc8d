"""A folder with a model's files, a snapshot in the hub's cache included, read without its weights."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bot.domain.foreign import foreign_json
from bot.domain.tensors import Checkpoint, StoredTensor
from bot.hub.error import HubError
from bot.hub.headers import read_header

INDEX = "model.safetensors.index.json"
LARGEST = 64_000_000
"""Bytes of the largest JSON file that is read; mixed quantization lists run to a few megabytes."""


def read_folder(folder: Path) -> Checkpoint:
    """config.json and headers of the files in `folder`. HubError, which calls it “this folder”, when no config.json is usable."""
    name = "this folder"
    if not (folder / "config.json").is_file():
        raise HubError(f"{name} has no config.json: name the one that holds it, or a model id as owner/name")
    config = read_json(folder / "config.json", name)
    beside = folder / "hf_quant_config.json"
    quantization = read_json(beside, name) if beside.is_file() else None
    return Checkpoint(str(folder), "folder", None, config, quantization, tensors_in(folder))


def tensors_in(folder: Path) -> Mapping[str, StoredTensor] | None:
    """Tensors of all safetensors files that the index names, else of all there are; None when a file is missing or there is none."""
    index = folder / INDEX
    names = shards(index, folder.name) if index.is_file() else sorted(path.name for path in folder.glob("*.safetensors"))
    files = [folder / name for name in names]
    if not files or not all(path.is_file() for path in files):
        return None
    return {name: tensor for path in files for name, tensor in read_header(path).items()}


def shards(index: Path, name: str) -> list[str]:
    """The files that an index names. HubError when it has no table of them."""
    placed = read_json(index, name).get("weight_map")
    if not isinstance(placed, dict) or not all(isinstance(file, str) for file in placed.values()):
        raise HubError(f"{index.name} of {name} has no weight_map from tensors to files; fetch it again")
    return sorted(set(placed.values()))


def read_json(path: Path, name: str) -> Mapping[str, Any]:
    """A JSON table from a file. HubError when it is too large or none."""
    with path.open("rb") as file:
        return parsed_json(file.read(LARGEST + 1), f"{path.name} of {name}")


def parsed_json(data: bytes, what: str) -> Mapping[str, Any]:
    """A JSON table from what was read, at most one byte beyond the largest. HubError when it is too large or none."""
    if len(data) > LARGEST:
        raise HubError(f"{what} is larger than {LARGEST // 1_000_000} MB; that is no model's config")
    try:
        table = foreign_json(data.decode("utf-8"))
    except ValueError as error:
        raise HubError(f"{what} is not JSON ({error}); fetch it again or paste the right file") from error
    if not isinstance(table, dict):
        raise HubError(f"{what} is not a JSON object; give the model's own file")
    return table
