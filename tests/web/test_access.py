"""Who may open the page."""

import pytest
from aiohttp import web

from bot.settings import Settings, is_loopback
from bot.web.access import FORWARDED
from tests.web.conftest import Browser, Serve, Shelf


@pytest.mark.parametrize(
    "host",
    ["0.0.0.0", "::", "10.0.0.7", "::ffff:10.0.0.7", "192.168.1.2", "example.org", "127.0.0.1.example.org", "localhost.example.org", ""],
)
def test_these_are_not_this_machine(host: str) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "[::1]", "::ffff:127.0.0.1", "localhost", "LOCALHOST", "localhost."])
def test_these_are_this_machine(host: str) -> None:
    assert is_loopback(host)


def test_a_server_on_all_interfaces_never_opens_by_itself() -> None:
    assert Settings(host="0.0.0.0").page_mode == "off"
    assert Settings(host="127.0.0.1").page_mode == "open"
    assert Settings(host="0.0.0.0", page="sign-in").page_mode == "sign-in"


@pytest.mark.parametrize("where", ["/", "/history", "/d/D-0187", "/static/page.css", "/api/v1/openapi.json", "/nowhere"])
async def test_a_page_that_is_off_says_one_sentence_and_nothing_else(serve: Serve, shelf: Shelf, where: str) -> None:
    browser = await serve(Settings(page="off"))
    text = await browser.text(where, status=404)
    assert text.startswith("The page of this bot is off.")
    assert len(text.splitlines()) == 1
    assert not shelf.asked


async def test_health_answers_also_when_the_page_is_off(serve: Serve) -> None:
    browser = await serve(Settings(page="off"))
    for where in ("/healthz", "/readyz", "/metrics"):
        assert (await browser.get(where)).status == 200


async def test_what_slack_sends_is_answered_whoever_asks_and_nothing_beside_it(serve: Serve) -> None:
    async def events(request: web.Request) -> web.Response:
        return web.Response(text="taken")

    browser = await serve(Settings(page="off"), slack_routes=[web.post("/slack/events", events)])
    async with browser.post("/slack/events", headers={"Host": "oom.example", "X-Forwarded-For": "10.0.0.7"}) as answer:
        assert await answer.text() == "taken"
    assert (await browser.post("/slack/events/more")).status == 404


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8080", "127.0.0.1.nip.io", "10.0.0.7"])
async def test_an_open_page_does_not_answer_to_another_name(browser: Browser, host: str) -> None:
    assert (await browser.get("/", headers={"Host": host})).status == 404


@pytest.mark.parametrize("name", FORWARDED)
async def test_an_open_page_does_not_answer_through_a_proxy(browser: Browser, name: str) -> None:
    assert (await browser.get("/", headers={name: "10.0.0.7"})).status == 404


@pytest.mark.parametrize("host", ["localhost:9999", "127.0.0.1", "[::1]:8080"])
async def test_an_open_page_answers_to_local_names(browser: Browser, host: str) -> None:
    assert (await browser.get("/", headers={"Host": host})).status == 200


async def test_an_open_page_sees_all_of_the_local_team(browser: Browser, shelf: Shelf) -> None:
    await browser.text("/")
    viewer = shelf.calls("history")[-1][0][1]
    assert (viewer.team, viewer.channels) == ("local", None)
