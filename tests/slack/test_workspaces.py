"""Several workspaces by OAuth: tokens encrypted at rest, rotated, revoked; and what doctor says of a wrong set-up."""

import asyncio
import json
import time
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest
from cryptography.fernet import InvalidToken

from bot.settings import Settings, SettingsError
from bot.slack.app import build_slack
from bot.slack.installs import Identity, cipher
from bot.slack.manifest import bot_scopes, manifest
from bot.slack.surfaces import SURFACES
from tests.fakeslack import Person
from tests.fakeslack.methods import METHODS, READ
from tests.slack.material import CRASH
from tests.slack.world import PATIENCE, World


def many(world: World) -> Settings:
    slack = world.slack
    return world.settings(
        slack_bot_token=None, slack_client_id=slack.client_id, slack_client_secret=slack.client_secret, secret_key="a long random text"
    )


async def install(world: World, jar: aiohttp.CookieJar | None = None) -> tuple[int, str]:
    jar = jar or aiohttp.CookieJar(unsafe=True)
    async with aiohttp.ClientSession(cookie_jar=jar) as browser, browser.get(f"{world.bot_url}/slack/install") as answer:
        return answer.status, await answer.text()


async def test_two_workspaces_install_and_each_is_answered_with_its_own_token(http_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world = http_world
    monkeypatch.setenv("SLACK_CLIENT_ID", world.slack.client_id)  # Bolt reads the environment too
    monkeypatch.setenv("SLACK_CLIENT_SECRET", world.slack.client_secret)
    slack = world.slack
    async with world.bot(many(world)):
        assert (await install(world))[0] == 200
        assert (await install(world))[0] == 200
        first, second = [team for team in slack.teams.values() if team.name.startswith("Installed")]
        for team in (first, second):
            ann = Person(slack, team)
            channel = slack.channel(team, "help", members=[ann.id])
            ts = await ann.mention(channel, CRASH)
            await world.answer_in(team, channel, ts)
        assert {call.team for call in slack.called("chat.postMessage")} == {first.id, second.id}
    kept = b"".join(path.read_bytes() for path in world.folder.iterdir())
    assert first.token.encode() not in kept
    async with world.bot(many(world)):
        ts = await ann.mention(channel, CRASH)
        await world.answer_in(second, channel, ts)


async def test_a_workspace_without_the_app_is_told_so_and_nothing_is_stored(http_world: World) -> None:
    world = http_world
    async with world.bot(many(world)):
        await world.ann.mention(world.channel, CRASH)
        await world.quiet()
        assert world.answers(world.channel) == []


async def test_a_forged_or_borrowed_state_is_refused(http_world: World) -> None:
    world = http_world
    async with world.bot(many(world)):
        async with aiohttp.ClientSession() as thief, thief.get(f"{world.bot_url}/slack/install", allow_redirects=False) as answer:
            away = answer.headers["Location"]
        async with aiohttp.ClientSession() as victim:
            async with victim.get(away, allow_redirects=True) as answer:
                assert answer.status == 400
            async with victim.get(f"{world.bot_url}/slack/oauth_redirect?code=x&state=forged") as answer:
                assert answer.status == 400
        assert await world.store.installs() == []


async def test_a_token_that_ends_soon_is_renewed_and_kept_encrypted(http_world: World) -> None:
    world = http_world
    slack = world.slack
    slack.manifest["settings"]["token_rotation_enabled"] = True
    slack.token_life = 3_600  # Slack's are twelve hours; within two of the end they are renewed
    async with world.bot(many(world)):
        await install(world)
        team = next(team for team in slack.teams.values() if team.name.startswith("Installed"))
        old = team.token
        slack.token_life = 43_200
        ann = Person(slack, team)
        channel = slack.channel(team, "help", members=[ann.id])
        ts = await ann.mention(channel, CRASH)
        await world.answer_in(team, channel, ts)
        assert team.token != old
    assert team.token.encode() not in b"".join(path.read_bytes() for path in world.folder.iterdir())


@pytest.mark.parametrize("event", [{"type": "tokens_revoked", "tokens": {"bot": ["U1"]}}, {"type": "app_uninstalled"}])
async def test_a_revoked_token_is_forgotten(http_world: World, event: dict[str, object]) -> None:
    world = http_world
    async with world.bot(many(world)):
        await install(world)
        team = next(team for team in world.slack.teams.values() if team.name.startswith("Installed"))
        await world.slack.emit(team, event)
        await world.quiet()
        assert await world.store.installs() == []


@pytest.mark.parametrize("kind", ["tokens_revoked", "app_uninstalled"])
async def test_an_event_of_the_old_token_that_comes_after_a_new_installation_ends_nothing_that_is_new(http_world: World, kind: str) -> None:
    world = http_world
    slack = world.slack
    async with world.bot(many(world)):
        await install(world)
        team = next(team for team in slack.teams.values() if team.name.startswith("Installed"))
        ann = Person(slack, team)
        channel = slack.channel(team, "help", members=[ann.id])
        await world.answer_in(team, channel, await ann.mention(channel, CRASH))
        await world.quiet()
        await asyncio.sleep(1.1)  # Slack counts events in whole seconds
        left = int(time.time())
        await asyncio.sleep(1.1)
        slack.comes_back = team
        await install(world)
        await slack.emit(team, {"type": kind, "tokens": {"bot": [team.bot_user]}}, ago=int(time.time()) - left)
        await world.quiet()
        assert await world.store.installs() == [(None, team.id)]
        assert (await world.store.load(team.id, "D-0001") is None) == (kind == "app_uninstalled"), "what was there before the removal goes"
        await world.answer_in(team, channel, await ann.mention(channel, CRASH))
        await world.quiet()
        team.revoked = True  # and a late event is believed where Slack takes the new token no more
        world.expected_refusals = {"token_revoked"}
        await slack.emit(team, {"type": kind, "tokens": {"bot": [team.bot_user]}}, ago=int(time.time()) - left)
        await world.quiet()
        assert await world.store.installs() == []


def test_tokens_are_unreadable_under_another_key() -> None:
    sealed = cipher("one key").encrypt(json.dumps({"token": "xoxb-1"}).encode())
    assert b"xoxb" not in sealed
    with pytest.raises(InvalidToken):
        cipher("another key").decrypt(sealed)


def test_an_identity_does_not_print_its_token() -> None:
    assert "xoxb" not in repr(Identity("T1", None, "U1", "B1", "xoxb-secret"))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, "SLACK_APP_TOKEN"),
        ({"slack_app_token": "xapp-1"}, "SLACK_BOT_TOKEN"),
        ({"slack_app_token": "xoxb-1", "slack_bot_token": "xoxb-1"}, "SLACK_APP_TOKEN does not start with xapp-"),
        ({"slack_app_token": "xapp-1", "slack_bot_token": "xapp-1"}, "SLACK_BOT_TOKEN does not start with xoxb-"),
        ({"slack_signing_secret": "s", "slack_client_id": "1", "slack_client_secret": "2"}, "OOMBOT_SECRET_KEY"),
        ({"slack_bot_token": "xoxb-1"}, "SLACK_SIGNING_SECRET"),
    ],
)
def test_a_set_up_that_cannot_work_names_the_setting(given: dict[str, str], expected: str) -> None:
    with pytest.raises(SettingsError, match=expected):
        build_slack(None, Settings(**given), None, asks=None if False else object())  # type: ignore[arg-type]


