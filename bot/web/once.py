"""The same form sent twice at once, by a double click or a browser that tries again, is carried out once."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Any

KEPT = 60.0
"""Seconds for which a form that was carried out answers its like with what it gave."""


class Once:
    """What is being carried out, and what just was, by what it is. Of this process: copies of the bot do not know each other's."""

    def __init__(self) -> None:
        self._tasks: dict[Hashable, asyncio.Future[Any]] = {}

    async def carried_out(self, what: Hashable, work: Callable[[], Awaitable[Any]], kept: float = KEPT) -> Any:
        """What `work` gives; where the same is under way, or was carried out in the last `kept` seconds, what that gives. A failure is
        tried anew."""
        task = self._tasks.get(what)
        if task is None:
            task = self._tasks[what] = asyncio.ensure_future(work())
            task.add_done_callback(lambda done: self._forget(what, done, kept))
        return await asyncio.shield(task)  # who came second does not end with the first one's connection

    def _forget(self, what: Hashable, done: asyncio.Future[Any], kept: float) -> None:
        if kept and not done.cancelled() and done.exception() is None:
            done.get_loop().call_later(kept, self._tasks.pop, what, None)
        else:
            del self._tasks[what]
