"""What a person sees when something cannot be done: what, where, what to do. No traceback leaves here."""

import logging
from collections.abc import Awaitable, Callable
from uuid import uuid4

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from bot.store.errors import StoreError, UnknownIncidentError
from bot.usecases.reply import Unusable
from bot.web.showing import page

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
log = logging.getLogger(__name__)
_SERVER = logging.getLogger("aiohttp.server")


class Fault(Exception):
    """A refusal with an HTTP status, a title, and a sentence that says what to do."""

    def __init__(self, status: int, title: str, says: str) -> None:
        super().__init__(says)
        self.status, self.title, self.says = status, title, says


def say_briefly_what_cannot_be_read() -> None:
    """The server answers bytes that are no request before any handler sees them: its log gets a line, not a traceback that quotes them."""
    _SERVER.addFilter(_briefly)


def _briefly(record: logging.LogRecord) -> bool:
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, HttpProcessingError):
        record.exc_info, record.levelno, record.levelname = None, logging.WARNING, "WARNING"
        record.msg, record.args = "a request that cannot be read (%s) was refused", (type(error).__name__,)
    return True


@web.middleware
async def tell(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turns every failure into a page, or into JSON for the API."""
    try:
        return await handler(request)
    except Fault as fault:
        return _answer(request, fault)
    except Unusable as unusable:
        return _answer(request, Fault(400, "That cannot be used", str(unusable)))
    except UnknownIncidentError as unknown:
        return _answer(request, Fault(404, "There is no such incident here", str(unknown)))
    except StoreError as failure:
        log.warning("request %s %s: the store failed: %s", request.method, request.rel_url.raw_path, failure)
        return _answer(request, Fault(503, "The database cannot be used right now", str(failure)))
    except web.HTTPException as known:
        if known.status < 400:
            raise
        return _answer(request, _of_http(request, known))
    except ConnectionResetError:
        raise
    except Exception:
        mark = uuid4().hex[:8]
        log.exception("request %s %s failed, mark %s", request.method, request.rel_url.raw_path, mark)
        says = f"Nothing you gave was changed by it. Try again; if it stays, look for “{mark}” in the bot's log, or run “oombot doctor”."
        return _answer(request, Fault(500, "The bot itself failed", says))


def _of_http(request: web.Request, known: web.HTTPException) -> Fault:
    if known.status == 404:
        says = f"Nothing answers at {request.path}. The paste box is at /, past incidents are at /history."
        return Fault(404, "There is no such page", says)
    if known.status == 405:
        says = f"{request.path} does not answer to {request.method}. Start from / instead."
        return Fault(405, "That page does not take this", says)
    if known.status == 413:
        return Fault(413, "That is too much at once", "A form may carry 200 MB. Send the part of the log around the first error.")
    return Fault(known.status, known.reason, "The request could not be read. Start again from /.")


def _answer(request: web.Request, fault: Fault) -> web.Response:
    if request.path.startswith("/api/"):
        return web.json_response({"schema": "oombot.error/1", "error": fault.says}, status=fault.status)
    return page(request, "fault.html", status=fault.status, fault=fault)
