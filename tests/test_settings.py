"""Where settings come from, and what a folder's .env may not do."""

from pathlib import Path

import pytest

from bot.settings import NO_TOKEN, SettingsError, load_settings


def written(folder: Path, *lines: str) -> Path:
    path = folder / ".env"
    path.write_text("\n".join(lines))
    return path


def test_a_number_out_of_range_names_its_variable(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="OOMBOT_PORT is '99999'"):
        load_settings({"OOMBOT_PORT": "99999"}, tmp_path / "none")


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, "OOMBOT_PORT=1", "OOMBOT_HOST=::1")
    settings = load_settings({"OOMBOT_PORT": "2"}, path)
    assert (settings.port, settings.host) == (2, "::1")


def test_a_hub_that_a_folder_names_never_gets_the_users_own_token(tmp_path: Path) -> None:
    path = written(tmp_path, "HF_ENDPOINT=http://elsewhere.example")
    assert load_settings({"HF_TOKEN": "hf_own"}, path).hf_token == NO_TOKEN
    assert load_settings({}, path).hf_token == NO_TOKEN
    assert load_settings({"HF_TOKEN": "hf_own"}, written(tmp_path, "HF_ENDPOINT=http://e.example", "HF_TOKEN=hf_its")).hf_token == "hf_its"


def test_a_hub_that_the_environment_names_gets_the_users_token(tmp_path: Path) -> None:
    path = written(tmp_path, "HF_ENDPOINT=http://elsewhere.example")
    assert load_settings({"HF_TOKEN": "hf_own", "HF_ENDPOINT": "http://mirror.example"}, path).hf_token == "hf_own"
    assert load_settings({}, tmp_path / "none").hf_token is None
