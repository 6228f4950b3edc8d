"""Sign in with Slack, against a Slack of our own on loopback."""

import base64
import json
import time
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from bot.settings import Settings
from tests.web.conftest import Browser, Serve, Shelf

CLAIMS = {"iss": "https://slack.com", "aud": "C1", "https://slack.com/team_id": "T1", "https://slack.com/user_id": "U1"}


class Slack:
    """The token method of Slack, answering with whatever claims a test wants."""

    def __init__(self) -> None:
        self.claims: dict[str, Any] = dict(CLAIMS)
        self.asked: list[dict[str, str]] = []
        self.nonce = ""
        self.url = ""

    async def token(self, request: web.Request) -> web.Response:
        self.asked.append({name: str(value) for name, value in (await request.post()).items()})
        if self.asked[-1]["code"] != "good":
            return web.json_response({"ok": False, "error": "invalid_code"})
        body = {"exp": time.time() + 300, "nonce": self.nonce, **self.claims}
        part = base64.urlsafe_b64encode(json.dumps(body).encode()).decode().rstrip("=")
        return web.json_response({"ok": True, "access_token": "xoxp-never-kept", "id_token": f"e30.{part}.sig"})


@pytest.fixture
async def slack() -> AsyncIterator[Slack]:
    slack = Slack()
    app = web.Application()
    app.add_routes([web.post("/api/openid.connect.token", slack.token)])
    server = TestServer(app)
    await server.start_server()
    slack.url = str(server.make_url("/api/"))
    yield slack
    await server.close()


def settings(slack: Slack, **changed: Any) -> Settings:
    given = {
        "page": "sign-in", "public_url": "http://127.0.0.1:8080", "secret_key": "k" * 32, "slack_client_id": "C1", "slack_client_secret": "S1",
        "slack_api_url": slack.url, "host": "0.0.0.0",
    } | changed  # fmt: skip
    return Settings(**given)


async def member(team: str, user: str, enterprise: str | None) -> frozenset[str] | None:
    return frozenset({"C-general"}) if team == "T1" else None


async def sign_in(browser: Browser, slack: Slack, code: str = "good", where: str = "/history") -> tuple[int, str]:
    async with browser.get(f"/sign-in/slack?next={where}", allow_redirects=False) as answer:
        query = parse_qs(urlsplit(answer.headers["Location"]).query)
    slack.nonce = slack.nonce or query["nonce"][0]
    async with browser.get(f"/sign-in/return?code={code}&state={query['state'][0]}", allow_redirects=False) as answer:
        return answer.status, answer.headers.get("Location", "") or await answer.text()


async def test_nobody_sees_a_page_without_a_session(serve: Serve, slack: Slack, shelf: Shelf) -> None:
    browser = await serve(settings(slack), visible=member)
    for where in ("/", "/history?q=a+b", "/d/D-0187", "/d/D-0187/log/1", "/examples/card-already-in-use"):
        async with browser.get(where, allow_redirects=False) as answer:
            assert answer.status == 303, where
            to = urlsplit(answer.headers["Location"])
            assert (to.path, parse_qs(to.query)) == ("/sign-in", {"next": [where]})
    assert (await browser.post("/diagnose", data={"paste": "x"}, allow_redirects=False)).status == 401
    async with browser.get("/api/v1/incidents") as answer:
        assert answer.status == 401
        assert "error" in await answer.json()
    assert not shelf.asked


@pytest.mark.parametrize("cookie", ["", "garbage", "e30.x", "eyJ0ZWFtIjoiVDEifQ.AAAA"])
async def test_a_made_up_session_is_no_session(serve: Serve, slack: Slack, cookie: str) -> None:
    browser = await serve(settings(slack), visible=member)
    assert (await browser.get("/", allow_redirects=False, cookies={"oombot_session": cookie})).status == 303


async def test_without_its_settings_it_says_which_are_missing(serve: Serve, slack: Slack) -> None:
    browser = await serve(settings(slack, slack_client_secret=None, public_url=None))
    text = await browser.text("/sign-in")
    assert "SLACK_CLIENT_SECRET, OOMBOT_PUBLIC_URL" in text
    assert (await browser.get("/sign-in/slack", allow_redirects=False)).status == 503


async def test_it_asks_slack_for_identity_only_and_comes_back_to_the_page(serve: Serve, slack: Slack, shelf: Shelf) -> None:
    browser = await serve(settings(slack), visible=member)
    async with browser.get("/sign-in/slack", allow_redirects=False) as answer:
        where = urlsplit(answer.headers["Location"])
        query = parse_qs(where.query)
    assert where.path == "/openid/connect/authorize"
    assert (query["scope"], query["redirect_uri"]) == (["openid"], ["http://127.0.0.1:8080/sign-in/return"])
    assert await sign_in(browser, slack) == (303, "/history")
    assert "Sign out" in await browser.text("/history")
    viewer = shelf.calls("history")[-1][0][1]
    assert (viewer.team, viewer.user, viewer.channels) == ("T1", "U1", frozenset({"C-general", "page-U1"}))
    assert slack.asked[-1]["client_secret"] == "S1"


