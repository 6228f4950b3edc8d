"""`oombot db`: the database, in and out."""

import argparse
import asyncio
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, TextIO

from bot.cli.terminal import put, standard_input
from bot.settings import Settings, SettingsError
from bot.store.private import private_text
from bot.usecases.reply import Reply, Unusable, notice


def add_options(parser: argparse.ArgumentParser) -> None:
    """Its verbs."""
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for name, help_text in (("upgrade", "bring the schema up to this program"), ("purge", "erase evidence past the retention")):
        verbs.add_parser(name, help=help_text)
    for name, help_text in (("export", "every incident to a file"), ("import", "incidents from a file")):
        verb = verbs.add_parser(name, help=help_text)
        verb.add_argument("file", help="a file, or - for the standard stream")
        verb.add_argument("--format", choices=("jsonl", "csv"), help="else csv for a file that ends in .csv, and jsonl for any other")
    verbs.add_parser("copy", help="everything into another, empty database").add_argument(
        "url", help="postgresql+asyncpg://… or sqlite+aiosqlite:///…"
    )
    verbs.add_parser("backup", help="a consistent copy of the SQLite file").add_argument("file", type=Path)
    restore = verbs.add_parser("restore", help="put a backup in place")
    restore.add_argument("file", type=Path)
    restore.add_argument("--replace", action="store_true", help="also where there are incidents already; a copy of them is kept")
    for verb in verbs.choices.values():
        verb.add_argument("--json", action="store_true")


def run(options: argparse.Namespace, settings: Settings) -> int:
    """0 when it was done."""
    if options.wrong and options.verb == "purge":  # what is erased is gone: not by a default that nobody chose
        raise SettingsError(options.wrong[0])
    if options.verb == "export" and options.file == "-" and options.json:
        raise Unusable("With - the records themselves are written to standard output; --json goes with a file.")
    try:
        with _stream(options) as stream:
            reply = asyncio.run(_done(options, settings, stream))
    except UnicodeDecodeError:
        raise Unusable(f"{options.file} is not text. Nothing was imported; give a file that `oombot db export` wrote.") from None
    if options.verb == "export" and options.file == "-":
        print(reply.document["says"], file=sys.stderr)
        return 0
    put(reply, options.json, str(reply.document["says"]))
    return 0


@contextmanager
def _stream(options: argparse.Namespace) -> Iterator[TextIO]:
    """The file of an export or import, or the standard stream."""
    path = Path(options.file) if options.verb in ("export", "import") else None
    if path is None or options.file == "-":
        yield _standard(options.verb)
    elif options.verb == "export":
        with _replaced(path) as stream:
            yield stream
    elif path.is_file():
        with path.open(encoding="utf-8", newline="") as stream:
            yield stream
    else:
        raise Unusable(f"{path}: there is no such file.")


def _standard(verb: str) -> TextIO:
    stream = standard_input() if verb == "import" else sys.stdout
    if verb in ("export", "import") and isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(encoding="utf-8", newline="")  # as in a file, whatever the terminal speaks
    return stream


@contextmanager
def _replaced(path: Path) -> Iterator[TextIO]:
    """A new text file in the place of an older one, which stays whole until the new one is."""
    part = path.with_name(f"{path.name}.part")
    try:
        with private_text(part) as stream:
            yield stream
        part.replace(path)
    except OSError as error:
        if error.filename is None:
            raise
        raise Unusable(f"{path} cannot be written ({error.strerror}). Give a file in a folder that there is.") from None
    finally:
        part.unlink(missing_ok=True)


async def _done(options: argparse.Namespace, settings: Settings, stream: TextIO) -> Reply:
    from bot.usecases.backup import backup, restore

    if options.verb == "backup":
        return await backup(settings, options.file)
    if options.verb == "restore":
        return await restore(settings, options.file, replace=options.replace)
    return await _with_desk(options, settings, stream)


async def _with_desk(options: argparse.Namespace, settings: Settings, stream: TextIO) -> Reply:
    from bot.cli.desk import opened_desk
    from bot.usecases.backup import copy
    from bot.usecases.export import export, take_in
    from bot.usecases.forget import purge

    async with opened_desk(settings) as desk:
        if options.verb == "purge":
            return await purge(desk)
        if options.verb == "copy":
            return await copy(desk, options.url)
        if options.verb == "export":
            return await export(desk, stream, _form(options))
        if options.verb == "import":
            return await take_in(desk, stream, _form(options))
        state = await desk.store.state() if desk.store is not None else {}
        return notice(f"The database is up to date ({state.get('schema', '')}).")


def _form(options: argparse.Namespace) -> Literal["jsonl", "csv"]:
    return "csv" if (options.format or options.file).endswith("csv") else "jsonl"
