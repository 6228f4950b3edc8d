"""The first page: a box to paste into, three examples, and what came before."""

import secrets
from functools import partial

from aiohttp import web

from bot.domain.incident import Contribution, Origin
from bot.usecases.desk import Viewer
from bot.usecases.diagnose import TALK, NoEvidence
from bot.usecases.reply import Unusable
from bot.web.access import own_corner, viewer_of
from bot.web.door import door_of
from bot.web.examples_shelf import EXAMPLES, example
from bot.web.forms import read_form
from bot.web.incident import fresh
from bot.web.intake import contributions_of, digest
from bot.web.once import KEPT
from bot.web.showing import go, page, visitor_of

RECENT = 12


async def front(request: web.Request) -> web.Response:
    """The paste box, with the newest incidents below."""
    return await _front(request)


async def _front(request: web.Request, refused: str = "", status: int = 200, told: str = "", typed: str = "") -> web.Response:
    """`told`: what is said to words that are no evidence, which were `typed` and are kept nowhere but in the box."""
    door = door_of(request)
    recent = await door.asks.history(door.desk, viewer_of(request), "", RECENT)
    key = secrets.token_urlsafe(12)  # a form that is sent twice is known by it
    response = page(
        request, "front.html", status=status, examples=EXAMPLES, found=recent.document, refused=refused, told=told, typed=typed, key=key
    )
    response.headers["Cache-Control"] = "private, no-cache"  # not no-store: going back must bring back what was typed
    return response


async def diagnose(request: web.Request) -> web.Response:
    """What was pasted or dropped becomes an incident, and the browser goes to its page. The same form sent twice becomes one."""
    door, viewer = door_of(request), viewer_of(request)
    form = await read_form(request)
    try:
        given, left_out = await contributions_of(form, viewer.user, door.desk.now(), door.aside)
        evidence = sum(len(one.text or "") for one in given) > TALK
        work, key = partial(door.asks.diagnose, door.desk, origin_of(viewer), given, talk=evidence), form.fields.get("key")
        reply = await door.once.carried_out((visitor_of(request), viewer, key, digest(given)), work, KEPT if key else 0)
    except NoEvidence as talk:
        return await _front(request, told=str(talk), typed="\n".join(one.text or "" for one in given))
    except Unusable as refused:
        return await _front(request, refused=str(refused), status=400)
    finally:
        form.close()
    if reply.document.get("id") is None:
        return fresh(request, reply, given, left_out=left_out)
    return go(request, f"/d/{reply.document['id']}", " ".join(filter(None, (left_out, reply.warning))))


def origin_of(viewer: Viewer) -> Origin:
    """Incidents made on the open page belong to the local team; a signed-in person's own are theirs alone."""
    if viewer.user is None:
        return Origin(team=viewer.team)
    return Origin(team=viewer.team, enterprise=viewer.enterprise, channel=own_corner(viewer.user), private=True)


async def try_example(request: web.Request) -> web.Response:
    """An example is diagnosed afresh each time and never kept: it must not teach the history."""
    door = door_of(request)
    shown = example(request.match_info["slug"])
    if shown is None:
        raise web.HTTPNotFound
    given = [Contribution(kind="paste", text=shown.text, name=f"{shown.slug}.log", at=door.desk.now())]
    reply = await door.asks.diagnose(door.desk, origin_of(viewer_of(request)), given, keep=False)
    return fresh(request, reply, given, example=shown.title)
