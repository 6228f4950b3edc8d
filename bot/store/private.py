"""Files and folders that only their owner may read: they hold logs of private channels. On Windows the user's folder sees to it."""

import os
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from bot.settings import data_folder

ALONE, FOLDER_ALONE = 0o600, 0o700


def private_folder(folder: Path) -> None:
    """Make a folder where there is none. One that somebody else made keeps its mode; the data folder is ours, and closed. OSError."""
    if folder != data_folder():
        if not folder.exists():
            folder.parent.mkdir(parents=True, exist_ok=True)
            folder.mkdir(mode=FOLDER_ALONE, exist_ok=True)
        return
    folder.mkdir(parents=True, exist_ok=True)
    with suppress(OSError):  # it is another user's
        folder.chmod(FOLDER_ALONE)


def private_file(path: Path) -> None:
    """Make an empty file where there is none; what SQLite puts beside it has its mode. Whoever opens it says why it could not be made."""
    with suppress(OSError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, ALONE))


def private_text(path: Path) -> TextIO:
    """A new text file, or an old one emptied, to be written."""
    return open(path, "w", encoding="utf-8", newline="", opener=_alone)


def _alone(path: str, flags: int) -> int:
    return os.open(path, flags, ALONE)
