"""The audit trail: who erased, exported, switched or installed something. Rows are added, and go with age; none is changed."""

from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Connection, delete, false, or_, select

from bot.store.numbers import clock, stamp
from bot.store.sight import Sight, visible
from bot.store.tables import audit
from bot.store.upsert import upsert

What = Literal[
    "erased", "exported", "imported", "restored", "copied", "watch on", "watch off", "digest on", "digest off", "installed", "uninstalled"
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Deed:
    """What was done and by whom; `team` None: to the whole database. `about` is an id or a count, never what anyone wrote."""

    what: What
    by: str | None
    team: str | None = None
    enterprise: str | None = None
    channel: str | None = None
    private: bool = False
    about: str | None = None


def note(connection: Connection, deed: Deed) -> None:
    """Keep it, in the transaction that does it."""
    row = {"enterprise": deed.enterprise or "", "team": deed.team or "", "channel": deed.channel or "", "private": deed.private}
    row |= {"by": deed.by, "deed": deed.what, "about": deed.about}
    key = clock()
    while (
        connection.execute(upsert(connection, audit).values(key=key, **row).on_conflict_do_nothing().returning(audit.c.key)).first() is None
    ):
        key += 1


def listed(connection: Connection, who: Sight | None, limit: int) -> list[dict[str, Any]]:
    """The newest first: at, team, channel, by, deed, about. `who` None may see all; else what befell their team or the whole database."""
    query = select(audit).order_by(audit.c.key.desc()).limit(limit)
    if who is not None:
        ours = visible(audit, who)
        if who.channels is not None:
            ours = or_(ours, (audit.c.team == who.team) & (audit.c.channel == ""))
        query = query.where(or_(ours, (audit.c.team == "") & (audit.c.private == false())))
    names = ("team", "channel", "by", "deed", "about")
    return [{"at": stamp(row["key"]), **{name: row[name] or None for name in names}} for row in connection.execute(query).mappings()]


def drop_old(connection: Connection, before: int) -> None:
    """What was done before a moment (microseconds)."""
    connection.execute(delete(audit).where(audit.c.key < before))
