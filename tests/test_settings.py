"""Where settings come from, and what a folder's .env may not do."""

from pathlib import Path

import pytest

from bot.settings import NO_TOKEN, SettingsError, checkout, load_settings


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


def test_a_command_from_another_folder_keeps_the_history_of_its_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    home.mkdir()
    elsewhere.mkdir()
    monkeypatch.setattr("bot.settings.checkout", lambda: home)
    monkeypatch.chdir(elsewhere)
    assert load_settings({}).database_url == ""
    written(home, "OOMBOT_DATABASE_URL=sqlite+aiosqlite:///team.db", "OOMBOT_PORT=8090")
    there = load_settings({})
    assert (there.database_url, there.port) == (f"sqlite+aiosqlite:///{home}/team.db", 8090)
    written(elsewhere, "OOMBOT_PORT=8091")
    assert (load_settings({}).port, load_settings({}).database_url) == (8091, there.database_url)
    assert load_settings({"OOMBOT_DATABASE_URL": "sqlite+aiosqlite:///own.db"}).database_url == "sqlite+aiosqlite:///own.db"


def test_a_folder_that_names_a_hub_does_not_get_the_token_of_the_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    home.mkdir()
    elsewhere.mkdir()
    monkeypatch.setattr("bot.settings.checkout", lambda: home)
    monkeypatch.chdir(elsewhere)
    written(home, "HF_TOKEN=hf_home")
    assert load_settings({}).hf_token == "hf_home"
    written(elsewhere, "HF_ENDPOINT=http://e.example")
    assert load_settings({}).hf_token == NO_TOKEN


def test_only_a_folder_with_a_makefile_beside_the_package_is_a_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.settings.__file__", str(tmp_path / "bot" / "settings.py"))
    (tmp_path / "pyproject.toml").touch()
    assert checkout() is None
    (tmp_path / "Makefile").touch()
    assert checkout() == tmp_path


def test_an_absolute_path_and_a_server_stay_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.settings.checkout", lambda: tmp_path)
    monkeypatch.chdir("/")
    for url in ("sqlite+aiosqlite:////data/oombot.db", "postgresql+asyncpg://bot@db/oombot", "sqlite+aiosqlite:///:memory:"):
        written(tmp_path, f"OOMBOT_DATABASE_URL={url}")
        assert load_settings({}).database_url == url
