"""Sign in with Slack: OpenID Connect's code flow, ending in a signed session cookie.

Slack's own pages: /openid/connect/authorize, then openid.connect.token. The ID token comes straight from Slack over TLS,
so its claims are checked and its signature need not be (OpenID Connect Core 1.0, section 3.1.3.7, point 6).
"""

import base64
import json
import secrets
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode, urljoin, urlsplit

import aiohttp
from aiohttp import web

from bot.settings import Settings
from bot.usecases.reply import Unusable
from bot.web.access import SESSION_COOKIE
from bot.web.door import door_of
from bot.web.faults import Fault
from bot.web.forms import read_form
from bot.web.showing import page, secure
from bot.web.signing import same, seal, unseal

STATE_COOKIE = "oombot_sign_in"
STATE_SECONDS = 600
SESSION_SECONDS = 12 * 3600
TEAM, USER = "https://slack.com/team_id", "https://slack.com/user_id"
ENTERPRISE = "https://slack.com/enterprise_id"
PATIENCE = aiohttp.ClientTimeout(total=10)


def missing(settings: Settings) -> list[str]:
    """The settings that Sign in with Slack needs and does not have."""
    needed = {
        "SLACK_CLIENT_ID": settings.slack_client_id,
        "SLACK_CLIENT_SECRET": settings.slack_client_secret,
        "OOMBOT_PUBLIC_URL": settings.public_url,
        "OOMBOT_SECRET_KEY": settings.secret_key,
    }
    return [name for name, value in needed.items() if not value]


def return_address(settings: Settings) -> str:
    """Where Slack sends people back to; it must stand among the app's redirect URLs."""
    return f"{(settings.public_url or '').rstrip('/')}/sign-in/return"


async def ask(request: web.Request) -> web.Response:
    """The page that says why to sign in."""
    settings = door_of(request).settings
    return page(request, "sign_in.html", missing=missing(settings), next=_inside(request.query.get("next", "/")))


async def leave(request: web.Request) -> web.Response:
    """Off to Slack, with a state and a nonce that only this browser can bring back."""
    door = door_of(request)
    if missing(door.settings):
        raise Fault(503, "Signing in is not set up", f"Whoever runs this bot must set {', '.join(missing(door.settings))}.")
    state, nonce = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
    query = {
        "response_type": "code",
        "scope": "openid",
        "client_id": door.settings.slack_client_id,
        "redirect_uri": return_address(door.settings),
        "state": state,
        "nonce": nonce,
    }
    where = urljoin(door.settings.slack_api_url, "/openid/connect/authorize")
    response = web.Response(status=303, headers={"Location": f"{where}?{urlencode(query)}"})
    kept = {"state": state, "nonce": nonce, "next": _inside(request.query.get("next", "/"))}
    sealed = seal(door.secret, "sign-in", kept, STATE_SECONDS)
    response.set_cookie(STATE_COOKIE, sealed, httponly=True, samesite="Lax", secure=secure(request), max_age=STATE_SECONDS)
    return response


async def come_back(request: web.Request) -> web.Response:
    """Back from Slack: the code is exchanged, the person is known, the session begins."""
    door = door_of(request)
    begun = unseal(door.secret, "sign-in", request.cookies.get(STATE_COOKIE, ""))
    if begun is None or not same(str(begun["state"]), request.query.get("state", "")):
        raise Fault(400, "Signing in took too long or began elsewhere", "Start again at /sign-in, in this browser.")
    if "code" not in request.query:
        raise Fault(403, "Slack did not let you in", f"It said “{request.query.get('error', 'nothing')[:80]}”. Start again at /sign-in.")
    claims = await _claims(door.settings, request.query["code"], str(begun["nonce"]))
    who = {"team": claims[TEAM], "user": claims[USER], "enterprise": claims.get(ENTERPRISE)}
    if door.visible and await door.visible(who["team"], who["user"], who["enterprise"]) is None:
        raise Fault(
            403,
            "This bot is not in your workspace",
            "It answers to people of workspaces that have it installed. Ask an administrator of yours.",
        )
    response = web.Response(status=303, headers={"Location": _inside(str(begun["next"]))})
    sealed = seal(door.secret, "session", who, SESSION_SECONDS)
    response.set_cookie(SESSION_COOKIE, sealed, httponly=True, samesite="Lax", secure=secure(request), max_age=SESSION_SECONDS)
    response.del_cookie(STATE_COOKIE)
    return response


async def sign_out(request: web.Request) -> web.Response:
    """Ends the session in this browser."""
    (await read_form(request)).close()
    response = web.Response(status=303, headers={"Location": "/sign-in"})
    response.del_cookie(SESSION_COOKIE)
    return response


async def _claims(settings: Settings, code: str, nonce: str) -> Mapping[str, Any]:
    answer = await _exchange(settings, code)
    if not answer.get("ok") or "id_token" not in answer:
        raise Fault(403, "Slack did not let you in", f"It said “{str(answer.get('error', 'nothing'))[:80]}”. Start again at /sign-in.")
    claims = _payload(str(answer["id_token"]))
    aud = claims.get("aud")
    held = (
        urlsplit(str(claims.get("iss", ""))).hostname == "slack.com"
        and settings.slack_client_id in (aud if isinstance(aud, list) else [aud])
        and same(str(claims.get("nonce", "")), nonce)
        and float(claims.get("exp", 0)) > time.time()
        and isinstance(claims.get(TEAM), str)
        and isinstance(claims.get(USER), str)
    )
    if not held:
        raise Fault(403, "Slack's answer was not meant for this sign-in", "Start again at /sign-in.")
    return claims


async def _exchange(settings: Settings, code: str) -> Mapping[str, Any]:
    form = {
        "grant_type": "authorization_code",
        "client_id": settings.slack_client_id or "",
        "client_secret": settings.slack_client_secret or "",
        "code": code,
        "redirect_uri": return_address(settings),
    }
    try:
        async with aiohttp.ClientSession(timeout=PATIENCE) as session:
            where = urljoin(settings.slack_api_url, "openid.connect.token")
            async with session.post(where, data=form, allow_redirects=False) as answer:
                body = await answer.json()
    except (aiohttp.ClientError, TimeoutError, ValueError) as failure:
        raise Fault(502, "Slack could not be asked", "It did not answer as expected. Try again in a minute at /sign-in.") from failure
    return body if isinstance(body, dict) else {}


def _payload(token: str) -> Mapping[str, Any]:
    try:
        part = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (IndexError, ValueError) as damaged:
        raise Unusable("Slack's answer could not be read. Start again at /sign-in.") from damaged
    return claims if isinstance(claims, dict) else {}


def _inside(where: str) -> str:
    """A path of this site, or the front page: never another site."""
    plain = where.startswith("/") and not where.startswith(("//", "/\\")) and not any(ord(letter) < 32 for letter in where)
    return where if plain else "/"
