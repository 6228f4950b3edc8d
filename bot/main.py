"""The command table, and the only place that wires rooms together. Heavy imports stand inside builders."""

import argparse
import io
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from aiohttp.web import Application

    from bot.settings import Settings
    from bot.slack.app import SlackDoor
    from bot.slack.intake import Aside
    from bot.store.store import Store
    from bot.usecases.desk import Desk
    from bot.usecases.doctor import Check
    from bot.usecases.judging import Judges
    from bot.web.metrics import Meters

COMMANDS = {
    "serve": ("", "the bot: local page, health, metrics, and Slack when tokens are set"),
    "diagnose": ("bot.cli.diagnose", "a pasted log: which phase failed, on which rank, and the one change"),
    "size": ("bot.cli.size", "will it start, how large is the KV pool, how many full requests"),
    "history": ("bot.cli.history", "past incidents: words and fields such as gpu:h100 phase:graph_capture"),
    "show": ("bot.cli.show", "one incident, whole"),
    "outcome": ("bot.cli.outcome", "how the suggested change ended: fixed, moved, same, wrong, other"),
    "explain": ("bot.cli.explain", "what people ask: utilization up or down, does FP8 KV halve memory …"),
    "stats": ("bot.cli.stats", "which phases cost most, which changes work"),
    "forget": ("bot.cli.forget", "erase an incident's evidence"),
    "audit": ("bot.cli.audit", "who erased, exported, switched or installed something"),
    "settings": ("bot.cli.settings", "every setting, its value and what it is for"),
    "doctor": ("bot.cli.doctor", "what is wrong with this installation, and what mends it"),
    "rules": ("bot.cli.rules", "check the rulebook, print its anchors, judge the past anew"),
    "db": ("bot.cli.db", "upgrade, export, import, purge, copy, backup, restore"),
}
"""Command -> (module with add_parser and run, help). A module is imported only when its command is called."""


