"""What this machine's own incidents measured, for a sizing question on the command line."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bot.settings import Settings

if TYPE_CHECKING:
    from bot.usecases.sizing.estimates import Measured


def measured_here(settings: Settings, question: Mapping[str, Any]) -> "Measured | None":
    """What this machine's own incidents measured for the model. None, and nothing heavy imported, where no database was made yet."""
    scheme, _, file = settings.database.partition("?")[0].partition(":///")
    if not question.get("model") or (scheme.startswith("sqlite") and not Path(file).is_file()):
        return None
    from bot.cli.desk import LOCAL, asked
    from bot.store.errors import StoreError
    from bot.usecases.sizing.ask import measured_of

    try:
        return asked(settings, lambda desk: measured_of(desk, question, LOCAL))
    except StoreError as error:
        print(f"oombot: what was measured here is left out: {error}", file=sys.stderr)
        return None
