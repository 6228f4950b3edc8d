"""Documents into HTML: the template environment and the one function that answers with a page."""

import secrets
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import jinja2
from aiohttp import web

from bot.domain.phases import PHASES
from bot.usecases.budget_rows import FIGURES, at_the_error, not_reported, of_what_failed
from bot.usecases.erased import is_all_erased
from bot.usecases.next_step import next_step, nothing_failed
from bot.usecases.wording import engine_of, left_alone, phase_of, span, what_runs, what_worked, which_rank
from bot.web import figures, phrases
from bot.web.door import VIEWER, door_of
from bot.web.drawing import drawing
from bot.web.signing import form_token, seal, unseal

HERE = Path(__file__).parent
VISITOR = web.RequestKey("visitor", str)
FORM_COOKIE = "oombot_form"
FLASH_COOKIE = "oombot_said"
FLASH_ROOM = 2600
"""Bytes: a sealed cookie must stay below the 4 KB that browsers keep."""


@cache
def environment() -> jinja2.Environment:
    """Templates that escape everything and stop at an unknown name, compiled once, before the first visitor."""
    env = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    for name in ("phase", "change", "few", "unbroken", "linked"):
        env.filters[name] = getattr(phrases, name)
    for name in ("gib", "gigabytes", "figure", "exactly", "day", "alike", "lines"):
        env.filters[name] = getattr(figures, name)
    env.filters["drawing"] = drawing
    for told in (
        left_alone,
        span,
        what_runs,
        is_all_erased,
        what_worked,
        which_rank,
        next_step,
        nothing_failed,
        at_the_error,
        of_what_failed,
        not_reported,
        phase_of,
        engine_of,
    ):
        env.filters[told.__name__] = told
    env.globals["phrases"] = phrases
    env.globals["figures"] = FIGURES
    env.globals["phases"] = PHASES
    env.globals["static"] = _static
    for name in env.list_templates():
        env.get_template(name)
    return env


@cache
def _static(name: str) -> str:
    """Where a file of ours is asked for: under another address when it is another file, so that browsers may keep it."""
    return f"/static/{name}?v={sha256((HERE / 'static' / name).read_bytes()).hexdigest()[:12]}"


def visitor_of(request: web.Request) -> str:
    """The random value in this browser's cookie that its form tokens belong to."""
    if VISITOR not in request:
        request[VISITOR] = request.cookies.get(FORM_COOKIE) or secrets.token_urlsafe(18)
    return request[VISITOR]


def secure(request: web.Request) -> bool:
    """Whether cookies must travel over TLS only."""
    return (door_of(request).settings.public_url or "").startswith("https://")


def page(request: web.Request, template: str, *, status: int = 200, **values: Any) -> web.Response:
    """One page as HTML, with the form token of this visitor and what was said by the step before."""
    door = door_of(request)
    visitor = visitor_of(request)
    said = unseal(door.secret, "said", request.cookies.get(FLASH_COOKIE, ""))
    html = door.templates.get_template(template).render(
        token=form_token(door.secret, visitor),
        said=said,
        viewer=request.get(VIEWER),
        sign_in=door.settings.page_mode == "sign-in",
        here=request.path,
        **values,
    )
    # Half of a surrogate pair, which chat exports leave behind, is no character that can be sent.
    response = web.Response(body=html.encode("utf-8", "replace"), content_type="text/html", charset="utf-8", status=status)
    if request.cookies.get(FORM_COOKIE) != visitor:
        response.set_cookie(FORM_COOKIE, visitor, httponly=True, samesite="Lax", secure=secure(request))
    if FLASH_COOKIE in request.cookies:
        response.del_cookie(FLASH_COOKIE)
    return response


def go(request: web.Request, where: str, says: str = "", items: list[str] | None = None) -> web.Response:
    """Sends the browser on (303), with a sentence and a list for the next page to show once."""
    response = web.Response(status=303, headers={"Location": where})
    if says or items:
        kept: list[str] = []
        for item in items or []:
            if sum(map(len, kept)) + len(item) + len(says) > FLASH_ROOM // 2:
                break
            kept.append(item)
        sealed = seal(door_of(request).secret, "said", {"says": says[: FLASH_ROOM // 2], "items": kept}, seconds=60)
        response.set_cookie(FLASH_COOKIE, sealed, httponly=True, samesite="Lax", secure=secure(request), max_age=60)
    return response
