import asyncio
import os
import signal

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
