"""Judging beside the event loop: short pastes in a thread, long ones in a worker process."""

import asyncio
import gc
import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context, parent_process, resource_tracker
from typing import IO, Any, TypeVar

from bot.domain.incident import Contribution
from bot.rulebook.load import load_rulebook
from bot.usecases.judge import judge

SHORT = 20_000
PROCESSES = 2
T = TypeVar("T")
_LOG = logging.getLogger(__name__)


def warm() -> None:
    """What a process that judges does once: read the rulebook and compile what the first line needs."""
    judge(load_rulebook(), [Contribution("paste", "torch.OutOfMemoryError: CUDA out of memory.")])
    gc.set_threshold(50_000)  # a paste makes many objects that end with it: looking through them again and again costs 2 to 4 in 100
    gc.freeze()  # the rules stay as long as the process: the collector need not go through them again for every paste


def _begin() -> None:
    """What a reading process does first."""
    threading.Thread(target=_end_with_the_bot, name="end with the bot", daemon=True).start()
    warm()


def _end_with_the_bot() -> None:
    """A bot that was killed closes no pool: its workers, which wait on a pipe that they hold open themselves, would wait for good."""
    bot = parent_process()
    if bot is not None:
        bot.join()
        os._exit(1)


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """What is started inside never hears Ctrl-C, which a terminal sends to every process: the bot ends its workers itself."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # else its start, inside, takes the mask away again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # a mask is inherited, a handler is not
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def shared(file: IO[bytes]) -> str | None:
    """How a reading process opens a file that has no name; only Linux has such a way.

    What is handed over in memory is pickled, and while that lasts nothing else runs: 50 ms for a log of 20 MB.
    """
    file.flush()
    path = f"/proc/{os.getpid()}/fd/{file.fileno()}"
    return path if os.path.exists(path) else None


def _judged(contributions: Sequence[Contribution], precedents: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    return judge(load_rulebook(), contributions, precedents)


class Judges:
    """A pool of reading processes. A worker that died is replaced once; the second time the error rises to the door."""

    def __init__(self, processes: int = PROCESSES) -> None:
        self._processes = processes
        self._pool = self._fresh()

    def _fresh(self) -> ProcessPoolExecutor:
        pool = ProcessPoolExecutor(self._processes, mp_context=get_context("spawn"), initializer=_begin)
        with _deaf_to_interrupts():
            for _ in range(self._processes):
                pool.submit(int)  # started now, so that nobody's paste waits for it
        return pool

    async def judge(self, contributions: Sequence[Contribution], precedents: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        """The contract's diagnosis document."""
        if sum(len(c.text or "") for c in contributions) <= SHORT:
            return await asyncio.to_thread(_judged, contributions, precedents)
        return await self.run(partial(_judged, tuple(contributions), tuple(precedents)))

    async def run(self, work: Callable[[], T]) -> T:
        """A picklable piece of work in one of the processes; tried once more when its process died."""
        for attempt in (1, 2):
            pool = self._pool
            try:
                return await asyncio.get_running_loop().run_in_executor(pool, work)
            except BrokenProcessPool:
                _LOG.warning("a reading process died (attempt %d)", attempt)
                if self._pool is pool:  # all that were waiting on it learn of it; the first one replaces it
                    self._pool = self._fresh()
        raise RuntimeError("the log could not be read: the reading process died twice; send a shorter part of it")

    def close(self) -> None:
        """End the processes."""
        self._pool.shutdown(wait=False, cancel_futures=True)
