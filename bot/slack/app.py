"""The Slack door: Bolt verifies what comes in, the inbox stores it, the workers answer it; over HTTP, Socket Mode, or both."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import aiohttp
from aiohttp import web
from slack_bolt.adapter.aiohttp import to_aiohttp_response, to_bolt_request
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.app.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse
from slack_sdk.errors import SlackApiError
from slack_sdk.socket_mode.aiohttp import SocketModeClient

from bot.settings import Settings, SettingsError
from bot.slack import digests
from bot.slack.asides import Asides
from bot.slack.calls import STALE
from bot.slack.checks import check_slack
from bot.slack.files import Files
from bot.slack.gate import Gate
from bot.slack.hosts import hosts_of
from bot.slack.inbox import where
from bot.slack.installs import Installs, refusal
from bot.slack.intake import Aside, Intake
from bot.slack.oauth import OAuth
from bot.slack.outbox import Outbox
from bot.slack.reminders import Reminders
from bot.slack.room import Room
from bot.slack.spool import Spool
from bot.slack.visibility import Visibility
from bot.slack.workers import LEASE, Workers
from bot.usecases.asks import Asks
from bot.usecases.desk import Desk

if TYPE_CHECKING:
    from bot.store.store import Store
    from bot.usecases.doctor import Check

log = logging.getLogger(__name__)
LOGGERS = (
    "bot.slack.bolt",
    "bot.slack.socket",
    "slack_bolt",
    "slack_sdk",
)  # at DEBUG these write whole payloads: pasted logs, secrets and all
PATIENCE = 5.0  # seconds for what was acknowledged and is not in the inbox yet, at shutdown
NOT_INSTALLED = "I am not installed in this workspace (any more). Whoever runs me can add it again, at /slack/install of my public address."
LOOK = 1.0  # seconds between looks whether the socket lives
MOST_BODY = 4 * 1024 * 1024  # bytes of one HTTP delivery


def build_slack(
    desk: Desk, settings: Settings, store: "Store", *, asks: Asks | None = None, aside: Aside = asyncio.to_thread, lease: float = LEASE
) -> "SlackDoor":
    """Lays the door out; nothing is connected before `start`. SettingsError names the setting that is missing.

    `aside` decodes and redacts files beside the event loop: in another process, or in a thread.
    """
    if asks is None:
        from bot.usecases.asks import Asks

        asks = Asks()
    _check(settings)
    for name in LOGGERS:
        logging.getLogger(name).setLevel(logging.INFO)
    return SlackDoor(desk, settings, store, asks, aside, lease)


def _check(settings: Settings) -> None:
    if not settings.slack_app_token and not settings.slack_signing_secret:
        raise SettingsError(
            "Slack has no way in: set SLACK_APP_TOKEN (xapp-…, Socket Mode), or SLACK_SIGNING_SECRET "
            "(Basic Information, App Credentials) for HTTP."
        )
    if not settings.slack_bot_token and not (settings.slack_client_id and settings.slack_client_secret):
        raise SettingsError(
            "Slack has no bot token: set SLACK_BOT_TOKEN (xoxb-…, OAuth & Permissions), or SLACK_CLIENT_ID and "
            "SLACK_CLIENT_SECRET for several workspaces."
        )
    if not settings.slack_bot_token and not settings.secret_key:
        raise SettingsError(
            "OOMBOT_SECRET_KEY is not set: tokens of several workspaces are only kept encrypted. Any long random text will do."
        )
    kinds = (
        ("SLACK_BOT_TOKEN", settings.slack_bot_token, ("xoxb-", "xoxe.xoxb-")),
        ("SLACK_APP_TOKEN", settings.slack_app_token, ("xapp-",)),
    )
    for name, token, starts in kinds:
        if token and not token.startswith(starts):
            raise SettingsError(f"{name} does not start with {starts[0]}: it holds another kind of token, or only a part of one.")


class SlackDoor:
    """`routes` belong on the page's server; `start` connects and works, `stop` lets work under way end."""

    def __init__(self, desk: Desk, settings: Settings, store: "Store", asks: Asks, aside: Aside, lease: float) -> None:
        hosts = hosts_of(settings.slack_api_url)
        self._settings = settings
        self._hosts = hosts
        self._installs = Installs(settings, store, hosts)
        outbox = Outbox(store, self._installs, hosts)
        files = Files(outbox, self._installs, hosts)
        self.room = Room(
            desk=desk, settings=settings, store=store, asks=asks, hosts=hosts, installs=self._installs, outbox=outbox,
            asides=Asides(outbox, store, self._installs, hosts), intake=Intake(files, aside), visibility=Visibility(outbox),
            reminders=Reminders(store), spool=Spool(store.spool),
        )  # fmt: skip
        self._workers = Workers(self.room, lease=lease)
        self._gate = Gate(self.room, self._workers)
        self._oauth = OAuth(settings, self._installs)
        self._socket: AsyncSocketModeHandler | None = None
        self._endless: list[asyncio.Task[None]] = []
        self._bolt = _bolt(settings, self._installs, self._gate)
        self.routes = web.RouteTableDef()
        self.routes.post("/slack/events")(self._events)
        self.routes.get("/slack/install")(self._oauth.begin)
        self.routes.get("/slack/oauth_redirect")(self._oauth.end)

    async def start(self) -> None:
        """Connects and begins to work. Slack need not be reachable: what it needs is asked for again until it is."""
        self._installs.session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=60))
        self._workers.start()
        self._endless = [
            asyncio.create_task(self.room.reminders.run(self._workers.wake), name="reminders"),
            asyncio.create_task(digests.run(self.room.store, self._workers.wake), name="digests"),
            asyncio.create_task(self.room.spool.take_up(self.room.store, self._workers.wake), name="spool"),
        ]
        if self._installs.single:
            self._endless.append(asyncio.create_task(self._know_itself(), name="auth.test"))
        if self._settings.slack_app_token:
            self._endless.append(asyncio.create_task(self._connect(self._settings.slack_app_token), name="socket mode"))

    async def stop(self) -> None:
        """Disconnects, lets work under way end, and closes every connection."""
        if self._socket is not None:
            await self._socket.close_async()  # type: ignore[no-untyped-call]
            await self._socket.client.aiohttp_client_session.close()
        if self.room.running:
            # A form may be opening; and where nothing could be noted, Slack sends a command no second time.
            await asyncio.wait(self.room.running, timeout=PATIENCE)
        await self._workers.stop()
        left = [*self._endless, *self.room.running]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        if self._installs.session is not None:
            await self._installs.session.close()

    async def ready(self) -> bool:
        """Is the bot's token good, and is the socket connected where one is used?"""
        try:
            known = not self._installs.single or await self._installs.of(None, None) is not None
        except (SlackApiError, aiohttp.ClientError, TimeoutError):
            return False
        if self._settings.slack_app_token:
            return known and self._socket is not None and await self._socket.client.is_connected()
        return known

    async def checks(self) -> "list[Check]":
        """What `doctor` asks of this room."""
        return await check_slack(self.room, self._socket)

    async def _know_itself(self) -> None:
        wait = 1.0
        while True:
            try:
                await self._installs.of(None, None)
                return
            except SlackApiError as refused:
                if (said := refusal(refused)) in STALE:
                    log.error("Slack refuses SLACK_BOT_TOKEN: %s. Copy it again from OAuth & Permissions, then restart.", said)
                else:
                    log.warning("Slack does not say who the bot is (%s); trying again in %.0f s", said, wait)
            except (aiohttp.ClientError, TimeoutError) as lost:
                log.warning("Slack cannot be reached (%s); trying again in %.0f s", type(lost).__name__, wait)
            await asyncio.sleep(wait)
            wait = min(wait * 2, 60.0)

    async def _connect(self, app_token: str) -> None:
        wait = 1.0
        while True:
            self._socket = AsyncSocketModeHandler(self._bolt, app_token, logger=_briefly("bot.slack.socket"))
            try:
                await self._socket.connect_async()  # type: ignore[no-untyped-call]
                break
            except SlackApiError as refused:
                log.error(
                    "Slack refuses SLACK_APP_TOKEN: %s. It needs connections:write, and Socket Mode must be on.",
                    refusal(refused),
                )
            except (aiohttp.ClientError, TimeoutError) as lost:
                log.warning("Socket Mode cannot connect (%s); trying again in %.0f s", type(lost).__name__, wait)
            await self._socket.client.aiohttp_client_session.close()
            await asyncio.sleep(wait)
            wait = min(wait * 2, 60.0)
        await self._stay_connected(self._socket.client)

    async def _stay_connected(self, client: SocketModeClient) -> None:
        """A connection that broke without a word is made again soon: the client itself looks every ten seconds."""
        wait = LOOK
        while not client.closed:
            await asyncio.sleep(wait)
            wait = LOOK
            if client.closed or await client.is_connected():
                continue
            try:
                await client.connect_to_new_endpoint()
            except (SlackApiError, aiohttp.ClientError, TimeoutError) as lost:
                log.warning("Socket Mode cannot connect again yet: %s", lost)
                wait = 5.0

    async def _events(self, request: web.Request) -> web.Response:
        if not self._settings.slack_signing_secret:
            return web.Response(status=404, text="SLACK_SIGNING_SECRET is not set, so nothing is taken over HTTP.")
        if (request.content_length or 0) > MOST_BODY:
            return web.Response(status=413, text="too large")
        try:
            read = await to_bolt_request(request)
        except (ValueError, AttributeError):  # Bolt takes any body for a JSON object, before it looks at the signature
            return web.Response(status=400, text="not a request of Slack's")
        return await to_aiohttp_response(await self._bolt.async_dispatch(read))


