"""Health, readiness and metrics."""

import asyncio
from dataclasses import dataclass

import pytest

from bot.settings import Settings
from bot.web import health
from bot.web.metrics import Meters
from tests.web import documents
from tests.web.conftest import Browser, Serve


@dataclass
class Check:
    name: str
    ok: bool | None
    says: str
    mend: str = ""


async def database_locked() -> list[Check]:
    return [Check("database", False, "locked by another process"), Check("rulebook", True, "312 rules")]


async def slack_not_set_up() -> list[Check]:
    return [Check("slack", None, "no token is set")]


async def breaks() -> list[Check]:
    raise OSError("secret path")


async def sleeps() -> list[Check]:
    await asyncio.sleep(60)
    return []


async def test_what_does_not_work_is_named(serve: Serve) -> None:
    browser = await serve(probes=[database_locked, slack_not_set_up])
    async with browser.get("/readyz") as answer:
        assert answer.status == 503
        body = await answer.json()
    assert body["failing"] == ["database"]
    assert (await browser.get("/healthz")).status == 200, "the process lives all the same"


async def test_another_host_learns_nothing_of_this_machine(serve: Serve) -> None:
    browser = await serve(probes=[database_locked])
    async with browser.get("/readyz", headers={"Host": "rebound.example:8080"}) as answer:
        assert (answer.status, await answer.json()) == (
            503,
            {"ok": False, "failing": ["database"], "checks": [{"name": "database", "ok": False}, {"name": "rulebook", "ok": True}]},
        )
    assert (await browser.get("/metrics", headers={"Host": "rebound.example:8080"})).status == 404
    assert (await browser.get("/metrics")).status == 200
    beyond = await serve(Settings(host="0.0.0.0"))
    assert (await beyond.get("/metrics", headers={"Host": "10.0.0.7:8080"})).status == 200, "a pod is scraped by its address"


async def test_a_probe_that_breaks_or_hangs_is_not_ready_and_tells_no_details(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "PATIENCE", 0.05)
    async with (await serve(probes=[breaks, sleeps])).get("/readyz") as answer:
        assert answer.status == 503
        assert (await answer.json())["failing"] == ["breaks", "sleeps"]
        assert "secret path" not in await answer.text()


async def test_what_is_not_set_up_does_not_count_against_it(serve: Serve) -> None:
    assert (await (await serve(probes=[slack_not_set_up])).get("/readyz")).status == 200


async def test_requests_are_counted_under_their_route(browser: Browser) -> None:
    await browser.text("/d/D-0187")
    await browser.text("/d/D-9999", status=404)
    await browser.text("/nowhere/secret", status=404)
    text = await browser.text("/metrics")
    assert 'oombot_requests_total{method="GET",route="/d/{id}",status="200"} 1.0' in text
    assert 'oombot_requests_total{method="GET",route="/d/{id}",status="404"} 1.0' in text
    assert "D-0187" not in text
    assert "secret" not in text


async def test_diagnoses_are_counted_by_phase_and_verdict() -> None:
    async def judge(contributions: object, precedents: object) -> dict[str, object]:
        return documents.diagnosis()

    meters = Meters()
    await meters.counted(judge)([], [])
    text = meters.text().decode()
    assert 'oombot_diagnoses_total{phase="graph_capture",verdict="certain"} 1.0' in text
    assert "oombot_diagnosis_seconds_count 1.0" in text
