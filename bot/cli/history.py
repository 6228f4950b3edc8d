"""`oombot history`: past incidents by words and fields."""

import argparse
import re
from collections.abc import Mapping
from typing import Any

from bot.cli.terminal import put, shortened, table
from bot.settings import Settings
from bot.usecases.reply import Reply, Unusable
from bot.usecases.wording import engine_of, in_few_words


def add_options(parser: argparse.ArgumentParser) -> None:
    """Its options."""
    parser.description = "for example: gpu:h100 phase:graph_capture outcome:fixed version:'>=0.20' \"out of memory\""
    parser._negative_number_matcher = re.compile(r"-[A-Za-z_]+:")  # -phase:serving excludes a value; argparse has no other way to say so
    parser.add_argument("query", nargs="*", help="words, and model: gpu: phase: version: outcome: since: …")
    parser.add_argument("--limit", type=int, default=20)
    parser.add_argument("--json", action="store_true")


def instead(name: str) -> str:
    """What is written where a field was taken for a flag."""
    from bot.store.query import FIELDS, MOMENTS

    return f"a field is a word: {name}:…" if name in (*FIELDS, *MOMENTS) else ""


def run(options: argparse.Namespace, settings: Settings) -> int:
    """0 also when nothing is found."""
    from bot.cli.desk import LOCAL, asked
    from bot.usecases.recall import history

    if options.limit < 1:
        raise Unusable(f"--limit is {options.limit}: it takes a whole number from 1 on, for example 20. At most 50 are shown.")
    query = " ".join(_quoted(word) for word in options.query)
    reply = asked(settings, lambda desk: history(desk, LOCAL, query, options.limit))
    put(reply, options.json, _text(reply))
    return 0


def _quoted(word: str) -> str:
    """What the shell took the quotes from, quoted again; not what holds fields, or quotes of its own."""
    return f'"{word}"' if " " in word and not {":", '"'} & set(word) else word


def _text(reply: Reply) -> str:
    document = reply.document
    rows = document["rows"]
    said = [f"  {text}" for text in document["ignored"]]
    if not rows:
        return "\n".join(["Nothing found." if document["query"] else "No incidents yet. oombot diagnose FILE makes the first.", *said])
    lines = [
        [r["id"], r["at"][:10], engine_of(r), r["phase"], _rank(r), r["model"] or "", r["gpu"] or "", in_few_words(r), r["outcome"] or ""]
        for r in rows
    ]
    head = ["id", "date", "engine", "phase", "rank", "model", "gpu", "change", "outcome"]
    shown = table([head, *[[shortened(cell, 48) for cell in line] for line in lines]], headed=True)
    return "\n".join([f"{document['count_text']} found{_not_shown(document)}", *said, shown])


def _not_shown(document: Mapping[str, Any]) -> str:
    """How many of them the table leaves out, and how to see them."""
    from bot.usecases.recall import MOST_ROWS

    shown = len(document["rows"])
    left = document["count"] - shown
    if left <= 0:
        return ""
    how = "" if shown >= MOST_ROWS else f" --limit {min(document['count'], MOST_ROWS)} shows more;"
    over = "more than " if document["count_text"].endswith("+") else ""
    return f", {shown} shown and {over}{left:,} not:{how} words and fields (since:7d) narrow it down"


def _rank(row: dict[str, Any]) -> str:
    return "" if row["rank"] is None else str(row["rank"])
