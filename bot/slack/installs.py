"""Who the bot is in each workspace, and its token: one workspace from the environment, or many, encrypted at rest."""

import asyncio
import base64
import hashlib
import json
import logging
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import aiohttp
from cryptography.fernet import Fernet, InvalidToken
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot.settings import Settings
from bot.slack.hosts import Hosts

if TYPE_CHECKING:
    from aiohttp import ClientSession

    from bot.store.store import Store

log = logging.getLogger(__name__)
REFRESH_BEFORE = 2 * 3600  # seconds before a rotating token ends; it lives for twelve hours


@dataclass(frozen=True, slots=True)
class Identity:
    """The bot in one workspace. `expires` is a Unix second, None for tokens that do not rotate; `since`: the one the token was given in."""

    team: str
    enterprise: str | None
    bot_user: str
    bot_id: str
    token: str
    scopes: tuple[str, ...] = ()
    refresh: str | None = None
    expires: int | None = None
    whole_enterprise: bool = False
    name: str = ""
    since: int | None = None

    def __repr__(self) -> str:
        return f"Identity({self.team}, {self.bot_user})"


def refusal(refused: SlackApiError) -> str:
    """What Slack called it; where something before Slack answered, with no JSON, that status."""
    answer = refused.response
    data = answer.data if isinstance(answer, AsyncSlackResponse) else None
    said = data.get("error") if isinstance(data, dict) else None
    return str(said or f"status {getattr(answer, 'status_code', 'unknown')}")


def cipher(secret_key: str) -> Fernet:
    """Encryption for tokens at rest, from OOMBOT_SECRET_KEY of any length."""
    return Fernet(base64.urlsafe_b64encode(hashlib.sha256(b"oombot tokens at rest\0" + secret_key.encode()).digest()))