async def test_what_is_pasted_by_a_signed_in_person_is_theirs_alone(serve: Serve, slack: Slack, shelf: Shelf) -> None:
    browser = await serve(settings(slack), visible=member)
    await sign_in(browser, slack)
    async with browser.post("/diagnose", data={"token": await browser.token(), "paste": "log"}, allow_redirects=False) as answer:
        assert answer.status == 303
    ((_, origin, given), _) = shelf.calls("diagnose")[-1]
    assert (origin.team, origin.channel, origin.private) == ("T1", "page-U1", True)
    assert given[0].author == "U1"


async def test_more_evidence_stays_where_the_incident_is(serve: Serve, slack: Slack, shelf: Shelf) -> None:
    shelf.incident |= {"team": "T1", "channel": "C-general", "thread": "1.2"}
    browser = await serve(settings(slack), visible=member)
    await sign_in(browser, slack)
    async with browser.post("/d/D-0187/evidence", data={"token": await browser.token(), "paste": "log"}, allow_redirects=False) as answer:
        assert answer.status == 303
    origin = shelf.calls("diagnose")[-1][0][1]
    assert (origin.channel, origin.thread) == ("C-general", "1.2")


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": "https://evil.example"}, {"aud": "other"}, {"nonce": "old"}, {"exp": 1}, {"https://slack.com/team_id": None}, {"https://slack.com/user_id": 7},
    ],
)  # fmt: skip
async def test_an_identity_that_is_not_for_this_sign_in_is_refused(serve: Serve, slack: Slack, claims: dict[str, Any]) -> None:
    slack.claims |= claims
    browser = await serve(settings(slack), visible=member)
    assert (await sign_in(browser, slack))[0] == 403
    assert (await browser.get("/", allow_redirects=False)).status == 303


async def test_a_workspace_without_the_bot_gets_a_sentence(serve: Serve, slack: Slack) -> None:
    slack.claims["https://slack.com/team_id"] = "T-other"
    status, text = await sign_in(await serve(settings(slack), visible=member), slack)
    assert status == 403
    assert "not in your workspace" in text


async def test_a_code_that_slack_refuses_is_told(serve: Serve, slack: Slack) -> None:
    status, text = await sign_in(await serve(settings(slack), visible=member), slack, code="bad")
    assert status == 403
    assert "invalid_code" in text


async def test_a_return_that_began_in_another_browser_is_refused(serve: Serve, slack: Slack) -> None:
    browser = await serve(settings(slack), visible=member)
    async with browser.get("/sign-in/slack", allow_redirects=False):
        pass
    assert (await browser.get("/sign-in/return?code=good&state=other", allow_redirects=False)).status == 400
    assert not slack.asked


async def test_slack_that_cannot_be_reached_is_told(serve: Serve, slack: Slack) -> None:
    browser = await serve(settings(slack, slack_api_url="http://127.0.0.1:9/api/"), visible=member)
    status, text = await sign_in(browser, slack)
    assert status == 502
    assert "Slack could not be asked" in text


@pytest.mark.parametrize("where", ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)"])
async def test_signing_in_leads_nowhere_else(serve: Serve, slack: Slack, where: str) -> None:
    browser = await serve(settings(slack), visible=member)
    assert await sign_in(browser, slack, where=where) == (303, "/")


async def test_someone_who_left_the_workspace_is_out_at_once(serve: Serve, slack: Slack) -> None:
    left = []

    async def leaving(team: str, user: str, enterprise: str | None) -> frozenset[str] | None:
        return None if left else frozenset()

    browser = await serve(settings(slack), visible=leaving)
    await sign_in(browser, slack)
    assert (await browser.get("/")).status == 200
    left.append(True)
    assert (await browser.get("/", allow_redirects=False)).status == 303


async def test_signing_out_ends_it(serve: Serve, slack: Slack) -> None:
    browser = await serve(settings(slack), visible=member)
    await sign_in(browser, slack)
    async with browser.post("/sign-out", data={"token": await browser.token()}, allow_redirects=False) as answer:
        assert answer.status == 303
    assert (await browser.get("/", allow_redirects=False)).status == 303


async def test_cookies_travel_over_tls_only_when_the_page_does(serve: Serve, slack: Slack) -> None:
    browser = await serve(settings(slack, public_url="https://oom.example"), visible=member)
    async with browser.get("/sign-in/slack", allow_redirects=False) as answer:
        morsel = answer.cookies["oombot_sign_in"]
        assert morsel["secure"]
        assert morsel["httponly"]
        assert morsel["samesite"] == "Lax"
