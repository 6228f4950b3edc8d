"""What `oombot doctor` asks of Slack: tokens, scopes against the manifest, delivery; each with the click that mends it."""

import asyncio
from typing import TYPE_CHECKING

import aiohttp
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_sdk.errors import SlackApiError

from bot.slack.manifest import manifest
from bot.slack.room import Room
from bot.slack.workers import DOOR, LAST_ARRIVAL
from bot.usecases.doctor import Check

if TYPE_CHECKING:
    from bot.slack.installs import Identity

PAGE = "https://api.slack.com/apps"


async def check_slack(room: Room, socket: AsyncSocketModeHandler | None) -> list[Check]:
    """Every check of this room; one that cannot be made says so."""
    checks: list[Check] = []
    who = None
    if room.installs.single:
        token, who = await _token(room)
        checks.append(token)
    else:
        checks.append(await _workspaces(room))
    if who is not None:
        checks += _scopes(who)
    checks += await _delivery(room, socket)
    checks.append(await asyncio.to_thread(_spool, room))
    return checks


def _spool(room: Room) -> Check:
    """Whether a command outlives this process while the database is locked."""
    place, why = room.spool.place, room.spool.unusable()
    if why is None:
        return Check("Slack spool", True, f"What the database cannot take at once waits in {place}.", None)
    said = f"Nothing can be noted in {place} ({why}): a command is lost if I end while the database is locked."
    return Check("Slack spool", False, said, "Give this user the right to write there, and room on its disk.")


async def _token(room: Room) -> "tuple[Check, Identity | None]":
    try:
        who = await room.installs.of(None, None)
    except SlackApiError as refused:
        mend = f"{PAGE}, your app, OAuth & Permissions: copy the Bot User OAuth Token into SLACK_BOT_TOKEN and restart."
        return Check("Slack bot token", False, f"Slack refuses it: {refused.response.get('error')}.", mend), None
    except (aiohttp.ClientError, TimeoutError) as lost:
        return _unreached("Slack bot token", room, lost), None
    assert who is not None, "a single workspace has an identity or raises"
    return Check("Slack bot token", True, f"It belongs to workspace {who.name or who.team}.", None), who


def _unreached(name: str, room: Room, lost: Exception) -> Check:
    mend = f"Open a way from this machine to {room.hosts.api_url} (proxy, firewall, DNS)."
    return Check(name, False, f"Slack cannot be reached: {type(lost).__name__}.", mend)


async def _workspaces(room: Room) -> Check:
    count = len(await room.store.installs())
    if count:
        return Check("Slack workspaces", True, f"Installed in {count}.", None)
    return Check(
        "Slack workspaces",
        False,
        "The app is not installed anywhere yet.",
        "Open /slack/install on this bot's public address and allow it.",
    )


def _scopes(who: "Identity") -> list[Check]:
    if not who.scopes:
        return [Check("Slack scopes", None, "Slack did not say which scopes the token has.", None)]
    scopes = manifest()["oauth_config"]["scopes"]
    missing = [scope for scope in scopes["bot"] if scope not in who.scopes]
    optional = [scope for scope in scopes["bot_optional"] if scope not in who.scopes]
    mend = f"{PAGE}, your app, OAuth & Permissions: add under Bot Token Scopes, then press “Reinstall to Workspace”, or nothing changes."
    found = [
        Check(
            "Slack scopes",
            not missing,
            f"Missing: {', '.join(missing)}." if missing else f"All {len(scopes['bot'])} are granted.",
            mend if missing else None,
        )
    ]
    if optional:
        found.append(
            Check("Slack optional scopes", None, f"Not granted: {', '.join(optional)}. Private channels or files need them.", mend)
        )
    return found


async def _delivery(room: Room, socket: AsyncSocketModeHandler | None) -> list[Check]:
    checks: list[Check] = []
    settings = room.settings
    if settings.slack_app_token:
        mend = f"{PAGE}, your app: Socket Mode on; Basic Information, App-Level Tokens: connections:write; copy it into SLACK_APP_TOKEN."
        try:
            await room.installs.client(settings.slack_app_token).apps_connections_open(app_token=settings.slack_app_token)
            said = "connected" if socket is not None and await socket.client.is_connected() else "Slack would let it connect"
            checks.append(Check("Slack Socket Mode", True, f"SLACK_APP_TOKEN is good; {said}.", None))
        except SlackApiError as refused:
            checks.append(Check("Slack Socket Mode", False, f"Slack refuses SLACK_APP_TOKEN: {refused.response.get('error')}.", mend))
        except (aiohttp.ClientError, TimeoutError) as lost:
            checks.append(_unreached("Slack Socket Mode", room, lost))
    if settings.slack_signing_secret:
        address = (settings.public_url or f"http://{settings.host}:{settings.port}").rstrip("/") + "/slack/events"
        mend = f"{PAGE}, your app, Event Subscriptions: Request URL {address}, reachable from the internet and shown as Verified."
        checks.append(Check("Slack over HTTP", None, f"Events are taken at {address}.", mend))
    heard = await room.store.setting(DOOR, LAST_ARRIVAL)
    mend = (
        f"{PAGE}, your app, Event Subscriptions: on, with app_mention and message.* subscribed; then reinstall the app and mention it once."
    )
    checks.append(
        Check(
            "Slack events",
            True if heard else None,
            f"The last one came {heard}." if heard else "None has come yet.",
            None if heard else mend,
        )
    )
    backlog = await room.store.backlog()
    late = backlog["oldest_seconds"] > 120 and backlog["waiting"] > 0
    checks.append(
        Check(
            "Slack queue",
            not late,
            f"{backlog['waiting']} waiting, {backlog['failed']} given up.",
            "Look at the log for the error that repeats." if late else None,
        )
    )
    return checks
