"""Models fetched from a hub on loopback that speaks the real one's protocol."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.domain.tensors import StoredTensor
from bot.hub.error import HubError
from bot.hub.hub import Hub
from tests.hub.loopback import COMMIT, Loopback, safetensors, serving

MODEL = "makers/small-1b"
CONFIG = {"architectures": ["LlamaForCausalLM"], "hidden_size": 64}
TENSORS = {"model.layers.0.mlp.up_proj.weight": ("BF16", [128, 64], 128 * 64 * 2)}


@pytest.fixture
def loopback() -> Iterator[Loopback]:
    files = {(MODEL, "config.json"): json.dumps(CONFIG).encode(), (MODEL, "model.safetensors"): safetensors(TENSORS)}
    with serving(Loopback(files)) as hub:
        yield hub


def hub_at(loopback: Loopback, folder: Path, **more: object) -> Hub:
    return Hub(loopback.url, cache=folder / "cache", headers=folder / "headers", **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("model", ["makers/small/1b", "../etc/passwd", "makers/small 1b", ""])
def test_what_is_no_model_id_is_said_before_anything_is_asked(loopback: Loopback, tmp_path: Path, model: str) -> None:
    with pytest.raises(HubError, match="owner/name"):
        hub_at(loopback, tmp_path).checkpoint(model)
    assert loopback.asked == []


def test_a_model_that_is_not_there_may_also_be_private(loopback: Loopback, tmp_path: Path) -> None:
    with pytest.raises(HubError, match=r"has no model makers/other, or it is private: .* HF_TOKEN"):
        hub_at(loopback, tmp_path).checkpoint("makers/other")


def test_a_gated_model_says_where_its_terms_are(loopback: Loopback, tmp_path: Path) -> None:
    loopback.gated.add(MODEL)
    with pytest.raises(HubError, match=f"{MODEL} is gated: accept its terms at {loopback.url}/{MODEL}, then set HF_TOKEN"):
        hub_at(loopback, tmp_path).checkpoint(MODEL)


def test_an_error_never_holds_the_token(loopback: Loopback, tmp_path: Path) -> None:
    loopback.private.add(MODEL)
    with pytest.raises(HubError) as caught:
        hub_at(loopback, tmp_path, token="hf_secret").checkpoint(MODEL)
    assert "hf_secret" not in str(caught.value)
    assert "Bearer hf_secret" in loopback.tokens


def test_a_model_without_a_config_is_named(loopback: Loopback, tmp_path: Path) -> None:
    loopback.files[("makers/gguf", "model.gguf")] = b""
    with pytest.raises(HubError, match=r"makers/gguf has no config\.json"):
        hub_at(loopback, tmp_path).checkpoint("makers/gguf")


def test_a_config_that_is_not_json_is_named(loopback: Loopback, tmp_path: Path) -> None:
    loopback.files[(MODEL, "config.json")] = b"<html>"
    with pytest.raises(HubError, match=r"config\.json of makers/small-1b is not JSON"):
        hub_at(loopback, tmp_path).checkpoint(MODEL)


def test_a_hub_that_fails_is_named_with_its_answer(loopback: Loopback, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    loopback.broken.add(MODEL)
    with pytest.raises(HubError, match=rf"answered 500 for {MODEL}: try again later"):
        hub_at(loopback, tmp_path).checkpoint(MODEL)


def test_a_hub_that_is_away_is_named(tmp_path: Path) -> None:
    with serving(Loopback()) as gone:
        url = gone.url
    with pytest.raises(HubError, match=f"{url} cannot be reached: check the network or HF_ENDPOINT"):
        Hub(url, cache=tmp_path).checkpoint(MODEL)


def test_offline_asks_nobody_and_says_what_to_do(loopback: Loopback, tmp_path: Path) -> None:
    with pytest.raises(HubError, match="not in the hub's cache and HF_HUB_OFFLINE is set"):
        hub_at(loopback, tmp_path, offline=True).checkpoint(MODEL)
    assert loopback.asked == []


def test_config_and_headers_come_with_the_commit_they_belong_to(loopback: Loopback, tmp_path: Path) -> None:
    found = hub_at(loopback, tmp_path).checkpoint(MODEL)
    assert (found.name, found.where, found.revision, found.config) == (MODEL, "hub", COMMIT, CONFIG)
    assert found.tensors == {"model.layers.0.mlp.up_proj.weight": StoredTensor("BF16", 8192, 16384)}


def test_headers_are_ranged_and_weights_are_never_asked_for(loopback: Loopback, tmp_path: Path) -> None:
    hub_at(loopback, tmp_path).checkpoint(MODEL)
    gets = [(name, wanted) for method, name, wanted in loopback.asked if method == "GET" and name.endswith(".safetensors")]
    assert gets == [("model.safetensors", "bytes=0-100000")]


def test_a_model_in_several_files_gives_the_tensors_of_all(loopback: Loopback, tmp_path: Path) -> None:
    del loopback.files[(MODEL, "model.safetensors")]
    parts = {f"model-0000{i}-of-00002.safetensors": {f"model.layers.{i}.mlp.up_proj.weight": ("F8_E4M3", [4, 4], 16)} for i in (1, 2)}
    index = {"weight_map": {tensor: name for name, tensors in parts.items() for tensor in tensors}}
    loopback.files[(MODEL, "model.safetensors.index.json")] = json.dumps(index).encode()
    loopback.files |= {(MODEL, name): safetensors(tensors) for name, tensors in parts.items()}
    found = hub_at(loopback, tmp_path).checkpoint(MODEL).tensors
    assert found is not None
    assert sorted(found) == ["model.layers.1.mlp.up_proj.weight", "model.layers.2.mlp.up_proj.weight"]


def test_headers_are_asked_for_once_a_commit(loopback: Loopback, tmp_path: Path) -> None:
    first = hub_at(loopback, tmp_path).checkpoint(MODEL).tensors
    loopback.asked.clear()
    assert hub_at(loopback, tmp_path).checkpoint(MODEL).tensors == first
    assert all(method == "HEAD" for method, _, _ in loopback.asked)


def test_a_model_without_safetensors_has_its_config_alone(loopback: Loopback, tmp_path: Path) -> None:
    del loopback.files[(MODEL, "model.safetensors")]
    assert hub_at(loopback, tmp_path).checkpoint(MODEL).tensors is None


def test_quantization_beside_the_config_comes_along(loopback: Loopback, tmp_path: Path) -> None:
    loopback.files[(MODEL, "hf_quant_config.json")] = b'{"quantization": {"quant_algo": "NVFP4"}}'
    assert hub_at(loopback, tmp_path).checkpoint(MODEL).hf_quant_config == {"quantization": {"quant_algo": "NVFP4"}}


def test_what_was_fetched_once_is_there_offline(loopback: Loopback, tmp_path: Path) -> None:
    hub_at(loopback, tmp_path).checkpoint(MODEL)
    loopback.asked.clear()
    found = hub_at(loopback, tmp_path, offline=True).checkpoint(MODEL)
    assert (found.where, found.revision, len(found.tensors or {})) == ("cache", COMMIT, 1)
    assert loopback.asked == []


def test_a_hub_that_goes_away_leaves_what_is_in_the_cache(loopback: Loopback, tmp_path: Path) -> None:
    hub_at(loopback, tmp_path).fetch(MODEL, "config.json")
    with serving(Loopback()) as gone:
        url = gone.url
    found = Hub(url, cache=tmp_path / "cache").checkpoint(MODEL)
    assert (found.where, found.revision, found.config, found.tensors) == ("cache", COMMIT, CONFIG, None)


def test_an_error_never_holds_what_the_endpoint_is_entered_with(tmp_path: Path) -> None:
    with pytest.raises(HubError) as caught:
        Hub("http://user:pa@ss@127.0.0.1:9", cache=tmp_path).checkpoint(MODEL)
    assert "ss@" not in str(caught.value)
    assert "http://127.0.0.1:9" in str(caught.value)


def test_no_token_means_none_is_sent(loopback: Loopback, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_the_users_own")
    hub_at(loopback, tmp_path, token=False).checkpoint(MODEL)
    assert set(loopback.tokens) <= {None, ""}
