"""Fetches an attached file: from Slack's hosts only, redirects by hand, bounded in size and time, never an HTML page in its place."""

import asyncio
import logging
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, Any
from urllib.parse import urljoin, urlsplit

import aiohttp
from slack_sdk.errors import SlackApiError

from bot.slack.hosts import Hosts
from bot.slack.installs import Identity, Installs
from bot.slack.outbox import Outbox

log = logging.getLogger(__name__)
MOST_BYTES = 20 * 1024 * 1024
MOST_SECONDS = 60.0
HOPS = 3
AT_ONCE = 3
TRIES = 3
KNOWN_AFTER = (0.5, 1.0, 2.0)  # seconds between questions for a file that Slack does not know yet
GONE = ("tombstone", "hidden_by_limit")
WRITTEN = ("canvas", "quip", "list", "space", "post")


class RefusedError(Exception):
    """The file is not read; the message says why and what to do, and can be shown."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """A file as Slack holds it: bytes in a temporary file that has no name on disk and goes when it is closed."""

    id: str
    name: str
    body: IO[bytes]


class Files:
    """Downloads with the bot's token, a few at a time."""

    def __init__(self, outbox: Outbox, installs: Installs, hosts: Hosts, most_bytes: int = MOST_BYTES) -> None:
        self._outbox = outbox
        self._installs = installs
        self._hosts = hosts
        self._most = most_bytes
        self._slots = asyncio.Semaphore(AT_ONCE)

    async def fetch(self, who: Identity, file: str) -> Fetched:
        """The whole file. RefusedError when it is too large, remote, deleted, not on Slack's hosts, or not what Slack says it is."""
        info = await self._info(who, file)
        name = str(info.get("name") or info.get("title") or file)
        self._check(info, name)
        url = str(info.get("url_private_download") or info.get("url_private") or "")
        if not url:
            raise RefusedError(f"Slack does not say where {name} is. Upload it again in a moment.")
        async with self._slots:
            try:
                async with asyncio.timeout(MOST_SECONDS):
                    body = await self._patiently(who, url, name)
            except TimeoutError:
                raise RefusedError(
                    f"{name} took longer than {MOST_SECONDS:.0f} seconds to download. Send the lines around the first error instead."
                ) from None
        size, taken = info.get("size"), body.tell()
        if isinstance(size, int) and size and taken != size:
            body.close()
            raise RefusedError(f"{name} arrived with {taken:,} bytes where Slack says {size:,}. Upload it again.")
        return Fetched(file, name, body)

    async def _info(self, who: Identity, file: str) -> Mapping[str, Any]:
        """What Slack says of it. A file that was shared a moment ago may not be known yet, or have no address."""
        for wait in (*KNOWN_AFTER, None):
            try:
                info: Mapping[str, Any] = (await self._outbox.call(who, "files.info", file=file))["file"]
            except SlackApiError as refused:
                error = str(refused.response.get("error"))
                if error != "file_not_found" or wait is None:
                    raise RefusedError(_no_info(error)) from None
            else:
                if wait is None or info.get("url_private") or info.get("mode") in GONE:
                    return info
            await asyncio.sleep(wait)
        raise AssertionError("the last round returns or raises")

    def _check(self, info: Mapping[str, Any], name: str) -> None:
        if info.get("mode") in ("external", "remote") or info.get("is_external") or info.get("external_type"):
            raise RefusedError(f"{name} is kept outside Slack, so it is not fetched. Upload the log itself.")
        if info.get("mode") in WRITTEN or info.get("filetype") in WRITTEN:
            raise RefusedError(f"{name} was written in Slack itself, so it is no log file. Paste the log's lines, or upload the log.")
        if info.get("mode") in GONE:
            raise RefusedError(f"{name} is no longer there. Upload it again.")
        size = info.get("size")
        if isinstance(size, int) and size > self._most:
            raise RefusedError(
                f"{name} has {size / 2**20:,.1f} MiB; at most {self._most // 2**20} MiB are read. Send the part from the start of the "
                "server to the first error, or the file as .gz."
            )

    async def _patiently(self, who: Identity, url: str, name: str) -> IO[bytes]:
        for attempt in range(TRIES):
            try:
                return await self._get(who, url, name)
            except aiohttp.ClientError as lost:
                log.warning("download from %s: %s", urlsplit(url).hostname, type(lost).__name__)
                await asyncio.sleep(0.3 * 2**attempt)
        raise RefusedError(f"{name} could not be downloaded from Slack. Upload it again in a moment.")

    async def _get(self, who: Identity, url: str, name: str) -> IO[bytes]:
        session = self._installs.session
        assert session is not None, "the door has been started"
        for _ in range(HOPS + 1):
            # Every hop is judged before the token goes out: aiohttp would drop it on a redirect, and then read a login page.
            if not self._hosts.may_download(url):
                log.warning("file host refused: %s", urlsplit(url).hostname)
                raise RefusedError(f"{name} lies on a host that is not Slack's, so it is not fetched. Upload the log itself.")
            headers = {"Authorization": f"Bearer {who.token}"}
            async with session.get(url, headers=headers, allow_redirects=False) as answer:
                if answer.status in (301, 302, 303, 307, 308):
                    url = urljoin(url, answer.headers.get("Location", ""))
                    continue
                if answer.status >= 500 or answer.status == 429:
                    raise aiohttp.ClientResponseError(answer.request_info, (), status=answer.status)
                if answer.status != 200:
                    raise RefusedError(
                        f"Slack did not hand out {name} (status {answer.status}): the app needs files:read. Reinstall it, then try again."
                    )
                return await self._body(answer, name)
        raise RefusedError(f"{name} was redirected more than {HOPS} times. Upload it again.")

    async def _body(self, answer: aiohttp.ClientResponse, name: str) -> IO[bytes]:
        body = _nameless()
        try:
            async for part in answer.content.iter_chunked(65_536):
                body.write(part)
                if body.tell() > self._most:
                    raise RefusedError(
                        f"{name} is larger than {self._most // 2**20} MiB. Send the part from the start of the server to the first error."
                    )
            if answer.content_type == "text/html" and _is_page(body) and not name.endswith((".html", ".htm")):
                raise RefusedError(
                    f"Slack answered with a web page instead of {name}: the app may lack files:read. "
                    "Reinstall it, then upload the file again."
                )
        except BaseException:
            body.close()
            raise
        return body


def _nameless() -> IO[bytes]:
    return tempfile.TemporaryFile()


def _is_page(body: IO[bytes]) -> bool:
    body.seek(0)
    head = body.read(4096).lstrip()[:200].lower()
    body.seek(0, os.SEEK_END)
    return head.startswith((b"<!doctype html", b"<html"))


def _no_info(error: str) -> str:
    if error in ("missing_scope", "not_allowed_token_type"):
        return "The file was not read: the app lacks files:read. Add the scope and reinstall the app, then upload the file again."
    if error == "file_deleted":
        return "The file is no longer there. Upload it again."
    if error == "file_not_found":
        return "I do not see the file: it is gone, or stands in a channel that I am not in. Send it to me directly, or invite me."
    return f"Slack did not say where the file is ({error}). Upload it again."
