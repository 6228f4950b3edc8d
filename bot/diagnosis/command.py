"""The one change as a command line that can be pasted: the engine's own flags, every value that came out of a log quoted."""

import shlex
from collections.abc import Iterator

from bot.diagnosis.scene import Scene
from bot.diagnosis.values import COMPUTED
from bot.domain.known import Known
from bot.rulebook.book import Rulebook
from bot.rulebook.files import RemedyRule

NEEDS_A_VALUE = ("lower", "raise")


def command(book: Rulebook, rule: RemedyRule, value: str | None, scene: Scene) -> str | None:
    """The command line with the one change; None where it is no flag or has no value yet."""
    if not rule.flag or (value is None and (rule.direction in NEEDS_A_VALUE or rule.value in COMPUTED)):
        return None
    if rule.flag.lstrip("-").isupper() or not rule.flag.startswith("-"):
        return None if rule.direction == "remove" else f"{rule.flag}={value}" if value else None
    begins = next(launch.command for launch in book.launches if scene.evidence.engine in launch.engines)
    model = scene.evidence.deployment.model
    return " ".join([begins, shlex.quote(model.value) if model else "MODEL", *_unchanged(book, rule, scene), *_changed(rule, value)])


def _changed(rule: RemedyRule, value: str | None) -> Iterator[str]:
    if rule.direction != "remove":
        yield rule.flag
        if value is not None and value != "true":
            yield shlex.quote(value) if value[:1] == "{" else value  # a list of sizes stays several words


def _unchanged(book: Rulebook, rule: RemedyRule, scene: Scene) -> Iterator[str]:
    """The arguments that a log said and that stay, as this engine writes them."""
    changed = rule.flag.lstrip("-").replace("-", "_")
    arguments = scene.evidence.deployment.arguments
    tags = scene.evidence.grid.tp
    if tags and tags > 1 and changed != "tensor_parallel_size":
        arguments = {"tensor_parallel_size": Known(tags), **arguments}  # the tags of the workers say it where no flag does
    for argument in book.arguments:
        known = arguments.get(argument.name) if argument.carried and argument.name != changed else None
        if known is not None and known.value not in (1, "auto") and known.origin == "log":
            flag = argument.spelled.get(scene.evidence.engine, f"--{argument.name.replace('_', '-')}")
            if flag and flag != rule.flag:
                yield f"{flag} {shlex.quote(str(known.value))}"
