"""The one change as a command line that can be pasted: the engine's own flags, every value that came out of a log quoted."""

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence

from bot.diagnosis.scene import Scene
from bot.diagnosis.values import COMPUTED
from bot.domain.deployment import Setting
from bot.domain.evidence import Evidence
from bot.domain.known import Known
from bot.rulebook.book import Rulebook
from bot.rulebook.files import ArgumentRule, Launch, RemedyRule
from bot.rulebook.versions import UnknownVersion, holds

MANY = {"tensor_parallel_size": "N", "pipeline_parallel_size": "M"}
"""Stands for a number of ranks or stages that nobody told."""
CONTAINERS = ("docker", "podman", "nerdctl")
"""What passes a variable on only where it is told to."""
NEEDS_A_VALUE = ("lower", "raise", "set")


def command(book: Rulebook, rule: RemedyRule, value: str | None, scene: Scene) -> str | None:
    """The start with the one change; None where it is no flag, has no value yet, or another program starts the engine its own way."""
    if not rule.flag or (value is None and (rule.direction in NEEDS_A_VALUE or rule.value in COMPUTED)):
        return None
    given = given_start(book, scene)
    if not rule.flag.startswith("-"):
        setting = f"{rule.flag}={value}" if value and rule.direction != "remove" else None
        return _with_variable(setting, given) if setting and given is not None and rule.flag.isupper() else setting
    if given is not None:
        return _written(book, rule, value, given)
    if scene.has("other-launcher"):
        return None
    begins = next(launch.command for launch in book.launches if scene.evidence.engine in launch.engines and _has(launch, scene))
    model = scene.evidence.deployment.model
    # a name without its owner is that of a kind of model, and no start finds it
    name = shlex.quote(model.value) if model is not None and "/" in model.value else "MODEL"
    return " ".join([begins, name, *_unchanged(book, rule, scene), *map(shlex.quote, _changed(rule, value))])


def _with_variable(setting: str, given: Sequence[str]) -> str:
    """The start as given with this environment variable; the variable alone where it stands elsewhere, as in a manifest or a program."""
    if given[0].endswith((":", "(")):
        return setting
    name = setting.partition("=")[0] + "="
    if any(word.startswith(name) for word in given):
        return shlex.join(setting if word.startswith(name) else word for word in given)
    inside = given.index("run") + 1 if given[0] in CONTAINERS and "run" in given else 0
    return shlex.join([*given[:inside], *(("-e",) if inside else ()), setting, *given[inside:]])


def _has(launch: Launch, scene: Scene) -> bool:
    """Does the release that speaks have this launcher? Where none is known, it has."""
    if not launch.vllm or scene.evidence.engine not in ("vllm", "unknown"):
        return True
    try:
        return holds(launch.vllm, scene.evidence.engine_version or "")
    except UnknownVersion:
        return True


def _written(book: Rulebook, rule: RemedyRule, value: str | None, given: Sequence[str]) -> str:
    """As it was given: a command, the arguments of a container, a call."""
    if given[0].endswith(":"):
        return f"{given[0]} {json.dumps(_with_change(book, rule, value, given[1:]))}"
    if given[0].endswith("("):
        return f"{given[0]}{', '.join(_called(rule, value, given[1:]))})"
    return shlex.join(_with_change(book, rule, value, given))


def _called(rule: RemedyRule, value: str | None, given: Sequence[str]) -> list[str]:
    """The arguments of a call, with the change by its name in Python."""
    name, off = rule.flag.lstrip("-").replace("-", "_"), False
    if name.startswith("no_"):
        name, off = name.removeprefix("no_"), True
    words = [] if rule.direction == "remove" else [f"{name}={_in_python(value, off)}"]
    place = next((at for at, word in enumerate(given) if word.partition("=")[0] == name), None)
    return [*given, *words] if place is None else [*given[:place], *words, *given[place + 1 :]]


def _in_python(value: str | None, off: bool) -> str:
    if value in (None, "true"):
        return str(not off)
    parts = str(value).split()
    if len(parts) > 1 and all(part.isdigit() for part in parts):
        return f"[{', '.join(parts)}]"
    return str(value) if re.fullmatch(r"\d+(\.\d+)?|\{.*\}", str(value)) else repr(value)


def given_start(book: Rulebook, scene: Scene) -> Sequence[str] | None:
    """The start that failed, as its words: the last one before the first error, else the last of all; never another engine's."""
    commands = [c for c in scene.evidence.deployment.commands if not _of_another(book, c.value, scene.evidence.engine)]
    error = scene.error
    before = [c for c in commands if error is not None and c.source == error.source and c.line is not None and c.line < error.line]
    chosen = (before or commands)[-1:]
    return chosen[0].value if chosen else None


