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
MEND = "mend it in the environment or in .env"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Its options."""
    parser.add_argument("--json", action="store_true")


def run(options: argparse.Namespace, settings: Settings) -> int:
    """0 when nothing is wrong, else 1. `others` among the options: what other doors check."""
    hush()
    wrong = [Check("settings", False, f"{says}.", MEND) for says in options.wrong]
    reply = asyncio.run(_examined(settings, wrong, options.others))
    put(reply, options.json, _text(reply))
    return 0 if reply.document["ok"] else 1


async def _examined(settings: Settings, wrong: Sequence[Check], others: Sequence[Checks]) -> Reply:
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
                checks.append(Check("settings", False, str(error), MEND))
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
