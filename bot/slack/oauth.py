"""Installing the bot into one more workspace: the page that sends a person to Slack, and the one that Slack sends them back to."""

import html
import logging
import secrets
from urllib.parse import urlencode, urlsplit

from aiohttp import web
from cryptography.fernet import Fernet, InvalidToken
from slack_sdk.errors import SlackApiError

from bot.settings import Settings
from bot.slack.installs import Installs, cipher, installed, refusal
from bot.slack.manifest import bot_scopes

log = logging.getLogger(__name__)
COOKIE = "oombot_install"
MINUTES = 10


class OAuth:
    """The state is encrypted, lives ten minutes, and must come back to the browser that was given it."""

    def __init__(self, settings: Settings, installs: Installs) -> None:
        self._settings = settings
        self._installs = installs
        self._cipher: Fernet | None = cipher("state " + settings.secret_key) if settings.secret_key else None

    async def begin(self, request: web.Request) -> web.Response:
        """Sends the browser to Slack."""
        if not self._settings.slack_client_id or self._cipher is None or self._installs.single:
            return _page(
                404,
                "One workspace is served here. For several: SLACK_CLIENT_ID, SLACK_CLIENT_SECRET and OOMBOT_SECRET_KEY; no SLACK_BOT_TOKEN",
            )
        nonce = secrets.token_urlsafe(24)
        asked = {
            "client_id": self._settings.slack_client_id,
            "scope": ",".join(bot_scopes()),
            "state": self._cipher.encrypt(nonce.encode()).decode(),
            "redirect_uri": self._redirect(request),
        }
        answer = web.Response(status=302, headers={"Location": f"{self._authorize_url()}?{urlencode(asked)}"})
        answer.set_cookie(
            COOKIE,
            nonce,
            max_age=MINUTES * 60,
            httponly=True,
            samesite="Lax",
            secure=request.secure or self._redirect(request).startswith("https"),
        )
        return answer

    async def end(self, request: web.Request) -> web.Response:
        """Takes the code that Slack gave for the token, and keeps the token encrypted."""
        if self._cipher is None or not self._settings.slack_client_id:
            return _page(404, "This bot serves one workspace.")
        if request.query.get("error"):
            return _page(200, "Slack says that the installation was not allowed. Nothing was changed.")
        try:
            nonce = self._cipher.decrypt(request.query.get("state", "").encode(), ttl=MINUTES * 60).decode()
        except InvalidToken:
            nonce = ""
        if not nonce or not secrets.compare_digest(nonce, request.cookies.get(COOKIE, "")):
            return _page(400, "This link is older than ten minutes, or was opened in another browser. Start again at /slack/install.")
        try:
            data = await self._installs.access(code=request.query.get("code", ""), redirect_uri=self._redirect(request))
        except SlackApiError as refused:
            log.error("installation refused: %s", refusal(refused))
            return _page(400, f"Slack refused the installation ({refused.response.get('error')}). Start again at /slack/install.")
        await self._installs.save(installed(data), by=(data.get("authed_user") or {}).get("id"))
        done = _page(200, "Installed. Invite the bot to a channel, mention it with a crash log, and it answers in the thread.")
        done.del_cookie(COOKIE)
        return done

    def _redirect(self, request: web.Request) -> str:
        base = self._settings.public_url or f"{request.scheme}://{request.host}"
        return base.rstrip("/") + "/slack/oauth_redirect"

    def _authorize_url(self) -> str:
        parts = urlsplit(self._settings.slack_api_url)
        return f"{parts.scheme}://{parts.netloc}/oauth/v2/authorize"


def _page(status: int, said: str) -> web.Response:
    style = "font:16px sans-serif;max-width:40em;margin:4em auto"
    text = f"<!doctype html><meta charset=utf-8><title>oombot</title><p style='{style}'>{html.escape(said)}</p>"
    return web.Response(
        status=status,
        text=text,
        content_type="text/html",
        headers={"Cache-Control": "no-store", "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"},
    )
