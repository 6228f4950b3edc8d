"""`oombot settings`: every setting, its value, and what it is for."""

import argparse
from dataclasses import fields
from typing import Any

from bot.cli.terminal import put, table
from bot.settings import Settings, shown_url
from bot.usecases.reply import Reply


def add_options(parser: argparse.ArgumentParser) -> None:
    """Its options."""
    parser.add_argument("--json", action="store_true")


def run(options: argparse.Namespace, settings: Settings) -> int:
    """0 always; no secret is shown."""
    rows = [_row(item, settings) for item in fields(Settings)]
    reply = Reply(
        "settings", {"schema": "oombot.settings/1", "database": shown_url(settings.database), "settings": rows, "wrong": options.wrong}
    )
    shown = table([[r["name"], "set" if r["value"] is True else str(r["value"] or "-"), r["meaning"]] for r in rows])
    put(reply, options.json, "\n".join([shown, *options.wrong]))
    return 0


def _row(item: Any, settings: Settings) -> dict[str, Any]:
    value = getattr(settings, item.name)
    shown = bool(value) if item.metadata["secret"] else shown_url(value) if isinstance(value, str) else value
    return {"name": item.metadata["env"], "value": shown, "default": item.default or None, "meaning": item.metadata["meaning"]}