class Installs:
    """Identities by workspace. Lookups are answered from memory after the first; Slack is asked only when nothing is known."""

    def __init__(self, settings: Settings, store: "Store", hosts: Hosts) -> None:
        self._settings = settings
        self._store = store
        self._hosts = hosts
        self._known: dict[tuple[str, str], Identity] = {}
        self._clients: dict[str, AsyncWebClient] = {}
        self._asking = asyncio.Lock()
        self._cipher = cipher(settings.secret_key) if settings.secret_key else None
        self.session: ClientSession | None = None

    @property
    def single(self) -> bool:
        """One workspace, its token from the environment."""
        return self._settings.slack_bot_token is not None

    def client(self, token: str | None) -> AsyncWebClient:
        """A Web API client over the shared session; retries are the outbox's business."""
        if token is None or token not in self._clients:
            fresh = AsyncWebClient(token=token, base_url=self._hosts.api_url, session=self.session, timeout=30, retry_handlers=[])
            if token is None:
                return fresh
            self._clients[token] = fresh
        return self._clients[token]

    async def of(self, enterprise: str | None, team: str | None) -> Identity | None:
        """The identity in that workspace; None when the app is not installed there. SlackApiError when Slack refuses the token."""
        found = (
            self._known.get((enterprise or "", team or "")) or self._known.get(("", team or "")) or self._known.get((enterprise or "", ""))
        )
        if found is None:
            async with self._asking:
                found = await (self._own() if self.single else self._stored(enterprise, team))
        if found is None:
            return None
        if self.single and not found.whole_enterprise and team and team != found.team:
            return None
        if found.expires is not None and found.expires - time.time() < REFRESH_BEFORE:
            found = await self._refreshed(found)
        if found.whole_enterprise and team:
            # An organisation's installation names no workspace: whose something is says the event.
            return replace(found, team=team, enterprise=enterprise or found.enterprise)
        return found

    async def _own(self) -> Identity:
        if self._known:
            return next(iter(self._known.values()))
        token = self._settings.slack_bot_token or ""
        answer = await self.client(token).auth_test()
        scopes = tuple(s.strip() for s in answer.headers.get("x-oauth-scopes", "").split(",") if s.strip())
        identity = Identity(
            team=answer["team_id"],
            enterprise=answer.get("enterprise_id"),
            bot_user=answer["user_id"],
            bot_id=answer.get("bot_id") or "",
            token=token,
            scopes=scopes,
            whole_enterprise=bool(answer.get("is_enterprise_install")),
            name=answer.get("team") or "",
        )
        self._remember(identity)
        return identity

    async def _stored(self, enterprise: str | None, team: str | None) -> Identity | None:
        for where in ((enterprise, team or ""), (enterprise, "")):
            payload = await self._store.find_install(where[1], where[0])
            if payload is None or self._cipher is None:
                continue
            try:
                kept = json.loads(self._cipher.decrypt(payload))
            except InvalidToken:
                log.error("The token of workspace %s cannot be read: OOMBOT_SECRET_KEY has changed. Install the app there again.", team)
                return None
            identity = Identity(**{**kept, "scopes": tuple(kept["scopes"])})
            self._remember(identity)
            return identity
        return None

    def _remember(self, identity: Identity) -> None:
        self._known[(identity.enterprise or "", "" if identity.whole_enterprise else identity.team)] = identity

    async def save(self, identity: Identity, by: str | None = None) -> None:
        """Keeps a new installation, its tokens encrypted."""
        if self._cipher is None:
            raise ValueError("OOMBOT_SECRET_KEY is not set: tokens of several workspaces are only kept encrypted")
        payload = self._cipher.encrypt(json.dumps(asdict(identity)).encode())
        await self._store.save_install("" if identity.whole_enterprise else identity.team, payload, enterprise=identity.enterprise, by=by)
        self._remember(identity)

    def doubt(self, identity: Identity) -> None:
        """Slack no longer takes this token: another process may have renewed it, so it is looked up again."""
        self._known = {key: known for key, known in self._known.items() if known.token != identity.token}

    async def access(self, **given: str) -> dict[str, Any]:
        """Slack's answer to oauth.v2.access. SlackApiError when it refuses."""
        secrets = {"client_id": self._settings.slack_client_id or "", "client_secret": self._settings.slack_client_secret or ""}
        answer = await self.client(None).api_call("oauth.v2.access", data={**secrets, **given})
        return answer.data if isinstance(answer.data, dict) else {}

    async def given_after(self, enterprise: str | None, team: str | None, moment: int) -> Identity | None:
        """The kept identity, if its token was given after a Unix second: what befell a token at that moment befell an older one."""
        kept = None if self.single else await self._stored(enterprise, team)
        return kept if kept is not None and kept.since is not None and kept.since > moment else None

    async def remove(self, enterprise: str | None, team: str | None) -> None:
        """Forgets the token of a workspace that revoked it or removed the app."""
        for key in [key for key in self._known if key in ((enterprise or "", team or ""), ("", team or ""))]:
            del self._known[key]
        if not self.single:
            await self._store.delete_install(team or "", enterprise)

    async def _refreshed(self, old: Identity) -> Identity:
        async with self._asking:
            current = self._known.get((old.enterprise or "", "" if old.whole_enterprise else old.team), old)
            if current.token != old.token or old.refresh is None:
                return current
            try:
                answer = await self.access(grant_type="refresh_token", refresh_token=old.refresh)
            except (SlackApiError, aiohttp.ClientError, TimeoutError) as failed:  # it holds for up to two hours yet
                why = refusal(failed) if isinstance(failed, SlackApiError) else type(failed).__name__
                log.error("The token of workspace %s was not renewed: %s", old.team, why)
                return old
            fresh = installed(answer, old)
            await self.save(fresh)
            return fresh


def installed(answer: Mapping[str, Any], before: Identity | None = None) -> Identity:
    """Slack's answer to oauth.v2.access as an identity; a renewal leaves out what has not changed."""
    lives = answer.get("expires_in")
    team = answer.get("team") or {}
    enterprise = answer.get("enterprise") or {}
    return Identity(
        team=team.get("id") or (before.team if before else ""),
        enterprise=enterprise.get("id") or (before.enterprise if before else None),
        bot_user=answer.get("bot_user_id") or (before.bot_user if before else ""),
        bot_id=answer.get("bot_id") or (before.bot_id if before else ""),
        token=answer["access_token"],
        scopes=tuple(s for s in str(answer.get("scope") or "").split(",") if s) or (before.scopes if before else ()),
        refresh=answer.get("refresh_token"),
        expires=int(time.time()) + int(lives) if lives else None,
        since=int(time.time()),
        whole_enterprise=bool(answer.get("is_enterprise_install", before.whole_enterprise if before else False)),
        name=team.get("name") or (before.name if before else ""),
    )
