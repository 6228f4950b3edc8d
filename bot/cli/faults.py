"""What is said when a command cannot answer: one sentence, one exit status."""

import os
import traceback
from tempfile import mkstemp


def sentence(error: Exception) -> tuple[str, int]:
    """(what is wrong and what to do, exit status). 2: the input or question; 1: the installation or the world."""
    from bot.reading.text import harmless

    said, status = _said(error)
    return harmless(said), status


def _said(error: Exception) -> tuple[str, int]:
    from bot.rulebook.load import RulebookError
    from bot.settings import SettingsError
    from bot.store.errors import StoreError
    from bot.usecases.reply import Unusable

    if isinstance(error, Unusable | SettingsError):
        return str(error), 2
    if isinstance(error, StoreError | RulebookError):
        return str(error), 1
    if isinstance(error, OSError):
        return f"{error.strerror or error}: {error.filename}" if error.filename else str(error), 1
    return f"a fault of oombot itself ({type(error).__name__}: {error}). The details are in {_kept(error)}; please report them.", 1


def _kept(error: Exception) -> str:
    from bot.reading.redact import redact

    handle, path = mkstemp(prefix="oombot-fault-", suffix=".txt")  # a name nobody can guess, mode 0600, never an existing file
    with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as file:
        file.write(redact("".join(traceback.format_exception(error)))[0])
    return path
