"""`oombot size --batch`: JSON Lines in, one answer line each."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from bot.cli.terminal import json_text, standard_input
from bot.settings import Settings
from bot.usecases.reply import Unusable

if TYPE_CHECKING:
    from bot.usecases.sizing.ask import Find


def answer_lines(name: str, settings: Settings) -> int:
    """An answer for each line of the file `name`, or of standard input for `-`; a line that names a model gets its config.json."""
    from bot.usecases.sizing.question import load_sizing
    from bot.usecases.sizing.size import size_batch

    with _lines(name) as lines:
        for answer in size_batch(load_sizing(), lines, partial(_named, cache(lambda: _finder(settings)))):
            sys.stdout.write(json_text(answer) + "\n")
    return 0


def _finder(settings: Settings) -> "Find":
    """The hub, asked once for each model however many lines name it."""
    from bot.usecases.sizing.ask import on_hub

    return cache(on_hub(settings))


def _named(finder: "Callable[[], Find]", question: Mapping[str, Any]) -> Mapping[str, Any]:
    from bot.usecases.sizing.ask import with_cards, with_model

    return with_model(with_cards(question), finder())


@contextmanager
def _lines(name: str) -> Iterator[IO[str]]:
    if name == "-":
        yield standard_input()
        return
    try:
        with Path(name).open(encoding="utf-8") as file:
            yield file
    except FileNotFoundError:
        raise Unusable(f"{name}: there is no such file. Give JSON Lines, or - for standard input.") from None
