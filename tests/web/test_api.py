"""The read-only API, and the document that describes it."""

from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from bot.domain.incident import LOCAL_TEAM, Contribution
from bot.rulebook.load import load_rulebook
from bot.usecases.desk import Viewer
from bot.usecases.judge import judge
from bot.web.app import API
from bot.web.openapi import DOCUMENT
from tests.web.conftest import Browser, Shelf


@pytest.mark.parametrize("limit", ["0", "51", "-1", "ten", "٣", ""])
async def test_a_limit_that_cannot_be_is_named(browser: Browser, limit: str) -> None:
    async with browser.get("/api/v1/incidents", params={"limit": limit}) as answer:
        assert answer.status == 400
        assert (await answer.json())["error"].startswith("limit is")


async def test_what_does_not_exist_is_json_too(browser: Browser) -> None:
    for where in ("/api/v1/incidents/D-9999", "/api/v1/nothing"):
        async with browser.get(where) as answer:
            assert answer.status == 404
            assert set(await answer.json()) == {"schema", "error"}


async def test_nothing_can_be_changed_through_it(browser: Browser) -> None:
    assert {route.method for route in API} == {"GET"}
    assert (await browser.post("/api/v1/incidents")).status == 405


@pytest.mark.parametrize(("use_case", "query"), [("size_words", {"q": "llama-3.3-70b on h100"}), ("size_arguments", {"model": "x"})])
async def test_a_size_is_asked_for_by_somebody_so_that_what_their_team_measured_counts(
    browser: Browser, shelf: Shelf, use_case: str, query: dict[str, str]
) -> None:
    async with browser.get("/api/v1/size", params=query):
        ((_, _, viewer), _) = shelf.calls(use_case)[-1]
        assert viewer == Viewer(team=LOCAL_TEAM)


async def test_incidents_are_what_the_page_searches(browser: Browser, shelf: Shelf) -> None:
    async with browser.get("/api/v1/incidents", params={"q": "sampler", "gpu": "h100", "limit": "7"}) as answer:
        assert await answer.json() == shelf.found
    assert shelf.calls("history")[-1][0][2:] == ("sampler gpu:h100", 7, None)


async def test_an_incident_is_given_whole(browser: Browser, shelf: Shelf) -> None:
    async with browser.get("/api/v1/incidents/D-0187") as answer:
        assert await answer.json() == shelf.incident


def _refs(node: Any) -> list[str]:
    if isinstance(node, dict):
        return [node["$ref"]] if "$ref" in node else [ref for value in node.values() for ref in _refs(value)]
    return [ref for value in node for ref in _refs(value)] if isinstance(node, list) else []


async def test_the_description_and_the_routes_are_the_same_set(browser: Browser) -> None:
    app = web.Application()
    app.add_routes(API)
    routes = {resource.canonical for resource in app.router.resources()} - {"/api/v1/openapi.json"}
    async with browser.get("/api/v1/openapi.json") as answer:
        document = await answer.json()
    assert set(document["paths"]) == routes
    assert document == DOCUMENT
    for ref in _refs(document):
        assert ref.removeprefix("#/components/schemas/") in document["components"]["schemas"]
    for path, methods in document["paths"].items():
        named = {parameter["name"] for parameter in methods["get"]["parameters"] if parameter["in"] == "path"}
        assert named == {part[1:-1] for part in path.split("/") if part.startswith("{")}


def _fits(value: Any, schema: dict[str, Any], where: str = "$") -> None:
    if "$ref" in schema:
        schema = DOCUMENT["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    python = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "object": dict, "array": list, "null": type(None)}
    assert not kinds or any(isinstance(value, python[kind]) for kind in kinds), f"{where}: {value!r} is no {kinds}"
    assert "enum" not in schema or value in schema["enum"], where
    assert "const" not in schema or value == schema["const"], where
    assert not isinstance(value, bool) or not kinds or "boolean" in kinds, where
    for name in schema.get("required", ()) if value is not None else ():
        assert name in value, f"{where}.{name} is missing"
        _fits(value[name], schema["properties"][name], f"{where}.{name}")
    for item in value if isinstance(value, list) else ():
        _fits(item, schema.get("items", {}), f"{where}[]")


@pytest.mark.parametrize(
    ("value", "name"), [({"schema": "oombot.error/1"}, "Error"), ({"schema": "other", "error": ""}, "Error"), ([], "Error")]
)
def test_the_comparison_with_a_description_can_fail(value: Any, name: str) -> None:
    with pytest.raises(AssertionError):
        _fits(value, DOCUMENT["components"]["schemas"][name])


@pytest.mark.parametrize("path", ["/api/v1/stats", "/api/v1/explain/{topic}", "/api/v1/incidents", "/api/v1/incidents/D-0187"])
async def test_answers_have_the_shape_that_is_described(browser: Browser, path: str) -> None:
    described = DOCUMENT["paths"][path.replace("D-0187", "{id}")]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    async with browser.get(path.replace("{topic}", "budget")) as answer:
        _fits(await answer.json(), described)


def test_every_case_is_diagnosed_in_the_shape_that_is_described() -> None:
    book = load_rulebook()
    pastes = sorted((Path(__file__).parents[1] / "cases").glob("*/paste.log"))
    assert len(pastes) > 100
    for paste in pastes:
        document = judge(book, [Contribution("file", paste.read_text(encoding="utf-8"))])
        _fits(document, DOCUMENT["components"]["schemas"]["Diagnosis"], paste.parent.name)
