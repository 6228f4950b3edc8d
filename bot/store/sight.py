"""Who may see which rows: the one place that says it."""

from typing import Any, Protocol

from sqlalchemy import ColumnElement, FromClause, UnaryExpression, and_, false, or_
from sqlalchemy.sql.operators import custom_op

from bot.domain.incident import Origin


class Sight(Protocol):
    """Someone who asks: `channels` None may see all of the team, else only incidents of these channels."""

    @property
    def team(self) -> str: ...  # noqa: D102
    @property
    def enterprise(self) -> str | None: ...  # noqa: D102
    @property
    def channels(self) -> frozenset[str] | None: ...  # noqa: D102


def visible(table: FromClause, who: Sight | Origin, by_index: bool = True) -> ColumnElement[bool]:
    """Rows that someone may see. For a place (Origin): its own channel and what is not private; never another team's.

    A workspace may have joined an organisation later, so its older rows name none. `by_index` False keeps SQLite from walking the
    team's index.
    """
    team = table.c.team if by_index else unindexed(table.c.team)
    mine: list[ColumnElement[Any]] = [team == who.team]
    if who.enterprise:
        mine.append(table.c.enterprise.in_((who.enterprise, "")))
    if isinstance(who, Origin):
        mine.append(or_(table.c.private == false(), table.c.channel == who.channel) if who.channel else table.c.private == false())
    elif who.channels is not None:
        mine.append(table.c.channel.in_(sorted(who.channels)) if who.channels else false())
    return and_(*mine)


def unindexed(column: ColumnElement[Any]) -> ColumnElement[Any]:
    """A column that SQLite may not look up in an index: a unary plus before it says so."""
    return UnaryExpression(column, operator=custom_op("+"), type_=column.type)
