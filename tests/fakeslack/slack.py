"""The server: Web API, files, response URLs, OAuth, the WebSocket, deliveries with retries, and faults on demand."""

import asyncio
import hashlib
import hmac
import itertools
import json
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import aiohttp
import yaml
from aiohttp import web

from tests.fakeslack import blocks as rules
from tests.fakeslack.methods import METHODS, Refusal
from tests.fakeslack.state import Channel, Clock, File, ResponseUrl, Team, Trigger, View

MANIFEST = Path(__file__).parents[2] / "bot" / "slack" / "manifest.yaml"
JSON_ARGUMENTS = ("blocks", "metadata", "view", "files", "attachments")
LOGIN = b"<!DOCTYPE html><html><head><title>Sign in | Slack</title></head><body>Sign in to your workspace</body></html>"


@dataclass
class Fault:
    method: str
    kind: str  # close (of a socket, before its hello) | garbled (200, but not what Slack says) | ratelimited | status | error | slow (carried out later) | late (answered later) | drop
    times: int = 1
    value: Any = None


@dataclass
class Call:
    method: str
    args: dict[str, Any]
    team: str
    ok: bool = True
    error: str | None = None
    messages: list[str] = field(default_factory=list)
    at: float = field(default_factory=time.monotonic)


@dataclass
class Ack:
    """What the app answered to one delivery."""

    status: int
    body: Any
    seconds: float
    tries: int


