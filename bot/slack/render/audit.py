"""Who did what, as a list for the asker alone."""

import re
from collections.abc import Mapping
from typing import Any

from bot.slack.render.blocks import Block, bullets, channel, header, person, rich, small
from bot.slack.render.limits import fit_message
from bot.slack.render.wording import moment

ROWS = 30
_PERSON = re.compile(r"[UW][A-Z0-9]{2,}")
TITLE = "Who erased, exported or switched something"


def audit_message(document: Mapping[str, Any]) -> tuple[list[Block], str]:
    """Blocks and text of an audit document."""
    rows = document["rows"][:ROWS]
    if not rows:
        return [], "Nothing yet: nobody has erased, exported or switched anything that you may see."
    shown = [header(TITLE), rich(bullets([_row(row) for row in rows])), small("Kept as long as evidence is.")]
    newest = rows[0]
    return fit_message(shown), f"{TITLE}. The newest: {moment(newest['at'])}, {newest['says']}."


def _row(row: Mapping[str, Any]) -> list[str | Block]:
    by = str(row["by"] or "somebody")
    who = person(by) if _PERSON.fullmatch(by) else by
    said: list[str | Block] = [f"{moment(row['at'])}: ", who, f" {row['says']}"]
    return [*said, " in ", channel(row["channel"])] if row["channel"] else said
