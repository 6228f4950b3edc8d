"""A model's config and tensor headers from the Hugging Face hub or its cache, pinned to one commit."""

import json
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any

from bot.domain.tensors import Checkpoint, StoredTensor
from bot.hub.faults import no_answer, told
from bot.hub.folder import INDEX, read_json, shards, tensors_in

if TYPE_CHECKING:
    from huggingface_hub import HfApi

PATIENCE = 5
"""Seconds that a hub has to answer at all."""
PARALLEL = 8
"""Headers fetched at once; the largest models have about 160 files."""
PUBLIC = "https://huggingface.co"


@dataclass(frozen=True, slots=True)
class Hub:
    """One hub. `endpoint` and `token` None: as huggingface_hub finds them; `token` False: none is sent. `cache` None: its usual cache.

    `headers`: a folder where headers are kept by commit, so that a model is asked once; None keeps nothing.
    """

    endpoint: str | None = None
    token: str | bool | None = None
    offline: bool = False
    cache: Path | None = None
    headers: Path | None = None

    def checkpoint(self, model: str) -> Checkpoint:
        """config.json, hf_quant_config.json and every tensor's header of a model's newest commit (owner/name). Blocks; HubError."""
        with told(model, self.endpoint or PUBLIC, offline=self.offline):
            _validate(model)
            hub = self if self.offline or self.answers() else replace(self, offline=True)
            path = Path(hub.fetch(model, "config.json"))
            commit = path.parent.name
            where = "cache" if hub.offline else "hub"
            tensors = hub.tensors(model, commit, path.parent)
            return Checkpoint(model, where, commit, read_json(path, model), hub.beside(model, commit), tensors)

    def answers(self) -> bool:
        """Does the hub answer at all? Asked once and briefly: huggingface_hub itself would try for half a minute."""
        from huggingface_hub import get_session

        try:
            get_session().head((self.endpoint or PUBLIC).rstrip("/"), timeout=PATIENCE)
        except no_answer():
            return False
        return True

    def beside(self, model: str, commit: str) -> Mapping[str, Any] | None:
        """hf_quant_config.json, None when the model has none."""
        path = self.fetch_optional(model, "hf_quant_config.json", commit)
        return read_json(Path(path), model) if path else None

    def fetch(self, model: str, name: str, commit: str | None = None) -> str:
        """The path of one small file in the cache, fetched when it is not there; of the newest commit where none is given."""
        from huggingface_hub import hf_hub_download

        return hf_hub_download(
            model, name, revision=commit, endpoint=self.endpoint, token=self.token, cache_dir=self.cache, local_files_only=self.offline
        )

    def fetch_optional(self, model: str, name: str, commit: str) -> str | None:
        """The same, None when the model has no such file."""
        from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError

        try:
            return self.fetch(model, name, commit)
        except EntryNotFoundError as error:
            if isinstance(error, LocalEntryNotFoundError) and not self.offline:
                raise
            return None

    def tensors(self, model: str, commit: str, snapshot: Path) -> Mapping[str, StoredTensor] | None:
        """Headers from the snapshot when its weights are there, from what was kept, else from the hub; None when it has none."""
        here = tensors_in(snapshot) or self.kept(model, commit)
        if here is not None or self.offline:
            return here
        found = self.fetch_headers(model, commit)
        if found is not None:
            self.keep(model, commit, found)
        return found

    def fetch_headers(self, model: str, commit: str) -> Mapping[str, StoredTensor] | None:
        """Headers of every safetensors file by ranged requests; None when the model has no safetensors."""
        from huggingface_hub import HfApi

        api = HfApi(endpoint=self.endpoint, token=self.token)
        index = self.fetch_optional(model, INDEX, commit)
        if index is not None:
            names = shards(Path(index), model)
        elif api.file_exists(model, "model.safetensors", revision=commit):
            names = ["model.safetensors"]
        else:
            return None
        with ThreadPoolExecutor(PARALLEL) as pool:
            files = pool.map(lambda name: _header(api, model, name, commit), names)
            return {name: tensor for file in files for name, tensor in file.items()}

    def kept(self, model: str, commit: str) -> Mapping[str, StoredTensor] | None:
        """Headers kept from before."""
        path = self._kept_at(model, commit)
        if path is None or not path.is_file():
            return None
        return {name: StoredTensor(dtype, elements, size) for name, (dtype, elements, size) in read_json(path, model).items()}

    def keep(self, model: str, commit: str, tensors: Mapping[str, StoredTensor]) -> None:
        """Keeps headers under the commit that they belong to; another process never sees half a file."""
        path = self._kept_at(model, commit)
        if path is None:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as file:
            json.dump({name: [tensor.dtype, tensor.elements, tensor.bytes] for name, tensor in tensors.items()}, file)
        os.replace(file.name, path)

    def _kept_at(self, model: str, commit: str) -> Path | None:
        return None if self.headers is None else self.headers / f"{model.replace('/', '--')}--{commit}.json"


def _validate(model: str) -> None:
    from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]  # public, only not in __all__

    validate_repo_id(model)


def _header(api: "HfApi", model: str, name: str, commit: str) -> Mapping[str, StoredTensor]:
    told = api.parse_safetensors_file_metadata(model, name, revision=commit)
    return {
        tensor: StoredTensor(str(info.dtype), info.parameter_count, info.data_offsets[1] - info.data_offsets[0])
        for tensor, info in told.tensors.items()
    }
