"""`oombot serve` as a process of its own: how it starts, what it refuses, how it ends."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
Oombot = Callable[..., tuple[int, str, str]]


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def started(folder: Path, **given: str) -> "subprocess.Popen[str]":
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"}
    env |= {"OOMBOT_DATABASE_URL": f"sqlite+aiosqlite:///{folder}/oombot.db", "OOMBOT_PORT": str(free_port()), **given}
    code = "import sys; from bot.main import run; sys.exit(run(['serve']))"
    return subprocess.Popen(
        [sys.executable, "-c", code], cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


@pytest.mark.parametrize("port", ["99999", "0", "-1", "²", "eighty"])
def test_a_port_that_no_machine_has_is_a_setting_error_with_the_range(oombot: Oombot, monkeypatch: pytest.MonkeyPatch, port: str) -> None:
    monkeypatch.setenv("OOMBOT_PORT", port)
    status, _, err = oombot("serve")
    assert (status, "OOMBOT_PORT" in err, "from 1 to 65535" in err, "fault" in err) == (2, True, True, False)


def test_sign_in_without_what_it_needs_does_not_start(oombot: Oombot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OOMBOT_PAGE", "sign-in")
    monkeypatch.setenv("SLACK_CLIENT_ID", "1.2")
    status, _, err = oombot("serve")
    assert status == 2
    assert "needs SLACK_CLIENT_SECRET, OOMBOT_PUBLIC_URL, OOMBOT_SECRET_KEY too" in err


def test_an_address_of_another_machine_is_not_answered_with_another_port(tmp_path: Path) -> None:
    bot = started(tmp_path, OOMBOT_HOST="192.0.2.1")
    _, err = bot.communicate(timeout=60)
    assert bot.returncode == 1
    assert "192.0.2.1 is not an address of this machine" in err
    assert "Traceback" not in err


@pytest.mark.parametrize("after", [0.0, 0.5])
def test_ctrl_c_while_the_workers_still_start_ends_without_a_traceback(tmp_path: Path, after: float) -> None:
    bot = started(tmp_path)
    assert bot.stdout is not None
    assert bot.stdout.readline().startswith("oombot is running: http://127.0.0.1:")
    assert bot.stdout.readline().startswith("Paste a log there")
    time.sleep(after)
    os.killpg(bot.pid, signal.SIGINT)  # as a terminal does: the bot and its workers
    _, err = bot.communicate(timeout=60)
    assert (bot.returncode, "Traceback" in err) == (0, False), err


def test_bytes_that_are_no_request_leave_a_line_in_the_log_and_nothing_of_theirs(tmp_path: Path) -> None:
    port = free_port()
    bot = started(tmp_path, OOMBOT_PORT=str(port))
    assert bot.stdout is not None
    bot.stdout.readline()
    for request in (b"GET /history?q=hf_words" + b"a" * 9_000 + b" HTTP/1.1\r\n\r\n", b"GET /\x00hf_words HTTP/1.1\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", port)) as one:
            one.sendall(request)
            assert b" 400 " in one.recv(4096)
    bot.send_signal(signal.SIGTERM)
    _, err = bot.communicate(timeout=60)
    assert (err.count("a request that cannot be read"), "Traceback" in err, "hf_words" in err) == (2, False, False), err


def test_a_signal_before_anything_listens_ends_it_too(tmp_path: Path) -> None:
    bot = started(tmp_path)
    end = time.monotonic() + 60
    while not (tmp_path / "oombot.db").exists() and time.monotonic() < end:
        time.sleep(0.02)
    bot.send_signal(signal.SIGTERM)
    _, err = bot.communicate(timeout=60)
    assert (bot.returncode, "Traceback" in err) == (0, False), err
