"""The one change as a command line that can be pasted: the engine's own flags, every value that came out of a log quoted."""

import shlex
from collections.abc import Iterator, Sequence

from bot.diagnosis.scene import Scene
from bot.diagnosis.values import COMPUTED
from bot.domain.known import Known
from bot.rulebook.book import Rulebook
from bot.rulebook.files import ArgumentRule, RemedyRule

NEEDS_A_VALUE = ("lower", "raise", "set")


def command(book: Rulebook, rule: RemedyRule, value: str | None, scene: Scene) -> str | None:
    """The command line with the one change; None where it is no flag or has no value yet."""
    if not rule.flag or (value is None and (rule.direction in NEEDS_A_VALUE or rule.value in COMPUTED)):
        return None
    if rule.flag.lstrip("-").isupper() or not rule.flag.startswith("-"):
        return None if rule.direction == "remove" else f"{rule.flag}={value}" if value else None
    given = _given(scene)
    if given is not None:
        return shlex.join(_with_change(book, rule, value, given))
    begins = next(launch.command for launch in book.launches if scene.evidence.engine in launch.engines)
    model = scene.evidence.deployment.model
    return " ".join(
        [begins, shlex.quote(model.value) if model else "MODEL", *_unchanged(book, rule, scene), *map(shlex.quote, _changed(rule, value))]
    )


def _given(scene: Scene) -> Sequence[str] | None:
    """The start that failed, as its words: the last one before the first error, else the last of all."""
    commands = scene.evidence.deployment.commands
    error = scene.error
    before = [c for c in commands if error is not None and c.source == error.source and c.line is not None and c.line < error.line]
    chosen = (before or commands)[-1:]
    return chosen[0].value if chosen else None


def _with_change(book: Rulebook, rule: RemedyRule, value: str | None, given: Sequence[str]) -> list[str]:
    """The words as given, but for the one flag, however it was spelled; a new one stands at the end."""
    spellings = {rule.flag, *_spellings(book, rule.flag)}
    kept: list[str] = []
    put = False
    skipping = False
    for word in given:
        name = word.partition("=")[0]
        if word.startswith("-") and name.replace("_", "-") in spellings:
            kept += [] if put else _changed(rule, value)
            put, skipping = True, True
        elif word.startswith("-") or not skipping:
            kept.append(word)
            skipping = False
    return kept if put else [*kept, *_changed(rule, value)]


def _spellings(book: Rulebook, flag: str) -> Iterator[str]:
    for argument in book.arguments:
        forms = [f"--{argument.name.replace('_', '-')}", *(f.replace("_", "-") for f in argument.flags), *argument.spelled.values()]
        if flag.replace("_", "-") in forms:
            yield from (form for form in forms if form)


def _changed(rule: RemedyRule, value: str | None) -> list[str]:
    if rule.direction == "remove":
        return []
    if value is None or value == "true":
        return [rule.flag]
    return [rule.flag, *([value] if value[:1] == "{" else value.split())]


def _unchanged(book: Rulebook, rule: RemedyRule, scene: Scene) -> Iterator[str]:
    """The arguments that a log said and that stay, as this engine writes them."""
    changed = rule.flag.lstrip("-").replace("-", "_")
    arguments = scene.evidence.deployment.arguments
    tags = scene.evidence.grid.tp
    if tags and tags > 1 and not scene.evidence.grid.at_least and changed != "tensor_parallel_size":
        arguments = {"tensor_parallel_size": Known(tags), **arguments}  # the tags of the workers say it where no flag does
    for argument in book.arguments:
        known = arguments.get(argument.name) if argument.carried and argument.name != changed else None
        if known is None or known.origin != "log" or known.value in (False, "auto") or _of_one(argument, known.value):
            continue
        flag = argument.spelled.get(scene.evidence.engine, f"--{argument.name.replace('_', '-')}")
        if flag and flag != rule.flag:
            yield flag if known.value is True else f"{flag} {shlex.quote(str(known.value))}"


def _of_one(argument: ArgumentRule, value: object) -> bool:
    """A parallel size of one is what nobody gives."""
    return value == 1 and argument.name.endswith("_parallel_size")
