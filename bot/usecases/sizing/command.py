"""The command line that a sizing question stands for."""

import json
import shlex
from collections.abc import Mapping
from typing import Any

from bot.usecases.sizing.arguments import ARGUMENTS, Argument
from bot.usecases.sizing.draft import OLDER, told_of_draft
from bot.usecases.sizing.question import Asked
from bot.usecases.sizing.values import flag

OURS = frozenset({"config", "unknown"})
"""What we keep in a speculative config beside what the engine takes."""
SAID = tuple(argument for argument in ARGUMENTS if not argument.ours and argument.name not in {"speculative_config", *OLDER})
"""Engine arguments that a command repeats as they were given; what drafts is put together from several."""


def model_name(given: Mapping[str, Any]) -> str | None:
    """The model as it was named, else as its config.json names it; None when neither does. A path of another machine is no name."""
    config = given.get("config")
    own = config.get("_name_or_path") if isinstance(config, Mapping) else None
    usable = isinstance(own, str) and own.strip() and not own.startswith(("/", ".", "~", "-")) and "\\" not in own
    return str(given.get("model") or "") or (str(own) if usable else None)


def model_shown(given: Mapping[str, Any]) -> str | None:
    """The model as an answer names it: with how it is `stored` where the question asked for that and named no such checkpoint."""
    name, stored = model_name(given), given.get("stored")
    return f"{stored} checkpoint of {name}" if name and stored else name


def command(asked: Asked) -> str:
    """`vllm serve MODEL` with every engine argument that the question gave. `serves`: a checkpoint that is to be found first."""
    parts = ["vllm", "serve", str(asked.arguments.get("serves") or model_name(asked.arguments) or "MODEL")]
    for argument in SAID:
        parts += _flag(argument, asked.arguments)
    drafts = {key: value for key, value in told_of_draft(asked.arguments).items() if key not in OURS}
    if drafts:
        parts += ["--speculative-config", json.dumps(drafts)]
    return shlex.join(parts)


def _flag(argument: Argument, given: Mapping[str, Any]) -> list[str]:
    value, name = given.get(argument.name), "--" + argument.name.replace("_", "-")
    if value is None or isinstance(value, list | dict):
        return []
    if argument.kind == "switch":
        return [name if flag(given, argument.name, False) else name.replace("--", "--no-", 1)]
    return [name, str(value)]