def run(arguments: Sequence[str]) -> int:
    """Exit status: 0 for an answer, 1 when something is wrong with this installation, 2 for unusable input."""
    from bot.settings import SettingsError, load_settings

    _open_streams()
    parser = argparse.ArgumentParser(
        prog="oombot", description="Reads an out-of-memory log of an LLM server like the best engineer on the team."
    )
    parser.add_argument("--version", action="version", version=f"oombot {_version()}" if "--version" in arguments else "")
    table = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    chosen = next((a for a in arguments if not a.startswith("-")), None)
    try:
        module = import_module(COMMANDS[chosen][0]) if chosen in COMMANDS and chosen != "serve" else None
    except Exception as error:
        return _explained(error)
    for name, (_, help_text) in COMMANDS.items():
        if name == chosen and module is not None:
            module.add_parser(table)
        else:
            table.add_parser(name, help=help_text)
    options, unknown = parser.parse_known_args(arguments)
    if unknown:
        _refuse(table.choices.get(options.command, parser), unknown[0])
    try:
        if options.command == "serve":
            return _serve(load_settings())
        if module is None:
            parser.print_help()
            return 0
        if chosen == "doctor":
            vars(module)["others"] = (_page_checks, _slack_checks)
        options.wrong = []  # settings that cannot be used: what does not need them works all the same
        return int(module.run(options, load_settings(wrong=options.wrong)))
    except SettingsError as error:
        print(f"oombot: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    except Exception as error:
        return _explained(error)


class _Nowhere(io.TextIOBase):
    """Where a stream ends that was closed before we began; None, which Python leaves there, sends errors to standard output."""

    def write(self, text: str) -> int:
        return len(text)


def _open_streams() -> None:
    """A stream that was closed swallows what is written; a letter that standard output cannot show is replaced."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, _Nowhere())
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def _refuse(parser: argparse.ArgumentParser, unknown: str) -> NoReturn:
    from bot.reading.text import harmless

    parser.error(f"there is no {harmless(unknown)} here")


def _explained(error: Exception) -> int:
    """A failure of the world or of the input in one sentence; a fault of ours with how to report it. Never a traceback."""
    from bot.cli.faults import sentence

    text, status = sentence(error)
    print(f"oombot: {text}", file=sys.stderr)
    return status


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("oombot")
    except PackageNotFoundError:
        return "(not installed)"


def _serve(settings: "Settings") -> int:
    """Everything on one event loop: the page's server, Slack's two transports, the purge; reading in worker processes."""
    import asyncio
    import logging

    from bot.settings import SettingsError
    from bot.web.sign_in import missing

    if settings.page_mode == "sign-in" and (lacks := missing(settings)):
        raise SettingsError(f"OOMBOT_PAGE is sign-in, which needs {', '.join(lacks)} too. Set them (README), or OOMBOT_PAGE=off.")
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for chatty in ("aiohttp.access", "alembic"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    return asyncio.run(_served(settings))


async def _served(settings: "Settings") -> int:
    """Work until a signal says stop, which may come while it still starts."""
    import asyncio
    import signal
    from contextlib import suppress

    stopped = asyncio.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(name, stopped.set)
    work, asked = asyncio.create_task(_at_work(settings)), asyncio.create_task(stopped.wait())
    await asyncio.wait((work, asked), return_when=asyncio.FIRST_COMPLETED)
    asked.cancel()
    work.cancel()
    with suppress(asyncio.CancelledError):
        await work
    return 0


async def _at_work(settings: "Settings") -> None:
    from datetime import UTC, datetime

    from aiohttp import web

    from bot.rulebook.load import load_rulebook
    from bot.store.store import open_store
    from bot.usecases.desk import Desk
    from bot.usecases.judging import Judges, warm
    from bot.usecases.size_question import load_sizing
    from bot.web.listening import cannot_listen
    from bot.web.metrics import Meters

    warm()  # now, since a broken rulebook stops the start with its whole report, and nobody waits for the event loop yet
    load_sizing()
    store = await open_store(settings.database)
    judges = Judges()
    meters = Meters()
    desk = Desk(settings=settings, rulebook=load_rulebook, judge=meters.counted(judges.judge), now=lambda: datetime.now(UTC), store=store)
    slack = _slack(desk, settings, store, judges.run)
    runner = web.AppRunner(_page(desk, settings, store, slack, meters, judges), access_log=None)
    try:
        await runner.setup()
        try:
            await web.TCPSite(runner, settings.host, settings.port).start()
        except OSError as error:
            raise OSError(cannot_listen(settings, error)) from None
        if slack is not None:
            await slack.start()
        _announce(settings, store.place, slack is not None)
        await _purged_daily(desk)
    finally:
        if slack is not None:
            await slack.stop()
        await runner.cleanup()
        judges.close()
        await store.close()


def _page(
    desk: "Desk", settings: "Settings", store: "Store", slack: "SlackDoor | None", meters: "Meters", judges: "Judges"
) -> "Application":
    """The page's server, with Slack's routes, what readiness asks, and what a signed-in person may see."""
    from aiohttp.web import RouteDef

    from bot.usecases.doctor import Check, check_rulebook, check_store
    from bot.web.app import build_app

    async def rulebook() -> Sequence[Check]:
        return [check_rulebook()]

    async def database() -> Sequence[Check]:
        return [await check_store(store)]

    async def connection() -> Sequence[Check]:
        if slack is None:
            return []
        good = await slack.ready()
        return [Check("slack", good, "connected" if good else "not connected", "oombot doctor says why")]

    async def visible(team: str, user: str, enterprise: str | None) -> frozenset[str] | None:
        identity = await slack.room.installs.of(enterprise, team) if slack is not None else None
        if slack is None or identity is None:
            return None
        return (await slack.room.visibility.sight(identity, user, None)).viewer.channels

    routes = [route for route in slack.routes if isinstance(route, RouteDef)] if slack is not None else []
    probes = (rulebook, database, connection)
    return build_app(desk, settings, store, slack_routes=routes, meters=meters, visible=visible, probes=probes, aside=judges.run)


def _slack(desk: "Desk", settings: "Settings", store: "Store", aside: "Aside | None" = None) -> "SlackDoor | None":
    """The Slack door where a token or a secret says that there is one; files are decoded `aside`."""
    if not (settings.slack_bot_token or settings.slack_app_token or settings.slack_signing_secret):
        return None
    from bot.slack.app import build_slack

    return build_slack(desk, settings, store, aside=aside) if aside else build_slack(desk, settings, store)


async def _page_checks(settings: "Settings", store: "Store") -> "Sequence[Check]":
    from bot.web.checks import checks

    return await checks(settings)


async def _slack_checks(settings: "Settings", store: "Store") -> "Sequence[Check]":
    """What doctor asks of Slack; one line that says how to set it up where nothing is set."""
    from bot.usecases.desk import Desk
    from bot.usecases.doctor import Check

    if not (settings.slack_bot_token or settings.slack_app_token or settings.slack_signing_secret):
        return [Check("slack", None, "not set up: the bot serves the local page only", "README.md, “In Slack”, takes ten minutes")]
    from datetime import UTC, datetime

    from bot.cli.desk import judged_here
    from bot.rulebook.load import load_rulebook

    desk = Desk(settings=settings, rulebook=load_rulebook, judge=judged_here, now=lambda: datetime.now(UTC), store=store)
    door = _slack(desk, settings, store)
    if door is None:
        return []
    await door.start()
    try:
        return await door.checks()
    finally:
        await door.stop()


def _announce(settings: "Settings", place: str, slack: bool) -> None:
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
    import asyncio
    import logging

    from bot.store.errors import StoreError
    from bot.usecases.forget import purge

    while True:
        try:
            await purge(desk)
        except StoreError as error:
            logging.getLogger(__name__).warning("the daily purge did not run: %s", error)
        await asyncio.sleep(24 * 3600)
