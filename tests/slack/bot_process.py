"""The bot as a process of its own, to be killed: `python -m tests.slack.bot_process API_URL DATABASE_URL TOKEN SECRET PORT LEASE [APP_TOKEN]`."""

import asyncio
import sys
from datetime import UTC, datetime
from types import SimpleNamespace

from aiohttp import web

from bot.settings import Settings
from bot.slack.app import build_slack
from bot.store.store import open_store
from bot.usecases.desk import Desk
from tests.slack import material
from tests.slack.world import asks


async def serve(api_url: str, database: str, token: str, secret: str, port: int, lease: float, app_token: str | None) -> None:
    transport = {"slack_app_token": app_token} if app_token else {"slack_signing_secret": secret}
    settings = Settings(database_url=database, slack_api_url=api_url, slack_bot_token=token, **transport)
    store = await open_store(database)
    desk = Desk(settings, SimpleNamespace, material.judge, lambda: datetime.now(UTC), store)  # type: ignore[arg-type]
    door = build_slack(desk, settings, store, asks=asks(), lease=lease)
    app = web.Application()
    app.add_routes(door.routes)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    await door.start()
    print("ready", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    api, database, token, secret, port, lease, *more = sys.argv[1:]
    asyncio.run(serve(api, database, token, secret, int(port), float(lease), more[0] if more else None))
