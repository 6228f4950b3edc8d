"""`oombot rules`: hold the rulebook against itself, print its anchors, judge the past by today's rules."""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from bot.cli.terminal import put, table
from bot.domain.diagnosis import Phase
from bot.reading.select import anchors_of
from bot.rulebook.load import load_rulebook
from bot.settings import Settings
from bot.usecases.reply import Reply


def add_options(parser: argparse.ArgumentParser) -> None:
    """Its verbs."""
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for name, says in (
        ("check", "every problem of the rule files at once: shape, patterns, examples, ids, accounting"),
        ("anchors", "every text that a line of a large log is kept for, one a line: grep -F -f <(oombot rules anchors) serve.log"),
        ("replay", "judge every stored incident by today's rules, keep nothing, and say what would differ"),
    ):
        verb = verbs.add_parser(name, help=says)
        verb.add_argument("--json", action="store_true", help="the document and nothing else")
        if name == "check":
            verb.add_argument(
                "only", nargs="*", metavar="FILE|ID", help="these files, folders or rules only: rules/facts/prose.toml torch.oom"
            )
    case = verbs.add_parser("case", help="write an incident, such as one marked wrong, as a case that the tests judge")
    case.add_argument("incident", metavar="D-0187")
    case.add_argument("--phase", choices=get_args(Phase), metavar="PHASE", help=f"what it should have been: {', '.join(get_args(Phase))}")
    case.add_argument("--folder", type=Path, default=Path("tests/cases"), help="where cases stand (tests/cases)")
    case.add_argument("--json", action="store_true")


def run(options: argparse.Namespace, settings: Settings) -> int:
    """`check`: 1 when something is wrong. Else 0."""
    if options.verb == "anchors":
        reply = Reply("notice", {"schema": "oombot.anchors/1", "anchors": sorted(anchors_of(load_rulebook()))})
        put(reply, options.json, "\n".join(reply.document["anchors"]))
        return 0
    if options.verb == "replay":
        reply = _replayed(settings)
        put(reply, options.json, _differences(reply.document))
        return 0
    if options.verb == "case":
        reply = _cased(options, settings)
        put(reply, options.json, str(reply.document["says"]))
        return 0
    from bot.usecases.check_rules import check_installed

    reply = check_installed(options.only)
    put(reply, options.json, _checked(reply.document))
    return 0 if reply.document["ok"] else 1


def _cased(options: argparse.Namespace, settings: Settings) -> Reply:
    from bot.cli.desk import LOCAL, asked
    from bot.usecases.replay import case

    return asked(settings, lambda desk: case(desk, LOCAL, options.incident, options.folder, options.phase))


def _replayed(settings: Settings) -> Reply:
    from bot.cli.desk import LOCAL, asked
    from bot.usecases.replay import replay

    reply = asked(settings, lambda desk: replay(desk, LOCAL, _shown if sys.stderr.isatty() else None))
    if sys.stderr.isatty():
        print(file=sys.stderr)
    return reply


def _shown(count: int) -> None:
    print(f"\r{count:,} incidents judged again", end="", file=sys.stderr)


def _checked(document: Mapping[str, Any]) -> str:
    lines = [f"{'ok  ' if c['ok'] else 'BAD ' if c['ok'] is False else '    '}{c['name']}: {c['says']}" for c in document["checks"]]
    return "\n".join(lines)


def _differences(document: Mapping[str, Any]) -> str:
    rows = [
        (row["id"], f"{name} {row['before'][name]} -> {row['after'][name]}", row["outcome"] or "no outcome")
        for row in document["changed"] for name in row["before"] if row["before"][name] != row["after"][name]
    ]  # fmt: skip
    failed = [f"  {row['id']}: {row['says']}" for row in document["failed"]]
    return "\n".join(part for part in (document["says"], table(rows), *failed) if part)
