"""The store: everything the bot keeps. Every method is one transaction; when the database cannot, a StoreError says so in a sentence."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection

from bot.domain.incident import Contribution, Incident, Origin
from bot.store import deliveries, incidents, installs, taken
from bot.store.deliveries import Delivery, OwnReply
from bot.store.engine import Database
from bot.store.errors import StoreError, UnknownIncidentError

P = ParamSpec("P")
T = TypeVar("T")


async def open_store(url: str, *, migrate: bool = True) -> "Store":
    """Open the database of a URL, make or bring up its schema (`migrate`), take in what came by the short way. StoreError says why not."""
    store = Store(Database(url))
    try:
        await store.prepare(migrate)
    except BaseException:
        await store.close()
        raise
    return store


class Store:
    """One interface for every room above; the work is done by plain functions of a Connection, one file a subject."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def place(self) -> str:
        """Which database this is, without its password."""
        return self._database.place

    async def prepare(self, migrate: bool) -> None:
        """See `open_store`."""
        await self._database.prepare(migrate)
        await self._take_in()

    async def close(self) -> None:
        """Close every connection."""
        await self._database.close()

    # Incidents

    async def append(
        self, origin: Origin, contributions: Sequence[Contribution], document: Mapping[str, Any] | None, *, into: str | None = None
    ) -> str:
        """Keep a turn: into the incident `into`, else as a new one. Gives the id. Without a document, `judge` follows."""
        return await self._write(incidents.append, origin, contributions, document, into)

    async def judge(self, team: str, incident: str, document: Mapping[str, Any]) -> None:
        """A new diagnosis of an incident. Opens the next trial when it recommends another change than the newest one."""
        await self._write(incidents.judge, team, incident, document)

    async def load(self, team: str, incident: str) -> Incident | None:
        """The whole incident by D-0187, d-187 or 187; None when the team has none of that id."""
        return await self._read(incidents.load, team, incident)

    async def by_thread(self, team: str, channel: str, thread: str) -> str | None:
        """The id of the newest incident of a thread."""
        return await self._read(incidents.by_thread, team, channel, thread)

    # Deliveries

    async def deliver(
        self, team: str, channel: str | None, thread: str | None, key: str, kind: str, payload: bytes, enterprise: str | None = None
    ) -> bool:
        """Keep what arrived before it is acknowledged; False when its key is already there."""
        return await self._write(deliveries.deliver, team, channel, thread, key, kind, payload, enterprise)

    async def claim(self, worker: str, lease_seconds: float) -> Delivery | None:
        """The oldest delivery whose thread has none before it, for this worker until the lease runs out."""
        return await self._write(deliveries.claim, worker, lease_seconds)

    async def renew(self, delivery: int, lease_seconds: float = 60) -> bool:
        """The lease counts from now again; False when the delivery is no longer in work."""
        return await self._write(deliveries.renew, delivery, lease_seconds)

    async def finish(self, delivery: int) -> bool:
        """The delivery is done."""
        return await self._write(deliveries.finish, delivery)

    async def fail(self, delivery: int, error: str, retry_after: float | None) -> bool:
        """The delivery is tried again after so many seconds; with None it is given up."""
        return await self._write(deliveries.fail, delivery, error, retry_after)

    async def backlog(self) -> dict[str, Any]:
        """waiting, working, failed (counts) and oldest_seconds."""
        return await self._read(deliveries.backlog)

    async def remember_reply(
        self, incident_id: str | None, team: str, channel: str, thread: str, ts: str, kind: str, digest: str | None = None
    ) -> None:
        """Which message of ours answers this thread."""
        await self._write(deliveries.remember_reply, incident_id, team, channel, thread, ts, kind, digest)

    async def reply_of(self, team: str, channel: str, thread: str, kind: str) -> OwnReply | None:
        """Our message of that kind in a thread."""
        return await self._read(deliveries.reply_of, team, channel, thread, kind)

    # Workspaces

    async def save_install(self, team: str, payload: bytes, enterprise: str | None = None, by: str | None = None) -> None:
        """Keep a workspace's installation, encrypted by the caller."""
        await self._write(installs.save_install, team, payload, enterprise, by)

    async def find_install(self, team: str, enterprise: str | None = None) -> bytes | None:
        """The installation of a workspace, else of its organisation."""
        return await self._read(installs.find_install, team, enterprise)

    async def delete_install(self, team: str, enterprise: str | None = None) -> bool:
        """Forget a workspace's installation."""
        return await self._write(installs.delete_install, team, enterprise)

    async def installs(self) -> list[tuple[str | None, str]]:
        """(enterprise, team) of every installation."""
        return await self._read(installs.list_installs)

    async def watch(self, team: str, channel: str, on: bool, by: str | None) -> None:
        """Switch automatic diagnosis on or off in a channel."""
        await self._write(installs.watch, team, channel, on, by)

    async def watched(self, team: str, channel: str) -> bool:
        """Whether automatic diagnosis is on in a channel."""
        return await self._read(installs.watched, team, channel)

    async def setting(self, team: str, name: str) -> Any:
        """What a team has set, JSON-ready; None when it has not."""
        return await self._read(installs.setting, team, name)

    async def set_setting(self, team: str, name: str, value: Any) -> None:
        """Set something for a team; None takes it back."""
        await self._write(installs.set_setting, team, name, value)

    async def settings_named(self, name: str) -> dict[str, Any]:
        """Every team's value of one setting."""
        return await self._read(installs.settings_named, name)

    # How it is done

    async def _read(self, work: Callable[Concatenate[Connection, P], T], *given: P.args, **named: P.kwargs) -> T:
        await self._take_in()
        async with self._database.read() as connection:
            return await connection.run_sync(work, *given, **named)

    async def _write(self, work: Callable[Concatenate[Connection, P], T], *given: P.args, **named: P.kwargs) -> T:
        async with self._database.write() as connection:
            return await connection.run_sync(work, *given, **named)

    async def _take_in(self) -> None:
        """Turns from the command line's short way reach only SQLite files."""
        if not self._database.sqlite:
            return
        async with self._database.read() as connection:
            waits = await connection.run_sync(taken.any_dropped)
        if waits:
            await self._write(taken.take_in)


__all__ = ["Delivery", "OwnReply", "Store", "StoreError", "UnknownIncidentError", "open_store"]
