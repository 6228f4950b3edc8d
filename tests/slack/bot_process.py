"""What a bot process of the tests does: the whole Slack door over a real store, with the diagnosis of `material`."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from types import SimpleNamespace

from aiohttp import web

from bot.settings import Settings
from bot.slack.app import build_slack
from bot.store.store import open_store
from bot.usecases.desk import Desk
from tests.slack import material
from tests.slack.world import asks


async def serve(given: Sequence[str], ready: Callable[[], None]) -> None:
    """Endless. `given`: API_URL DATABASE_URL TOKEN SECRET PORT LEASE [APP_TOKEN]; with an app token it speaks over a WebSocket."""
    api_url, database, token, secret, port, lease, *app_token = given
    transport = {"slack_app_token": app_token[0]} if app_token else {"slack_signing_secret": secret}
    settings = Settings(database_url=database, slack_api_url=api_url, slack_bot_token=token, **transport)
    store = await open_store(database)
    desk = Desk(settings, SimpleNamespace, material.judge, lambda: datetime.now(UTC), store)  # type: ignore[arg-type]
    door = build_slack(desk, settings, store, asks=asks(), lease=float(lease))
    app = web.Application()
    app.add_routes(door.routes)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", int(port)).start()
    await door.start()
    ready()
    await asyncio.Event().wait()
