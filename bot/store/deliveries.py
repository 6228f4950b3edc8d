"""Deliveries: what a chat sent, stored before it is acknowledged, worked once, in order within a thread."""

import json
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, RowMapping, func, or_, select, text, update

from bot.store.errors import LostClaimError
from bot.store.numbers import clock, label, number_of
from bot.store.packed import plain
from bot.store.tables import deliveries, replies
from bot.store.upsert import upsert

_SECOND = 1_000_000
HELD: ContextVar[tuple[int, int] | None] = ContextVar("held", default=None)
"""(id, attempts) of the delivery that the running task has claimed: a process that was asleep too long must not write beside its heir."""

CHANGED = "changed"
"""Kind of the delivery that draws an incident's message anew: `incident`, and whether its evidence was `erased`."""

# Oldest first; a thread's next one waits while an earlier one is not done, also while that one waits for its next try.
_NEXT = """
SELECT d.key FROM deliveries AS d
WHERE d.state IN ('waiting', 'working') AND d.ready_at <= :now AND (d.state = 'waiting' OR d.lease_until < :now)
  AND NOT EXISTS (
    SELECT 1 FROM deliveries AS e
    WHERE e.team = d.team AND e.channel = d.channel AND e.thread = d.thread AND e.key < d.key AND e.state IN ('waiting', 'working')
  )
ORDER BY d.key LIMIT 1
"""


@dataclass(frozen=True, slots=True)
class Delivery:
    """One thing that arrived. `key` is what it is known by twice; `attempts` counts this one."""

    id: int
    team: str
    channel: str | None
    thread: str | None
    key: str
    kind: str
    payload: bytes
    attempts: int
    enterprise: str | None = None


def deliver(
    connection: Connection,
    team: str,
    channel: str | None,
    thread: str | None,
    key: str,
    kind: str,
    payload: bytes,
    enterprise: str | None,
    after: float = 0.0,
) -> bool:
    """Keep what arrived; False when the key is already there. What has no thread is a thread of its own. Due `after` seconds."""
    where = {"team": team, "channel": channel or "", "thread": thread or key}
    if connection.dialect.name == "postgresql":
        # Ids are given before they are committed: within a thread they must become visible in their order.
        connection.execute(text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))"), {"name": "\x1f".join(where.values())})
    now = clock()
    row: dict[str, Any] = {**where, "enterprise": enterprise or "", "dedup": key, "kind": kind, "payload": payload, "state": "waiting"}
    row |= {"at": now, "ready_at": now + int(after * _SECOND)}
    insert = upsert(connection, deliveries).values(**row).on_conflict_do_nothing(index_elements=("team", "dedup"))
    return connection.execute(insert.returning(deliveries.c.key)).first() is not None


def show_anew(connection: Connection, incident: Mapping[str, Any], *, erased: bool = False, after: float | None = None) -> None:
    """Its message is due to be drawn anew, behind what was said in its thread; with `after`, beside that, in so many seconds.

    Nothing where it stands in no thread.
    """
    channel, thread, named = incident["channel"], incident["thread"], label(incident["number"])
    if not channel or not thread:
        return
    order = None if after is not None else "direct" if channel.startswith("D") else thread
    body = json.dumps({"incident": named, "erased": erased}).encode()
    whose = incident["enterprise"] or None
    deliver(connection, incident["team"], channel, order, f"{CHANGED}:{named}:{clock()}", CHANGED, body, whose, after or 0.0)


def arrived(connection: Connection, team: str, keys: Sequence[str]) -> bool:
    """Whether any of these is there, in whatever state; what is done is kept for some days."""
    c = deliveries.c
    return connection.execute(select(c.key).where(c.team == team, c.dedup.in_(keys)).limit(1)).first() is not None


def claim(connection: Connection, worker: str, lease_seconds: float) -> Delivery | None:
    """Take the oldest delivery that may be worked now; it is the worker's until the lease runs out. None when there is none."""
    now = clock()
    skip = " FOR UPDATE OF d SKIP LOCKED" if connection.dialect.name == "postgresql" else ""
    key = connection.execute(text(_NEXT + skip), {"now": now}).scalar()
    if key is None:
        return None
    taken = {"state": "working", "worker": worker, "lease_until": now + int(lease_seconds * _SECOND), "attempts": deliveries.c.attempts + 1}
    row = connection.execute(update(deliveries).where(deliveries.c.key == key).values(**taken).returning(deliveries)).mappings().one()
    return _delivery(row)


def must_be_held(connection: Connection, held: tuple[int, int]) -> None:
    """Inside the transaction of a write: the claim is still the caller's, and stays so until the end of it. Else LostClaimError."""
    c = deliveries.c
    mine = select(c.key).where(c.key == held[0], c.attempts == held[1], c.state == "working").with_for_update()
    if connection.execute(mine).first() is None:
        raise LostClaimError(f"delivery {held[0]}, try {held[1]}, is in other hands")


def held_for() -> Any:
    """The organisation of what the running task works on, as a value for a row that it writes; '' where it works on nothing."""
    held = HELD.get()
    return "" if held is None else func.coalesce(select(deliveries.c.enterprise).where(deliveries.c.key == held[0]).scalar_subquery(), "")