def _of_another(book: Rulebook, given: Sequence[str], engine: str) -> bool:
    """Does it start an engine, and not this one?"""
    started = engines_started(book, given)
    return bool(started) and engine not in started and engine != "unknown"


def engines_started(book: Rulebook, given: Sequence[str]) -> list[str]:
    """The engines that a start may be of: none where it is of another program."""
    text = " ".join(given)
    return [name for launch in book.launches if any(start in text for start in launch.starts) for name in launch.engines]


def _with_change(book: Rulebook, rule: RemedyRule, value: str | None, given: Sequence[str]) -> list[str]:
    """The words as given, but for the one flag, however it was spelled; a new one stands at the end."""
    spellings = {form.replace("_", "-") for form in (rule.flag, *_spellings(book, rule.flag))}
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
        if flag.replace("_", "-") in (forms := _forms(argument)):
            yield from (form for form in forms if form)


def _forms(argument: ArgumentRule) -> list[str]:
    return [f"--{argument.name.replace('_', '-')}", *(f.replace("_", "-") for f in argument.flags), *argument.spelled.values()]


def argument_of(book: Rulebook, flag: str) -> str:
    """The name under which a flag's value is known, whoever spells it: `-ngl` is n_gpu_layers."""
    own, spelled = flag.lstrip("-").replace("-", "_"), flag.replace("_", "-")
    plain = own.removeprefix("no_") if flag.startswith("--no-") else own
    names = [argument.name for argument in book.arguments if argument.name in (own, plain)]
    return next((argument.name for argument in book.arguments if not names and spelled in _forms(argument)), names[0] if names else own)


def _changed(rule: RemedyRule, value: str | None) -> list[str]:
    if rule.direction == "remove":
        return []
    if value is None or value == "true":
        return [rule.flag]
    return [rule.flag, *([value] if value[:1] == "{" else value.split())]


def _unchanged(book: Rulebook, rule: RemedyRule, scene: Scene) -> Iterator[str]:
    """The arguments that stay, as this engine writes them: what was given, and what the engine reports but did not work out itself."""
    changed = rule.flag.lstrip("-").replace("-", "_")
    evidence = scene.evidence
    arguments = {**_by_tags(scene), **evidence.deployment.arguments}
    own = evidence.engine in ("vllm", "unknown")  # what another engine's start gave is no argument of this one for that
    for argument in book.arguments:
        known = arguments.get(argument.name) if argument.name != changed else None
        given = argument.name in evidence.deployment.given
        carried = (argument.carried and (given or not argument.resolved)) or (
            given and argument.kind != "bool" and argument.name != "model" and (own or bool(argument.engines))
        )
        if not carried or (argument.engines and evidence.engine not in argument.engines):
            continue
        if known is None or known.origin != "log" or known.value in (False, "auto") or _of_one(argument, known.value):
            continue
        flag = argument.spelled.get(evidence.engine, f"--{argument.name.replace('_', '-')}")
        if flag and flag != rule.flag:
            yield flag if known.value is True else f"{flag} {shlex.quote(str(known.value))}"


def hinted(evidence: Evidence) -> Mapping[str, int]:
    """The sizes that tags only show the least of, where no flag says them."""
    grid = evidence.grid
    sizes = {"tensor_parallel_size": grid.tp, "pipeline_parallel_size": grid.pp} if grid.at_least else {}
    return {name: size for name, size in sizes.items() if size and size > 1 and evidence.deployment.number(name) is None}


def _by_tags(scene: Scene) -> dict[str, Known[Setting]]:
    """Sizes that the tags of the workers say where no flag does; expert parallelism is in them only where it is on."""
    grid, failing = scene.evidence.grid, scene.failing
    sizes = {} if grid.at_least else {"tensor_parallel_size": grid.tp, "pipeline_parallel_size": grid.pp}
    told: dict[str, Known[Setting]] = {name: Known(size) for name, size in sizes.items() if size and size > 1}
    told |= {name: Known(MANY[name]) for name in hinted(scene.evidence)}
    if failing is not None and "_EP" in failing.label:
        told["enable_expert_parallel"] = Known(True)
    return told


def _of_one(argument: ArgumentRule, value: object) -> bool:
    """A parallel size of one is what nobody gives."""
    return value == 1 and argument.name.endswith("_parallel_size")
