"""What is acknowledged before the inbox has it lies beside the database, a file each, until it is there: kill -9 loses none of it."""

import asyncio
import hashlib
import json
import logging
import os
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from bot.slack.alive import is_dead, worker_name
from bot.slack.inbox import Arrival
from bot.store.errors import StoreError
from bot.store.private import ALONE, private_folder

if TYPE_CHECKING:
    from bot.store.store import Store

log = logging.getLogger(__name__)
MOST = 1_000  # files
MOST_BYTES = 64 * 1024 * 1024
LOOK = 1.0  # seconds between looks for what is left to take up
UNTENDED = 20.0  # seconds after which a file is taken up whose process cannot be told to be dead: longer than a view may take to open
NOTED, BEGUN = ".json", ".part"

P = ParamSpec("P")
T = TypeVar("T")


class Spool:
    """Noted deliveries, redacted like those in the inbox. Several processes may share them: a key comes into the inbox once.

    `named`: the files' folder, and how their names begin.
    """

    def __init__(self, named: Path) -> None:
        self._folder = named.parent
        self._begins = f"{named.name}."
        self.place = f"{named}.*"
        self._by = worker_name()
        self._held: set[Path] = set()
        self._hands = ThreadPoolExecutor(4, "spool")  # of its own: who waits for an acknowledgement waits for nothing that is read
        self._said = ""

    async def note(self, came: Arrival) -> None:
        """On the disk when this returns, and left alone until `drop` or `leave`. OSError: no room, no permission, too much there."""
        self._held.add(self._file(came))
        await self._beside(self._write, self._file(came), json.dumps({"by": self._by, **asdict(came)}).encode())

    async def drop(self, came: Arrival) -> None:
        """It is in the inbox, or nothing is left to do."""
        await self._beside(self._file(came).unlink, True)
        self.leave(came)

    def leave(self, came: Arrival) -> None:
        """Whoever noted it does no more about it: it is to be taken up."""
        self._held.discard(self._file(came))

    async def left(self) -> list[Arrival]:
        """What is to be taken up, oldest first: of this process, of dead ones, and what nobody has tended for a while."""
        try:
            return await self._beside(self._read)
        except OSError as lost:
            self._say_once(f"{self.place} cannot be read ({lost.strerror}): what was noted there waits. Give this user the right to it.")
            return []

    async def take_up(self, store: "Store", wake: Callable[[], None]) -> None:
        """Brings what is left into the inbox, now and whenever the database lets it in again. Endless."""
        while True:
            try:
                for came in await self.left():
                    await keep(store, came)
                    wake()
                    await self.drop(came)
                    self._said = ""
            except (StoreError, OSError) as lost:
                self._say_once(f"what was noted beside the database waits: {lost}")
            except Exception:  # the top of a background task: ended, what was acknowledged would lie there for good
                log.exception("what was noted beside the database could not be taken up")
            await asyncio.sleep(LOOK)

    def unusable(self) -> str | None:
        """Why nothing can be noted now; None where it can."""
        try:
            private_folder(self._folder)
            self._must_have_room(0)
        except OSError as lost:
            return lost.strerror or str(lost)
        return None if os.access(self._folder, os.W_OK | os.X_OK) else "Permission denied"

    async def _beside(self, work: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._hands, partial(work, *given, **named))

    def _file(self, came: Arrival) -> Path:
        known_by = hashlib.sha256(f"{came.team}\0{came.key}".encode()).hexdigest()[:32]
        return self._folder / f"{self._begins}{known_by}{NOTED}"

    def _write(self, file: Path, content: bytes) -> None:
        """Whole or not at all: it gets its name when its bytes are on the disk."""
        private_folder(self._folder)
        self._must_have_room(len(content))
        begun = file.with_name(f"{file.stem}.{uuid.uuid4().hex[:8]}{BEGUN}")
        try:
            with open(os.open(begun, os.O_CREAT | os.O_EXCL | os.O_WRONLY, ALONE), "wb") as written:
                written.write(content)
                written.flush()
                os.fsync(written.fileno())
            begun.replace(file)
        except OSError:
            with suppress(OSError):
                begun.unlink(missing_ok=True)
            raise
        _name_is_kept(self._folder)

    def _files(self) -> list[Path]:
        if not self._folder.exists():
            return []
        return [Path(entry.path) for entry in os.scandir(self._folder) if entry.name.startswith(self._begins)]

    def _must_have_room(self, more: int) -> None:
        sizes = []
        for file in self._files():
            with suppress(FileNotFoundError):  # taken up in the meantime
                sizes.append(file.stat().st_size)
        if len(sizes) >= MOST or sum(sizes) + more > MOST_BYTES:
            raise OSError(None, f"{len(sizes):,} deliveries wait there already")

    def _read(self) -> list[Arrival]:
        found: list[tuple[float, Arrival]] = []
        for file in self._files():
            with suppress(FileNotFoundError):  # another process has just taken it up
                noted = file.stat().st_mtime
                untended = time.time() - noted > UNTENDED
                if file.suffix == NOTED and file not in self._held:
                    given = self._read_one(file, untended)
                    found += [(noted, given)] if given else []
                elif file.suffix == BEGUN and untended:  # its process ended before it was acknowledged
                    file.unlink()
        return [came for _, came in sorted(found, key=lambda one: one[0])]

    def _read_one(self, file: Path, untended: bool) -> Arrival | None:
        try:
            given = json.loads(file.read_bytes())
            by = given.pop("by")
            came = Arrival(**given)
        except (ValueError, KeyError, TypeError, AttributeError):
            log.error("%s is no delivery that this version can read: it is removed", file)
            file.unlink()
            return None
        return came if untended or by == self._by or is_dead(by) else None

    def _say_once(self, said: str) -> None:
        if said != self._said:
            log.warning(said)
        self._said = said


async def keep(store: "Store", came: Arrival) -> None:
    """Into the inbox, where the same thing is known by its key. StoreError."""
    await store.deliver(came.team, came.channel, came.thread, came.key, came.kind, came.payload(), came.enterprise)


def _name_is_kept(folder: Path) -> None:
    """A file's name outlives a power cut once its folder is on the disk; Windows sees to that by itself, and opens no folder."""
    if os.name == "nt":
        return
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
