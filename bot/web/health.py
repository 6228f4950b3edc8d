"""Whether the process lives, whether it can work, and what it has counted."""

import asyncio
from collections.abc import Sequence
from typing import Any

from aiohttp import web

from bot.settings import is_loopback
from bot.store.errors import StoreError
from bot.usecases.doctor import Check
from bot.web.access import came_from_here
from bot.web.door import Door, Probe, door_of

PATIENCE = 3.0
"""Seconds that a room has to answer in: whoever probes gives up soon after."""


async def healthz(request: web.Request) -> web.Response:
    """200 as long as the process answers."""
    return web.json_response({"ok": True})


async def readyz(request: web.Request) -> web.Response:
    """200 when everything this bot is set up to use works; else 503 with the names of what does not."""
    results = await asyncio.gather(*(_probed(probe) for probe in door_of(request).probes))
    checks = [check for found in results for check in found]
    failing = [check.name for check in checks if check.ok is False]
    # Where the database lies and what it holds is for this machine alone; a probe from elsewhere looks at the status.
    told = came_from_here(request)
    rows = [{"name": check.name, "ok": check.ok, **({"says": check.says} if told else {})} for check in checks]
    body = {"ok": not failing, "failing": failing, "checks": rows}
    return web.json_response(body, status=503 if failing else 200)


async def _probed(probe: Probe) -> Sequence[Check]:
    try:
        return await asyncio.wait_for(probe(), PATIENCE)
    except TimeoutError:
        return [Check(_name(probe), False, f"gave no answer within {PATIENCE:g} seconds")]
    except Exception as failure:  # a probe that breaks is a room that does not work, whatever broke
        return [Check(_name(probe), False, f"failed: {type(failure).__name__}")]


def _name(probe: Any) -> str:
    return str(getattr(probe, "__name__", "check"))


async def metrics(request: web.Request) -> web.Response:
    """Prometheus text; on a bot that is open to this machine alone, for this machine alone."""
    door = door_of(request)
    if door.settings.page_mode == "open" and is_loopback(door.settings.host) and not came_from_here(request):
        raise web.HTTPNotFound
    await _count_waiting(door)
    return web.Response(body=door.meters.text(), headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})


async def _count_waiting(door: Door) -> None:
    """A database that is locked or away leaves the figures of the last time: the rest of the metrics must not go with it."""
    if door.store is None:
        return
    try:
        backlog = await door.store.backlog()
    except StoreError:
        return
    for state in ("waiting", "working", "failed"):
        door.meters.deliveries.labels(state).set(backlog[state])
    door.meters.oldest.set(backlog["oldest_seconds"] or 0)
