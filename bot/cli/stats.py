"""`oombot stats`: which phases cost most, which changes work."""

import argparse
from typing import Any

from bot.cli.terminal import bold, put, table
from bot.settings import Settings
from bot.usecases.reply import Reply
from bot.usecases.wording import in_few_words, span


def add_options(parser: argparse.ArgumentParser) -> None:
    """Its options."""
    parser.add_argument("--since", metavar="30d", help="only incidents since then: 30d, 8w, 2026-11-01")
    parser.add_argument("--json", action="store_true")


def instead(name: str) -> str:
    """What is written where a moment was given alone."""
    return f"the moment to count from is given as --since {name.removeprefix('since:')}"


def run(options: argparse.Namespace, settings: Settings) -> int:
    """0 always."""
    from bot.cli.desk import LOCAL, asked
    from bot.usecases.stats import stats

    reply = asked(settings, lambda desk: stats(desk, LOCAL, options.since))
    put(reply, options.json, _text(reply))
    return 0


def _text(reply: Reply) -> str:
    parts: list[str] = []
    for name, value in reply.document.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            parts += ["", bold(name.replace("_", " ")), _rows([_worded(row) for row in value] if name == "changes" else value)]
        elif isinstance(value, dict) and value:
            parts += ["", bold(name.replace("_", " ")), table([[str(k), _cell(v)] for k, v in value.items()], right=(1,))]
        elif name != "schema" and value is not None and not isinstance(value, list | dict):
            parts.append(f"{_name(name)}: {_cell(value)}")
    return "\n".join(parts)


def _worded(row: dict[str, Any]) -> dict[str, Any]:
    """A change in one column instead of three."""
    left = {name: value for name, value in row.items() if name not in ("remedy", "flag", "direction")}
    return {"change": in_few_words(row), **left}


def _rows(rows: list[dict[str, Any]]) -> str:
    names = list(rows[0])
    return table([[_name(n) for n in names], *[[_cell(row.get(n)) for n in names] for row in rows]], headed=True)


def _name(name: str) -> str:
    return name.replace("mean_seconds", "mean_time").replace("_", " ")


def _cell(value: Any) -> str:
    """Counts are whole; what is not is a time in seconds."""
    return "" if value is None else span(value) if isinstance(value, float) else str(value)
