"""Turns that came by the short way (`drop`), moved into the tables before anyone reads."""

from sqlalchemy import Connection, select, update

from bot.store.drop import read_turn
from bot.store.incidents import insert_new
from bot.store.tables import deliveries

_DROPPED = deliveries.c.state == "drop"


def any_dropped(connection: Connection) -> bool:
    """Whether a turn waits to be moved; an index answers."""
    return connection.execute(select(deliveries.c.key).where(_DROPPED).limit(1)).first() is not None


def take_in(connection: Connection) -> int:
    """Move every dropped turn under the number it has; gives how many."""
    rows = connection.execute(select(deliveries.c.key, deliveries.c.payload).where(_DROPPED).order_by(deliveries.c.key)).all()
    for key, payload in rows:
        number, at, origin, given, document = read_turn(payload)
        insert_new(connection, number, origin, given, document, at)
        connection.execute(update(deliveries).where(deliveries.c.key == key).values(state="done", payload=b"", done_at=at))
    return len(rows)
