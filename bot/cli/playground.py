"""`oombot playground`: the real bot against a pretended Slack, from a source tree."""

import argparse
import subprocess
import sys
from pathlib import Path
from typing import Any

from bot.settings import Settings
from bot.usecases.reply import Unusable

ROOT = Path(__file__).parents[2]


def add_parser(table: "argparse._SubParsersAction[Any]") -> None:
    """The command."""
    table.add_parser("playground", help="the real bot against a pretended Slack")


def run(options: argparse.Namespace, settings: Settings) -> int:
    """Runs until Ctrl-C. Unusable where only the package is installed: the pretended Slack belongs to the tests."""
    if not (ROOT / "tests" / "fakeslack" / "playground.py").is_file():
        raise Unusable("The playground needs the source tree: clone the repository, then `make playground`.")
    return subprocess.run([sys.executable, "-m", "tests.fakeslack.playground"], cwd=ROOT, check=False).returncode
