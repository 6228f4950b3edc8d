"""`oombot serve` as a process of its own that also measures how long its event loop is held: `python -m tests.bench.lagging FILE`.

FILE gets one line a delay of more than 20 ms: when (monotonic seconds), how long, and how long its thread computed meanwhile
(milliseconds). Where the second is much smaller, the machine was busy with others.
"""

import asyncio
import sys
import time
from pathlib import Path
from typing import Any

from bot import main, serve

STEP = 0.005  # seconds


async def watch(log: Path) -> None:
    """Sleeps shortly, over and over, and notes by how much it was woken too late."""
    with log.open("w", encoding="utf-8", buffering=1) as lines:
        while True:
            before, computed = time.monotonic(), time.thread_time()
            await asyncio.sleep(STEP)
            late = time.monotonic() - before - STEP
            if late > 0.02:
                lines.write(f"{time.monotonic():.3f} {late * 1000:.0f} {(time.thread_time() - computed) * 1000:.0f}\n")


def run(log: Path) -> int:
    until_stopped = serve.until_stopped

    async def watched(settings: Any) -> None:
        watching = asyncio.create_task(watch(log))
        try:
            await until_stopped(settings)
        finally:
            watching.cancel()

    serve.until_stopped = watched
    return main.run(["serve"])


if __name__ == "__main__":
    sys.exit(run(Path(sys.argv[1])))