async def test_without_a_signing_secret_nothing_is_taken_over_http(http_world: World) -> None:
    world = http_world
    settings = replace(world.settings(), slack_signing_secret=None, slack_app_token=world.slack.app_token)
    world.slack.transport = "socket"
    challenge = {"type": "url_verification", "challenge": "x"}
    async with (
        world.bot(settings),
        aiohttp.ClientSession() as session,
        session.post(f"{world.bot_url}/slack/events", json=challenge) as answer,
    ):
        assert answer.status == 404


async def test_a_wrong_signature_and_an_old_one_are_refused(http_world: World) -> None:
    world = http_world
    slack = world.slack
    body = json.dumps({"type": "url_verification", "challenge": "hello"})
    async with world.bot(), aiohttp.ClientSession() as session:

        async def send(headers: dict[str, str]) -> tuple[int, str]:
            async with session.post(
                f"{world.bot_url}/slack/events", data=body, headers={**headers, "Content-Type": "application/json"}
            ) as answer:
                return answer.status, await answer.text()

        assert (await send(slack.signed(body, secret="wrong")))[0] == 401
        assert (await send(slack.signed(body, at=int(time.time()) - 3_600)))[0] == 401
        assert (await send({}))[0] == 401
        status, text = await send(slack.signed(body))
        assert (status, "hello" in text) == (200, True)


