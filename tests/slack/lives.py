"""Bots as processes of their own, to be killed: forked from one that has imported all they need, since a start takes a second and a half."""

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path

_CONTEXT = get_context("forkserver")
_CONTEXT.set_forkserver_preload(["__main__", "tests.slack.bot_process"])


class Life:
    """One process, from the moment it is ready."""

    def __init__(self, process: ForkServerProcess) -> None:
        self._process = process

    @property
    def has_ended(self) -> bool:
        return not self._process.is_alive()

    def send_signal(self, number: int) -> None:
        assert self._process.pid is not None
        os.kill(self._process.pid, number)

    async def kill(self) -> None:
        """SIGKILL: nothing is finished, nothing is said goodbye to."""
        if not self.has_ended:
            self.send_signal(signal.SIGKILL)
        await asyncio.to_thread(self._process.join)


async def born(given: Sequence[str], log: Path | None = None, environment: Mapping[str, str] | None = None) -> Life:
    """A bot with the arguments of `bot_process`; what it writes goes to the end of `log`."""
    hears, says = _CONTEXT.Pipe(duplex=False)
    process = _CONTEXT.Process(target=_live, args=(list(given), log, dict(environment or {}), says), daemon=True)
    process.start()
    says.close()
    assert await asyncio.to_thread(hears.poll, 120), "it took two minutes to start"
    assert hears.recv() == "ready"  # EOFError: it ended before
    hears.close()
    return Life(process)


def _live(given: list[str], log: Path | None, environment: Mapping[str, str], says: Connection) -> None:
    from tests.slack.bot_process import serve

    written = os.open(log or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(written, stream)
    os.environ.update(environment)
    asyncio.run(serve(given, lambda: says.send("ready")))
