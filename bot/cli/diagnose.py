"""`oombot diagnose`: files or standard input in, one diagnosis out, kept in the history."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from bot.cli.inputs import contributions_of
from bot.cli.terminal import put
from bot.domain.incident import ABOUT_THE_RANK, READ_LIKE_A_PASTE, Contribution, Origin
from bot.settings import Settings
from bot.usecases.reply import Reply, Unusable


def add_options(parser: argparse.ArgumentParser) -> None:
    """Its options."""
    parser.add_argument("file", nargs="*", help="log files, plain, .gz or .zip; - for standard input")
    parser.add_argument("--into", metavar="D-0187", help="add this to an earlier incident")
    parser.add_argument("--answer", action="append", default=[], metavar="NAME=VALUE", help="an answer to a question, such as rank=3")
    parser.add_argument("--no-store", action="store_true", help="keep nothing")
    parser.add_argument("--json", action="store_true", help="the contract's JSON and nothing else")


def instead(name: str) -> str:
    """What is written where the answer to a question was taken for a flag."""
    known = name.replace("-", "_") in (*ABOUT_THE_RANK, *READ_LIKE_A_PASTE)
    return f"an answer is given as --answer {name}=…" if known else ""


def run(options: argparse.Namespace, settings: Settings) -> int:
    """0 whenever a diagnosis was made."""
    answers = [_answer(text) for text in options.answer]
    if not options.file and not answers:
        raise Unusable("Give a log file, or - to read standard input: oombot diagnose vllm.log")
    if answers and not options.into and not options.file:
        raise Unusable("An answer belongs to an incident: add --into D-0187, or give the log with it.")
    said = [*(contributions_of(options.file) if options.file else []), *answers]
    talk = None if options.into or options.no_store else _only_talk(said)
    reply = talk or _diagnosed(said, options, settings)
    put(reply, options.json, "" if options.json else _text(reply, is_talk=talk is not None))
    return 0


def _text(reply: Reply, *, is_talk: bool) -> str:
    if is_talk:
        from bot.cli.terminal import wrapped
        from bot.usecases.next_step import to_talk

        return wrapped(to_talk(reply.document), indent="")
    from bot.cli.show_diagnosis import diagnosis_text

    return diagnosis_text(reply.document)


def _answer(text: str) -> Contribution:
    from bot.diagnosis.failing import DOES_NOT_KNOW
    from bot.reading.redact import redact

    name, mark, value = text.partition("=")
    name, value = name.strip().replace("-", "_"), value.strip()
    if not mark or not name or not value:
        raise Unusable(f"--answer {text}: it takes NAME=VALUE, such as --answer rank=3")
    known = (*ABOUT_THE_RANK, *sorted(READ_LIKE_A_PASTE))
    if name not in known:
        raise Unusable(f"--answer {name}=…: there is no such question. It is one of {', '.join(known)}.")
    if name in ABOUT_THE_RANK and not (any(c.isdigit() for c in value) or DOES_NOT_KNOW.search(value)):
        raise Unusable(f"--answer {name}={value}: a rank is a number, such as {name}=3; or say that you do not know.")
    clean, hidden = redact(f"{name}={value}")
    return Contribution("answer", clean, redactions=hidden)


def _diagnosed(said: Sequence[Contribution], options: argparse.Namespace, settings: Settings) -> Reply:
    """By the short way where it is a new incident in an existing local database, else with the whole store."""
    from bot.rulebook.load import load_rulebook
    from bot.usecases.judge import judge

    if options.no_store and not options.into:
        return Reply("diagnosis", judge(load_rulebook(), said))
    now = datetime.now(UTC)
    said = [replace(c, at=now) for c in said]
    if not options.into and (kept := _by_the_short_way(said, settings)) is not None:
        return kept
    import asyncio

    return asyncio.run(_with_store(said, options, settings))


def _only_talk(said: Sequence[Contribution]) -> Reply | None:
    """The answer, kept nowhere as in Slack, to words from standard input that tell of no failure. A file is what somebody wanted read."""
    from bot.rulebook.load import load_rulebook
    from bot.usecases.diagnose import TALK, shows_something
    from bot.usecases.judge import judge

    if any(one.kind != "paste" for one in said) or sum(len(one.text or "") for one in said) > TALK:
        return None
    document = judge(load_rulebook(), said)
    if shows_something(document):
        return None
    return Reply("diagnosis", document, warning="This was kept nowhere: there is no log in it, and no error.")


def _by_the_short_way(said: Sequence[Contribution], settings: Settings) -> Reply | None:
    """None where it must be kept by the whole store."""
    from bot.rulebook.load import load_rulebook
    from bot.store.drop import drop
    from bot.store.quick import neighbours
    from bot.usecases.judge import judge

    document = judge(load_rulebook(), said)
    similar, precedents = neighbours(settings.database, Origin(), document)
    if precedents:
        document = judge(load_rulebook(), said, precedents)
    document["similar"] = similar
    kept = drop(settings.database, Origin(), said, document)
    return None if kept is None else Reply("diagnosis", {**document, "id": kept})


async def _with_store(said: Sequence[Contribution], options: argparse.Namespace, settings: Settings) -> Reply:
    from bot.cli.desk import opened_desk
    from bot.store.errors import StoreError
    from bot.usecases.diagnose import diagnose

    try:
        async with opened_desk(settings) as desk:
            return await diagnose(desk, Origin(), said, into=options.into, keep=not options.no_store)
    except StoreError as error:
        if options.into:
            raise
        return _unkept(said, error)


def _unkept(said: Sequence[Contribution], error: Exception) -> Reply:
    from bot.rulebook.load import load_rulebook
    from bot.usecases.judge import judge

    document: Mapping[str, Any] = judge(load_rulebook(), said)
    return Reply("diagnosis", document, warning=f"The diagnosis was not kept: {error}")
