"""What every page's handler works with, laid out once by `build_app`."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import jinja2
from aiohttp import web

from bot.settings import Settings
from bot.usecases.asks import Asks
from bot.usecases.desk import Desk, Viewer
from bot.usecases.doctor import Check
from bot.web.metrics import Meters
from bot.web.once import Once

if TYPE_CHECKING:
    from bot.store.store import Store

Visible = Callable[[str, str, str | None], Awaitable[frozenset[str] | None]]
"""(team, user, enterprise) -> channels this person may read; None: the bot is not in that workspace."""

Probe = Callable[[], Awaitable[Sequence[Check]]]
"""One room's `checks`: what it needs to work."""

Aside = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Runs something that can be pickled in another process, and gives what it gave."""


@dataclass(frozen=True, slots=True)
class Door:
    """`secret` signs cookies and form tokens; random for each start when OOMBOT_SECRET_KEY is not set.

    `aside` reads large uploads in other processes; None: in a thread. `ungated` are the paths of routes that answer
    whoever asks: health, metrics, and what Slack posts to.
    """

    desk: Desk
    settings: Settings
    store: "Store | None"
    asks: Asks
    meters: Meters
    templates: jinja2.Environment
    secret: bytes
    visible: Visible | None
    probes: Sequence[Probe]
    aside: Aside | None = None
    ungated: frozenset[str] = frozenset()
    once: Once = field(default_factory=Once)


DOOR = web.AppKey("door", Door)
VIEWER = web.RequestKey("viewer", Viewer)


def door_of(request: web.Request) -> Door:
    """The Door of this request's application."""
    return request.app[DOOR]