def _briefly(name: str) -> logging.Logger:
    """A logger of the SDK's, without its trace where it is Slack or the way there that failed: the sentence says all of that."""
    logger = logging.getLogger(name)
    logger.addFilter(_untraced)
    return logger


def _untraced(record: logging.LogRecord) -> bool:
    if record.exc_info and isinstance(record.exc_info[1], (SlackApiError, aiohttp.ClientError, TimeoutError)):
        record.exc_info = None
    return True


def _bolt(settings: Settings, installs: Installs, gate: Gate) -> AsyncApp:
    """Bolt reads tokens from the environment by itself, and warns that it will not use them: they come from our settings."""
    logger = logging.getLogger("bot.slack.bolt")
    logger.setLevel(logging.ERROR)
    app = AsyncApp(
        name="oombot",
        logger=logger,
        signing_secret=settings.slack_signing_secret or "",
        client=installs.client(None),
        authorize=_authorizer(installs),
        before_authorize=_first_questions(installs, gate),
        user_facing_authorize_error_message=NOT_INSTALLED,
    )
    logger.setLevel(logging.INFO)
    app.use(_entrance(installs, gate))
    return app


def _first_questions(installs: Installs, gate: Gate) -> Callable[..., Awaitable[BoltResponse]]:
    """A workspace that revoked the token or removed the app can no longer be asked who the bot is, and must be heard all the same.

    Where Slack cannot say it now, nothing is acknowledged: Bolt would take that for a workspace without the app, and what came be lost.
    """

    async def hear(req: AsyncBoltRequest, next: Callable[[], Awaitable[BoltResponse]]) -> BoltResponse:  # Bolt's name for it
        event = req.body.get("event")
        if isinstance(event, Mapping) and event.get("type") in ("tokens_revoked", "app_uninstalled"):
            status, _ = await gate.enter(req.body, None)
            return BoltResponse(status=status)
        if req.body.get("type") != "url_verification":
            try:
                await installs.of(*where(req.body))
            except SlackApiError as refused:
                if refusal(refused) not in STALE:
                    return BoltResponse(status=503)
            except (aiohttp.ClientError, TimeoutError):
                return BoltResponse(status=503)
        return await next()

    return hear


def _authorizer(installs: Installs) -> Callable[..., Awaitable[Any]]:
    """Who the bot is in the workspace of a request, without asking Slack again. Bolt looks at the names of a function's arguments."""

    async def authorize(enterprise_id: str | None, team_id: str | None) -> AuthorizeResult | None:
        identity = await installs.of(enterprise_id, team_id)
        if identity is None:
            return None
        return AuthorizeResult(
            enterprise_id=identity.enterprise,
            team_id=identity.team,
            bot_user_id=identity.bot_user,
            bot_id=identity.bot_id,
            bot_token=identity.token,
        )

    return authorize


def _entrance(installs: Installs, gate: Gate) -> Callable[..., Awaitable[BoltResponse]]:
    """Everything verified ends here: stored and acknowledged, or refused so that Slack tries again."""

    async def enter(req: AsyncBoltRequest) -> BoltResponse:
        enterprise, team = where(req.body)
        status, says = await gate.enter(req.body, await installs.of(enterprise, team))
        kind: dict[str, str | Sequence[str]] = {"content-type": "application/json"} if says else {}
        return BoltResponse(status=status, body=json.dumps(says) if says else "", headers=kind)

    return enter


__all__ = ["SlackDoor", "build_slack"]
