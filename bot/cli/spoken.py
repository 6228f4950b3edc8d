"""An argument parser that takes words anywhere among its flags, and answers an unknown flag with the nearest one."""

import argparse
import difflib
from collections.abc import Sequence
from typing import Any, NoReturn

from bot.usecases.sizing.arguments import BY_NAME


class Spoken(argparse.ArgumentParser):
    """Words behind a flag belong to `model`, as those before it do."""

    def parse_known_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> tuple[Any, list[str]]:  # type: ignore[override]
        """Everything is known afterwards: a flag that is not ends with status 2 and a sentence."""
        found, rest = super().parse_known_args(args, namespace)
        for flag in (word for word in rest if word.startswith("-")):
            self.error(_unknown(flag.partition("=")[0]))
        found.model = [*found.model, *rest]
        return found, []

    def error(self, message: str) -> NoReturn:
        """One sentence, without the list of all flags before it."""
        self.exit(2, f"{self.prog}: {message}\n")


def _unknown(flag: str) -> str:
    names = [*BY_NAME, "config", "batch", "json"]
    near = difflib.get_close_matches(flag.lstrip("-").replace("-", "_").lower(), names, n=1, cutoff=0.6)
    hint = f"did you mean --{near[0].replace('_', '-')}?" if near else "oombot size --help lists those that decide a size"
    return f"there is no {flag}; {hint}"
