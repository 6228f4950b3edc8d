"""`oombot show`: one incident, whole."""

import argparse
from collections.abc import Mapping
from typing import Any

from bot.cli.show_diagnosis import diagnosis_text, similar_lines
from bot.cli.terminal import bold, put, table
from bot.settings import Settings
from bot.usecases.erased import is_all_erased
from bot.usecases.reply import Reply
from bot.usecases.wording import engine_of, in_few_words, in_words


def add_options(parser: argparse.ArgumentParser) -> None:
    """Its options."""
    parser.add_argument("incident", metavar="D-0187")
    parser.add_argument("--evidence", action="store_true", help="the stored text too")
    parser.add_argument("--json", action="store_true")


def run(options: argparse.Namespace, settings: Settings) -> int:
    """0 when there is such an incident."""
    from bot.cli.desk import LOCAL, asked
    from bot.usecases.recall import show

    reply = asked(settings, lambda desk: show(desk, LOCAL, options.incident))
    put(reply, options.json, "" if options.json else _text(reply, options.evidence))
    return 0


def _text(reply: Reply, evidence: bool) -> str:
    document = reply.document
    parts = [f"{document['id']}, {document['at'][:16].replace('T', ' ')} UTC" + (", evidence erased" if document["erased"] else ""), ""]
    diagnosis = {**document["diagnosis"], "id": document["id"], "similar": []}
    parts.append(_left(diagnosis) if is_all_erased(document) else diagnosis_text(diagnosis))
    if document["trials"]:
        parts.append("\n" + bold("Trials"))
        parts += [
            f"  {t['number']}. {in_few_words(t['change']) or 'no change was suggested'}: {t['outcome'] or 'no outcome yet'}"
            + (f" ({t['note']})" if t["note"] else "")
            for t in document["trials"]
        ]
        parts.append(f"  Record how it ended: oombot outcome {document['id']} fixed|moved|same|wrong|other")
    parts += similar_lines(document["similar"])
    if evidence:
        for contribution in document["contributions"]:
            parts += [
                "",
                bold(f"{contribution['kind']} {contribution['number']}" + (f", {contribution['name']}" if contribution["name"] else "")),
                contribution["text"] or "(erased)",
            ]
    return "\n".join(parts)


def _left(diagnosis: Mapping[str, Any]) -> str:
    """An incident without its evidence: what was decided, and the figures that only --json has, where they stay."""
    rank, deployment = diagnosis["rank"] or {}, diagnosis["deployment"]
    rows = [
        ("phase", f"{diagnosis['phase']} ({diagnosis['verdict']})"),
        ("rank", rank.get("number")),
        ("engine", None if diagnosis["engine"] == "unknown" else engine_of(diagnosis)),
        ("model", deployment.get("model")),
        ("GPU", deployment.get("gpu") or "not known"),
        ("change", in_words(diagnosis["recommendation"], deployment)),
    ]
    shown = table([(name, str(value)) for name, value in rows if value not in (None, "")])
    figures = "\n  The figures that it reported stay too: --json has them." if diagnosis["budgets"] else ""
    return f"{bold(diagnosis['summary'])}\n\n{shown}{figures}"
