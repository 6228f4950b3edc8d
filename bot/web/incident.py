"""One incident's page: the diagnosis with the log beside it, and everything a person can do with it."""

from collections.abc import Mapping, Sequence
from typing import Any

from aiohttp import web

from bot.domain.incident import RESULTS, Contribution, Origin
from bot.usecases.reply import Reply, Unusable
from bot.web.access import viewer_of
from bot.web.door import door_of
from bot.web.faults import Fault
from bot.web.forms import Form, read_form
from bot.web.intake import UNKNOWN, answer, contributions_of
from bot.web.log_view import sources_of
from bot.web.showing import go, page


async def incident_of(request: web.Request) -> Mapping[str, Any]:
    """The stored incident named in the URL, if this viewer may see it. Fault 404 otherwise: the two look alike."""
    door = door_of(request)
    name = request.match_info["id"]
    try:
        return (await door.asks.show(door.desk, viewer_of(request), name)).document
    except Unusable as unknown:
        raise Fault(404, f"There is no incident {name} here", str(unknown)) from unknown


async def show(request: web.Request) -> web.Response:
    """The stored incident."""
    document = await incident_of(request)
    return _page(request, document)


def fresh(request: web.Request, reply: Reply, given: Sequence[Contribution], example: str = "", left_out: str = "") -> web.Response:
    """A diagnosis that is not kept, shown in the same way: an example, or the store could not be written."""
    contributions = [
        {"number": number, "kind": one.kind, "name": one.name, "author": None, "at": None, "text": one.text, "truncated": one.truncated}
        for number, one in enumerate(given, 1)
    ]
    diagnosis = reply.document
    document = {"id": None, "at": None, "erased": False, "diagnosis": diagnosis, "contributions": contributions, "trials": []}
    return _page(request, document, example=example, warning=" ".join(filter(None, (reply.warning, left_out))))


def _page(request: web.Request, document: Mapping[str, Any], *, example: str = "", warning: str = "") -> web.Response:
    diagnosis = document["diagnosis"]
    similar = document.get("similar") or diagnosis.get("similar") or []
    sources = sources_of(document["contributions"], diagnosis)
    answered = [one for one in document["contributions"] if one["kind"] == "answer"]
    return page(
        request, "incident.html", incident=document, diagnosis=diagnosis, sources=sources, similar=similar,
        answered=answered, example=example, warning=warning, results=RESULTS,
    )  # fmt: skip


async def log(request: web.Request) -> web.Response:
    """One source of the evidence from its first line to its last."""
    document = await incident_of(request)
    sources = sources_of(document["contributions"], document["diagnosis"], whole=True)
    number = int(request.match_info["source"])
    if not 1 <= number <= len(sources):
        raise web.HTTPNotFound
    return page(request, "log.html", incident=document, source=sources[number - 1])


async def add(request: web.Request) -> web.Response:
    """More evidence for this incident."""
    form = await read_form(request)
    try:
        incident = await incident_of(request)
        door = door_of(request)
        given, left_out = await contributions_of(form, viewer_of(request).user, door.desk.now(), door.aside)
    finally:
        form.close()
    return await _into(request, incident, given, left_out)


async def say(request: web.Request) -> web.Response:
    """An answer to one of the questions."""
    form = await _fields(request)
    incident = await incident_of(request)
    value = UNKNOWN if "unknown" in form.fields else form.fields.get("choice") or form.fields.get("answer", "")
    given = [answer(form.fields.get("question", ""), value, viewer_of(request).user, door_of(request).desk.now())]
    return await _into(request, incident, given)


async def _into(request: web.Request, incident: Mapping[str, Any], given: Sequence[Contribution], left_out: str = "") -> web.Response:
    if incident["erased"]:
        raise Fault(
            409,
            f"{incident['id']} was erased",
            "There is nothing left to read it with. Paste the log anew at /, as an incident of its own.",
        )
    door = door_of(request)
    viewer = viewer_of(request)
    origin = Origin(team=viewer.team, enterprise=viewer.enterprise, channel=incident.get("channel"), thread=incident.get("thread"))
    reply = await door.asks.diagnose(door.desk, origin, given, into=incident["id"])
    await door.asks.show_anew(door.desk, viewer, incident["id"])
    says = " ".join(filter(None, (left_out, reply.warning)))
    return go(request, f"/d/{incident['id']}", says or "Read again, with what you added.")


async def settle(request: web.Request) -> web.Response:
    """How the suggested change ended."""
    form = await _fields(request)
    door, name = door_of(request), (await incident_of(request))["id"]
    result = form.fields.get("result", "")
    if result not in RESULTS:
        raise Fault(400, "That is no outcome", f"An outcome is one of {', '.join(RESULTS)}. Go back and press one of the buttons.")
    reply = await door.asks.settle(door.desk, viewer_of(request), name, result, form.fields.get("note", "").strip() or None)
    await door.asks.show_anew(door.desk, viewer_of(request), name)
    return go(request, f"/d/{name}", reply.document["says"], list(reply.document.get("checklist") or []))


async def undo(request: web.Request) -> web.Response:
    """Takes the last outcome back."""
    await _fields(request)
    door, name = door_of(request), (await incident_of(request))["id"]
    reply = await door.asks.undo(door.desk, viewer_of(request), name)
    await door.asks.show_anew(door.desk, viewer_of(request), name)
    return go(request, f"/d/{name}", reply.document["says"])


async def forget(request: web.Request) -> web.Response:
    """Erases what was said; what was learned stays."""
    form = await _fields(request)
    door, name = door_of(request), (await incident_of(request))["id"]
    if form.fields.get("sure") != "yes":
        raise Fault(400, "Nothing was erased", "Tick the box that says you are sure, then press the button again.")
    reply = await door.asks.forget(door.desk, viewer_of(request), name)
    return go(request, f"/d/{name}", reply.document["says"])


async def _fields(request: web.Request) -> Form:
    form = await read_form(request)
    form.close()
    return form
