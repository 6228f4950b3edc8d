"""Workspaces that installed the bot, channels it watches, and what a team has set."""

import json
from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection, delete, select

from bot.store import audit
from bot.store.audit import Deed
from bot.store.deliveries import held_for
from bot.store.numbers import clock
from bot.store.tables import installs, settings, watches
from bot.store.upsert import upsert


def save_install(connection: Connection, team: str, payload: bytes, enterprise: str | None, by: str | None) -> None:
    """Keep a workspace's installation, already encrypted. An installation for a whole organisation has the team ''."""
    values = {"payload": payload, "at": clock(), **({"by": by} if by else {})}  # who renews a token installs nothing
    insert = upsert(connection, installs).values(enterprise=enterprise or "", team=team, **values)
    connection.execute(insert.on_conflict_do_update(index_elements=("enterprise", "team"), set_=values))
    if by:
        audit.note(connection, Deed("installed", by, team, enterprise))


def find_install(connection: Connection, team: str, enterprise: str | None) -> bytes | None:
    """The workspace's own installation, else its organisation's."""
    keys = [(enterprise or "", team), ("", team), *([(enterprise, "")] if enterprise else [])]
    for organisation, workspace in keys:
        query = select(installs.c.payload).where(installs.c.enterprise == organisation, installs.c.team == workspace)
        payload = connection.execute(query).scalar()
        if payload is not None:
            return bytes(payload)
    return None


def delete_install(connection: Connection, team: str, enterprise: str | None) -> bool:
    """Forget a workspace's installation; False when there was none."""
    gone = connection.execute(delete(installs).where(installs.c.enterprise.in_({enterprise or "", ""}), installs.c.team == team))
    return gone.rowcount > 0


def list_installs(connection: Connection) -> list[tuple[str | None, str]]:
    """(enterprise, team) of every installation."""
    return [(enterprise or None, team) for enterprise, team in connection.execute(select(installs.c.enterprise, installs.c.team))]


def watch(
    connection: Connection, team: str, channel: str, on: bool, by: str | None, enterprise: str | None = None, private: bool = False
) -> None:
    """Switch automatic diagnosis on or off in a channel."""
    if watched(connection, team, channel) != on:
        audit.note(connection, Deed("watch on" if on else "watch off", by, team, enterprise, channel, private))
    values = {"on": on, "by": by, "at": clock(), "enterprise": enterprise or "", "private": private}
    insert = upsert(connection, watches).values(team=team, channel=channel, **values)
    connection.execute(insert.on_conflict_do_update(index_elements=("team", "channel"), set_=values))


def watched(connection: Connection, team: str, channel: str) -> bool:
    """Whether a member switched automatic diagnosis on in a channel."""
    return bool(connection.execute(select(watches.c.on).where(watches.c.team == team, watches.c.channel == channel)).scalar())


def setting(connection: Connection, team: str, name: str) -> Any:
    """What a team has set, as JSON; None when it has not."""
    value = connection.execute(select(settings.c.value).where(settings.c.team == team, settings.c.name == name)).scalar()
    return None if value is None else json.loads(value)


def set_setting(connection: Connection, team: str, name: str, value: Any) -> None:
    """Set something for a team; None takes it back."""
    if value is None:
        connection.execute(delete(settings).where(settings.c.team == team, settings.c.name == name))
        return
    insert = upsert(connection, settings).values(enterprise=held_for(), team=team, name=name, value=json.dumps(value))
    connection.execute(insert.on_conflict_do_update(index_elements=("team", "name"), set_={"value": json.dumps(value)}))


def change_setting(connection: Connection, team: str, name: str, change: Callable[[Any], Any], deed: Deed | None) -> None:
    """What a team has set, made anew from what it is (None: not set); whoever changes the same setting waits for the end of this one.

    `deed` is noted where that changes anything.
    """
    insert = upsert(connection, settings).values(enterprise=held_for(), team=team, name=name, value="null")
    # The update changes nothing: it holds the row, also one that was not there, and reads what the last one left.
    held = insert.on_conflict_do_update(index_elements=("team", "name"), set_={"value": settings.c.value}).returning(settings.c.value)
    before = json.loads(connection.execute(held).scalar_one())
    after = change(before)
    set_setting(connection, team, name, after)
    if deed is not None and after != before:
        audit.note(connection, deed)


def settings_named(connection: Connection, name: str) -> dict[str, Any]:
    """Every team's value of one setting."""
    query = select(settings.c.team, settings.c.value).where(settings.c.name == name)
    return {team: json.loads(value) for team, value in connection.execute(query)}
