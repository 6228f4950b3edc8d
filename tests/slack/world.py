"""The real door, over real HTTP or a real WebSocket, against the strict double and a real SQLite file."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from aiohttp import web

from bot.settings import Settings
from bot.slack.app import SlackDoor, build_slack
from bot.store.store import Store, open_store
from bot.usecases.asks import Asks
from bot.usecases.desk import Desk
from bot.usecases.diagnose import diagnose
from bot.usecases.forget import forget
from bot.usecases.recall import history, show
from bot.usecases.settle import settle, undo
from bot.usecases.stats import stats
from tests.fakeslack import FakeSlack, Person
from tests.fakeslack.state import Channel, Team
from tests.slack import material

PATIENCE = 60.0  # seconds for what must happen: a bound for what hangs, whatever the machine


def asks(**other: Any) -> Asks:
    usual = {
        "diagnose": diagnose,
        "settle": settle,
        "undo": undo,
        "history": history,
        "show": show,
        "stats": stats,
        "forget": forget,
    }
    return Asks(**{**usual, "size_words": material.size_words, "explain": material.explain, **other})


class World:
    """A team with a public and a private channel, and two people; the bot beside them."""

    DATABASE = "slack.db"  # in its folder

    def __init__(self, slack: FakeSlack, folder: Path) -> None:
        self.slack, self.folder = slack, folder
        self.url = f"sqlite+aiosqlite:///{folder / self.DATABASE}"
        self.team: Team = slack.team()
        self.ann = Person(slack, self.team, "ann")
        self.bob = Person(slack, self.team, "bob")
        self.channel: Channel = slack.channel(self.team, "gpu-help", members=[self.ann.id, self.bob.id])
        self.private: Channel = slack.channel(self.team, "secret-lab", private=True, members=[self.ann.id])
        self.expected_refusals: set[str] = set()
        self.harmless = {"already_reacted", "no_reaction"}  # what a second try meets
        self.door: SlackDoor
        self.store: Store

    def settings(self, **other: Any) -> Settings:
        given: dict[str, Any] = {"database_url": self.url, "slack_api_url": self.slack.api_url, "slack_bot_token": self.team.token}
        given |= (
            {"slack_signing_secret": self.slack.signing_secret}
            if self.slack.transport == "http"
            else {"slack_app_token": self.slack.app_token}
        )
        return Settings(**{**given, **other})

    @asynccontextmanager
    async def bot(self, settings: Settings | None = None, *, desk: Desk | None = None, **options: Any) -> AsyncIterator[SlackDoor]:
        settings = settings or self.settings()
        self.store = await open_store(self.url)
        desk = desk or Desk(settings, SimpleNamespace, material.judge, lambda: datetime.now(UTC))  # type: ignore[arg-type]
        desk = replace(desk, store=self.store)
        self.door = build_slack(desk, settings, self.store, **{"asks": asks(), "lease": 2.0, **options})
        app = web.Application(client_max_size=8 * 1024 * 1024)
        app.add_routes(self.door.routes)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.bot_url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        self.slack.events_url = f"{self.bot_url}/slack/events"
        await self.door.start()
        try:
            if settings.slack_app_token:
                await self.slack.connected()
            yield self.door
        finally:
            await self.door.stop()
            await runner.cleanup()
            await self.store.close()

    async def until(self, holds: Callable[[], Any], seconds: float = PATIENCE, what: str = "") -> Any:
        end = time.monotonic() + seconds
        while not (found := holds()):
            assert time.monotonic() < end, (
                f"not within {seconds} s: {what or holds}; refused: {[(c.method, c.error, c.messages) for c in self.slack.refusals]}"
            )
            await asyncio.sleep(0.02)
        return found

    async def quiet(self, seconds: float = PATIENCE) -> None:
        """Until nothing waits and nothing is in work."""
        end = time.monotonic() + seconds
        while True:
            state = await self.store.backlog()
            if not state["waiting"] and not state["working"]:
                return
            assert time.monotonic() < end, state
            await asyncio.sleep(0.03)

    def answers(self, channel: Channel, thread: str | None = None) -> list[dict[str, Any]]:
        """The bot's messages in a channel, or in one of its threads."""
        return [m for m in channel.messages if m.get("bot_id") == self.team.bot_id and (thread is None or m.get("thread_ts") == thread)]

    async def answer(self, channel: Channel, thread: str, holds: Callable[[str], bool] = bool) -> dict[str, Any]:
        """The one answer in a thread, once it says what it should."""
        found: dict[str, Any] = await self.until(
            lambda: next((m for m in self.answers(channel, thread) if holds(words(m))), None), what=f"answer in {thread}"
        )
        return found

    async def answer_in(self, team: Team, channel: Channel, thread: str) -> dict[str, Any]:
        """The answer in another team's thread."""
        mine = lambda: next((m for m in channel.messages if m.get("bot_id") == team.bot_id and m.get("thread_ts") == thread), None)  # noqa: E731
        found: dict[str, Any] = await self.until(mine, what=f"answer in {team.name}")
        return found


def words(message: dict[str, Any]) -> str:
    """Everything that a message shows."""
    return json.dumps([message.get("text"), message.get("blocks")], ensure_ascii=False)
