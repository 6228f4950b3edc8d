"""Real bot processes on one database, against one double that hands each delivery to the next of them, as a load balancer does."""

import asyncio
import re
import signal
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

from bot.store.store import Store, open_store
from bot.usecases.desk import Viewer
from tests.fakeslack import FakeSlack
from tests.slack.lives import Life, born
from tests.slack.material import NO_RANK
from tests.slack.world import World

ROOT = Path(__file__).parents[2]
LEASE = 1.0  # seconds
AHEAD = 2
RETRIES = (0.05, 0.3, 1.0, 2.0, 4.0, 8.0, 15.0)  # seconds before each; Slack itself gives 0, 60 and 300


class Balanced(FakeSlack):
    """Does not know which replica is dead: what reaches a dead one comes again, to the next."""

    def __init__(self, transport: str) -> None:
        self.ports: list[int] = []
        self._turn = count()
        super().__init__(transport, retry_after=RETRIES)

    @property
    def events_url(self) -> str | None:
        return f"http://127.0.0.1:{self.ports[next(self._turn) % len(self.ports)]}/slack/events"

    @events_url.setter
    def events_url(self, _: str | None) -> None:
        """The ports say where."""


class Fleet:
    """`size` replicas; each keeps its port over its lives."""

    def __init__(self, slack: Balanced, world: World, store: Store) -> None:
        self.slack, self.world, self.store = slack, world, store
        self._lives: dict[int, Life] = {}

    async def start(self, port: int) -> None:
        world, slack = self.world, self.slack
        before = slack.links_made
        more = [slack.app_token] if slack.transport == "socket" else []
        given = [slack.api_url, world.url, world.team.token, slack.signing_secret, str(port), str(LEASE), *more]
        self._lives[port] = await born(given, self._log(port), {"XDG_DATA_HOME": str(self.data(port))})
        await slack.linked_anew(before)

    def data(self, port: int) -> Path:
        """A replica's own folder, over all its lives."""
        return self.world.folder / f"data-{port}"

    async def kill(self, port: int) -> None:
        """SIGKILL: nothing is finished, nothing is said goodbye to."""
        await self._lives.pop(port).kill()

    async def sleep(self, port: int, seconds: float) -> None:
        """SIGSTOP, and on again: the process does not know that time has passed, and its leases (one second) have run out."""
        self._lives[port].send_signal(signal.SIGSTOP)
        await asyncio.sleep(seconds)
        self._lives[port].send_signal(signal.SIGCONT)

    def log(self, port: int) -> str:
        return self._log(port).read_text(encoding="utf-8")

    def _log(self, port: int) -> Path:
        return self.world.folder / f"replica-{port}.log"

    async def end(self) -> None:
        for port in list(self._lives):
            await self.kill(port)

    # What the people see and do

    async def talk(self, threads: int, each: int) -> dict[str, list[str]]:
        """In every thread at once: a paste without its rank, then `each - 1` answers. The timestamps of each thread, in their order.

        People keep talking while the bots work: nobody is further ahead than a few messages, so that a kill meets both.
        """
        spoken_so_far = count(1)

        async def one(thread: int) -> list[str]:
            said = [await self.world.ann.mention(self.world.channel, f"{NO_RANK} {thread}")]  # the same one twice would be linked
            for number in range(1, each):
                ahead = next(spoken_so_far) - AHEAD * threads
                while self.worked() < ahead:  # noqa: ASYNC110  # what happens is in other processes
                    await asyncio.sleep(0.05)
                said.append(await self.world.bob.say(self.world.channel, f"rank {number}", thread=said[0]))
            return said

        spoken = await asyncio.gather(*(one(thread) for thread in range(threads)))
        return {said[0]: said for said in spoken}

    def worked(self) -> int:
        """Messages whose eyes are gone."""
        return len({ts for _, ts, _, on in self.slack.reactions if not on})

    async def until(self, holds: Callable[[], Any], seconds: float) -> None:
        end = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < end, (self.worked(), await self.store.backlog())
            await asyncio.sleep(0.02)

    async def quiet(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while (state := await self.store.backlog())["waiting"] + state["working"]:
            assert time.monotonic() < end, state
            await asyncio.sleep(0.05)
        assert state["failed"] == 0

    async def nothing_lost_doubled_or_out_of_order(self, threads: dict[str, list[str]]) -> None:
        world = self.world
        answers = world.answers(world.channel)
        assert sorted(m["thread_ts"] for m in answers) == sorted(threads), "one message a thread"
        assert world.channel.ephemerals == []
        begun = [ts for _, ts, _, on in self.slack.reactions if on]
        incidents, logs = set(), set()
        for root, said in threads.items():
            found = await self.store.by_thread(world.team.id, world.channel.id, root)
            incident = await self.store.load(world.team.id, found or "")
            assert incident is not None
            incidents.add(incident.id)
            first, *answers_kept = [c.text or "" for c in incident.contributions]
            assert re.fullmatch(re.escape(NO_RANK) + r" \d+", first), first
            logs.add(first)
            assert answers_kept == [f"rank={number}" for number in range(1, len(said))]
            assert list(dict.fromkeys(ts for ts in begun if ts in said)) == said
        assert len(incidents) == len(logs) == len(threads)
        others = [one async for one in self.store.walk(Viewer(world.team.id)) if one.id not in incidents]
        assert not others, [(one.id, one.origin.thread, [c.text for c in one.contributions]) for one in others]


def free_ports(wanted: int) -> list[int]:
    opened = [socket.socket() for _ in range(wanted)]
    for one in opened:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in opened]
    for one in opened:
        one.close()
    return ports


@asynccontextmanager
async def fleet(transport: str, url: str, folder: Path, size: int) -> AsyncIterator[Fleet]:
    slack = Balanced(transport)
    slack.ports = free_ports(size)
    async with slack.running():
        world = World(slack, folder)
        world.url = url
        store = await open_store(url)
        made = Fleet(slack, world, store)
        try:
            for port in slack.ports:
                await made.start(port)
            yield made
        finally:
            await made.end()
            await store.close()
    unexpected = [(c.method, c.error, c.messages) for c in slack.refusals if c.error not in world.harmless]
    assert not unexpected, unexpected
