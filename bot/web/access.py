"""Who may open the page: everybody on this machine, people signed in with Slack, or nobody."""

from collections.abc import Awaitable, Callable
from urllib.parse import quote, urlsplit

from aiohttp import web

from bot.domain.incident import LOCAL_TEAM
from bot.settings import is_loopback
from bot.usecases.desk import Viewer
from bot.web.door import VIEWER, door_of
from bot.web.faults import Fault
from bot.web.signing import unseal

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

SESSION_COOKIE = "oombot_session"
BEFORE_SIGN_IN = ("/sign-in", "/static/")

# Any of these says that somebody else's request was handed on to us.
FORWARDED = (
    "Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port", "X-Forwarded-Server",
    "X-Real-IP", "X-Client-IP", "X-Original-Host", "True-Client-IP", "CF-Connecting-IP",
)  # fmt: skip

OFF = "The page of this bot is off. OOMBOT_PAGE=sign-in opens it behind Sign in with Slack; on the bot's own machine it opens at http://127.0.0.1:{port}/."


def came_from_here(request: web.Request) -> bool:
    """Whether a request was made on this machine, for this machine: an open page answers no other.

    The Host header is looked at because a web page elsewhere can make a browser here ask under its own name.
    """
    if any(name in request.headers for name in FORWARDED):
        return False
    peer = request.transport.get_extra_info("peername") if request.transport else None
    try:
        asked = urlsplit(f"//{request.headers.get('Host', '')}").hostname or ""
    except ValueError:  # half a bracket
        return False
    return peer is not None and is_loopback(str(peer[0])) and is_loopback(asked)


@web.middleware
async def gate(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Lets a request through with the Viewer it may see with, or says why not."""
    resource = request.match_info.route.resource
    if resource is not None and resource.canonical in door_of(request).ungated:
        return await handler(request)
    settings = door_of(request).settings
    mode = settings.page_mode
    if mode == "off" or (mode == "open" and not came_from_here(request)):
        return web.Response(status=404, text=OFF.format(port=settings.port) + "\n")
    if mode == "open":
        request[VIEWER] = Viewer(team=LOCAL_TEAM)
        return await handler(request)
    return await _signed_in(request, handler)


async def _signed_in(request: web.Request, handler: Handler) -> web.StreamResponse:
    viewer = await _viewer_of_session(request)
    if viewer is None and request.path.startswith(BEFORE_SIGN_IN):
        return await handler(request)
    if viewer is None:
        return _please_sign_in(request)
    request[VIEWER] = viewer
    return await handler(request)


async def _viewer_of_session(request: web.Request) -> Viewer | None:
    door = door_of(request)
    session = unseal(door.secret, "session", request.cookies.get(SESSION_COOKIE, ""))
    if session is None:
        return None
    team, user, enterprise = str(session["team"]), str(session["user"]), session.get("enterprise")
    channels = await door.visible(team, user, enterprise) if door.visible else frozenset[str]()
    return None if channels is None else Viewer(team=team, user=user, enterprise=enterprise, channels=channels | {own_corner(user)})


def own_corner(user: str) -> str:
    """The channel that holds what a signed-in person pastes here: nobody else sees it, as in a direct message."""
    return f"page-{user}"


def _please_sign_in(request: web.Request) -> web.StreamResponse:
    if request.path.startswith("/api/"):
        raise Fault(401, "You are not signed in", "The API shows what you may see in Slack: it needs the session of a signed-in browser.")
    if request.method not in ("GET", "HEAD"):
        raise Fault(401, "You are not signed in", "Your session has ended. Sign in at /sign-in; what you typed is still one page back.")
    raise web.HTTPSeeOther(f"/sign-in?next={quote(request.path_qs, safe='')}")


def viewer_of(request: web.Request) -> Viewer:
    """Who asks, as the gate let them in."""
    return request[VIEWER]
