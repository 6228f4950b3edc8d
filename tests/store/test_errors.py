import sqlite3
from pathlib import Path

import pytest

from bot.store import errors
from bot.store.errors import explain


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (sqlite3.OperationalError("database is locked"), "is locked by another process"),
        (sqlite3.OperationalError("attempt to write a readonly database"), "read-only for this user"),
        (sqlite3.OperationalError("database or disk is full"), "is full"),
        (sqlite3.OperationalError("unable to open database file"), "folder is missing"),
        (sqlite3.DatabaseError("file is not a database"), "not a database that oombot can read"),
        (sqlite3.DatabaseError("database disk image is malformed"), "Restore a backup"),
        (sqlite3.OperationalError("no such column: incidents.mood"), "oombot db upgrade"),
        (ConnectionRefusedError("[Errno 111] Connect call failed ('127.0.0.1', 1)"), "No PostgreSQL server answers"),
        (TimeoutError(), "did not answer in time"),
        (OSError(28, "No space left on device"), "is full"),
        (RuntimeError("something nobody thought of"), "something nobody thought of"),
    ],
)
def test_every_failure_is_a_sentence_with_the_place(error: Exception, said: str) -> None:
    sentence = explain(error, "/data/oombot.db")
    assert said in sentence
    assert "/data/oombot.db" in sentence
    assert sentence.endswith((".", "`."))


def test_an_input_error_on_a_full_disk_is_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = str(tmp_path / "oombot.db")
    assert "did not answer as it should (disk I/O error)" in explain(sqlite3.OperationalError("disk I/O error"), place)
    monkeypatch.setattr(errors, "LEAST_ROOM", 2**80)
    for said in ("disk I/O error", "unable to open database file"):
        assert "oombot.db is full. Make room on it" in explain(sqlite3.OperationalError(said), place)
