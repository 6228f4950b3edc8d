"""A page on a real socket, with stand-ins for the use cases that write down what they were asked."""

import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from bot.rulebook.files import Topic
from bot.settings import Settings
from bot.usecases.asks import Asks
from bot.usecases.desk import Desk
from bot.usecases.explain import NoTopicError
from bot.usecases.reply import Reply, Unusable
from bot.web.app import build_app
from tests.web import documents

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


@dataclass
class Shelf:
    """What the stand-ins answer with, and what they were asked."""

    asked: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = field(default_factory=list)
    diagnosis: dict[str, Any] = field(default_factory=documents.diagnosis)
    incident: dict[str, Any] = field(default_factory=documents.incident)
    found: dict[str, Any] = field(default_factory=documents.found)
    warning: str | None = None

    def calls(self, name: str) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
        return [(args, named) for asked, args, named in self.asked if asked == name]

    def asks(self) -> Asks:
        def ask(name: str, kind: Any, answer: Callable[..., Any]) -> Any:
            async def asking(*args: Any, **named: Any) -> Reply:
                self.asked.append((name, args, named))
                return Reply(kind, answer(*args, **named), self.warning)

            return asking

        said = {"schema": "oombot.outcome/1", "id": "D-0187", "trial": 2, "outcome": "fixed", "says": "Kept: it worked.", "next": None}
        outcome = {**said, "checklist": ["Send the longest input that you accept.", "Run for an hour."], "diagnosis": self.diagnosis}
        return Asks(
            diagnose=ask("diagnose", "diagnosis", lambda *a, keep=True, **k: self.diagnosis if keep else {**self.diagnosis, "id": None}),
            settle=ask("settle", "outcome", lambda *a: outcome),
            undo=ask("undo", "outcome", lambda *a: {**outcome, "says": "Taken back.", "checklist": []}),
            history=ask("history", "history", lambda *a, **k: self.found),
            show=ask("show", "incident", self._show),
            stats=ask("stats", "stats", lambda *a, **k: documents.review()),
            forget=ask("forget", "notice", lambda *a: {"schema": "oombot.notice/1", "says": "D-0187 was erased."}),
            show_anew=ask("show_anew", "notice", lambda *a, **k: {}),
            size_words=ask("size_words", "sizing", lambda *a: {}),
            size_arguments=ask("size_arguments", "sizing", lambda *a: {}),
            explain=ask("explain", "explanation", self._explain),
        )

    def _explain(self, desk: Desk, viewer: Any, topic: str, incident: str | None = None) -> dict[str, Any]:
        if topic == "soup":
            raise NoTopicError(topic, [Topic("budget", "The budget", ["…"]), Topic("graph-capture", "Graphs", ["…"])])
        return documents.explanation(topic=topic)

    def _show(self, desk: Desk, viewer: Any, name: str) -> dict[str, Any]:
        if name.upper() != "D-0187":
            raise Unusable(f"There is no incident {name}. `oombot history` lists those that you may see.")
        return self.incident


class Browser(TestClient[web.Request, web.Application]):
    """A client that reads the form token off a page, as a person's browser does."""

    async def token(self, where: str = "/") -> str:
        async with self.get(where) as answer:
            match = re.search(r'name="token" value="([^"]+)"', await answer.text())
            assert match, f"{where} holds no form"
            return match[1]

    async def text(self, where: str, status: int = 200, **named: Any) -> str:
        async with self.get(where, **named) as answer:
            text = await answer.text()
            assert answer.status == status, text
            return text


def seen(html: str) -> str:
    """A page's text without its markup."""
    return re.sub(r"<[^>]+>", "", html)


Serve = Callable[..., Any]


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


@pytest.fixture
async def serve(shelf: Shelf) -> AsyncIterator[Serve]:
    browsers: list[Browser] = []

    async def serving(settings: Settings | None = None, *, asks: Asks | None = None, desk: Desk | None = None, **named: Any) -> Browser:
        settings = settings or Settings()
        desk = desk or Desk(settings=settings, rulebook=lambda: None, judge=None, now=lambda: NOW)  # type: ignore[arg-type, return-value]
        app = build_app(desk, settings, named.pop("store", None), asks=asks or shelf.asks(), **named)
        browser = Browser(TestServer(app, host="127.0.0.1"))
        await browser.start_server()
        browsers.append(browser)
        return browser

    yield serving
    for browser in browsers:
        await browser.close()


@pytest.fixture
async def browser(serve: Serve) -> Browser:
    return await serve()