def renew(connection: Connection, delivery: int, lease_seconds: float) -> bool:
    """Longer, for work that takes longer. False when it is no longer in work."""
    lease = {"lease_until": clock() + int(lease_seconds * _SECOND)}
    return _change(connection, delivery, lease)


def holders(connection: Connection) -> list[str]:
    """Workers that hold something."""
    c = deliveries.c
    return [worker for worker in connection.execute(select(c.worker).where(c.state == "working").distinct()).scalars() if worker]


def release(connection: Connection, dead: Sequence[str]) -> int:
    """The claims of dead workers end now, not with their leases; gives how many."""
    c = deliveries.c
    ended = update(deliveries).where(c.state == "working", c.worker.in_(dead), c.lease_until > 0).values(lease_until=0)
    return connection.execute(ended).rowcount


def finish(connection: Connection, delivery: int) -> bool:
    """Done: the row stays, so that the same thing is known again; what it carried is gone. False when it was done before."""
    return _change(connection, delivery, {"state": "done", "payload": b"", "done_at": clock(), "error": None, "lease_until": None})


def fail(connection: Connection, delivery: int, error: str, retry_after: float | None) -> bool:
    """Not done: again after so many seconds, or, with None, never; then the thread goes on without it."""
    said = (plain(error) or "")[:500]
    if retry_after is None:
        return _change(connection, delivery, {"state": "failed", "payload": b"", "done_at": clock(), "error": said, "lease_until": None})
    ready = clock() + int(retry_after * _SECOND)
    return _change(connection, delivery, {"state": "waiting", "ready_at": ready, "error": said, "lease_until": None})


def backlog(connection: Connection) -> dict[str, Any]:
    """How many wait, are in work, or failed for good, and how many seconds the oldest unfinished one has waited.

    What is not due yet for the first time does not wait.
    """
    c = deliveries.c
    begun = or_(c.ready_at <= clock(), c.attempts > 0)
    rows = connection.execute(select(c.state, func.count()).where(begun).group_by(c.state))
    counts = {row[0]: row[1] for row in rows}
    oldest = connection.execute(select(func.min(c.at)).where(begun, c.state.in_(("waiting", "working")))).scalar()
    waited = 0.0 if oldest is None else max(0.0, (clock() - oldest) / _SECOND)
    return {**{state: counts.get(state, 0) for state in ("waiting", "working", "failed")}, "oldest_seconds": waited}


def remember_reply(
    connection: Connection, incident: str | None, team: str, channel: str, thread: str, message: str, kind: str, digest: str | None
) -> None:
    """Which message of ours answers a thread: the one that is edited in place. An empty `message`: it is about to be posted."""
    said = {"number": number_of(incident) if incident else None, "message": message, "digest": digest, "at": clock()}
    whose = {"enterprise": held_for(), "team": team, "channel": channel, "thread": thread, "kind": kind}
    insert = upsert(connection, replies).values(**whose, **said)
    connection.execute(insert.on_conflict_do_update(index_elements=("team", "channel", "thread", "kind"), set_=said))


@dataclass(frozen=True, slots=True)
class OwnReply:
    """A message of ours: its `ts`, the digest of what it shows, the incident it is about, and when that was noted (Unix seconds).

    An empty `ts`: its posting was begun then, and how it ended is not known.
    """

    ts: str
    digest: str | None
    incident: str | None
    at: float


def reply_of(connection: Connection, team: str, channel: str, thread: str, kind: str) -> OwnReply | None:
    """Our message of that kind in a thread, if there is one."""
    c = replies.c
    query = select(c.message, c.digest, c.number, c.at).where(c.team == team, c.channel == channel, c.thread == thread, c.kind == kind)
    row = connection.execute(query).first()
    return None if row is None else OwnReply(row.message, row.digest, None if row.number is None else label(row.number), row.at / _SECOND)


def note_file(connection: Connection, team: str, file: str, channel: str, message: str) -> None:
    """Which message a file came with; it may have come with several."""
    remember_reply(connection, None, team, "", file, message, f"file {channel} {message}", channel)


def messages_with(connection: Connection, team: str, file: str) -> list[tuple[str, str]]:
    """(channel, message) of each that a file came with."""
    c = replies.c
    query = select(c.digest, c.message).where(c.team == team, c.channel == "", c.thread == file, c.kind.like("file%"))
    return [(channel or "", message) for channel, message in connection.execute(query)]


def _change(connection: Connection, delivery: int, values: dict[str, Any]) -> bool:
    unfinished = deliveries.c.state.in_(("waiting", "working"))
    changed = connection.execute(update(deliveries).where(deliveries.c.key == delivery, unfinished).values(**values))
    return changed.rowcount > 0


def _delivery(row: RowMapping) -> Delivery:
    return Delivery(
        id=row["key"],
        team=row["team"],
        channel=row["channel"] or None,
        thread=row["thread"] or None,
        key=row["dedup"],
        kind=row["kind"],
        payload=row["payload"],
        attempts=row["attempts"],
        enterprise=row["enterprise"] or None,
    )
