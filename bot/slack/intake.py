"""A message and its attached files into contributions: decoded, secrets hidden, and a sentence for each file that was not read."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from bot.domain.incident import Contribution
from bot.reading.archive import opened
from bot.reading.contributed import contributed
from bot.reading.redact import redact
from bot.reading.text import NotText, decode
from bot.slack.files import Fetched, Files, RefusedError
from bot.slack.installs import Identity
from bot.usecases.judging import shared

MOST_FILES = 10
MOST_UNPACKED = 100 * 2**20
Aside = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Runs something that can be pickled beside the event loop, and gives what it gave."""


@dataclass(frozen=True, slots=True)
class Gathered:
    """What a message adds. `refusals` are sentences for its author; `hidden` counts secrets in text and files.

    `files`: which were read, each with the message that its contributions name.
    """

    contributions: tuple[Contribution, ...]
    refusals: tuple[str, ...] = ()
    hidden: int = 0
    files: tuple[tuple[str, str], ...] = ()

    def __add__(self, other: "Gathered") -> "Gathered":
        """What both add, in their order."""
        return Gathered(
            (*self.contributions, *other.contributions),
            (*self.refusals, *other.refusals),
            self.hidden + other.hidden,
            (*self.files, *other.files),
        )


class Intake:
    """Reads files with the bot's token; decoding and redaction run `aside`, in another process, so that the door keeps answering."""

    def __init__(self, files: Files, aside: Aside = asyncio.to_thread) -> None:
        self._files = files
        self._aside = aside

    async def gather(self, who: Identity, body: Mapping[str, Any], *, text: bool = True) -> Gathered:
        """Contributions of one slim message. `text` False: its words are not evidence, only its files."""
        found: list[Contribution] = []
        refusals: list[str] = []
        read: list[tuple[str, str]] = []
        base: dict[str, Any] = {"author": body.get("author") or body.get("user"), "at": moment(body.get("ts"))}
        if text and str(body["text"]).strip():
            found.append(Contribution("paste", body["text"], message=body.get("ts"), redactions=body["hidden"], **base))
        files = body.get("files") or ()
        for file in files[:MOST_FILES]:
            try:
                fetched = await self._files.fetch(who, file["id"])
                with fetched.body:
                    parts, left_out = await self._aside(_reading(fetched))
            except RefusedError as refused:
                refusals.append(str(refused))
                continue
            except NotText as refused:
                refusals.append(f"{file['name'] or 'The file'}: {refused}.")
                continue
            refusals += [left_out] if left_out else []
            own = {**base, "message": body.get("ts") or file["id"]}
            read.append((file["id"], own["message"]))
            found += [replace(part, truncated=part.truncated or bool(left_out), **own) for part in parts]
        if (left := len(files) - MOST_FILES) > 0:
            what = "1 more file was" if left == 1 else f"{left} more files were"
            refusals.append(f"{what} not read: of one message I read {MOST_FILES}. Send the rest in another, or as one .zip.")
        return Gathered(tuple(found), tuple(refusals), sum(c.redactions for c in found), tuple(read))

    def answers(self, body: Mapping[str, Any], said: Sequence[str]) -> tuple[Contribution, ...]:
        """Answers in plain words, as `name=value`."""
        base: dict[str, Any] = {"author": body.get("user"), "at": moment(body.get("at") or body.get("ts")), "message": body.get("ts")}
        return tuple(Contribution("answer", answer, redactions=body.get("hidden", 0), **base) for answer in said)


def _reading(fetched: Fetched) -> Callable[[], Any]:
    """The reading of a file: by its path, so that another process need not be sent its bytes."""
    path = shared(fetched.body)
    if path is not None:
        return partial(_read_at, fetched.name, path)
    fetched.body.seek(0)
    return partial(read_file, fetched.name, fetched.body.read())


def _read_at(name: str, path: str) -> tuple[list[Contribution], str | None]:
    with open(path, "rb") as body:
        return read_file(name, body.read())


def read_file(name: str, data: bytes) -> tuple[list[Contribution], str | None]:
    """A log, or each in an archive; a sentence where something was left out. Runs in a worker: takes and gives plain values."""
    found = []
    inside = opened(name, data, MOST_UNPACKED)
    for part, content in inside.parts:
        text = decode(content)
        if not text.strip():
            raise NotText("it is empty" if not data else "it holds no text")
        found.append(contributed("file", part, text))
    return found, inside.left_out and redact(inside.left_out)[0]


def moment(ts: str | None) -> datetime:
    """A Slack timestamp as a moment; now when there is none."""
    try:
        return datetime.fromtimestamp(float(ts or ""), UTC)
    except ValueError:
        return datetime.now(UTC)
