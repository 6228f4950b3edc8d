"""Reads a submitted form: the token first, small fields into memory, pastes and files into nameless temporary files."""

import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import IO
from urllib.parse import parse_qsl, urlsplit

from aiohttp import BodyPartReader, MultipartReader, web
from aiohttp.http_exceptions import HttpProcessingError

from bot.web.door import door_of
from bot.web.faults import Fault
from bot.web.showing import FORM_COOKIE
from bot.web.signing import form_token, same

LIMIT = 200 * 2**20  # bytes of a whole form
FIELD_LIMIT = 2**20  # of all its short fields together
MOST_PARTS = 200
"""Each file of a form holds an open file until it is read."""
DRAIN = 4 * LIMIT  # bytes read on after a refusal
CHUNK = 2**18
STREAMED = ("paste", "file")


@dataclass(slots=True)
class Upload:
    """A paste or a file as it came: bytes in a temporary file that has no name and goes with the request."""

    name: str | None
    body: IO[bytes]
    size: int


@dataclass(slots=True)
class Form:
    """`fields` are short values; `uploads` is everything that was pasted or attached, in order, empty ones left out."""

    fields: dict[str, str] = field(default_factory=dict)
    uploads: list[Upload] = field(default_factory=list)

    def close(self) -> None:
        """Gives the temporary files back."""
        for upload in self.uploads:
            upload.body.close()


async def read_form(request: web.Request) -> Form:
    """The form of a POST. Fault 403 without the token of this browser, 413 above 200 MB."""
    refuse_other_sites(request)
    if request.content_length is not None and request.content_length > LIMIT + FIELD_LIMIT:
        await _drain(request)
        raise _too_much()
    form = Form()
    try:
        if request.content_type.startswith("multipart/"):
            await _read_parts(request, form)
        else:
            await _read_fields(request, form)
    except (
        ValueError,
        RuntimeError,
        AssertionError,
        HttpProcessingError,
        web.RequestPayloadError,
    ) as damaged:  # what aiohttp says of a body that is no form
        form.close()
        raise Fault(400, "The form arrived damaged", "Go back, reload the page, and send it again.") from damaged
    except BaseException:
        form.close()
        raise
    return form


def refuse_other_sites(request: web.Request) -> None:
    """Fault 403 when the browser itself says that another site wrote the form."""
    origin = request.headers.get("Origin")
    foreign = request.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none")
    ours = {request.host, urlsplit(door_of(request).settings.public_url or "").netloc}  # a proxy may have put its own Host there
    if foreign or (origin not in (None, "null") and _host_of(str(origin)) not in ours):
        says = "It was sent from another site. Open the page itself and send it from there."
        raise Fault(403, "This form was not written by this page", says)


def _host_of(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc
    except ValueError:  # half a bracket
        return None


def _check(request: web.Request, token: str) -> None:
    visitor = request.cookies.get(FORM_COOKIE, "")
    if not visitor or not same(form_token(door_of(request).secret, visitor), token):
        says = "The bot was restarted since you opened it, or cookies are off. Go back, reload, and send it again."
        raise Fault(403, "This form is out of date", says)


async def _read_fields(request: web.Request, form: Form) -> None:
    raw = bytearray()
    async for chunk in request.content.iter_chunked(CHUNK):
        raw += chunk
        if len(raw) > LIMIT:
            await _drain(request)
            raise _too_much()
    text = raw.decode("utf-8", "replace")
    del raw
    pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=MOST_PARTS)
    _check(request, dict(pairs).get("token", ""))
    for name, value in pairs:
        if name == "paste":
            _keep_paste(form, value)
        else:
            form.fields[name] = value[:FIELD_LIMIT]


def _keep_paste(form: Form, value: str) -> None:
    if value.strip():
        body = _nameless()
        size = body.write(value.encode("utf-8", "replace"))
        form.uploads.append(Upload(None, body, size))


def _nameless() -> IO[bytes]:
    """A file that the form closes; it never has a name on disk, so nothing raw outlives the request."""
    return tempfile.TemporaryFile()


async def _read_parts(request: web.Request, form: Form) -> None:
    """The token must be the first part: nothing is kept from a form that has none."""
    reader = await request.multipart()
    taken, seen = 0, 0
    async for part in _parts(reader):
        name, seen = part.name or "", seen + 1
        if seen == 1:
            _check(request, (await part.read_chunk(512)).decode("ascii", "replace") if name == "token" else "")
        elif seen > MOST_PARTS:
            await _drain(request)
            raise Fault(413, f"That is more than {MOST_PARTS} files", "Send those around the first error, or all of them in one zip.")
        elif name in STREAMED:
            taken += await _stream(request, part, form, taken)
        else:
            taken += await _short(request, part, form, taken)
    if not seen:
        _check(request, "")


async def _parts(reader: MultipartReader) -> AsyncIterator[BodyPartReader]:
    while (part := await reader.next()) is not None:
        if isinstance(part, BodyPartReader):
            yield part


async def _chunks(request: web.Request, part: BodyPartReader, taken: int) -> AsyncIterator[bytes]:
    """A part as it comes; Fault 413 as soon as the form holds too much, whichever of its parts that is in."""
    while chunk := await part.read_chunk(CHUNK):
        taken += len(chunk)
        if taken > LIMIT:
            await _drain(request)
            raise _too_much()
        yield chunk


async def _short(request: web.Request, part: BodyPartReader, form: Form, taken: int) -> int:
    kept, size = bytearray(), 0
    room = FIELD_LIMIT - sum(map(len, form.fields.values()))  # of all fields together: they lie in memory
    async for chunk in _chunks(request, part, taken):
        size += len(chunk)
        kept += chunk[: max(room - len(kept), 0)]
    form.fields[part.name or ""] = kept.decode("utf-8", "replace")
    return size


async def _stream(request: web.Request, part: BodyPartReader, form: Form, taken: int) -> int:
    body = _nameless()
    upload = Upload(part.filename or None, body, 0)
    form.uploads.append(upload)
    async for chunk in _chunks(request, part, taken):
        upload.size += body.write(chunk)
    if upload.size == 0:
        form.uploads.remove(upload)
        body.close()
    return upload.size


async def _drain(request: web.Request) -> None:
    """Reads on and throws away, so that the browser gets to see the answer instead of a broken connection."""
    left = DRAIN
    async for chunk in request.content.iter_chunked(CHUNK):
        left -= len(chunk)
        if left < 0:
            return


def _too_much() -> Fault:
    says = "Send the part around the first error (grep -n -m1 -i 'out of memory' finds it), or the log compressed with gzip."
    return Fault(413, "That is more than 200 MB", says)
