"""`oombot explain`: the questions that come again and again."""

import argparse

from bot.cli.terminal import bold, put, table, wrapped
from bot.settings import Settings
from bot.usecases.reply import Reply


def add_options(parser: argparse.ArgumentParser) -> None:
    """Its options."""
    parser.add_argument("topic", nargs="*", help="a topic, or a question in your words")
    parser.add_argument("--incident", metavar="D-0187", help="with this incident's figures")
    parser.add_argument("--json", action="store_true")


def run(options: argparse.Namespace, settings: Settings) -> int:
    """0 when there is such a topic."""
    from bot.rulebook.load import load_rulebook
    from bot.usecases.explain import answered, explain, listed

    topics = load_rulebook().topics
    words = " ".join(options.topic)
    if not words:
        put(listed(topics), options.json, table([[t.id, t.title] for t in topics], indent=""))
        return 0
    if options.incident:
        from bot.cli.desk import LOCAL, asked

        reply = asked(settings, lambda desk: explain(desk, LOCAL, words, options.incident))
    else:
        reply = answered(topics, words)
    put(reply, options.json, _text(reply))
    return 0


def _text(reply: Reply) -> str:
    document = reply.document
    figures = [f"  {n['label']}: {n['value']}" for n in document["numbers"]]
    return "\n".join([bold(document["title"]), *(wrapped(p) + "\n" for p in document["paragraphs"]), *figures]).rstrip()
