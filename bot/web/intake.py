"""A submitted form -> contributions: decoded, secrets hidden, and a sentence for what is no text."""

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import IO, Literal

from bot.domain.incident import ABOUT_THE_RANK, Contribution
from bot.reading.archive import opened
from bot.reading.contributed import contributed
from bot.reading.large import LARGE
from bot.reading.read import LONG_ANSWER
from bot.reading.redact import redact
from bot.reading.text import NotText, decode
from bot.usecases.judging import shared
from bot.usecases.reply import Unusable
from bot.web.door import Aside
from bot.web.forms import Form

UNKNOWN = "unknown"

EMPTY = "There is nothing to read yet. Paste the log or choose a file; best is everything from the start of the server to its end."


async def contributions_of(form: Form, author: str | None, at: datetime, aside: Aside | None = None) -> tuple[list[Contribution], str]:
    """Every paste and file of a form, in order, and what of them was left out and why. Unusable when there is nothing in them, or no text.

    Files, which may be packed, and large pastes are read `aside`, in another process, so that the page keeps answering; without one, in
    a thread.
    """
    kept: list[Contribution] = []
    left_out: list[str] = []
    for upload in form.uploads:
        path = shared(upload.body) if aside and (upload.name is not None or upload.size > LARGE) else None
        if aside and path:
            found, says = await aside(partial(_at, path, upload.name))
        else:
            found, says = await asyncio.to_thread(_of, upload.body, upload.name)
        kept += found
        left_out += [says] if says else []
    if not kept:
        raise Unusable(EMPTY)
    return [replace(one, author=author, at=at) for one in kept], " ".join(left_out)


def digest(given: Sequence[Contribution]) -> str:
    """The same for the same evidence, whoever sends it and when."""
    parts = hashlib.sha256()
    for one in given:
        parts.update(f"{one.kind}\0{one.name}\0{one.text}\0".encode("utf-8", "surrogatepass"))
    return parts.hexdigest()


def _at(path: str, name: str | None) -> tuple[list[Contribution], str | None]:
    with open(path, "rb") as body:
        return _of(body, name)


def _of(body: IO[bytes], name: str | None) -> tuple[list[Contribution], str | None]:
    """What one upload holds, and a sentence where that is not everything."""
    body.seek(0)
    try:
        if name is None:
            return _evidence("paste", None, decode(body.read()).replace("\r\n", "\n")), None  # a browser sends a box's line ends so
        inside = opened(name, body.read())
        parts, found = inside.parts, []
        while parts:  # what has been read is let go before the next is decoded: a log may have 200 MB
            inner, data = parts.pop(0)
            found += _evidence("file", inner, decode(data))
        if inside.left_out:
            return [replace(one, truncated=True) for one in found], redact(inside.left_out)[0]
        return found, None
    except NotText as refusal:
        raise Unusable(f"{name or 'The paste'} cannot be read: {refusal}.") from refusal


def _evidence(kind: Literal["paste", "file"], name: str | None, text: str) -> list[Contribution]:
    """One contribution, or none where there is only space."""
    return [contributed(kind, name, text)] if text.strip() else []


def answer(question: str, value: str, author: str | None, at: datetime) -> Contribution:
    """What a person said to a question: a word that only a question gives sense to, or evidence like any paste."""
    text, redactions = redact(value.strip().replace("\r\n", "\n"))
    if not text:
        raise Unusable("The answer is empty. Type it, paste what the command printed, or choose “I don't know”.")
    if (question in ABOUT_THE_RANK and len(text) <= LONG_ANSWER) or text == UNKNOWN:
        return Contribution("answer", f"{question}={' '.join(text.split())}", name=question, author=author, at=at, redactions=redactions)
    return Contribution("paste", text, name=question.replace("_", " "), author=author, at=at, redactions=redactions)
