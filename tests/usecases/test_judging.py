import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from bot.usecases.judging import Judges


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


async def test_work_that_kills_its_process_twice_is_given_up_with_a_sentence() -> None:
    judges = Judges(1)
    try:
        with pytest.raises(RuntimeError, match="send a shorter part of it"):
            await judges.run(die)
        assert await judges.run(os.getpid) != os.getpid()
    finally:
        judges.close()


async def test_what_waited_on_a_process_that_died_is_done_by_its_one_replacement() -> None:
    judges = Judges(1)
    try:
        first = await judges.run(os.getpid)
        waiting = [asyncio.create_task(judges.run(os.getpid)) for _ in range(5)]
        await asyncio.sleep(0)
        os.kill(first, signal.SIGKILL)
        later = set(await asyncio.gather(*waiting))
        assert len(later - {first}) <= 1
        assert len({*later, await judges.run(os.getpid)} - {first}) == 1
    finally:
        judges.close()


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="asks Linux which processes there are")
async def test_a_bot_that_was_killed_leaves_no_process_behind() -> None:
    bot = await asyncio.create_subprocess_exec(sys.executable, "-m", "tests.usecases.judging_process", stdout=asyncio.subprocess.PIPE)
    assert bot.stdout is not None
    workers = [int(pid) for pid in (await bot.stdout.readline()).split()]
    left = [pid for pid in descendants(bot.pid) if pid != bot.pid]
    assert set(workers) < set(left), "the resource tracker besides"
    bot.kill()
    try:
        async with asyncio.timeout(120):
            await bot.wait()  # until nobody holds its standard output any more
            while any(is_running(pid) for pid in left):  # noqa: ASYNC110 - no event tells of another's process
                await asyncio.sleep(0.05)
    finally:
        for pid in filter(is_running, left):
            os.kill(pid, signal.SIGKILL)


def descendants(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(one for child in children for one in descendants(int(child)))]


def is_running(pid: int) -> bool:
    """A process that nobody has taken note of yet is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
