"""The page's server: every route, and the order in which a request is measured, answered for, and let in."""

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from aiohttp import web

from bot.settings import Settings
from bot.usecases.asks import Asks
from bot.usecases.desk import Desk
from bot.web import api, beside, explain, front, health, history, incident, review, sign_in, sizing
from bot.web.access import gate
from bot.web.door import DOOR, Aside, Door, Probe, Visible
from bot.web.faults import tell
from bot.web.metrics import Meters, measuring
from bot.web.safety import harden
from bot.web.showing import HERE, environment

if TYPE_CHECKING:
    from bot.store.store import Store

ID = r"{id:[A-Za-z]-?\d{1,12}}"

UNGATED = [
    web.get("/healthz", health.healthz),
    web.get("/readyz", health.readyz),
    web.get("/metrics", health.metrics),
]

PAGES = [
    web.get("/", front.front),
    web.post("/diagnose", front.diagnose),
    web.get("/examples/{slug}", front.try_example),
    web.get("/history", history.history),
    web.get(f"/d/{ID}", incident.show),
    web.get(f"/d/{ID}/log/" + r"{source:\d{1,4}}", incident.log),
    web.get(f"/d/{ID}/computed", beside.compare),
    web.post(f"/d/{ID}/computed", beside.compare_with),
    web.post(f"/d/{ID}/evidence", incident.add),
    web.post(f"/d/{ID}/answer", incident.say),
    web.post(f"/d/{ID}/outcome", incident.settle),
    web.post(f"/d/{ID}/undo", incident.undo),
    web.post(f"/d/{ID}/forget", incident.forget),
    web.get("/stats", review.review),
    web.get("/size", sizing.form),
    web.post("/size", sizing.ask),
    web.get("/explain", explain.explain),
    web.get("/explain/{topic}", explain.explain),
    web.get("/sign-in", sign_in.ask),
    web.get("/sign-in/slack", sign_in.leave),
    web.get("/sign-in/return", sign_in.come_back),
    web.post("/sign-out", sign_in.sign_out),
]

API = [
    web.get("/api/v1/incidents", api.incidents),
    web.get(f"/api/v1/incidents/{ID}", api.incident),
    web.get("/api/v1/stats", api.stats),
    web.get("/api/v1/explain/{topic}", api.explanation),
    web.get("/api/v1/size", api.size),
    web.get("/api/v1/openapi.json", api.openapi),
]


def build_app(
    desk: Desk,
    settings: Settings,
    store: "Store | None",
    *,
    slack_routes: Sequence[web.RouteDef] = (),
    asks: Asks | None = None,
    meters: Meters | None = None,
    visible: Visible | None = None,
    probes: Sequence[Probe] = (),
    aside: Aside | None = None,
) -> web.Application:
    """The application that `serve` runs.

    `slack_routes` are answered whoever asks: they check Slack's signature themselves. `visible` says which channels
    a signed-in person may read. `probes` are the rooms' checks, asked by /readyz. `aside` runs the reading of
    large uploads in another process. `meters` come with a judge that they already count; without them the page counts its own.
    """
    if meters is None:
        meters = Meters()
        desk = replace(desk, judge=meters.counted(desk.judge))
    app = web.Application(middlewares=[measuring(meters), tell, gate])
    ungated = frozenset(route.path for route in (*UNGATED, *slack_routes))
    secret = signing_key(settings)
    app[DOOR] = Door(desk, settings, store, asks or Asks(), meters, environment(), secret, visible, probes, aside, ungated)
    app.add_routes([*UNGATED, *slack_routes, *PAGES, *API, web.static("/static", HERE / "static")])
    app.on_response_prepare.append(harden)
    return app


def signing_key(settings: Settings) -> bytes:
    """What cookies and forms are signed with: from OOMBOT_SECRET_KEY, or random for as long as the process lives."""
    if settings.secret_key:
        return hashlib.sha256(b"oombot page\0" + settings.secret_key.encode()).digest()
    return secrets.token_bytes(32)
