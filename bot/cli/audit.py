"""`oombot audit`: who erased, exported, switched or installed something."""

import argparse

from bot.cli.terminal import put, table
from bot.settings import Settings


def add_options(parser: argparse.ArgumentParser) -> None:
    """Its options."""
    parser.add_argument("--json", action="store_true")


def run(options: argparse.Namespace, settings: Settings) -> int:
    """0 also where nobody did anything yet."""
    from bot.cli.desk import asked
    from bot.usecases.audit import audit

    reply = asked(settings, lambda desk: audit(desk, None, limit=200))
    rows = [[r["at"][:16], r["team"] or "", r["channel"] or "", r["by"] or "-", r["says"]] for r in reply.document["rows"]]
    put(
        reply,
        options.json,
        table([["at", "team", "channel", "by", "what"], *rows], headed=True) if rows else "Nobody has done any of that yet.",
    )
    return 0
