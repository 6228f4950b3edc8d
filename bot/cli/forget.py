"""`oombot forget`: erase an incident's evidence."""

import argparse
import asyncio

from bot.cli.terminal import put
from bot.settings import Settings
from bot.usecases.reply import Reply


def add_options(parser: argparse.ArgumentParser) -> None:
    """Its options."""
    parser.add_argument("incident", metavar="D-0187")
    parser.add_argument("--json", action="store_true")


def run(options: argparse.Namespace, settings: Settings) -> int:
    """0 when it was erased."""
    reply = asyncio.run(_forgotten(options.incident, settings))
    put(reply, options.json, str(reply.document["says"]))
    return 0


async def _forgotten(incident: str, settings: Settings) -> Reply:
    from bot.cli.desk import LOCAL, opened_desk
    from bot.usecases.forget import forget

    async with opened_desk(settings) as desk:
        return await forget(desk, LOCAL, incident)
