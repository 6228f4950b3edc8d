"""A submitted form -> contributions: decoded, secrets hidden, and a sentence for what is no text."""

import asyncio
from datetime import datetime

from bot.domain.incident import Contribution
from bot.reading.redact import redact
from bot.reading.text import NotText, decode
from bot.usecases.reply import Unusable
from bot.web.forms import Form, Upload

EMPTY = "There is nothing to read yet. Paste the log or choose a file; best is everything from the start of the server to its end."


async def contributions_of(form: Form, author: str | None, at: datetime) -> list[Contribution]:
    """Every paste and file of a form, in order. Unusable when there is none, or when one is empty or no text."""
    return await asyncio.to_thread(_read, form, author, at)


def _read(form: Form, author: str | None, at: datetime) -> list[Contribution]:
    read = [_one(upload, author, at) for upload in form.uploads]
    kept = [contribution for contribution in read if (contribution.text or "").strip()]
    if not kept:
        raise Unusable(EMPTY)
    return kept


def _one(upload: Upload, author: str | None, at: datetime) -> Contribution:
    upload.body.seek(0)
    data = upload.body.read()
    upload.body.close()
    try:
        text = decode(data)
    except NotText as refusal:
        raise Unusable(f"{upload.name or 'The paste'} cannot be read: {refusal}.") from refusal
    del data
    if not upload.name:
        text = text.replace("\r\n", "\n")  # a browser sends every line end of a text box so
    hidden, redactions = redact(text)
    return Contribution(kind="file" if upload.name else "paste", text=hidden, name=upload.name, author=author, at=at, redactions=redactions)


def answer(question: str, value: str, author: str | None, at: datetime) -> Contribution:
    """What a person said to a question: one line is an answer by name, more is evidence like any paste."""
    text, redactions = redact(value.strip())
    if not text:
        raise Unusable("The answer is empty. Type it, paste what the command printed, or choose “I don't know”.")
    if "\n" in text:
        return Contribution(kind="paste", text=text, name=question, author=author, at=at, redactions=redactions)
    return Contribution(kind="answer", text=f"{question}={text}", name=question, author=author, at=at, redactions=redactions)
