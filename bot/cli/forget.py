"""`oombot forget`: erase an incident's evidence."""

import argparse

from bot.cli.terminal import put
from bot.settings import Settings


def add_options(parser: argparse.ArgumentParser) -> None:
    """Its options."""
    parser.add_argument("incident", metavar="D-0187")
    parser.add_argument("--json", action="store_true")


def run(options: argparse.Namespace, settings: Settings) -> int:
    """0 when it was erased."""
    from bot.cli.desk import LOCAL, asked
    from bot.usecases.forget import forget

    reply = asked(settings, lambda desk: forget(desk, LOCAL, options.incident))
    put(reply, options.json, str(reply.document["says"]))
    return 0
