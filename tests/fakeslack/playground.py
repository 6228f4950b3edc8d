"""`make playground`: the real bot against the double, with a page to type, upload, click and look at every surface without a workspace."""

import asyncio
import os
import signal
import socket
import sys
import tempfile
from pathlib import Path
from typing import Any

from aiohttp import web

from tests.fakeslack.people import Person, find
from tests.fakeslack.slack import FakeSlack
from tests.fakeslack.state import Channel

ROOT = Path(__file__).parents[2]
PAGE = Path(__file__).with_name("playground.html")
EXPECTED = ROOT / "tests" / "slack" / "expected"
PORT = 8089


class Playground:
    """Two people, three channels, one bot; `/play/state` is what they see, `/play/do` what they do."""

    def __init__(self, slack: FakeSlack) -> None:
        self.slack = slack
        self.team = slack.team("Playground")
        self.people = {name: Person(slack, self.team, name) for name in ("ann", "bob")}
        ann, bob = self.people["ann"], self.people["bob"]
        self.channels = {
            "gpu-help": slack.channel(self.team, "gpu-help", members=[ann.id, bob.id]),
            "secret-lab": slack.channel(self.team, "secret-lab", private=True, members=[ann.id]),
        }

    def channel(self, person: Person, name: str) -> Channel:
        return self.slack.direct(self.team, person.id) if name == "oombot" else self.channels[name]

    async def state(self, request: web.Request) -> web.Response:
        person = self.people[request.query.get("who", "ann")]
        channel = self.channel(person, request.query.get("where", "gpu-help"))
        names = {p.id: name for name, p in self.people.items()} | {self.team.bot_user: "oombot"}
        open_views = [view for view in self.slack.views.values() if view.user == person.id and view.open]
        return web.json_response({
            "names": names, "bot": self.team.bot_user, "messages": channel.messages, "private": person.sees(channel), "home": self.team.homes.get(person.id),
            "view": open_views[-1].body if open_views else None, "refusals": [[c.method, c.error, c.messages] for c in self.slack.refusals[-3:]],
            "channels": [name for name, c in self.channels.items() if person.id in c.members] + ["oombot"],
        })  # fmt: skip

    async def do(self, request: web.Request) -> web.Response:
        asked: dict[str, Any] = await request.json()
        person = self.people[asked["who"]]
        channel = self.channel(person, asked["where"])
        ack = await self._act(person, channel, asked)
        return web.json_response({"status": getattr(ack, "status", 200), "body": getattr(ack, "body", None)})

    async def _act(self, person: Person, channel: Channel, asked: dict[str, Any]) -> Any:
        files = [person.file(f["name"], f["text"].encode()) for f in asked.get("files") or ()]
        match asked["does"]:
            case "say":
                text = asked["text"]
                if text.startswith("/oom"):
                    ack = await person.slash(channel, text.removeprefix("/oom").strip())
                    channel.ephemerals.append(
                        {"user": person.id, "text": (ack.body or {}).get("text", "(not acknowledged)"), "ts": self.slack.clock.ts()}
                    )
                    return ack
                return await person.say(
                    channel, text.replace("@oombot", f"<@{self.team.bot_user}>"), thread=asked.get("thread"), files=files or None
                )
            case "click":
                message = next(m for m in (*channel.messages, *person.sees(channel)) if m["ts"] == asked["ts"])
                _, element = find(message["blocks"], asked["action"])
                return await person.click(
                    channel, message, asked["action"], option=asked.get("option") if element["type"] != "button" else None
                )
            case "shortcut":
                return await person.shortcut(channel, next(m for m in channel.messages if m["ts"] == asked["ts"]))
            case "global":
                return await person.global_shortcut()
            case "home":
                return await person.open_home()
            case "click_home":
                return await person.click_home(asked["action"], option=asked.get("option"))
            case "submit":
                return await person.submit(person.view(), asked["values"], files=files)
            case "close":
                person.view().open = False
            case "delete":
                await person.delete(channel, asked["ts"])
        return None


class OpenSlack(FakeSlack):
    """The double with the page mounted beside its API."""

    def mount(self, app: web.Application) -> None:
        self.ground = Playground(self)
        app.router.add_get("/", _page)
        app.router.add_static("/expected/", EXPECTED)
        app.router.add_get("/play/state", self.ground.state)
        app.router.add_post("/play/do", self.ground.do)


async def _page(request: web.Request) -> web.Response:
    return web.Response(text=PAGE.read_text(encoding="utf-8"), content_type="text/html")


async def main() -> None:
    slack = OpenSlack("socket", port=int(os.environ.get("PLAYGROUND_PORT", PORT)), retry_after=(0.0, 60.0, 300.0))
    async with slack.running():
        with tempfile.TemporaryDirectory() as folder:
            await play(slack, folder)


async def play(slack: FakeSlack, folder: str) -> None:
    """The bot runs as a process of its own, with nothing but its environment to tell it that this is not Slack."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    given = {
        "SLACK_API_URL": slack.api_url, "SLACK_APP_TOKEN": slack.app_token, "SLACK_BOT_TOKEN": next(iter(slack.teams.values())).token,
        "OOMBOT_DATABASE_URL": f"sqlite+aiosqlite:///{folder}/playground.db", "OOMBOT_PORT": str(port),
    }  # fmt: skip
    bot = await asyncio.create_subprocess_exec(sys.executable, "-m", "bot", "serve", cwd=ROOT, env={**os.environ, **given})
    print(f"\nPlayground: {slack.url}/    (the bot's own page: http://127.0.0.1:{port}/)    Ctrl-C ends both.\n", flush=True)
    stopped = asyncio.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(name, stopped.set)
    ended = asyncio.create_task(bot.wait())
    waiting = asyncio.create_task(stopped.wait())
    try:
        await asyncio.wait({ended, waiting}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
        if bot.returncode is None:
            bot.terminate()
        await ended


if __name__ == "__main__":
    asyncio.run(main())
