"""INSERT … ON CONFLICT, which SQLite and PostgreSQL spell alike and SQLAlchemy keeps in two places."""

from typing import TYPE_CHECKING

from sqlalchemy import Connection, Table

if TYPE_CHECKING:
    from sqlalchemy.dialects.postgresql import Insert


def upsert(connection: Connection, table: Table) -> "Insert":
    """An insert of the connection's dialect; both have `excluded`, `on_conflict_do_update` and `on_conflict_do_nothing`."""
    if connection.dialect.name == "postgresql":
        from sqlalchemy.dialects import postgresql

        return postgresql.insert(table)
    from sqlalchemy.dialects import sqlite

    return sqlite.insert(table)  # type: ignore[return-value]  # the same methods
