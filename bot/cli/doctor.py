"""`oombot doctor`: what is wrong with this installation, and what mends it."""

import argparse
import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from bot.cli.terminal import hush, put
from bot.settings import Settings, SettingsError
from bot.usecases.doctor import Check, check_hub, check_rulebook, check_store, checkup, unusable_store
from bot.usecases.reply import Reply

if TYPE_CHECKING:
    from bot.store.store import Store

Checks = Callable[[Settings, "Store"], Awaitable[Sequence[Check]]]
others: tuple[Checks, ...] = ()
"""What other doors check; `main` hands it in."""


def add_parser(table: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Its options."""
    parser = table.add_parser("doctor", help="what is wrong with this installation, and what mends it")
    parser.add_argument("--json", action="store_true")


def run(options: argparse.Namespace, settings: Settings) -> int:
    """0 when nothing is wrong, else 1."""
    hush()
    reply = asyncio.run(
        _examined(settings, [Check("settings", False, f"{says}.", "mend it in the environment or in .env") for says in options.wrong])
    )
    put(reply, options.json, _text(reply))
    return 0 if reply.document["ok"] else 1


async def _examined(settings: Settings, wrong: Sequence[Check]) -> Reply:
    from bot.store.errors import StoreError
    from bot.store.store import open_store

    checks = [*wrong, check_rulebook(), check_hub(settings)]
    try:
        store = await open_store(settings.database)
    except StoreError as error:
        return checkup([*checks, unusable_store(error)])
    try:
        checks.append(await check_store(store))
        for more in others:
            try:
                checks += await more(settings, store)
            except SettingsError as error:
                checks.append(Check("settings", False, str(error), "mend it in the environment or in .env"))
    finally:
        await store.close()
    return checkup(checks)


def _text(reply: Reply) -> str:
    marks = {True: "ok  ", False: "BAD ", None: "?   "}
    lines = []
    for check in reply.document["checks"]:
        lines.append(f"{marks[check['ok']]}{check['name']}: {check['says']}")
        if check["ok"] is not True and check["mend"]:
            lines.append(f"      {check['mend']}")
    return "\n".join(lines)
