"""`oombot audit`: who erased, exported, switched or installed something."""

import argparse
import asyncio

from bot.cli.terminal import put, table
from bot.settings import Settings
from bot.usecases.reply import Reply


def add_options(parser: argparse.ArgumentParser) -> None:
    """Its options."""
    parser.add_argument("--json", action="store_true")


def run(options: argparse.Namespace, settings: Settings) -> int:
    """0 also where nobody did anything yet."""
    reply = asyncio.run(_listed(settings))
    rows = [[r["at"][:16], r["team"] or "", r["channel"] or "", r["by"] or "-", r["says"]] for r in reply.document["rows"]]
    put(
        reply,
        options.json,
        table([["at", "team", "channel", "by", "what"], *rows], headed=True) if rows else "Nobody has done any of that yet.",
    )
    return 0


async def _listed(settings: Settings) -> Reply:
    from bot.cli.desk import opened_desk
    from bot.usecases.audit import audit

    async with opened_desk(settings) as desk:
        return await audit(desk, None, limit=200)
