"""Who erased, exported, switched or installed something."""

from collections.abc import Mapping
from getpass import getuser
from typing import Any

from bot.usecases.desk import Desk, Viewer, kept
from bot.usecases.reply import Reply

SAID = {
    "erased": "erased the evidence of {about}",
    "exported": "exported the whole history",
    "imported": "imported {about}",
    "restored": "put a backup in place",
    "copied": "copied the whole database",
    "watch on": "switched the watch on",
    "watch off": "switched the watch off",
    "digest on": "switched the weekly digest on",
    "digest off": "switched the weekly digest off",
    "installed": "installed the bot",
    "uninstalled": "removed the bot",
}


async def audit(desk: Desk, viewer: Viewer | None, limit: int = 50) -> Reply:
    """The newest first. `viewer` None: whoever keeps the database, for whom nothing of it is hidden."""
    rows = [{**row, "says": _says(row)} for row in await kept(desk).audit(viewer, limit)]
    return Reply("audit", {"schema": "oombot.audit/1", "rows": rows})


def account() -> str | None:
    """Who acts at this machine's command line, or on its open page: the account of the process."""
    try:
        return f"account {getuser()}"
    except (KeyError, OSError):  # a container may run under a number that has no name
        return None


def _says(row: Mapping[str, Any]) -> str:
    return SAID.get(str(row["deed"]), str(row["deed"])).format(about=row["about"])
