"""Counters and durations in Prometheus text."""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from bot.domain.incident import Contribution
from bot.usecases.desk import Judge

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

FAST = (0.005, 0.01, 0.025, 0.05, 0.1, 0.3, 1.0, 3.0, 10.0)
SLOW = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Meters:
    """One registry for each process that `serve` starts; labels hold routes and phases, never what people wrote."""

    def __init__(self) -> None:
        self.registry = to = CollectorRegistry()
        self.requests = Counter("oombot_requests", "Requests answered", ["method", "route", "status"], registry=to)
        self.request_seconds = Histogram("oombot_request_seconds", "Time to answer a request", ["route"], buckets=FAST, registry=to)
        self.diagnoses = Counter("oombot_diagnoses", "Diagnoses made, re-judged ones included", ["phase", "verdict"], registry=to)
        self.diagnosis_seconds = Histogram("oombot_diagnosis_seconds", "Time to judge", buckets=SLOW, registry=to)
        self.deliveries = Gauge("oombot_deliveries", "Slack deliveries kept and not done, by state", ["state"], registry=to)
        self.oldest = Gauge("oombot_deliveries_oldest_seconds", "Age of the oldest delivery that waits", registry=to)

    def counted(self, judge: Judge) -> Judge:
        """The same judge, counted: `serve` wraps the one that all doors share."""

        async def judging(contributions: Sequence[Contribution], precedents: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
            started = time.perf_counter()
            document = await judge(contributions, precedents)
            self.diagnosis_seconds.observe(time.perf_counter() - started)
            self.diagnoses.labels(document["phase"], document["verdict"]).inc()
            return document

        return judging

    def text(self) -> bytes:
        """Everything counted so far, as Prometheus reads it."""
        return generate_latest(self.registry)


def measuring(meters: Meters) -> Any:
    """The middleware that counts requests under the route's pattern, so that ids do not become labels."""

    @web.middleware
    async def measure(request: web.Request, handler: Handler) -> web.StreamResponse:
        resource = request.match_info.route.resource
        route = resource.canonical if resource else "(none)"
        started = time.perf_counter()
        status = 500
        try:
            response = await handler(request)
            status = response.status
        except web.HTTPException as answer:
            status = answer.status
            raise
        finally:
            meters.requests.labels(request.method, route, str(status)).inc()
            meters.request_seconds.labels(route).observe(time.perf_counter() - started)
        return response

    return measure
