"""The command table: what is typed becomes a command's answer, a sentence and an exit status. Heavy imports stand inside."""

import argparse
import io
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import NoReturn

COMMANDS = {
    "serve": ("bot.serve", "the bot: local page, health, metrics, and Slack when tokens are set"),
    "diagnose": ("bot.cli.diagnose", "a pasted log: which phase failed, on which rank, and the one change"),
    "size": ("bot.cli.size", "will it start, how large is the KV pool, how many full requests"),
    "history": ("bot.cli.history", "past incidents: words and fields such as gpu:h100 phase:graph_capture"),
    "show": ("bot.cli.show", "one incident, whole"),
    "outcome": ("bot.cli.outcome", "how the suggested change ended: fixed, moved, same, wrong, other"),
    "explain": ("bot.cli.explain", "what people ask: utilization up or down, does FP8 KV halve memory …"),
    "stats": ("bot.cli.stats", "which phases cost most, which changes work"),
    "forget": ("bot.cli.forget", "erase an incident's evidence; id, phase, model, GPU, changes and outcome stay"),
    "audit": ("bot.cli.audit", "who erased, exported, switched or installed something"),
    "settings": ("bot.cli.settings", "every setting, its value and what it is for"),
    "doctor": ("bot.cli.doctor", "what is wrong with this installation, and what mends it"),
    "rules": ("bot.cli.rules", "check the rulebook, print its anchors, judge the past anew"),
    "db": ("bot.cli.db", "upgrade, export, import, purge, copy, backup, restore"),
}
"""Command -> (module with add_options and run, help). A module is imported only when its command is called."""


def run(arguments: Sequence[str]) -> int:
    """Exit status: 0 for an answer, 1 when something is wrong with this installation, 2 for unusable input."""
    _open_streams()
    try:
        return _answered(arguments)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    except Exception as error:
        from bot.cli.faults import sentence

        text, status = sentence(error)
        print(f"oombot: {text}", file=sys.stderr)
        return status


def _answered(arguments: Sequence[str]) -> int:
    from bot.settings import load_settings

    if list(arguments[:1]) == ["help"]:
        arguments = [*arguments[1:2], "--help"]
    chosen = next((a for a in arguments if not a.startswith("-")), "")
    if chosen and chosen not in COMMANDS:
        raise _no_command(chosen)
    command = import_module(COMMANDS[chosen][0]) if chosen else None
    parser, commands = _parsers("--version" in arguments)
    if command is not None:
        command.add_options(commands.choices[chosen])
    options, unknown = parser.parse_known_args(arguments)
    if unknown:
        _refuse(unknown[0], commands.choices.get(options.command, parser), getattr(command, "instead", None))
    if command is None:
        parser.print_help()
        return 0
    if chosen == "doctor":
        from bot.serve import page_checks, slack_checks

        options.others = (page_checks, slack_checks)
    options.wrong = []  # settings that cannot be used: what does not need them works all the same
    return int(command.run(options, load_settings(wrong=options.wrong)))


def _refuse(word: str, parser: argparse.ArgumentParser, instead: Callable[[str], str] | None) -> NoReturn:
    """Where what was typed is nearly a flag, that flag; else what the command itself knows to write `instead`."""
    import difflib

    from bot.reading.text import harmless

    name = word.partition("=")[0]
    near = difflib.get_close_matches(name, parser._option_string_actions, n=1, cutoff=0.75)
    hint = f"did you mean {near[0]}?" if near else instead(name.lstrip("-")) if instead else ""
    parser.error(harmless(f"there is no {word} here{f'; {hint}' if hint else ''}"))


def _no_command(typed: str) -> Exception:
    import difflib

    from bot.usecases.reply import Unusable

    near = difflib.get_close_matches(typed.lower(), COMMANDS, n=1) or ["--version"] * (typed == "version")
    hint = f"did you mean {near[0]}?" if near else "`oombot --help` lists those there are."
    return Unusable(f"There is no command {typed[:60]!r}; {hint}")


def _parsers(version: bool) -> "tuple[argparse.ArgumentParser, argparse._SubParsersAction[argparse.ArgumentParser]]":
    """Every command with its help; its options follow when it is the one that was called. What version this is takes a while to find."""
    parser = argparse.ArgumentParser(
        prog="oombot", description="Reads an out-of-memory log of an LLM server like the best engineer on the team."
    )
    parser.add_argument("--version", action="version", version=f"oombot {_version()}" if version else "")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for name, (_, says) in COMMANDS.items():
        commands.add_parser(name, help=says)
    return parser, commands


class _Nowhere(io.TextIOBase):
    """Where a stream ends that was closed before we began; None, which Python leaves there, sends errors to standard output."""

    def write(self, text: str) -> int:
        return len(text)


def _open_streams() -> None:
    """A stream that was closed swallows what is written; a letter that standard output cannot show is replaced."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, _Nowhere())
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("oombot")
    except PackageNotFoundError:
        return "(not installed)"