class FakeSlack:
    """`transport`: http (signed, to `events_url`) or socket. `retry_after`: seconds before each retry; Slack's own are 0, 60, 300."""

    def __init__(
        self, transport: str = "http", *, retry_after: Sequence[float] = (0.05, 0.3, 1.0), port: int = 0, patience: float = 3.0
    ) -> None:
        self.transport = transport
        self.retry_after = retry_after
        self.patience = patience
        self.manifest = yaml.safe_load(MANIFEST.read_text(encoding="utf-8"))
        self.signing_secret = "fake-signing-secret"
        self.app_token = "xapp-1-fake"
        self.client_id, self.client_secret = "fake.client", "fake-client-secret"
        self.events_url: str | None = None
        self.clock = Clock()
        self.teams: dict[str, Team] = {}
        self.files: dict[str, File] = {}
        self.uploads: dict[str, File] = {}
        self.triggers: dict[str, Trigger] = {}
        self.response_urls: dict[str, ResponseUrl] = {}
        self.views: dict[str, View] = {}
        self.calls: list[Call] = []
        self.refusals: list[Call] = []  # what the bot got wrong, faults apart
        self.reactions: list[tuple[str, str, str, bool]] = []
        self.edits: Counter[tuple[str, str]] = Counter()
        self.deliveries: list[tuple[str, Ack]] = []
        self.used_scopes: set[str] = set()
        self.faults: list[Fault] = []
        self.hear_events = True
        self.gives_metadata = True
        self.bare_mentions = False  # the event that names the app comes first, and without files
        self.organisation: str | None = None  # what is installed from now on is installed for all of it
        self.comes_back: Team | None = None  # is installed next, anew
        self.linked = True  # Socket Mode is switched on
        self.most_messages = 1_000  # of one page; 15 for apps that are sold outside the Marketplace
        self._ids = itertools.count(1)
        self._port = port
        self._sockets: list[web.WebSocketResponse] = []
        self.links_made = 0  # WebSockets that were ever opened: those of the dead are noticed a moment later
        self._transports: list[asyncio.Transport] = []
        self._waiting: dict[str, asyncio.Future[Any]] = {}
        self._takes_payload: dict[str, bool] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._skew = 0.0
        self._codes: dict[str, Team] = {}
        self._refresh: dict[str, str] = {}
        self._connected = asyncio.Event()

    # Life

    async def start(self) -> None:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_route("*", "/api/{method}", self._api)
        app.router.add_get("/files/{id}/{rest:.*}", self._file)
        app.router.add_post("/upload/{ticket}", self._upload)
        app.router.add_post("/respond/{ticket}", self._respond)
        app.router.add_get("/oauth/v2/authorize", self._allow)
        app.router.add_get("/link/{ticket}", self._link)
        self.mount(app)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        assert self._runner.addresses
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        self._session = aiohttp.ClientSession()

    def mount(self, app: web.Application) -> None:
        """Room for more routes."""

    async def stop(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for socket in self._sockets:
            await socket.close()
        await self._session.close()
        await self._runner.cleanup()

    @asynccontextmanager
    async def running(self) -> AsyncIterator["FakeSlack"]:
        await self.start()
        try:
            yield self
        finally:
            await self.stop()

    @property
    def api_url(self) -> str:
        return f"{self.url}/api/"

    # The world

    def new_id(self, letter: str) -> str:
        return f"{letter}{next(self._ids):08d}"

    def team(self, name: str = "Acme", *, scopes: set[str] | None = None, enterprise: str | None = None) -> Team:
        granted = self.manifest["oauth_config"]["scopes"]
        every = {*granted["bot"], *granted["bot_optional"]}
        made = Team(
            self.new_id("T"),
            name,
            self.new_id("U"),
            self.new_id("B"),
            f"xoxb-{secrets.token_hex(8)}",
            every if scopes is None else scopes,
            enterprise=enterprise,
        )
        made.users[made.bot_user] = made.id
        self.teams[made.id] = made
        return made

    def channel(self, team: Team, name: str, *, private: bool = False, members: Sequence[str] = (), with_bot: bool = True) -> Channel:
        made = Channel(self.new_id("C"), name, "group" if private else "channel", {*members, *([team.bot_user] if with_bot else [])})
        team.channels[made.id] = made
        return made

    def direct(self, team: Team, user: str) -> Channel:
        found = next((c for c in team.channels.values() if c.kind == "im" and user in c.members), None)
        if found is None:
            found = Channel(self.new_id("D"), "", "im", {user, team.bot_user})
            team.channels[found.id] = found
        return found

    def fault(self, method: str, kind: str, times: int = 1, value: Any = None) -> None:
        self.faults.append(Fault(method, kind, times, value))

    def age(self, made: float) -> float:
        return time.monotonic() + self._skew - made

    def later(self, seconds: float) -> None:
        """Trigger ids and response URLs grow older."""
        self._skew += seconds

    def called(self, method: str) -> list[Call]:
        return [call for call in self.calls if call.method == method]

    def said_by_bot(self, team: Team) -> list[dict[str, Any]]:
        return [m for c in team.channels.values() for m in c.messages if m.get("bot_id") == team.bot_id]

    def everything_said(self) -> str:
        """All that ever left the bot, as one text."""
        said = [call.args for call in self.calls]
        return json.dumps(
            [said, [f.data.decode("utf-8", "replace") for f in self.files.values() if f.owner in {t.bot_user for t in self.teams.values()}]]
        )

    # Messages and the events they raise

    def add_message(self, team: Team, channel: Channel, message: dict[str, Any]) -> list["asyncio.Task[Ack]"]:
        channel.messages.append(message)
        raised = []
        event = {key: value for key, value in message.items() if key != "reactions"}
        event |= {"type": "message", "channel": channel.id, "channel_type": channel.kind, "event_ts": message["ts"]}
        if self._hears(team, channel) and not self.bare_mentions:
            raised.append(self.emit(team, event))
        if (
            f"<@{team.bot_user}>" in message.get("text", "")
            and team.bot_user in channel.members
            and channel.kind != "im"
            and message.get("user") != team.bot_user
        ):
            left_out = ("channel_type", "subtype", *(("files", "upload") if self.bare_mentions else ()))
            mention = {key: value for key, value in event.items() if key not in left_out} | {"type": "app_mention"}
            if "app_mentions:read" in team.scopes:
                raised.append(self.emit(team, mention))
        if self._hears(team, channel) and self.bare_mentions:
            raised.append(self.emit(team, event))
        return raised

    def emit_edit(self, team: Team, channel: Channel, before: dict[str, Any], after: dict[str, Any]) -> "asyncio.Task[Ack] | None":
        if not self._hears(team, channel):
            return None
        event = {"type": "message", "subtype": "message_changed", "hidden": True, "channel": channel.id, "channel_type": channel.kind}
        return self.emit(
            team, event | {"ts": self.clock.ts(), "event_ts": self.clock.ts(), "message": dict(after), "previous_message": before}
        )

    def _hears(self, team: Team, channel: Channel) -> bool:
        name = {"channel": "channels", "group": "groups", "im": "im", "mpim": "mpim"}[channel.kind]
        subscribed = f"message.{name}" in self.manifest["settings"]["event_subscriptions"]["bot_events"]
        return subscribed and team.bot_user in channel.members and f"{name}:history" in team.scopes

    def emit(
        self, team: Team, event: dict[str, Any], event_id: str | None = None, *, sent_from: str | None = None, ago: int = 0
    ) -> "asyncio.Task[Ack]":
        """Delivers an event with Slack's retries. `sent_from`: another team, for what its members do in a shared channel. `ago`: seconds."""
        body = {
            "token": "verification-token-of-old", "team_id": sent_from or team.id, "context_team_id": team.id,
            "is_ext_shared_channel": sent_from is not None, "api_app_id": "A1", "event": event, "type": "event_callback",
            "event_id": event_id or self.new_id("Ev"), "event_time": int(time.time()) - ago, "enterprise_id": team.enterprise,
            "authorizations": [{"enterprise_id": team.enterprise, "team_id": None if team.by_organisation else team.id, "user_id": team.bot_user, "is_bot": True, "is_enterprise_install": team.by_organisation}],
        }  # fmt: skip
        return self._begin(self._with_retries("events_api", body))

    def _begin(self, work: Any) -> "asyncio.Task[Any]":
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _with_retries(self, kind: str, body: dict[str, Any]) -> Ack:
        if not self.hear_events:
            return Ack(0, None, 0.0, 0)
        begun = time.monotonic()
        reason = None
        for number, wait in enumerate((0.0, *self.retry_after)):
            await asyncio.sleep(wait)
            status, answer = await self.deliver(kind, body, retry=number, reason=reason)
            if 200 <= status < 300:
                break
            reason = "http_timeout" if status == 0 else "http_error"
        ack = Ack(status, answer, time.monotonic() - begun, number + 1)
        self.deliveries.append((str(body.get("event", {}).get("type")), ack))
        return ack

    async def deliver(self, kind: str, body: dict[str, Any], *, retry: int = 0, reason: str | None = None) -> tuple[int, Any]:
        """One delivery: (status, body); status 0 when nothing came within Slack's three seconds."""
        try:
            async with asyncio.timeout(self.patience):
                if self.transport == "http":
                    return await self._over_http(kind, body, retry, reason)
                return await self._over_socket(kind, body, retry, reason)
        except (TimeoutError, aiohttp.ClientError):
            return 0, None

    async def _over_http(self, kind: str, body: dict[str, Any], retry: int, reason: str | None) -> tuple[int, Any]:
        if kind == "events_api":
            raw, content = json.dumps(body), "application/json"
        elif kind == "slash_commands":
            raw, content = urlencode(body), "application/x-www-form-urlencoded"
        else:
            raw, content = urlencode({"payload": json.dumps(body)}), "application/x-www-form-urlencoded"
        headers = self.signed(raw) | {"Content-Type": content}
        if retry:
            headers |= {"X-Slack-Retry-Num": str(retry), "X-Slack-Retry-Reason": reason or ""}
        assert self.events_url, "where the app listens"
        async with self._session.post(self.events_url, data=raw.encode(), headers=headers) as answer:
            text = await answer.text()
            return answer.status, _json(text)

    def signed(self, raw: str, *, secret: str | None = None, at: int | None = None) -> dict[str, str]:
        stamp = str(int(time.time()) if at is None else at)
        digest = hmac.new((secret or self.signing_secret).encode(), f"v0:{stamp}:{raw}".encode(), hashlib.sha256).hexdigest()
        return {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": f"v0={digest}"}

    async def _over_socket(self, kind: str, body: dict[str, Any], retry: int, reason: str | None) -> tuple[int, Any]:
        await self._connected.wait()
        envelope = secrets.token_hex(8)
        waiting: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[envelope] = waiting
        self._takes_payload[envelope] = kind != "events_api"
        sent = {"envelope_id": envelope, "type": kind, "payload": body, "accepts_response_payload": kind != "events_api"}
        sent |= {"retry_attempt": retry, "retry_reason": reason or ""} if kind == "events_api" else {}
        try:
            await secrets.choice(self._sockets).send_json(sent)
            return 200, await waiting
        finally:
            self._waiting.pop(envelope, None)

    async def disconnect(self, reason: str = "refresh_requested", *, notice: float = 0.0) -> None:
        """Slack asks every connection to come back, as it does every few hours; a warning comes `notice` seconds before the end."""
        old = list(self._sockets)
        for socket in old:
            await socket.send_json({"type": "disconnect", "reason": reason, "debug_info": {"host": "applink-1"}})
        await asyncio.sleep(notice)
        self._connected.clear()
        for socket in old:
            await socket.close()
        if any(not socket.closed for socket in self._sockets):
            self._connected.set()

    def cut(self) -> None:
        """Every connection breaks without a word."""
        self._connected.clear()
        for transport in self._transports:
            transport.abort()

    async def connected(self) -> None:
        await asyncio.wait_for(self._connected.wait(), 60)

    async def linked_anew(self, before: int) -> None:
        """Until another WebSocket stands than the first `before` that were ever opened. Over HTTP there is none to wait for."""
        async with asyncio.timeout(60):
            while self.transport == "socket" and self.links_made <= before:  # noqa: ASYNC110  # they are other processes'
                await asyncio.sleep(0.02)

    # Interaction

    def trigger(self, team: Team, user: str) -> str:
        ticket = f"{next(self._ids)}.{secrets.token_hex(6)}"
        self.triggers[ticket] = Trigger(user, team.id, made=time.monotonic() + self._skew)
        return ticket

    def response_url(self, team: Team, channel: Channel, user: str, ts: str | None = None) -> str:
        ticket = secrets.token_hex(12)
        self.response_urls[ticket] = ResponseUrl(team.id, channel.id, user, ts, made=time.monotonic() + self._skew)
        return f"{self.url}/respond/{ticket}"

    def file_body(self, file: File) -> dict[str, Any]:
        address = f"{self.url}/files/{file.id}/download/{file.name}" if file.url is None else file.url
        body = {
            "id": file.id, "name": file.name, "title": file.name, "mode": file.mode, "size": len(file.data) if file.size is None else file.size,
            "mimetype": "text/plain", "filetype": "text", "is_external": file.external, "external_type": "gdrive" if file.external else "",
            "url_private": address, "url_private_download": address, "preview": file.data[:100].decode("utf-8", "replace"), "user": file.owner,
        }  # fmt: skip
        return {"id": file.id, "mode": "tombstone"} if file.deleted else body

    # Handlers

    async def _api(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["method"]
        args = await self._arguments(request)
        token = request.headers.get("Authorization", "").removeprefix("Bearer ") or str(args.pop("token", ""))
        args.pop("token", None)
        if name == "apps.connections.open":
            if fault := self._fault(name):
                return self._faulty(Call(name, args, ""), fault, next(iter(self.teams.values())))
            return self._connection(token)
        if name == "oauth.v2.access":
            if fault := self._fault(name):
                return self._faulty(Call(name, args, ""), fault, next(iter(self.teams.values())))
            return self._access(args, request)
        team = self._team_of(token, args)
        call = Call(name, args, team.id if team else "")
        self.calls.append(call)
        if team is None or team.revoked:
            return self._refused(call, Refusal("token_revoked" if team else "invalid_auth"), None)
        fault = self._fault(name)
        if fault is not None and fault.kind == "slow":
            await asyncio.sleep(fault.value)
        elif fault is not None and fault.kind not in ("drop", "late"):
            return self._faulty(call, fault, team)
        try:
            done = self._carry_out(name, team, args)
        except Refusal as refusal:
            return self._refused(call, refusal, team)
        if fault is not None and fault.kind == "late":
            await asyncio.sleep(fault.value)
        if fault is not None and fault.kind == "drop":
            assert request.transport is not None
            request.transport.abort()  # carried out, but the app never hears
        return web.json_response({"ok": True, **done}, headers=self._headers(team))

    def _team_of(self, token: str, args: dict[str, Any]) -> Team | None:
        """Whose token it is; an organisation's counts in the workspace that the call is about."""
        found = [team for team in self.teams.values() if team.token == token]
        about = {str(args.get(name)) for name in ("channel", "channel_id", "team_id", "user", "users", "user_id")}
        return next((team for team in found if about & {team.id, *team.channels, *team.users}), found[0] if found else None)

    def _carry_out(self, name: str, team: Team, args: dict[str, Any]) -> dict[str, Any]:
        method = METHODS.get(name)
        if method is None:
            raise Refusal("unknown_method")
        if method.scopes and not team.scopes & set(method.scopes):
            raise Refusal("missing_scope", needed=",".join(method.scopes), provided=",".join(sorted(team.scopes)))
        if missing := [need for need in method.needs if args.get(need) in (None, "")]:
            raise Refusal("invalid_arguments", [f"missing required field: {name}" for name in missing])
        if extra := set(args) - method.takes:
            raise Refusal("invalid_arguments", [f"unknown argument: {name}" for name in sorted(extra)])
        self.used_scopes |= set(method.scopes)
        return method.work(self, team, args)

    def _fault(self, name: str) -> Fault | None:
        for fault in self.faults:
            if fault.times > 0 and fault.method in (name, "*"):
                fault.times -= 1
                return fault
        return None

    def _faulty(self, call: Call, fault: Fault, team: Team) -> web.Response:
        call.ok, call.error = False, f"fault:{fault.kind}"
        if fault.kind == "ratelimited":
            return web.json_response({"ok": False, "error": "ratelimited"}, status=429, headers={"Retry-After": str(fault.value or 1)})
        if fault.kind == "garbled":
            return web.Response(text=str(fault.value), content_type="text/html" if "<" in fault.value else "application/json")
        if fault.kind == "status":
            return web.Response(status=fault.value or 500, text="<html>Server Error</html>", content_type="text/html")
        return web.json_response({"ok": False, "error": fault.value}, headers=self._headers(team))

    def _refused(self, call: Call, refusal: Refusal, team: Team | None) -> web.Response:
        call.ok, call.error, call.messages = False, refusal.error, refusal.messages
        self.refusals.append(call)
        body = {"ok": False, "error": refusal.error, "response_metadata": {"messages": refusal.messages}, **refusal.extra}
        return web.json_response(body, headers=self._headers(team) if team else {})

    def _headers(self, team: Team) -> dict[str, str]:
        return {"X-OAuth-Scopes": ",".join(sorted(team.scopes))}

    async def _arguments(self, request: web.Request) -> dict[str, Any]:
        args: dict[str, Any] = dict(request.query)
        if request.method == "POST":
            args |= await request.json() if request.content_type == "application/json" else dict(await request.post())
        for key in JSON_ARGUMENTS:
            if isinstance(args.get(key), str):
                args[key] = json.loads(args[key])
        return {key: {"true": True, "1": True, "false": False, "0": False}.get(value, value) if isinstance(value, str) else value
                for key, value in args.items()}  # fmt: skip

    def _connection(self, token: str) -> web.Response:
        if token != self.app_token or not self.linked:
            return web.json_response({"ok": False, "error": "invalid_auth" if self.linked else "link_disabled"})
        return web.json_response({"ok": True, "url": f"{self.url.replace('http', 'ws')}/link/{secrets.token_hex(6)}"})

    async def _link(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        if self._fault("hello"):
            await socket.close()
            return socket
        await socket.send_json({"type": "hello", "num_connections": 1, "connection_info": {"app_id": "A1"}})
        self._sockets.append(socket)
        self.links_made += 1
        assert request.transport is not None
        self._transports = [transport for transport in self._transports if not transport.is_closing()] + [request.transport]
        self._connected.set()
        try:
            async for message in socket:
                if message.type != aiohttp.WSMsgType.TEXT:
                    continue
                said = json.loads(message.data) if message.data.startswith("{") else {}
                envelope = said.get("envelope_id", "")
                if envelope not in self._takes_payload or (said.get("payload") and not self._takes_payload[envelope]):
                    self._refused(Call("socket", said, ""), Refusal("invalid_ack"), None)
                waiting = self._waiting.get(envelope)
                if waiting is not None and not waiting.done():
                    waiting.set_result(said.get("payload"))
        finally:
            self._sockets.remove(socket)
            if not self._sockets:
                self._connected.clear()
        return socket

    async def _file(self, request: web.Request) -> web.StreamResponse:
        file = self.files.get(request.match_info["id"])
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        team = next((t for t in self.teams.values() if t.token == token), None)
        if file is None or team is None or "files:read" not in team.scopes or file.as_html:
            return web.Response(body=LOGIN, content_type="text/html")
        hop = int(request.query.get("hop", 0))
        if hop < len(file.hops):
            return web.Response(status=302, headers={"Location": file.hops[hop] or f"{request.path}?hop={hop + 1}"})
        await asyncio.sleep(file.slow)
        return web.Response(body=file.data, content_type="text/plain")

    async def _upload(self, request: web.Request) -> web.Response:
        file = self.uploads.pop(request.match_info["ticket"], None)
        if file is None:
            return web.Response(status=404)
        file.data = await request.read()
        return web.Response(text=f"OK - {len(file.data)}") if len(file.data) == file.size else web.Response(status=400)

    async def _respond(self, request: web.Request) -> web.Response:
        known = self.response_urls.get(request.match_info["ticket"])
        body = await request.json()
        call = Call("response_url", body, known.team if known else "")
        self.calls.append(call)
        fault = self._fault("response_url")
        if fault is not None and fault.kind == "slow":
            await asyncio.sleep(fault.value)
        elif fault is not None and fault.kind not in ("drop", "late"):
            return self._faulty(call, fault, self.teams[known.team] if known else Team("", "", "", "", "", set()))
        if known is None or known.uses >= 5 or self.age(known.made) > 1_800:
            self._refused(call, Refusal("used_url" if known else "no_url"), None)
            return web.json_response({"ok": False, "error": call.error}, status=404)
        if found := rules.problems(body.get("blocks") or [], rules.MESSAGE):
            self._refused(call, Refusal("invalid_blocks", found), None)
            return web.Response(status=400, text="invalid_blocks")
        if not body.get("text"):
            self._refused(call, Refusal("no_text"), None)
            return web.Response(status=400, text="no_text")
        known.uses += 1
        channel = self.teams[known.team].channels[known.channel]
        shown = {
            "user": known.user,
            "text": body["text"],
            "blocks": body.get("blocks"),
            "ts": self.clock.ts(),
            "replaced": bool(body.get("replace_original")),
        }
        clicked = known.ts if body.get("replace_original") else None
        original = next((m for m in (*channel.messages, *channel.ephemerals) if m["ts"] == clicked), None)
        if original is not None:  # a message that all see is replaced for all
            original |= {"text": body["text"], "blocks": body.get("blocks"), "replaced": True}
        elif body.get("response_type") == "in_channel" and not body.get("replace_original"):
            channel.messages.append(shown | {"bot_id": self.teams[known.team].bot_id, "user": self.teams[known.team].bot_user})
        else:
            channel.ephemerals.append(shown)
        if fault is not None and fault.kind == "late":
            await asyncio.sleep(fault.value)
        if fault is not None and fault.kind == "drop":
            assert request.transport is not None
            request.transport.abort()
        return web.Response(text="ok")

    async def _allow(self, request: web.Request) -> web.Response:
        """A person allows the installation at once."""
        asked = request.query
        granted = self.manifest["oauth_config"]["scopes"]
        unknown = set(asked["scope"].split(",")) - {*granted["bot"], *granted["bot_optional"]}
        if asked["client_id"] != self.client_id or unknown:
            return web.Response(status=400, text=f"invalid_scope {unknown}")
        team = self.comes_back or self.team(
            f"Installed {len(self.teams)}", scopes=set(asked["scope"].split(",")), enterprise=self.organisation
        )
        if team is self.comes_back:
            team.token, team.revoked, self.comes_back = f"xoxb-{secrets.token_hex(8)}", False, None
        team.by_organisation = self.organisation is not None
        code = secrets.token_hex(8)
        self._codes[code] = team
        return web.Response(
            status=302, headers={"Location": f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"}
        )

    def _access(self, args: dict[str, Any], request: web.Request) -> web.Response:
        basic = request.headers.get("Authorization", "")
        given = (args.get("client_id"), args.get("client_secret"))
        if given != (self.client_id, self.client_secret) and not basic.startswith("Basic "):
            return web.json_response({"ok": False, "error": "invalid_client_id"})
        if args.get("grant_type") == "refresh_token":
            team = self.teams.get(self._refresh.pop(str(args.get("refresh_token")), ""))
        else:
            team = self._codes.pop(str(args.get("code")), None)
        if team is None:
            return web.json_response({"ok": False, "error": "invalid_code"})
        if args.get("grant_type") == "refresh_token":
            team.token = f"xoxe.xoxb-{secrets.token_hex(8)}"
        body = {
            "ok": True, "access_token": team.token, "token_type": "bot", "scope": ",".join(sorted(team.scopes)), "bot_user_id": team.bot_user,
            "bot_id": team.bot_id, "app_id": "A1", "team": None if team.by_organisation else {"id": team.id, "name": team.name},
            "enterprise": {"id": team.enterprise, "name": "Org"} if team.enterprise else None, "is_enterprise_install": team.by_organisation,
            "authed_user": {"id": "U_INSTALLER"},
        }  # fmt: skip
        return web.json_response(body | self.rotating(team))

    def rotating(self, team: Team) -> dict[str, Any]:
        if not self.manifest["settings"].get("token_rotation_enabled"):
            return {}
        refresh = f"xoxe-{secrets.token_hex(8)}"
        self._refresh[refresh] = team.id
        return {"refresh_token": refresh, "expires_in": self.token_life}

    token_life = 43_200


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text or None
