"""Arguments as they are typed: `--max-model-len 128k`, `tp=4`, `--speculative-config '{…}'`."""

import difflib
import re
from typing import Any

from bot.usecases.sizing.arguments import BY_NAME, Argument, argument_of, value_of
from bot.usecases.sizing.reader import Reader


def read_tables(reader: Reader) -> None:
    """--speculative-config '{"method": …}', quoted or not; --speculative-config.method …"""
    for match in list(
        re.finditer(r"--speculative[-_]config[= ]+(['\"]?)(\{[^{}]{0,2000}(?:\{[^{}]{0,500}\}[^{}]{0,500}){0,5}\})\1", reader.rest)
    ):
        reader.blank(match.start(), match.end())
        put_text(reader, BY_NAME["speculative_config"], match[2])
    told: dict[str, Any] = {}
    for match in list(re.finditer(r"(?<!\S)--speculative[-_]config\.(\w{1,40})[= ](\S{1,200})", reader.rest)):
        reader.blank(match.start(), match.end())
        told[match[1]] = int(match[2]) if match[2].isdecimal() else match[2]
    if told:
        reader.put("speculative_config", told)


def read_flags(reader: Reader) -> None:
    """--max-model-len 128k, tp=4, --enforce-eager."""
    for match in list(re.finditer(r"(?<!\S)(?:--?([A-Za-z][\w-]*)(?:[= ]([^\s-]\S*|-1))?|([A-Za-z][\w-]*)=(\S+))", reader.rest)):
        spelling, value = match[1] or match[3], match[2] or match[4]
        if spelling.lower() == "model" and value:
            reader.rest = reader.rest[: match.start()] + value.rjust(match.end() - match.start()) + reader.rest[match.end() :]
            continue
        argument = argument_of(spelling)
        if argument is None:
            near = difflib.get_close_matches(spelling.replace("-", "_"), BY_NAME, n=1, cutoff=0.6)
            argument = BY_NAME[near[0]] if near else None
            used = f"read as {near[0]}" if near else "left out: sizing has no such argument"
            reader.corrections.append(f"{match[0].split()[0].split('=')[0]!r} {used}")
        end = match.end()
        if argument and argument.kind == "switch" and match[2] and match[2].lower() not in {"on", "off", "true", "false", "0", "1"}:
            end, value = match.start(2), "on"  # the next word is not the switch's value
        reader.blank(match.start(), end)
        if argument is not None:
            put_text(reader, argument, value or "on")


def put_text(reader: Reader, argument: Argument, text: str) -> None:
    """An argument's value as text says it; one that it does not take is said and left out."""
    try:
        reader.put(argument.name, value_of(argument, text.rstrip(",;")))
    except ValueError as error:
        reader.corrections.append(f"{error}; left out")
