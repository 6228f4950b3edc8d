"""`oombot db copy`, as a person types it: what was kept in a file is found in PostgreSQL, and the file's history goes on there."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.replicas.fleet import ROOT
from tests.slack.material import CRASH

CHECK = (
    "(EngineCore_DP0 pid=1) ERROR 11-30 05:00:00 [core.py:700] ValueError: Free memory on device (10.0/79.25 GiB) on startup is less than "
    "desired GPU memory utilization (0.9, 71.33 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.\n"
)
SEARCHES = (["capture_model"], ["outcome:same"], ['"desired GPU memory"', "outcome:fixed"])


async def oombot(database: str, folder: Path, *words: str, given: str = "") -> tuple[int, str, str]:
    """Exit status, standard output, standard error."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(ROOT), "OOMBOT_DATABASE_URL": database}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bot", *words, cwd=folder, env=environment,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, error = await process.communicate(given.encode())
    assert process.returncode is not None
    return process.returncode, out.decode(), error.decode()


async def told(database: str, folder: Path, *words: str, given: str = "") -> Any:
    status, out, error = await oombot(database, folder, *words, "--json", given=given)
    assert status == 0, error
    return json.loads(out)


async def everything(database: str, folder: Path) -> tuple[list[Any], list[Any]]:
    """What searches find, and every record but the list of deeds, to which each export adds one."""
    found = [await told(database, folder, "history", *words) for words in SEARCHES]
    status, records, error = await oombot(database, folder, "db", "export", "-")
    assert status == 0, error
    return found, [record for record in map(json.loads, records.splitlines()) if record.get("table") != "audit"]


@pytest.mark.postgres
async def test_history_and_search_are_the_same_after_the_copy_and_go_on(postgres_url: str, tmp_path: Path) -> None:
    file = f"sqlite+aiosqlite:///{tmp_path}/kept.db"
    for log in (CRASH, CHECK, CRASH.replace("capture_model", "capture_model  # the sampler")):
        await told(file, tmp_path, "diagnose", "-", given=log)
    await told(file, tmp_path, "outcome", "D-0001", "same", "--note", "no better")
    await told(file, tmp_path, "outcome", "D-0002", "fixed")
    found, records = before = await everything(file, tmp_path)
    assert [one["count"] for one in found] == [2, 1, 1]
    assert len(records) >= 3
    notice = await told(file, tmp_path, "db", "copy", postgres_url)
    assert notice["says"].startswith("3 incidents copied to ")
    assert await everything(postgres_url, tmp_path) == before
    assert (await told(postgres_url, tmp_path, "diagnose", "-", given=CRASH))["id"] == "D-0004"
    status, _, error = await oombot(file, tmp_path, "db", "copy", postgres_url)
    assert status != 0
    assert "already has incidents" in error
    assert "Traceback" not in error
