"""A replica that works deliveries until none is left: run as `python -m tests.store.worker URL NAME LOG`, so that it can be killed."""

import asyncio
import sys
from pathlib import Path

from bot.store.store import open_store


async def work(url: str, name: str, log: Path) -> None:
    store = await open_store(url)
    while True:
        found = await store.claim(name, 600)  # what a dead one holds the test gives back; a living one is never too slow
        if found is None:
            backlog = await store.backlog()
            if not backlog["waiting"] + backlog["working"]:
                break
            await asyncio.sleep(0.05)
            continue
        with log.open("a", encoding="utf-8") as lines:
            lines.write(f"{found.thread} {found.key} {found.attempts}\n")
        await store.remember_reply(None, found.team, "C1", found.thread or "", found.key, found.key)
        await store.finish(found.id)
    await store.close()


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1], sys.argv[2], Path(sys.argv[3])))
