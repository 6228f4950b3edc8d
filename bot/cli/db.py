"""`oombot db`: the database, in and out."""

import argparse
import asyncio
import sys
from pathlib import Path

from bot.cli.terminal import put
from bot.settings import Settings
from bot.usecases.desk import Desk
from bot.usecases.reply import Reply, Unusable


def add_parser(table: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Its verbs."""
    parser = table.add_parser("db", help="upgrade, export, import, purge, copy, backup, restore")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for name, help_text in (("upgrade", "bring the schema up to this program"), ("purge", "erase evidence past the retention")):
        verbs.add_parser(name, help=help_text)
    for name, help_text in (("export", "every incident to a file"), ("import", "incidents from a file")):
        verb = verbs.add_parser(name, help=help_text)
        verb.add_argument("file", help="a file, or - for the standard stream")
        verb.add_argument("--format", choices=("jsonl", "csv"), default="jsonl")
    verbs.add_parser("copy", help="everything into another, empty database").add_argument("url", help="postgresql+asyncpg://… or sqlite+aiosqlite:///…")
    verbs.add_parser("backup", help="a consistent copy of the SQLite file").add_argument("file", type=Path)
    verbs.add_parser("restore", help="put a backup in place").add_argument("file", type=Path)
    for verb in verbs.choices.values():
        verb.add_argument("--json", action="store_true")


def run(options: argparse.Namespace, settings: Settings) -> int:
    """0 when it was done."""
    reply = asyncio.run(_done(options, settings))
    if options.verb == "export" and options.file == "-":
        print(reply.document["says"], file=sys.stderr)
        return 0
    put(reply, options.json, str(reply.document["says"]))
    return 0


async def _done(options: argparse.Namespace, settings: Settings) -> Reply:
    from bot.usecases.backup import backup, restore

    if options.verb == "backup":
        return await backup(settings, options.file)
    if options.verb == "restore":
        return await restore(settings, options.file)
    return await _with_desk(options, settings)


async def _with_desk(options: argparse.Namespace, settings: Settings) -> Reply:
    from bot.cli.desk import opened_desk
    from bot.usecases.backup import copy
    from bot.usecases.export import export
    from bot.usecases.forget import purge

    async with opened_desk(settings) as desk:
        if options.verb == "purge":
            return await purge(desk)
        if options.verb == "copy":
            return await copy(desk, options.url)
        if options.verb == "export":
            if options.file == "-":
                return await export(desk, sys.stdout, options.format)
            with Path(options.file).open("w", encoding="utf-8", newline="") as out:
                return await export(desk, out, options.format)
        if options.verb == "import":
            return await _taken_in(options, desk)
        state = await desk.store.state() if desk.store is not None else {}
        return Reply("notice", {"schema": "oombot.notice/1", "says": f"The database is up to date ({state.get('schema', '')})."})


async def _taken_in(options: argparse.Namespace, desk: Desk) -> Reply:
    from bot.usecases.export import take_in

    if options.file == "-":
        return await take_in(desk, sys.stdin, options.format)
    path = Path(options.file)
    if not path.is_file():
        raise Unusable(f"{path}: there is no such file.")
    with path.open(encoding="utf-8", newline="") as source:
        return await take_in(desk, source, options.format)
