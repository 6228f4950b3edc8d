"""What a start says."""

import errno
import socket
from typing import Any

import pytest

from bot.settings import Settings
from bot.web.listening import cannot_listen, where_it_is


@pytest.mark.parametrize(
    ("settings", "error", "says"),
    [
        ({"host": "300.1.1.1"}, socket.gaierror(-2, "Name or service not known"), "Set OOMBOT_HOST to 127.0.0.1"),
        ({"host": "192.0.2.1"}, OSError(errno.EADDRNOTAVAIL, "cannot assign"), "192.0.2.1 is not an address of this machine"),
        ({"port": 80}, OSError(errno.EACCES, "Permission denied"), "from 1024 on"),
        ({"port": 8080}, OSError(errno.EADDRINUSE, "in use"), "for example OOMBOT_PORT=8081."),
        ({"port": 65535}, OSError(errno.EADDRINUSE, "in use"), "for example OOMBOT_PORT=8080."),
        ({}, OSError(errno.ENOBUFS, "No buffer space"), "No buffer space"),
    ],
)
def test_why_there_is_no_address_and_the_setting_that_mends_it(settings: dict[str, Any], error: OSError, says: str) -> None:
    said = cannot_listen(Settings(**settings), error)
    assert says in said
    assert ("OOMBOT_PORT=" in said) == (error.errno in (errno.EACCES, errno.EADDRINUSE))


@pytest.mark.parametrize("settings", [{"host": "0.0.0.0"}, {"page": "off"}])
def test_a_page_that_is_off_is_not_advertised_but_explained(settings: dict[str, Any]) -> None:
    said = "\n".join(where_it_is(Settings(**settings), "here"))
    assert "Paste" not in said
    assert "The page is off, because" in said
    assert "OOMBOT_PAGE=sign-in" in said


def test_an_open_page_and_one_behind_slack_say_where_they_are() -> None:
    assert "http://127.0.0.1:8080/ " in where_it_is(Settings(), "here")[0]
    assert "http://[::1]:8080/ " in where_it_is(Settings(host="::1"), "here")[0]
    assert where_it_is(Settings(page="sign-in", public_url="https://oom.example"), "here")[1].endswith(" https://oom.example/")


@pytest.mark.parametrize(
    ("started", "found", "command"),
    [
        (".venv/bin/oombot", None, ".venv/bin/oombot"),
        ("/usr/bin/oombot", "/usr/bin/oombot", "oombot"),
        ("/opt/app/bot/__main__.py", None, "oombot"),
    ],
)
def test_the_next_step_is_named_as_a_shell_finds_it(monkeypatch: pytest.MonkeyPatch, started: str, found: str | None, command: str) -> None:
    monkeypatch.setattr("sys.argv", [started, "serve"])
    monkeypatch.setattr("shutil.which", lambda name: found)
    assert f"in another terminal: {command} diagnose vllm.log" in where_it_is(Settings(), "x.db")[1]
    assert f"In a terminal: {command} diagnose vllm.log" in where_it_is(Settings(page="off"), "x.db")[2]
