"""`oombot serve`, whole and as it is run, in a process of its own, with its event loop watched."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from tests.replicas.fleet import ROOT, free_ports
from tests.slack.world import World


@dataclass(frozen=True)
class Served:
    """A running bot; `held` says how long its loop was away."""

    pid: int
    url: str
    log: Path
    lag_file: Path

    def held(self, since: float) -> str:
        """In words: how long the loop was away at worst, how often for more than 50 ms, and how much of it was its own work."""
        rows = [line.split() for line in self.lag_file.read_text(encoding="utf-8").splitlines()]
        late = [(int(away), int(worked)) for at, away, worked in rows if float(at) >= since]
        away = max((away for away, _ in late), default=0)
        worked = [worked for _, worked in late]
        return (
            f"loop away: worst {away} ms, {sum(a > 50 for a, _ in late)} times more than 50 ms; "
            f"by its own work: worst {max(worked, default=0)} ms, {sum(w > 50 for w in worked)} times more than 50 ms"
        )


@asynccontextmanager
async def serve(world: World, database: str) -> AsyncIterator[Served]:
    """Started, ready, and stopped as a person stops it."""
    (port,) = free_ports(1)
    slack = world.slack
    folder = world.folder
    given = {
        "OOMBOT_DATABASE_URL": database, "OOMBOT_PORT": str(port), "OOMBOT_PAGE": "off", "SLACK_BOT_TOKEN": world.team.token,
        "SLACK_API_URL": slack.api_url, "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(ROOT),
    }  # fmt: skip
    given |= {"SLACK_SIGNING_SECRET": slack.signing_secret} if slack.transport == "http" else {"SLACK_APP_TOKEN": slack.app_token}
    log, lag_file = folder / "served.log", folder / "lag"
    slack.events_url = f"http://127.0.0.1:{port}/slack/events"
    with log.open("wb") as said:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.bench.lagging", str(lag_file),
            cwd=folder, env={"PATH": os.environ["PATH"], "HOME": str(folder), **given}, stdout=said, stderr=said,
        )  # fmt: skip
    try:
        await ready(f"http://127.0.0.1:{port}/readyz", process)
        yield Served(process.pid, f"http://127.0.0.1:{port}", log, lag_file)
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(process.wait(), 20)
        except TimeoutError:
            process.kill()
            await process.wait()


async def ready(url: str, process: asyncio.subprocess.Process) -> None:
    """Waits until it can work."""
    end = time.monotonic() + 60
    async with aiohttp.ClientSession() as session:
        while True:
            assert process.returncode is None, "the bot has ended"
            assert time.monotonic() < end, "the bot is not ready"
            try:
                async with session.get(url) as answer:
                    if answer.status == 200:
                        return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.1)
