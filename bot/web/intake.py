"""A submitted form -> contributions: decoded, secrets hidden, and a sentence for what is no text."""

import asyncio
from datetime import datetime
from typing import Literal

from bot.domain.incident import Contribution
from bot.reading.archive import unpacked
from bot.reading.large import LARGE, condensed
from bot.reading.redact import redact
from bot.reading.text import NotText, decode, split_lines
from bot.usecases.reply import Unusable
from bot.web.forms import Form, Upload

EMPTY = "There is nothing to read yet. Paste the log or choose a file; best is everything from the start of the server to its end."


async def contributions_of(form: Form, author: str | None, at: datetime) -> list[Contribution]:
    """Every paste and file of a form, in order. Unusable when there is none, or when one is empty or no text."""
    return await asyncio.to_thread(_read, form, author, at)


def _read(form: Form, author: str | None, at: datetime) -> list[Contribution]:
    kept = [one for upload in form.uploads for one in _of(upload, author, at)]
    if not kept:
        raise Unusable(EMPTY)
    return kept


def _of(upload: Upload, author: str | None, at: datetime) -> list[Contribution]:
    upload.body.seek(0)
    data = upload.body.read()
    upload.body.close()
    try:
        if upload.name is None:
            text = decode(data).replace("\r\n", "\n")  # a browser sends every line end of a text box so
            return _evidence("paste", None, text, author, at)
        return [
            one for name, inner in unpacked(upload.name, data) for one in _evidence("file", name, decode(inner), author, at)
        ]  # fmt: skip
    except NotText as refusal:
        raise Unusable(f"{upload.name or 'The paste'} cannot be read: {refusal}.") from refusal


def _evidence(kind: Literal["paste", "file"], name: str | None, text: str, author: str | None, at: datetime) -> list[Contribution]:
    """One contribution, or none where there is only space. A very large text is cut to its telling lines before anything else."""
    if not text.strip():
        return []
    cut = False
    if len(text) > LARGE:
        text, cut = condensed(split_lines(text))
    hidden, redactions = redact(text)
    return [Contribution(kind, hidden, name=name, author=author, at=at, redactions=redactions, truncated=cut)]


def answer(question: str, value: str, author: str | None, at: datetime) -> Contribution:
    """What a person said to a question: one line is an answer by name, more is evidence like any paste."""
    text, redactions = redact(value.strip())
    if not text:
        raise Unusable("The answer is empty. Type it, paste what the command printed, or choose “I don't know”.")
    if "\n" in text:
        return Contribution(kind="paste", text=text, name=question, author=author, at=at, redactions=redactions)
    return Contribution(kind="answer", text=f"{question}={text}", name=question, author=author, at=at, redactions=redactions)
