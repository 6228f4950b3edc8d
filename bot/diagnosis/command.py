"""The one change as a command line that can be pasted: the engine's own flags, every value that came out of a log quoted."""

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from bot.diagnosis.scene import Scene
from bot.diagnosis.shell import joined
from bot.diagnosis.spelled import argument_of, meant, spellings
from bot.diagnosis.values import COMPUTED
from bot.diagnosis.within import within
from bot.domain.deployment import Setting
from bot.domain.evidence import Evidence
from bot.domain.known import Known
from bot.domain.rank import Grid
from bot.rulebook.book import Rulebook
from bot.rulebook.files import ArgumentRule, Launch, RemedyRule
from bot.rulebook.versions import UnknownVersion, holds

MANY = {"tensor_parallel_size": "N", "pipeline_parallel_size": "M", "data_parallel_size": "K"}
"""Stands for a number of ranks, stages or replicas that nobody told."""
CONTAINERS = ("docker", "podman", "nerdctl")
"""What passes a variable on only where it is told to."""
NEEDS_A_VALUE = ("lower", "raise", "set")
_FILES = (".gguf",)
"""The ends of a model's own file: a start finds it without its owner."""


def command(book: Rulebook, rule: RemedyRule, value: str | None, scene: Scene) -> str | None:
    """The start with the one change; None where it is no flag, has no value yet, or another program starts the engine its own way."""
    if not rule.flag or (value is None and (rule.direction in NEEDS_A_VALUE or rule.value in COMPUTED)):
        return None
    given, engine = given_start(book, scene), scene.evidence.engine
    if rule.flag.isupper():
        return _with_variable(book, rule, value, scene, given)
    if not (flag := _on_command_line(book, rule.flag, scene, given or ())):
        return f"{rule.flag}={value}" if value and rule.direction != "remove" else None
    if given is not None:
        return _written(book, replace(rule, flag=flag), value, given, scene)
    if scene.has("other-launcher") or scene.has("trainer"):
        return None
    begun = shlex.split(_put_together(book, flag, scene))
    return joined(_brought_down(book, rule, value, _with_change(book, replace(rule, flag=flag), value, begun, engine), scene))


def _on_command_line(book: Rulebook, flag: str, scene: Scene, given: Sequence[str]) -> str:
    """The flag as a command line takes it; of a setting its own spelling there. Empty where it has none, or where the setting was given in
    a file, which stands above the command line.
    """
    if flag.startswith("-"):
        return flag
    engine = scene.evidence.engine
    forms = {form.replace("_", "-") for form in spellings(book, flag, engine)}
    if flag in scene.evidence.deployment.given and not any(word.partition("=")[0].replace("_", "-") in forms for word in given):
        return ""
    return next((argument.spelled.get(engine, "") for argument in book.arguments if argument.name == flag), "")


def _put_together(book: Rulebook, flag: str, scene: Scene) -> str:
    """A start that nobody gave, from what the paste says of it, without what this flag sets."""
    begins = next(launch.command for launch in book.launches if scene.evidence.engine in launch.engines and _has(book, launch, scene))
    model = scene.evidence.deployment.model
    # a name without its owner is that of a kind of model, and no start finds it
    named = model is not None and ("/" in model.value or model.value.endswith(_FILES))
    name = shlex.quote(model.value) if model is not None and named else "MODEL"
    return " ".join([begins, name, *_unchanged(book, flag, scene)])


def _with_variable(book: Rulebook, rule: RemedyRule, value: str | None, scene: Scene, given: Sequence[str] | None) -> str | None:
    """The start with this environment variable; the variable alone where it stands elsewhere, as in a manifest, a program or a service."""
    setting = f"{rule.flag}={value}" if value and rule.direction != "remove" else None
    elsewhere = any(map(scene.has, ("other-launcher", "trainer", "ollama"))) if given is None else given[0].endswith((":", "("))
    if setting is None or elsewhere:
        return setting
    if given is None:
        return f"{setting} {_put_together(book, rule.flag, scene)}"
    name = rule.flag + "="
    if any(word.startswith(name) for word in given):
        return joined(setting if word.startswith(name) else word for word in given)
    inside = given.index("run") + 1 if given[0] in CONTAINERS and "run" in given else 0
    return joined([*given[:inside], *(("-e",) if inside else ()), setting, *given[inside:]])


def _has(book: Rulebook, launch: Launch, scene: Scene) -> bool:
    """Has every release that may be speaking this launcher? Where nothing tells the release, it has."""
    evidence = scene.evidence
    if not launch.vllm or evidence.engine not in ("vllm", "unknown"):
        return True
    try:
        if evidence.engine_version is not None:
            return holds(launch.vllm, evidence.engine_version)
    except UnknownVersion:
        return True
    told = evidence.engine_version_range
    return told is None or all(holds(launch.vllm, one.version) for one in book.releases if holds(told, one.version))


