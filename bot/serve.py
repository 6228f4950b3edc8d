"""`oombot serve`, the whole bot in one process; and the only place that wires doors together. Heavy imports stand inside."""

import argparse
import asyncio
import logging
import signal
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from bot.settings import Settings, SettingsError

if TYPE_CHECKING:
    from aiohttp.web import Application, AppRunner

    from bot.slack.app import SlackDoor
    from bot.slack.intake import Aside
    from bot.store.store import Store
    from bot.usecases.desk import Desk, Judge
    from bot.usecases.doctor import Check
    from bot.usecases.judging import Judges
    from bot.web.door import Probe, Visible
    from bot.web.metrics import Meters

ONE_DAY = 24 * 3600  # seconds


def add_options(parser: argparse.ArgumentParser) -> None:
    """None: what it needs stands in the settings."""
    parser.epilog = "What it needs stands in the settings, which `oombot settings` lists: OOMBOT_PORT=9000 oombot serve"


def instead(name: str) -> str:
    """What is written where a setting was taken for a flag."""
    setting = f"OOMBOT_{name.upper().replace('-', '_')}"
    known = any(item.metadata["env"] == setting for item in fields(Settings))
    return f"a setting goes before the command: {setting}=… oombot serve" if known else ""


def run(options: argparse.Namespace, settings: Settings) -> int:
    """0 once a signal said stop. SettingsError where a setting cannot be used."""
    from bot.web.faults import say_briefly_what_cannot_be_read
    from bot.web.sign_in import missing

    if options.wrong:
        raise SettingsError(options.wrong[0])
    if settings.page_mode == "sign-in" and (lacks := missing(settings)):
        raise SettingsError(f"OOMBOT_PAGE is sign-in, which needs {', '.join(lacks)} too. Set them (README), or OOMBOT_PAGE=off.")
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for chatty in ("aiohttp.access", "alembic"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    say_briefly_what_cannot_be_read()
    asyncio.run(until_stopped(settings))
    return 0


async def until_stopped(settings: Settings) -> None:
    """Work until a signal says stop, which may come while it still starts."""
    stopped = asyncio.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(name, stopped.set)
    work, asked = asyncio.create_task(_at_work(settings)), asyncio.create_task(stopped.wait())
    await asyncio.wait((work, asked), return_when=asyncio.FIRST_COMPLETED)
    asked.cancel()
    work.cancel()
    with suppress(asyncio.CancelledError):
        await work


async def _at_work(settings: Settings) -> None:
    """Everything on one event loop: the page's server, Slack's two transports, the purge; reading in worker processes."""
    from aiohttp.web import AppRunner

    from bot.store.store import open_store
    from bot.usecases.judging import Judges, warm
    from bot.usecases.sizing.question import load_sizing
    from bot.web.metrics import Meters

    warm()  # now, since a broken rulebook stops the start with its whole report, and nobody waits for the event loop yet
    load_sizing()
    async with AsyncExitStack() as closing:
        store = await open_store(settings.database)
        closing.push_async_callback(store.close)
        judges, meters = Judges(), Meters()
        closing.callback(judges.close)
        desk = _desk(settings, store, meters.counted(judges.judge))
        slack = _slack(desk, settings, store, judges.run)
        runner = AppRunner(_page(desk, settings, store, slack, meters, judges), access_log=None)
        closing.push_async_callback(runner.cleanup)
        if slack is not None:
            closing.push_async_callback(slack.stop)
        await _listen(runner, settings)
        if slack is not None:
            await slack.start()
        _announce(settings, store.place, slack is not None)
        await _purged_daily(desk)


def _desk(settings: Settings, store: "Store", judge: "Judge") -> "Desk":
    from bot.rulebook.load import load_rulebook
    from bot.usecases.desk import Desk

    return Desk(settings=settings, rulebook=load_rulebook, judge=judge, now=lambda: datetime.now(UTC), store=store)


def _page(desk: "Desk", settings: Settings, store: "Store", slack: "SlackDoor | None", meters: "Meters", judges: "Judges") -> "Application":
    """The page's server, with Slack's routes, what readiness asks, and what a signed-in person may see."""
    from aiohttp.web import RouteDef

    from bot.web.app import build_app

    routes = [route for route in slack.routes if isinstance(route, RouteDef)] if slack is not None else []
    probes = _probes(store, slack)
    return build_app(desk, settings, store, slack_routes=routes, meters=meters, visible=_visible(slack), probes=probes, aside=judges.run)


def _probes(store: "Store", slack: "SlackDoor | None") -> "Sequence[Probe]":
    """What readiness asks: the rulebook, the database, and Slack where there is one."""
    from bot.usecases.doctor import Check, check_rulebook, check_store

    async def rulebook() -> Sequence[Check]:
        return [check_rulebook()]

    async def database() -> Sequence[Check]:
        return [await check_store(store)]

    async def connection() -> Sequence[Check]:
        if slack is None:
            return []
        good = await slack.ready()
        return [Check("slack", good, "connected" if good else "not connected", "oombot doctor says why")]

    return rulebook, database, connection


def _visible(slack: "SlackDoor | None") -> "Visible":
    """The channels that someone who signed in with Slack may read; None where the bot is not in that workspace."""

    async def visible(team: str, user: str, enterprise: str | None) -> frozenset[str] | None:
        identity = await slack.room.installs.of(enterprise, team) if slack is not None else None
        if slack is None or identity is None:
            return None
        return (await slack.room.visibility.sight(identity, user, None)).viewer.channels

    return visible


def _slack(desk: "Desk", settings: Settings, store: "Store", aside: "Aside | None" = None) -> "SlackDoor | None":
    """The Slack door where a token or a secret says that there is one; files are decoded `aside`."""
    if not (settings.slack_bot_token or settings.slack_app_token or settings.slack_signing_secret):
        return None
    from bot.slack.app import build_slack

    return build_slack(desk, settings, store, aside=aside) if aside else build_slack(desk, settings, store)


async def _listen(runner: "AppRunner", settings: Settings) -> None:
    """OSError says why this address cannot be had, and which setting mends it."""
    from aiohttp.web import TCPSite

    from bot.web.listening import cannot_listen

    await runner.setup()
    try:
        await TCPSite(runner, settings.host, settings.port).start()
    except OSError as error:
        raise OSError(cannot_listen(settings, error)) from None


def _announce(settings: Settings, place: str, slack: bool) -> None:
    """Where it is and what to do next."""
    from bot.web.listening import where_it_is

    print("\n".join(where_it_is(settings, place)))
    print(
        "Slack is connected: mention the bot with a log."
        if slack
        else "Slack is off: set SLACK_BOT_TOKEN and SLACK_APP_TOKEN (README, “In Slack”).",
        flush=True,
    )


async def _purged_daily(desk: "Desk") -> None:
    """Retention: evidence past its days is erased, now and every day."""
    from bot.store.errors import StoreError
    from bot.usecases.forget import purge

    while True:
        try:
            await purge(desk)
        except StoreError as error:
            logging.getLogger(__name__).warning("the daily purge did not run: %s", error)
        await asyncio.sleep(ONE_DAY)


# What `oombot doctor` asks of the doors.


async def page_checks(settings: Settings, store: "Store") -> "Sequence[Check]":
    """The page's mode, and what it needs."""
    from bot.web.checks import checks

    return await checks(settings)


async def slack_checks(settings: Settings, store: "Store") -> "Sequence[Check]":
    """What doctor asks of Slack; one line that says how to set it up where nothing is set."""
    from bot.usecases.doctor import Check
    from bot.usecases.judge import judged_here

    door = _slack(_desk(settings, store, judged_here), settings, store)
    if door is None:
        return [Check("slack", None, "not set up: the bot serves the local page only", "README.md, “In Slack”, takes ten minutes")]
    await door.start()
    try:
        return await door.checks()
    finally:
        await door.stop()