async def test_doctor_names_a_missing_scope_and_the_click_that_mends_it(world: World) -> None:
    world.team.scopes -= {"files:read", "groups:read"}
    async with world.bot() as door:
        checks = {check.name: check for check in await door.checks()}
        scopes = checks["Slack scopes"]
        assert scopes.ok is False
        assert "files:read" in scopes.says
        assert "Reinstall" in (scopes.mend or "")
        assert "groups:read" in checks["Slack optional scopes"].says
        assert checks["Slack bot token"].ok


async def test_doctor_says_that_all_is_well(world: World) -> None:
    async with world.bot() as door:
        ts = await world.ann.mention(world.channel, CRASH)
        await world.answer(world.channel, ts)
        wrong = [check for check in await door.checks() if check.ok is False]
        assert wrong == []


async def test_doctor_says_whether_anything_ever_came_and_which_click_lets_it_come(world: World) -> None:
    async with world.bot() as door:
        before = {check.name: check for check in await door.checks()}["Slack events"]
        assert before.ok is None
        assert "None has come yet" in before.says
        assert "Event Subscriptions" in (before.mend or "")
        await world.answer(world.channel, await world.ann.mention(world.channel, CRASH))
        await world.quiet()
        after = {check.name: check for check in await door.checks()}["Slack events"]
        assert (after.ok, after.mend) == (True, None)
        assert "The last one came 20" in after.says


async def test_doctor_names_socket_mode_that_was_switched_off(http_world: World) -> None:
    world = http_world
    world.slack.transport = "socket"
    async with world.bot() as door:
        world.slack.linked = False
        check = {check.name: check for check in await door.checks()}["Slack Socket Mode"]
        assert check.ok is False
        assert "link_disabled" in check.says
        assert "Socket Mode on" in (check.mend or "")


async def test_doctor_names_a_refused_token(world: World) -> None:
    world.expected_refusals = {"invalid_auth"}
    async with world.bot(world.settings(slack_bot_token="xoxb-of-yesterday")) as door:
        checks = {check.name: check for check in await door.checks()}
        assert checks["Slack bot token"].ok is False
        assert "invalid_auth" in checks["Slack bot token"].says
        assert not await door.ready()


async def test_the_door_is_ready_once_it_is_connected(world: World) -> None:
    async with world.bot() as door:
        async with asyncio.timeout(PATIENCE):
            while not await door.ready():  # noqa: ASYNC110  # no event tells of it
                await asyncio.sleep(0.1)


def test_every_surface_file_stands_in_the_one_list() -> None:
    folder = Path(__file__).parents[2] / "bot" / "slack" / "surfaces"
    files = {path.stem for path in folder.glob("*.py")} - {"__init__", "surface", "verbs"}
    listed = {surface.work.__module__.rsplit(".", 1)[-1] for surface in SURFACES}
    assert files == listed


def test_every_scope_has_its_reason_and_the_description_its_length() -> None:
    text = (Path(__file__).parents[2] / "bot" / "slack" / "manifest.yaml").read_text(encoding="utf-8")
    for scope in bot_scopes():
        line = next(line for line in text.splitlines() if line.strip().startswith(f"- {scope} "))
        assert len(line.partition("# ")[2]) > 5, scope
    assert manifest()["settings"]["socket_mode_enabled"] is True
    assert 174 <= len(manifest()["display_information"]["long_description"]) <= 4_000


def test_every_scope_is_used_and_every_scope_used_is_asked_for() -> None:
    subscribed = manifest()["settings"]["event_subscriptions"]["bot_events"]
    histories = {"channels": "channels:history", "groups": "groups:history", "im": "im:history", "mpim": "mpim:history"}
    used = {histories[event.removeprefix("message.")] for event in subscribed if event.startswith("message.")}
    used |= {"app_mentions:read", "commands"} | {scope for method in METHODS.values() for scope in method.scopes}
    used |= {READ[kind] for kind in ("public_channel", "private_channel", "mpim")}  # what visibility asks users.conversations for
    assert set(bot_scopes()) == used


def test_the_rooms_below_know_no_slack() -> None:
    import subprocess
    import sys

    rooms = "domain reading diagnosis rulebook budget store hub usecases"
    code = f"import importlib, pkgutil, sys\nfor room in '{rooms}'.split():\n    package = importlib.import_module('bot.' + room)\n"
    code += "    for found in pkgutil.iter_modules(package.__path__):\n        importlib.import_module(f'bot.{room}.{found.name}')\n"
    code += "assert not [name for name in sys.modules if name.startswith('slack_')], 'slack is spoken outside bot/slack'"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2], timeout=60)
