"""`oombot serve` as a process of its own: how it starts, what it refuses, how it ends."""

import asyncio
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import closing, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from bot import serve
from bot.domain.incident import Contribution, Origin
from bot.settings import Settings
from bot.store.store import Store, open_store
from bot.usecases.desk import Desk
from bot.usecases.judge import judged_here

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


BACK = "UPDATE incidents SET updated = updated - 1000000 * 24 * 3600 * ? WHERE number = ?"
"""So many days older."""


async def incident(store: Store) -> int:
    named = await store.append(Origin("T1", None, "C1", "1.1"), [Contribution("paste", "CUDA out of memory")], None)
    return int(named.removeprefix("D-"))


async def text_of(store: Store, number: int) -> str | None:
    kept = await store.load("T1", str(number))
    assert kept is not None
    return kept.contributions[0].text


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    end = time.monotonic() + 60
    while not await holds():
        assert time.monotonic() < end
        await asyncio.sleep(0.05)


async def test_evidence_past_its_days_is_erased_at_the_start_and_what_is_younger_stays(tmp_path: Path) -> None:
    store = await open_store(f"sqlite+aiosqlite:///{tmp_path}/oombot.db")
    past, within = await incident(store), await incident(store)
    with closing(sqlite3.connect(tmp_path / "oombot.db", isolation_level=None)) as file:
        file.executemany(BACK, [(31, past), (29, within)])
    bot = started(tmp_path, OOMBOT_RETENTION_DAYS="30")

    async def erased() -> bool:
        return await text_of(store, past) is None

    try:
        await until(erased)
        assert await text_of(store, within) == "CUDA out of memory"
    finally:
        bot.send_signal(signal.SIGTERM)
        await asyncio.to_thread(bot.communicate, timeout=60)
        await store.close()


async def test_each_day_it_is_done_again_also_after_a_day_on_which_the_database_could_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(serve, "ONE_DAY", 0.1)
    monkeypatch.setattr("bot.store.engine.BUSY_SECONDS", 0)
    store = await open_store(f"sqlite+aiosqlite:///{tmp_path}/oombot.db")
    desk = Desk(Settings(retention_days=30), lambda: None, judged_here, lambda: datetime.now(UTC), store)  # type: ignore[arg-type,return-value]
    past = await incident(store)
    purging = asyncio.create_task(serve._purged_daily(desk))

    async def refused() -> bool:
        return "the daily purge did not run" in caplog.text

    async def erased() -> bool:
        return await text_of(store, past) is None

    try:
        with closing(sqlite3.connect(tmp_path / "oombot.db", isolation_level=None)) as other:
            await until(partial(begun, other))
            await until(refused)
            other.execute(BACK, (31, past))
            other.execute("COMMIT")
        await until(erased)
    finally:
        purging.cancel()
        await asyncio.gather(purging, return_exceptions=True)
        await store.close()


async def begun(other: sqlite3.Connection) -> bool:
    """Holds the write lock from here on."""
    with suppress(sqlite3.OperationalError):
        other.execute("BEGIN IMMEDIATE")
    return other.in_transaction
