"""`oombot outcome`: how the suggested change ended."""

import argparse

from bot.cli.terminal import put
from bot.domain.incident import RESULTS
from bot.settings import Settings
from bot.usecases.reply import Reply, Unusable


def add_options(parser: argparse.ArgumentParser) -> None:
    """Its options."""
    parser.add_argument("incident", metavar="D-0187")
    parser.add_argument(
        "result",
        nargs="?",
        metavar="|".join(RESULTS),
        help="it worked, the error moved, the same error, the diagnosis was wrong, other",
    )
    parser.add_argument("--note", help="a sentence for those who come after")
    parser.add_argument("--undo", action="store_true", help="take the newest outcome back")
    parser.add_argument("--json", action="store_true")


def run(options: argparse.Namespace, settings: Settings) -> int:
    """0 when it was recorded."""
    from bot.cli.desk import LOCAL, asked
    from bot.usecases.settle import settle, undo

    if not options.undo and not options.result:
        raise Unusable(f"Say how it ended: one of {', '.join(RESULTS)}; or --undo.")
    name, result, note = options.incident, options.result, options.note
    reply = asked(settings, lambda desk: undo(desk, LOCAL, name) if options.undo else settle(desk, LOCAL, name, result, note))
    put(reply, options.json, _text(reply))
    return 0


def _text(reply: Reply) -> str:
    document = reply.document
    lines = [document["says"]]
    if document["next"] and document["next"]["command"]:
        lines.append(f"    {document['next']['command']}")
    if document["outcome"] == "moved":
        lines.append(f"    oombot diagnose --into {document['id']} new.log")
    lines += [f"  - {item}" for item in document["checklist"]]
    return "\n".join(lines)
