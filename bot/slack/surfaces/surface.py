"""What a surface is: which arrivals it takes, how it works them, and the sign it gives at once."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from bot.slack.inbox import Arrival
from bot.slack.room import Job, Room


@dataclass(frozen=True, slots=True, kw_only=True)
class Surface:
    """`takes` may not wait; `work` is run from the stored arrival and must bear being run again after a crash.

    `says` is the body of the acknowledgement. `greet` runs beside it and may open a view with the trigger that lives three seconds;
    what it returns is merged into the stored body, None means that nothing is left to do. A form whose opening nobody saw the end of,
    since the process was killed, comes to `work`.
    """

    name: str
    takes: Callable[[Arrival], bool]
    work: Callable[[Room, Job], Awaitable[None]]
    says: Callable[[Arrival], dict[str, Any] | None] | None = None
    greet: Callable[[Room, Job], Awaitable[dict[str, Any] | None]] | None = None
