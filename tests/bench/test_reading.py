"""Reading speed: a large serving log held against grep, a long paste in a warm process, and how long the event loop stands still."""

import asyncio
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.domain.incident import Contribution
from bot.reading.select import anchors_of
from bot.rulebook.load import load_rulebook
from bot.usecases.judge import judge
from bot.usecases.judging import Judges
from bot.web.forms import Form, Upload
from bot.web.intake import contributions_of

pytestmark = pytest.mark.bench

STATS = (
    "(APIServer pid=1) INFO 11-18 09:{m:02d}:{s:02d} [loggers.py:123] Engine 000: Avg prompt throughput: {t}.5 tokens/s, Avg generation "
    "throughput: {t}.1 tokens/s, Running: {r} reqs, Waiting: 0 reqs, GPU KV cache usage: {r}.0%, Prefix cache hit rate: 12.3%\n"
)
ACCESS = '(APIServer pid=1) INFO:     10.0.0.{r}:{t} - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'
FAILURE = "".join(
    f"(Worker_TP1 pid=7501) ERROR 11-18 10:00:00 [multiproc_executor.py:671] {line}\n"
    for line in (
        "Traceback (most recent call last):",
        '  File "/opt/venv/lib/python3.12/site-packages/vllm/v1/worker/gpu_worker.py", line 500, in execute_model',
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 64.00 MiB. GPU 1 has a total capacity of 79.18 GiB of which 20.88 MiB is free.",
    )
)


def serving_log(path: Path, size: int) -> None:
    """A log of `size` bytes of statistics and requests, with one failure at its end."""
    block = "".join(STATS.format(m=i // 60 % 60, s=i % 60, t=i, r=i % 200) + ACCESS.format(r=i % 200, t=i) for i in range(4000))
    with path.open("w") as file:
        for _ in range(size // len(block) + 1):
            file.write(block)
        file.write(FAILURE)


def seconds(command: list[str]) -> float:
    """Wall time of a command, the best of three."""
    best = float("inf")
    for _ in range(3):
        begun = time.perf_counter()
        subprocess.run(command, check=False, capture_output=True)
        best = min(best, time.perf_counter() - begun)
    return best


@pytest.mark.parametrize("megabytes", [1, 20, 200])
def test_a_large_log_against_grep(tmp_path: Path, megabytes: int) -> None:
    log, anchors = tmp_path / "serve.log", tmp_path / "anchors"
    serving_log(log, megabytes * 10**6)
    anchors.write_text("\n".join(sorted(anchors_of(load_rulebook()))) + "\n")
    grep = seconds(["grep", "-c", "-F", "-f", str(anchors), str(log)])
    own = seconds([sys.executable, "-m", "bot", "diagnose", str(log), "--no-store", "--json"])
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(
        f"{megabytes} MB: oombot {own:.2f} s, grep {grep:.2f} s (twice grep + 0.5 s is {2 * grep + 0.5:.2f} s), peak of any child {peak:.0f} MB"
    )


def test_a_long_paste_in_a_warm_process() -> None:
    book = load_rulebook()
    text = "".join(STATS.format(m=i // 60 % 60, s=i % 60, t=i, r=i % 200) for i in range(700)) + FAILURE
    text = (text * 3)[-200_000:]
    judge(book, [Contribution("paste", text)])
    best = float("inf")
    for _ in range(10):
        begun = time.process_time()
        judge(book, [Contribution("paste", text)])
        best = min(best, time.process_time() - begun)
    print(f"{len(text):,} characters, {text.count(chr(10)):,} lines: {best * 1000:.0f} ms of processor time")


async def stands_still(work: Awaitable[object]) -> float:
    """The longest that the event loop was held while this was done, in seconds."""
    task, longest = asyncio.ensure_future(work), 0.0
    while not task.done():
        begun = time.perf_counter()
        await asyncio.sleep(0.001)
        longest = max(longest, time.perf_counter() - begun - 0.001)
    await task
    return longest


async def test_the_event_loop_while_20_megabytes_are_read(tmp_path: Path) -> None:
    log = tmp_path / "serve.log"
    serving_log(log, 20 * 10**6)
    judges = Judges(1)
    await judges.run(load_rulebook)
    with tempfile.TemporaryFile() as body:
        form = Form(uploads=[Upload("serve.log", body, body.write(log.read_bytes()))])
        now = datetime.now(UTC)
        reading = await stands_still(contributions_of(form, None, now, judges.run))
        given, _ = await contributions_of(form, None, now, judges.run)
        judging = await stands_still(judges.judge(given, ()))
    judges.close()
    print(f"20 MB: the loop was held for {reading * 1000:.0f} ms while it was read and for {judging * 1000:.0f} ms while it was judged")
