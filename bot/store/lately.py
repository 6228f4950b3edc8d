"""What people gave since a moment: how much of it, and whether the same texts were among it."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, or_, select

from bot.domain.incident import Origin
from bot.store.numbers import label
from bot.store.packed import cut, digest
from bot.store.sight import unindexed, visible
from bot.store.tables import contributions, incidents, replies

_GIVEN = ("paste", "file")
ASKED = "asked"
"""Thread of the notes on messages that another than their author had read: kind `asked:<channel>:<message>`, who did in its message."""


@dataclass(frozen=True, slots=True)
class Lately:
    """When evidence came, in microseconds, oldest first; one message counts once."""

    by_person: tuple[int, ...]
    in_channel: tuple[int, ...]


def print_of(text: str) -> str:
    """What two texts have in common when they would be kept alike: the hash that stands beside a kept text."""
    return digest(cut(text)[0])


def lately(connection: Connection, team: str, channel: str, author: str | None, since: int) -> Lately:
    """Messages with evidence that a person of the team gave, or had read, and those in a channel."""
    c, note = contributions.c, replies.c
    notes = select(note.kind, note.message).where(note.team == team, note.channel == "", note.thread == ASKED, note.at >= since)
    readers = {kind.removeprefix(f"{ASKED}:"): who for kind, who in connection.execute(notes)}
    had_read = [said.rpartition(":")[2] for said, who in readers.items() if who == author]
    ours = c.team if _by_team(connection) else unindexed(c.team)
    query = select(c.at, c.channel, c.author, c.incident, c.message).where(ours == team, c.at >= since, c.kind.in_(_GIVEN))
    query = query.where(or_(c.channel == channel, c.author == author, c.message.in_(had_read))).order_by(c.at)
    by_person: dict[object, int] = {}
    in_channel: dict[object, int] = {}
    for at, where, by, incident, message in connection.execute(query):
        said = (where, message or incident)
        if author is not None and readers.get(f"{where}:{message}", by) == author:
            by_person.setdefault(said, at)
        if where == channel:
            in_channel.setdefault(said, at)
    return Lately(tuple(by_person.values()), tuple(in_channel.values()))


def given_before(connection: Connection, origin: Origin, texts: Sequence[str], since: int) -> list[tuple[str, int]]:
    """Incidents that a place may see and that were given all these texts since a moment: id and when, newest first."""
    c, wanted = contributions.c, {print_of(text) for text in texts}
    seen = visible(contributions, origin, by_index=_by_team(connection))
    query = select(c.incident, c.sha256, c.at).where(seen, c.at >= since, c.kind.in_(_GIVEN))
    found: dict[int, dict[str, int]] = {}
    for incident, sha256, at in connection.execute(query.where(c.sha256.in_(sorted(wanted)))):
        found.setdefault(incident, {})[sha256] = at
    whole = {incident: max(prints.values()) for incident, prints in found.items() if set(prints) == wanted}
    numbers = connection.execute(select(incidents.c.key, incidents.c.number).where(incidents.c.key.in_(list(whole))))
    return sorted(((label(number), whole[key]) for key, number in numbers), key=lambda one: -one[1])


def _by_team(connection: Connection) -> bool:
    """PostgreSQL finds out by itself that the last hour is the smaller part; SQLite would walk all that the team ever gave."""
    return connection.dialect.name != "sqlite"
