"""What is acknowledged while the database is locked, or a form opens, outlives kill -9 in a file beside it, and is worked once."""

import asyncio
import json
import logging
import os
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from bot.slack import spool as spools
from bot.slack.inbox import Arrival
from bot.slack.spool import Spool
from bot.store.store import Store, open_store
from tests.slack.material import CRASH, PLANTED, SECRETS
from tests.slack.test_exactly_once import locked
from tests.slack.test_killed import process
from tests.slack.world import World, words

NOT_OPENED = "I was restarted while a form was to open for you. If it did not open, please ask again."


def noted(world: World) -> list[Path]:
    return sorted(world.folder.glob("slack.db-spool*"))


def files_in(folder: Path) -> list[Path]:
    return list(folder.iterdir())


@pytest.fixture
def no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder for it can be neither made nor read."""
    monkeypatch.setattr(Store, "spool", property(lambda store: Path(store.place) / "spool"))


def shown(world: World, what: str) -> list[dict[str, Any]]:
    """What Ann alone reads, in the channel and in her direct message."""
    direct = world.slack.direct(world.team, world.ann.id)
    return [one for one in (*world.ann.sees(world.channel), *world.answers(direct)) if what in words(one)]


def came(key: str = "command:1", **more: Any) -> Arrival:
    given = {"kind": "command", "team": "T1", "enterprise": None, "channel": "C1", "thread": key, "key": key, "body": {"text": "help"}}
    return Arrival(**{**given, **more})


@pytest.mark.parametrize("restart", ["while it is locked still", "when it is free again"])
async def test_a_command_acknowledged_under_a_locked_database_is_answered_once_though_the_process_is_killed(
    world: World, restart: str
) -> None:
    async with process(world) as bot, locked(world):
        ack = await world.ann.slash(world.channel, "help")
        assert (ack.status, ack.body["text"], ack.seconds < 0.5) == (200, "Here is what I can do.", True)
        assert len(noted(world)) == 1
        await bot.kill()
        if restart == "while it is locked still":
            async with process(world) as bot:
                await asyncio.sleep(2.0)
                assert not shown(world, "Paste or upload")
                await bot.kill()
    for _ in range(2):
        async with process(world):
            await world.until(lambda: shown(world, "Paste or upload"))
            await world.until(lambda: not noted(world))
            await asyncio.sleep(1.5)
            assert len(world.ann.sees(world.channel)) == 1


async def test_a_shortcut_acknowledged_under_a_locked_database_is_answered_once_though_the_process_is_killed(world: World) -> None:
    async with process(world) as bot:
        ts = await world.bob.say(world.channel, CRASH + SECRETS)
        message = world.channel.message(ts)
        assert message is not None
        async with locked(world):
            ack = await world.ann.shortcut(world.channel, message)
            assert (ack.status, ack.seconds < 0.5) == (200, True)
            await world.until(lambda: world.slack.views)
            (file,) = noted(world)
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
            assert "out of memory" in file.read_text()
            assert not [secret for secret in PLANTED if secret in file.read_text()]
            await bot.kill()
    for _ in range(2):
        async with process(world):
            await world.answer(world.channel, ts, lambda said: "Rank 3 of 4" in said)
            await world.until(lambda: shown(world, "Answered in the thread"))
            await asyncio.sleep(1.5)
            assert len(world.answers(world.channel)) == 1
            assert len(shown(world, "Answered in the thread")) == 1
            assert noted(world) == []


async def test_a_command_that_waits_longer_than_the_database_is_asked_for_is_answered_once_without_a_restart(world: World) -> None:
    async with world.bot():
        async with locked(world):
            await world.ann.slash(world.channel, "help")
            await asyncio.sleep(6.5)  # a write gives up after five seconds
            assert len(noted(world)) == 1
        await world.until(lambda: shown(world, "Paste or upload"))
        await world.quiet()
        assert len(world.ann.sees(world.channel)) == 1
        assert noted(world) == []


async def test_a_shortcut_that_waits_for_the_database_says_its_end_in_the_view_that_was_opened(http_world: World) -> None:
    world = http_world
    async with world.bot():
        message = world.channel.message(await world.bob.say(world.channel, CRASH))
        assert message is not None
        async with locked(world):
            await world.ann.shortcut(world.channel, message)
            await asyncio.sleep(6.5)
        await world.until(lambda: "Answered in the thread" in words({"blocks": world.ann.view().body["blocks"]}))
        await world.quiet()
        assert len(world.answers(world.channel)) == 1
        assert world.ann.sees(world.channel) == []


async def test_what_is_taken_up_when_its_response_url_has_expired_is_said_in_the_channel_to_the_asker_alone(world: World) -> None:
    world.expected_refusals = {"used_url"}
    async with process(world) as bot, locked(world):
        await world.ann.slash(world.channel, "help")
        await bot.kill()
    world.slack.later(31 * 60)
    async with process(world):
        await world.until(lambda: shown(world, "Paste or upload"))
        await asyncio.sleep(1.0)
        assert len(world.ann.sees(world.channel)) == 1
    assert len(world.slack.called("chat.postEphemeral")) == 1


async def _size(world: World) -> None:
    await world.ann.slash(world.channel, "size")


async def _shortcut(world: World) -> None:
    await world.ann.global_shortcut()


async def _inputs(world: World) -> None:
    await world.ann.click(world.channel, world.ann.sees(world.channel)[0], "change_inputs")


async def _home(world: World) -> None:
    await world.ann.click_home("home_log")


async def _sized(world: World) -> None:
    await world.ann.slash(world.channel, "size llama-70b-fp8 gpu=H100")
    await world.until(lambda: shown(world, "562,736"))


async def _opened(world: World) -> None:
    await world.ann.open_home()
    await world.until(lambda: world.team.homes)


async def _nothing(world: World) -> None:
    pass


Way = Callable[[World], Awaitable[None]]
FORMS: dict[str, tuple[Way, Way]] = {
    "a command": (_nothing, _size),
    "the global shortcut": (_nothing, _shortcut),
    "a click on an answer": (_sized, _inputs),
    "a click in Home": (_opened, _home),
}


@pytest.mark.parametrize("way", FORMS)
async def test_who_asked_for_a_form_that_a_kill_kept_from_opening_is_told_once(world: World, way: str) -> None:
    before, ask = FORMS[way]
    async with process(world) as bot:
        await before(world)
        world.slack.fault("views.open", "slow", value=90.0)
        await ask(world)
        await bot.kill()
    assert len(noted(world)) == 1
    for _ in range(2):
        async with process(world):
            await world.until(lambda: shown(world, NOT_OPENED))
            await asyncio.sleep(1.5)
            assert len(shown(world, NOT_OPENED)) == 1
            assert noted(world) == []


@pytest.mark.parametrize("way", FORMS)
async def test_a_form_that_opened_leaves_nothing_to_say(http_world: World, way: str) -> None:
    world = http_world
    before, ask = FORMS[way]
    async with process(world) as bot:
        await before(world)
        async with locked(world):
            await ask(world)
            await world.until(lambda: world.slack.views)
            await world.until(lambda: not noted(world))
            await bot.kill()
    async with process(world):
        await asyncio.sleep(1.5)
        assert not shown(world, "restarted")


@pytest.mark.parametrize("how", ["no folder can be made", "the disk is full", "too much waits there"])
async def test_where_nothing_can_be_noted_the_acknowledgement_says_so_and_the_answer_comes_when_the_database_is_free(
    world: World, how: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, os.strerror(28))

    if how == "no folder can be made":
        request.getfixturevalue("no_place")
    async with world.bot():
        if how == "the disk is full":
            monkeypatch.setattr(spools.os, "fsync", full)
        elif how == "too much waits there":
            monkeypatch.setattr(spools, "MOST", 0)
        async with locked(world):
            ack = await world.ann.slash(world.channel, "help")
            assert (ack.status, ack.seconds < 0.5) == (200, True)
            assert ack.body["text"] == "Here is what I can do. If nothing comes within a minute, ask again."
            assert noted(world) == []
        await world.until(lambda: shown(world, "Paste or upload"))
        for _ in range(10):  # the inbox has it: at once, unless this machine is very busy
            if (await world.ann.slash(world.channel, "help")).body["text"] == "Here is what I can do.":
                return
        pytest.fail("a free database took no command in ten tries")


async def test_where_neither_disk_nor_database_takes_a_command_the_asker_hears_that_nothing_was_done(
    http_world: World, no_place: None
) -> None:
    world = http_world
    async with world.bot():
        async with locked(world):
            await world.ann.slash(world.channel, "help")
            await world.until(lambda: shown(world, "could not be kept"))
        await world.quiet()
        await asyncio.sleep(1.5)
        assert len(world.ann.sees(world.channel)) == 1


async def test_many_that_come_and_go_at_once_are_all_noted(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "s")

    async def comes_and_goes(number: int) -> None:
        await spool.note(came(f"command:{number}"))
        await spool.drop(came(f"command:{number}"))

    await asyncio.gather(*(comes_and_goes(number) for number in range(400)))
    assert files_in(tmp_path) == []


async def test_what_a_kill_tore_is_put_away_and_the_rest_is_taken_up(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    await Spool(tmp_path / "s").note(came())
    (whole,) = files_in(tmp_path)
    torn = tmp_path / f"{whole.stem}.0123abcd.part"
    torn.write_bytes(whole.read_bytes()[:40])
    half = tmp_path / "s.00.json"
    half.write_bytes(whole.read_bytes()[:40])
    for file in (torn, whole):
        os.utime(file, (1, 1))
    assert await Spool(tmp_path / "s").left() == [came()]
    assert files_in(tmp_path) == [whole]
    assert "s.00.json is no delivery that this version can read" in caplog.text


def _by_another_life(folder: Path) -> None:
    """As if a process of this number, born later, had noted it."""
    (file,) = folder.iterdir()
    birth = json.loads(file.read_text())["by"].split(":")[2]
    file.write_text(file.read_text().replace(f":{birth}:", f":{int(birth) + 1}:"))


async def test_what_a_living_process_holds_is_left_to_it_and_what_a_dead_one_left_is_taken_up_at_once(tmp_path: Path) -> None:
    first, second = Spool(tmp_path / "s"), Spool(tmp_path / "s")
    await first.note(came())
    assert await first.left() == await second.left() == []
    first.leave(came())
    assert await first.left() == [came()]
    _by_another_life(tmp_path)
    assert await second.left() == [came()]


async def test_what_is_in_the_inbox_already_is_taken_up_without_a_second_delivery(tmp_path: Path) -> None:
    store = await open_store(f"sqlite+aiosqlite:///{tmp_path / 'o.db'}")
    try:
        spool, woken = Spool(store.spool), asyncio.Event()
        assert await spools.keep(store, came()) is None  # killed between this and the end of the note
        await spool.note(came())
        spool.leave(came())
        taking = asyncio.create_task(spool.take_up(store, woken.set))
        await asyncio.wait_for(woken.wait(), 10)
        await asyncio.sleep(0.5)
        taking.cancel()
        assert not [file for file in files_in(tmp_path) if "spool" in file.name]
        assert (await store.backlog())["waiting"] == 1
    finally:
        await store.close()


async def test_two_databases_never_share_what_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    from bot.store.engine import Database

    urls = [f"postgresql+asyncpg://u:geheim@127.0.0.1/{name}" for name in ("one", "two")]
    folders = {Database(url).spool for url in (*urls, "sqlite+aiosqlite:///o.db")}
    assert len(folders) == 3
    assert not [folder for folder in folders if "geheim" in str(folder)]
    assert Database(urls[0]).spool == Database(urls[0].replace("geheim", "new")).spool, "a new password is the same database"


async def test_a_folder_that_cannot_be_read_is_said_once_and_by_doctor(
    world: World, caplog: pytest.LogCaptureFixture, no_place: None
) -> None:
    caplog.set_level(logging.WARNING)
    async with world.bot() as door:
        check = {check.name: check for check in await door.checks()}["Slack spool"]
        assert check.ok is False
        assert "a command is lost if I end while the database is locked" in check.says
        await asyncio.sleep(2.5)
    assert caplog.text.count("what was noted there waits") == 1
