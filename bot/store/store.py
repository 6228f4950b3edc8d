"""The store: everything the bot keeps. Every method is one transaction; when the database cannot, a StoreError says so in a sentence."""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection

from bot.domain.incident import Contribution, Incident, Origin, Result, Trial
from bot.store import audit, deliveries, departure, dump, erasure, incidents, index, installs, lately, search, similar, stats, taken
from bot.store.audit import Deed
from bot.store.deliveries import Delivery, OwnReply
from bot.store.engine import Database, revision
from bot.store.errors import ErasedMeanwhileError, LostClaimError, StoreError, UnknownIncidentError
from bot.store.lately import Lately
from bot.store.numbers import micros, number_of
from bot.store.query import Query
from bot.store.search import Found
from bot.store.sight import Sight

_PURGE_PAGE = 200
_WALK_PAGE = 50

P = ParamSpec("P")
T = TypeVar("T")


async def open_store(url: str) -> "Store":
    """Open the database of a URL, make or bring up its schema, take in what came by the short way. StoreError says why not."""
    store = Store(Database(url))
    try:
        await store.prepare()
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

    @property
    def spool(self) -> Path:
        """How the files are named, up to a point, that hold what waits until this database can be written."""
        return self._database.spool

    async def prepare(self) -> None:
        """See `open_store`."""
        await self._database.prepare()
        await self._take_in()

    async def close(self) -> None:
        """Close every connection."""
        await self._database.close()

    # Incidents

    async def append(
        self,
        origin: Origin,
        contributions: Sequence[Contribution],
        document: Mapping[str, Any] | None,
        *,
        into: str | None = None,
        heard: Sequence[Contribution] = (),
    ) -> str:
        """Keep a turn: into the incident `into`, else as a new one. Gives the id. Without a document, `judge` follows.

        `heard`: the earlier contributions that the document was judged from; ErasedMeanwhileError when one of them has been erased since.
        """
        number = None if into is not None or self._database.sqlite else await self._number(origin)
        return await self._write(incidents.append, origin, contributions, document, into, number, heard)

    async def _number(self, origin: Origin) -> int:
        """A new incident's number, in a transaction of one statement: nobody waits for the team's counter until a log is indexed.

        A number whose turn then cannot be kept is left out; none is given twice.
        """
        async with self._database.singly() as connection:
            if (held := deliveries.HELD.get()) is not None:
                await connection.run_sync(deliveries.must_be_held, held)
            return await connection.run_sync(incidents.allocate, origin)

    async def judge(self, team: str, incident: str, document: Mapping[str, Any]) -> None:
        """A new diagnosis of an incident. Opens the next trial when it recommends another change than the newest one."""
        await self._write(incidents.judge, team, incident, document)

    async def load(self, team: str, incident: str) -> Incident | None:
        """The whole incident by D-0187, d-187 or 187; None when the team has none of that id."""
        return await self._read(incidents.load, team, incident)

    async def by_thread(self, team: str, channel: str, thread: str) -> str | None:
        """The id of the newest incident of a thread."""
        return await self._read(incidents.by_thread, team, channel, thread)

    async def in_thread(self, team: str, channel: str, thread: str) -> Incident | None:
        """The newest incident of a thread, whole."""
        return await self._read(incidents.in_thread, team, channel, thread)

    async def of_message(self, team: str, channel: str, ts: str) -> Incident | None:
        """The newest incident that a chat message is part of, or was, whole."""
        return await self._read(incidents.of_message, team, channel, ts)

    async def channels(self, team: str, ids: Sequence[str]) -> dict[str, str]:
        """The channel of each of these incidents that has one, by id."""
        return await self._read(incidents.channels, team, ids)

    async def record_outcome(
        self,
        team: str,
        incident: str,
        result: Result,
        by: str | None,
        note: str | None = None,
        *,
        contributions: Sequence[Contribution] = (),
        document: Mapping[str, Any] | None = None,
        heard: Sequence[Contribution] = (),
    ) -> Trial:
        """How the newest trial ended; with it, in the same transaction, what was said and the diagnosis that follows from it.

        `heard` as in `append`.
        """
        trial = await self._write(incidents.settle, team, incident, result, by, note, contributions, document, heard)
        assert trial is not None  # a result always finds or makes its trial
        return trial

    async def undo_outcome(
        self,
        team: str,
        incident: str,
        by: str | None,
        *,
        contributions: Sequence[Contribution] = (),
        document: Mapping[str, Any] | None = None,
        heard: Sequence[Contribution] = (),
    ) -> Trial | None:
        """The newest result taken back, and the trials it opened; None when there is no result. `heard` as in `append`."""
        return await self._write(incidents.settle, team, incident, None, by, None, contributions, document, heard)

    async def show_anew(self, team: str, incident: str) -> None:
        """Its message in a chat is due to be drawn anew: the chat's own door does that."""
        await self._write(incidents.show_anew, team, incident)

    async def walk(self, viewer: Sight) -> AsyncIterator[Incident]:
        """Every incident that someone may see, oldest first."""
        after: int | None = -(2**62)
        while after is not None:
            found, after = await self._read(incidents.page, viewer, after, _WALK_PAGE)
            for incident in found:
                yield incident

    async def lately(self, team: str, channel: str, author: str | None, since: datetime) -> Lately:
        """When a person gave evidence since a moment, and when it came in a channel."""
        return await self._read(lately.lately, team, channel, author, micros(since))

    async def given_before(self, origin: Origin, texts: Sequence[str], since: datetime) -> list[tuple[str, int]]:
        """(id, when in microseconds) of incidents that a place may see and that were given all these texts since then; newest first."""
        return await self._read(lately.given_before, origin, texts, micros(since))

    # What the team has met before

    async def search(self, viewer: Sight, query: Query, limit: int = 50, before: str | None = None) -> Found:
        """What a query finds, newest first or best first; `before` is the id of the last row of the page above."""
        return await self._read(search.search, viewer, query, limit, number_of(before) if before else None)

    async def similar(self, who: Sight | Origin, document: Mapping[str, Any], leave_out: str | None = None) -> list[dict[str, Any]]:
        """Incidents like the one that a document describes, nearest first. For an Origin: what its channel may see."""
        return await self._read(similar.similar, who, document, leave_out)

    async def precedents(self, who: Sight | Origin, document: Mapping[str, Any], leave_out: str | None = None) -> list[dict[str, Any]]:
        """What was tried in such incidents and how it ended: id phase remedy flag direction value outcome model gpu engine_version at."""
        return await self._read(similar.precedents, who, document, leave_out)

    async def measured(self, who: Sight | Origin, model: str) -> list[dict[str, Any]]:
        """Terms that engines reported for a model, bytes per rank, the newest first, each with its incident's id."""
        return await self._read(similar.measured, who, model)

    async def stats(self, viewer: Sight, since: datetime | None = None) -> dict[str, Any]:
        """The figures of a review."""
        return await self._read(stats.stats, viewer, micros(since) if since else None)

    # Erasure

    async def forget(self, team: str, incident: str, by: str | None = None) -> None:
        """Erase an incident's evidence; its id, phase, model, GPU, changes and outcome stay. UnknownIncidentError when there is none."""
        await self._write(erasure.forget, team, incident, by)
        await self._squeeze()

    async def erase_message(self, team: str, channel: str, ts: str, *, anew: bool = True) -> list[str]:
        """A chat message or its file was deleted: erase what it contributed; gives the ids of the incidents.

        Their messages are drawn anew; `anew` off: the caller shows what is left.
        """
        touched = await self._write(erasure.erase_message, team, channel, ts, anew)
        if touched:
            await self._squeeze()
        return touched

    async def erase_team(self, team: str, before: datetime | None = None) -> int:
        """A workspace left: every row of it goes, but for its last incident's number; gives how many incidents.

        `before`: it came back since, so only what is older than that moment goes, and its installation stays.
        """
        until, total = None if before is None else micros(before), 0
        await self._write(departure.drop_work, team, until)
        while count := await self._write(departure.drop_incidents, team, until, _PURGE_PAGE):
            total += count
        await self._write(departure.drop_beside, team, until)
        await self._squeeze(whole=True)
        return total

    async def erase_enterprise(self, enterprise: str, team: str | None = None, before: datetime | None = None) -> int:
        """An organisation left: the same for `team` and all its workspaces, save those that installed the bot by themselves."""
        return sum([await self.erase_team(one, before) for one in await self._read(departure.teams_of, enterprise, team)])

    async def purge(self, older_than: datetime) -> int:
        """Erase the evidence of incidents untouched since a moment, some at a time so that others get their turn; gives how many."""
        await self._take_in()
        total = 0
        while count := await self._write(erasure.purge_page, micros(older_than), _PURGE_PAGE, total):
            total += count
        rest = await self._read(erasure.partly_erased, micros(older_than))
        for start in range(0, len(rest), _PURGE_PAGE):
            total += await self._write(erasure.purge_rest, rest[start : start + _PURGE_PAGE], micros(older_than))
        await self._write(erasure.drop_done, micros(older_than))
        if total:
            await self._squeeze(whole=True)
        return total

    async def channel_became(self, team: str, channel: str, private: bool) -> None:
        """A channel turned private or public: so do all rows of it."""
        await self._write(erasure.channel_became, team, channel, private)

    async def _squeeze(self, whole: bool = False) -> None:
        """What was erased must not stay readable in the file: merge the index where that is quick, and empty the write-ahead log."""
        if self._database.sqlite:
            await self._write(index.squeeze, whole)
            await self._database.checkpoint()

    async def wipe(self) -> bool:
        """SQLite: what finished deliveries carried is in no file any more. False while one is in work: then later."""
        if not self._database.sqlite:
            return True
        if (await self.backlog())["working"]:
            return False
        await self._database.checkpoint()
        return True

    # In and out

    async def export_rows(self) -> AsyncIterator[dict[str, Any]]:
        """Every incident with all that belongs to it, one record each, then what belongs to none; JSON-ready, lossless."""
        after: int | None = -(2**62)
        while after is not None:
            records, after = await self._read(dump.export_page, after)
            for record in records:
                yield record
        for record in await self._read(dump.export_beside):
            yield record

    async def import_rows(self, records: Iterable[Mapping[str, Any]]) -> tuple[int, int]:
        """Records of `export_rows`, all or none: how many incidents came in, how many were there already."""
        return await self._write(dump.import_records, records)

    async def copy_to(self, target: "Store") -> int:
        """Every row, deliveries and installations too, into an empty database; gives how many incidents. All or nothing."""
        await self._take_in()
        async with self._database.read() as ours, target._database.write() as theirs:
            await theirs.run_sync(dump.must_be_empty)
            count = 0
            for table in dump.copied_tables():
                after: list[Any] | None = None
                while rows := await ours.run_sync(dump.copy_page, table, after):
                    await theirs.run_sync(dump.write_page, table, rows)
                    after = [rows[-1][column.name] for column in table.primary_key.columns]
                    count += len(rows) if table.name == "incidents" else 0
            await theirs.run_sync(dump.finish_copy)
        return count

    async def state(self) -> dict[str, Any]:
        """Whether it answers: place, kind, schema, incidents. StoreError when it does not."""
        async with self._database.read() as connection:
            schema = await connection.run_sync(revision)
            count = await connection.run_sync(dump.count_incidents)
        return {"place": self.place, "kind": "sqlite" if self._database.sqlite else "postgresql", "schema": schema, "incidents": count}

    async def writable(self) -> None:
        """StoreError when nothing could be kept now: no room, no permission, a standby. Cheap, and writes nothing."""
        await self._database.writable()

    # Deliveries

    async def deliver(
        self,
        team: str,
        channel: str | None,
        thread: str | None,
        key: str,
        kind: str,
        payload: bytes,
        enterprise: str | None = None,
        *,
        after: float = 0.0,
    ) -> bool:
        """Keep what arrived before it is acknowledged; False when its key is already there. It is due in `after` seconds."""
        return await self._write(deliveries.deliver, team, channel, thread, key, kind, payload, enterprise, after)

    async def arrived(self, team: str, *keys: str) -> bool:
        """Whether something of one of these keys was ever delivered, done or not."""
        return await self._read(deliveries.arrived, team, keys)

    async def claim(self, worker: str, lease_seconds: float) -> Delivery | None:
        """The oldest delivery whose thread has none before it, for this worker until the lease runs out.

        Until it is finished or failed, every write of the calling task raises LostClaimError once another worker has claimed it.
        """
        deliveries.HELD.set(None)
        found = await self._write(deliveries.claim, worker, lease_seconds)
        deliveries.HELD.set((found.id, found.attempts) if found else None)
        return found

    async def release(self, dead: Callable[[str], bool]) -> int:
        """What workers hold that `dead` says are gone may be claimed at once; gives how much."""
        gone = [worker for worker in await self._read(deliveries.holders) if dead(worker)]
        return await self._write(deliveries.release, gone) if gone else 0

    async def renew(self, delivery: int, lease_seconds: float = 60) -> bool:
        """The lease counts from now again; False when the delivery is no longer in work."""
        return await self._write(deliveries.renew, delivery, lease_seconds)

    async def finish(self, delivery: int) -> bool:
        """The delivery is done."""
        done = await self._write(deliveries.finish, delivery)
        deliveries.HELD.set(None)
        return done

    async def fail(self, delivery: int, error: str, retry_after: float | None) -> bool:
        """The delivery is tried again after so many seconds; with None it is given up."""
        noted = await self._write(deliveries.fail, delivery, error, retry_after)
        deliveries.HELD.set(None)
        return noted

    async def backlog(self) -> dict[str, Any]:
        """waiting, working, failed (counts) and oldest_seconds."""
        return await self._read(deliveries.backlog)

    async def remember_reply(
        self, incident_id: str | None, team: str, channel: str, thread: str, ts: str, kind: str, digest: str | None = None
    ) -> None:
        """Which message of ours answers this thread; with an empty `ts`: that one is about to be posted."""
        await self._write(deliveries.remember_reply, incident_id, team, channel, thread, ts, kind, digest)

    async def reply_of(self, team: str, channel: str, thread: str, kind: str) -> OwnReply | None:
        """Our message of that kind in a thread."""
        return await self._read(deliveries.reply_of, team, channel, thread, kind)

    async def note_file(self, team: str, file: str, channel: str, ts: str) -> None:
        """Which message a file came with: when it is deleted, a chat may name the file alone."""
        await self._write(deliveries.note_file, team, file, channel, ts)

    async def messages_with(self, team: str, file: str) -> list[tuple[str, str]]:
        """(channel, ts) of every message that a file came with."""
        return await self._read(deliveries.messages_with, team, file)

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

    async def watch(
        self, team: str, channel: str, on: bool, by: str | None, *, enterprise: str | None = None, private: bool = False
    ) -> None:
        """Switch automatic diagnosis on or off in a channel."""
        await self._write(installs.watch, team, channel, on, by, enterprise, private)

    async def watched(self, team: str, channel: str) -> bool:
        """Whether automatic diagnosis is on in a channel."""
        return await self._read(installs.watched, team, channel)

    async def setting(self, team: str, name: str) -> Any:
        """What a team has set, JSON-ready; None when it has not."""
        return await self._read(installs.setting, team, name)

    async def set_setting(self, team: str, name: str, value: Any) -> None:
        """Set something for a team; None takes it back."""
        await self._write(installs.set_setting, team, name, value)

    async def change_setting(self, team: str, name: str, change: Callable[[Any], Any], deed: Deed | None = None) -> None:
        """Make a setting anew from what it is now (None: not set), in one transaction that no other change comes between.

        `deed` goes into the audit trail where that changes anything.
        """
        await self._write(installs.change_setting, team, name, change, deed)

    async def settings_named(self, name: str) -> dict[str, Any]:
        """Every team's value of one setting."""
        return await self._read(installs.settings_named, name)

    # Who did what

    async def note(self, deed: Deed) -> None:
        """Keep in the audit trail what no other method here does."""
        await self._write(audit.note, deed)

    async def audit(self, who: Sight | None, limit: int = 50) -> list[dict[str, Any]]:
        """at, team, channel, by, deed, about; the newest first. `who` None may see all of the database."""
        return await self._read(audit.listed, who, limit)

    # How it is done

    async def _read(self, work: Callable[Concatenate[Connection, P], T], *given: P.args, **named: P.kwargs) -> T:
        await self._take_in()
        async with self._database.read() as connection:
            return await connection.run_sync(work, *given, **named)

    async def _write(self, work: Callable[Concatenate[Connection, P], T], *given: P.args, **named: P.kwargs) -> T:
        async with self._database.write() as connection:
            if self._database.sqlite:  # the turn that this one follows may have come by the short way
                await connection.run_sync(taken.take_in)
            if (held := deliveries.HELD.get()) is not None:
                await connection.run_sync(deliveries.must_be_held, held)
            return await connection.run_sync(work, *given, **named)

    async def _take_in(self) -> None:
        """Turns from the command line's short way reach only SQLite files."""
        if not self._database.sqlite:
            return
        async with self._database.read() as connection:
            waits = await connection.run_sync(taken.any_dropped)
        if waits:
            async with self._database.write() as connection:
                await connection.run_sync(taken.take_in)


__all__ = [
    "Deed",
    "Delivery",
    "ErasedMeanwhileError",
    "Found",
    "LostClaimError",
    "OwnReply",
    "Store",
    "StoreError",
    "UnknownIncidentError",
    "open_store",
]
