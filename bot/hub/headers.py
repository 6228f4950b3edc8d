"""Headers of safetensors files: names, types and sizes of tensors, never a tensor."""

from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

from bot.domain.foreign import foreign_json
from bot.domain.tensors import StoredTensor
from bot.hub.error import HubError

LARGEST = 100_000_000
"""Bytes of the largest header that the format's own readers accept."""


def read_header(path: Path) -> Mapping[str, StoredTensor]:
    """The tensors of one file. HubError when it is no safetensors file."""
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        if not 2 <= size <= LARGEST:
            raise HubError(f"{path.name} is no safetensors file: its header would be {size} bytes long; fetch it again")
        text = file.read(size)
    try:
        return parse_header(foreign_json(text))
    except (ValueError, KeyError, TypeError) as error:
        raise HubError(f"{path.name} has a broken safetensors header; fetch it again") from error


def parse_header(header: Mapping[str, Any]) -> Mapping[str, StoredTensor]:
    """A parsed header as tensors; its `__metadata__` is left out."""
    return {name: _tensor(told) for name, told in header.items() if name != "__metadata__"}


def _tensor(told: Mapping[str, Any]) -> StoredTensor:
    start, end = told["data_offsets"]
    return StoredTensor(str(told["dtype"]), prod(told["shape"]), int(end) - int(start))
