"""What a phase, a term or an accounting means, with this team's own numbers where an incident is named."""

from aiohttp import web

from bot.usecases.explain import NoTopicError
from bot.usecases.reply import Unusable
from bot.web.access import viewer_of
from bot.web.door import door_of
from bot.web.faults import Fault
from bot.web.showing import page

FIRST = "utilization"


async def explain(request: web.Request) -> web.Response:
    """One topic by its id or by what somebody asks (`about`), with the list of all."""
    door = door_of(request)
    topic = request.query.get("about", "").strip()[:200] or request.match_info.get("topic", FIRST)
    incident = request.query.get("incident") or None
    try:
        reply = await door.asks.explain(door.desk, viewer_of(request), topic, incident)
    except NoTopicError as unknown:
        return page(request, "explain.html", status=404, told=unknown.document, incident=incident, asked=topic, about=topic)
    except Unusable as unknown:
        raise Fault(404, "That cannot be explained", str(unknown)) from unknown
    return page(request, "explain.html", told=reply.document, incident=incident, asked="", about=request.query.get("about", "")[:200])
