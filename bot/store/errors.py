"""When the database cannot: one sentence that says what was wrong, where, and what to do."""

import os
import shutil
from pathlib import Path

LEAST_ROOM = 4 * 2**20
"""Bytes of free space that a write may need: the write-ahead log is brought into the file at 4 MB."""


class StoreError(Exception):
    """The world failed, not the caller. The message can be shown to a person; it holds no text of anyone's log and no password."""


class LostClaimError(Exception):
    """The delivery that this task works was claimed by another, since its lease had run out: nothing that it still writes may count.

    No StoreError: nobody is to be told, the other one answers.
    """


class ErasedMeanwhileError(Exception):
    """A diagnosis was judged from evidence that has been erased since: it would bring lines of it back. To be judged anew."""


class UnknownIncidentError(StoreError):
    """No incident of that id in that team."""


def explain(error: BaseException, place: str) -> str:
    """A sentence for what a driver raised. `place` is the database without its password."""
    said = " ".join(str(getattr(error, "orig", None) or error).split())
    low = said.lower() or ("timed out" if isinstance(error, TimeoutError) else "")
    if any(needle in low for needle in _PERHAPS_FULL) and _is_full(Path(place).parent):
        return _FULL.format(place=place)
    for needles, sentence in _KNOWN:
        if any(needle in low for needle in needles):
            return sentence.format(place=place)
    return f"The database {place} did not answer as it should ({said[:160]}). Run `oombot doctor` to see whether it can be opened at all."


def unwritable(file: Path, place: str) -> None:
    """StoreError when an SQLite file could not be written now, for want of room or of permission."""
    if not (os.access(file, os.W_OK) and os.access(file.parent, os.W_OK)):
        raise StoreError(_READ_ONLY.format(place=place))
    if _is_full(file.parent):
        raise StoreError(_FULL.format(place=place))


def _is_full(folder: Path) -> bool:
    try:
        return shutil.disk_usage(folder).free < LEAST_ROOM
    except OSError:  # no folder of this machine
        return False


_FULL = "The disk that holds {place} is full. Make room on it; nothing can be kept until then."
_READ_ONLY = (
    "The database {place} is read-only for this user. "
    "Give write permission to the file and its folder, or set OOMBOT_DATABASE_URL to another place."
)
_PERHAPS_FULL = ("disk i/o error", "unable to open database file")
"""What SQLite says where there is no room for the files that it puts beside its own."""


_KNOWN: tuple[tuple[tuple[str, ...], str], ...] = (
    (
        ("database is locked", "database table is locked", "lock timeout", "canceling statement due to lock"),
        "The database {place} is locked by another process. Try again in a moment; if it stays so, end the program that holds it open.",
    ),
    (
        ("readonly", "read-only", "permission denied for"),
        _READ_ONLY,
    ),
    (
        ("database or disk is full", "no space left", "disk full", "could not extend file"),
        _FULL,
    ),
    (
        ("unable to open database file",),
        "The database {place} cannot be opened: its folder is missing, or this user may not write there. "
        "Make the folder, or set OOMBOT_DATABASE_URL.",
    ),
    (
        ("file is not a database", "disk image is malformed", "file is encrypted"),
        "{place} is not a database that oombot can read, or it is damaged. "
        "Restore a backup with `oombot db restore FILE --replace`, or move the file away.",
    ),
    (
        ("connection refused", "connect call failed", "name or service not known", "failure in name resolution", "nodename nor servname"),
        "No PostgreSQL server answers at {place}. Start it, or mend the host and port in OOMBOT_DATABASE_URL.",
    ),
    (
        ("password authentication failed", "invalid password", "no pg_hba.conf entry", "role "),
        "PostgreSQL at {place} refused the user or password. Mend OOMBOT_DATABASE_URL.",
    ),
    (
        ("does not exist",),
        "PostgreSQL at {place} has no such database or table. Create the database (`createdb`), then run `oombot db upgrade`.",
    ),
    (
        ("connection was closed", "connection is closed", "terminating connection", "connection reset", "server closed"),
        "The connection to {place} was lost. It is opened again at the next try.",
    ),
    (
        ("timed out", "queuepool limit", "timeouterror"),
        "The database {place} did not answer in time. Try again in a moment; if it stays so, look at the load of its machine.",
    ),
    (
        ("no such table", "no such column"),
        "The database {place} has an older or foreign schema. Run `oombot db upgrade`.",
    ),
)