def _written(book: Rulebook, rule: RemedyRule, value: str | None, given: Sequence[str], scene: Scene) -> str:
    """As it was given: a command, the arguments of a container, a call."""
    if given[0].endswith("("):
        return f"{given[0]}{', '.join(_called(rule, value, given[1:]))})"
    begins = 1 if given[0].endswith(":") else 0
    words = _brought_down(book, rule, value, _with_change(book, rule, value, given[begins:], scene.evidence.engine), scene)
    return f"{given[0]} {json.dumps(words)}" if begins else joined(words)


def _brought_down(book: Rulebook, rule: RemedyRule, value: str | None, words: Sequence[str], scene: Scene) -> Sequence[str]:
    """The words, with what the engine refuses above the new value at that value."""
    for flag in rule.at_most:
        above = scene.evidence.deployment.number(argument_of(book, flag))
        if above is not None and value is not None and above > float(value):
            words = _with_change(book, replace(rule, flag=flag), value, words, scene.evidence.engine)
    return words


def _called(rule: RemedyRule, value: str | None, given: Sequence[str]) -> list[str]:
    """The arguments of a call, with the change by its name in Python."""
    name, off = rule.flag.lstrip("-").replace("-", "_"), False
    if name.startswith("no_"):
        name, off = name.removeprefix("no_"), True
    if (inside := within(name, value, given)) is not None:
        return inside
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


def _with_change(book: Rulebook, rule: RemedyRule, value: str | None, given: Sequence[str], engine: str) -> list[str]:
    """The words as given, but for the one flag, however it was spelled; a new one stands at the end."""
    if (inside := within(argument_of(book, rule.flag), value, given)) is not None:
        return inside
    forms = {form.replace("_", "-") for form in (rule.flag, *spellings(book, rule.flag, engine))}
    kept: list[str] = []
    put = False
    skipping = False
    for word in given:
        option, name = word.startswith("-") and not word[1:].isdigit(), word.partition("=")[0]  # -1 is a value
        if option and name.replace("_", "-") in forms:
            kept += [] if put else _changed(rule, value)
            put, skipping = True, True
        elif option or not skipping:
            kept.append(word)
            skipping = False
    return kept if put else [*kept, *_changed(rule, value)]


def _changed(rule: RemedyRule, value: str | None) -> list[str]:
    if rule.direction == "remove":
        return []
    if value is None or value == "true":
        return [rule.flag]
    return [rule.flag, *([value] if value[:1] == "{" else value.split())]


def _unchanged(book: Rulebook, flag: str, scene: Scene) -> Iterator[str]:
    """The arguments that stay, each once and as this engine writes them: what was given, and what the engine reports to be in force."""
    changed = {flag.lstrip("-").replace("-", "_"), *(one.same_as or one.name for one in meant(book, flag, scene.evidence.engine))}
    evidence, seen = scene.evidence, {flag}
    arguments = {**_by_tags(scene), **evidence.deployment.arguments}
    own = evidence.engine in ("vllm", "unknown")  # what another engine's start gave is no argument of this one for that
    for argument in book.arguments:
        limit = argument.same_as or argument.name
        known = arguments.get(argument.name) if limit not in changed else None
        given = argument.name in evidence.deployment.given
        carried = (argument.carried and (given or not argument.resolved)) or (
            given and argument.kind != "bool" and argument.name != "model" and (own or bool(argument.engines))
        )
        if not carried or (argument.engines and evidence.engine not in argument.engines):
            continue
        if known is not None and not given and [*argument.default.values()] == [known.value]:
            continue  # in force anyway
        if any(f'"{argument.name}"' in str(other.value) for other in arguments.values()):
            continue  # it stands inside that one's JSON
        if known is None or known.origin != "log" or known.value in (False, "auto") or _of_one(argument, known.value):
            continue
        written = argument.spelled.get(evidence.engine, f"--{argument.name.replace('_', '-')}")
        if written and written not in seen:
            changed.add(limit)
            seen.add(written)
            yield written if known.value is True else f"{written} {shlex.quote(str(known.value))}"


def hinted(evidence: Evidence) -> Mapping[str, int]:
    """The sizes that tags only show the least of, where no flag says them."""
    grid = evidence.grid
    sizes = _sizes(grid) if grid.at_least else {}
    return {name: size for name, size in sizes.items() if size and size > 1 and evidence.deployment.number(name) is None}


def _sizes(grid: Grid) -> Mapping[str, int | None]:
    return {"tensor_parallel_size": grid.tp, "pipeline_parallel_size": grid.pp, "data_parallel_size": grid.dp}


def _by_tags(scene: Scene) -> dict[str, Known[Setting]]:
    """Sizes that the tags of the workers say where no flag does; expert parallelism is in them only where it is on."""
    grid, failing = scene.evidence.grid, scene.failing
    sizes = {} if grid.at_least else _sizes(grid)
    told: dict[str, Known[Setting]] = {name: Known(size) for name, size in sizes.items() if size and size > 1}
    told |= {name: Known(MANY[name]) for name in hinted(scene.evidence)}
    if failing is not None and "_EP" in failing.label:
        told["enable_expert_parallel"] = Known(True)
    return told


def _of_one(argument: ArgumentRule, value: object) -> bool:
    """A parallel size of one is what nobody gives."""
    return value == 1 and argument.name.endswith("_parallel_size")
