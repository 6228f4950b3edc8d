"""The pages on the real use cases and a real SQLite file: what a click writes is what the next page shows."""

import copy
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from yarl import URL

from bot.domain.incident import Contribution, Origin
from bot.rulebook.load import load_rulebook
from bot.settings import Settings
from bot.store.store import Store, open_store
from bot.usecases.asks import Asks
from bot.usecases.desk import Desk
from tests.web import documents
from tests.web.conftest import NOW, Browser, Serve, Shelf, seen
from tests.web.test_api import _fits
from tests.web.test_sign_in import Slack, member, sign_in, slack
from tests.web.test_sign_in import settings as behind_sign_in

__all__ = ["slack"]

LOG = (documents.EXAMPLES / "capture-on-one-of-eight.log").read_text()


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    store = await open_store(f"sqlite+aiosqlite:///{tmp_path / 'oombot.db'}")
    yield store
    await store.close()


async def judged(contributions: Any, precedents: Any) -> dict[str, Any]:
    return copy.deepcopy(documents.diagnosis())


@pytest.fixture
async def kept(serve: Serve, shelf: Shelf, store: Store) -> Callable[..., Any]:
    """A page whose use cases are the real ones."""
    asks = replace(Asks(), diagnose=shelf.asks().diagnose)

    async def keeping(**named: Any) -> Browser:
        desk = Desk(settings=Settings(), rulebook=load_rulebook, judge=judged, now=lambda: NOW, store=store)
        return await serve(asks=asks, desk=desk, store=store, **named)

    return keeping


async def keep(store: Store, origin: Origin = Origin(), **changed: Any) -> str:  # noqa: B008
    document = documents.diagnosis(**changed)
    return await store.append(origin, [Contribution("paste", LOG, at=NOW)], document)


async def test_an_empty_database_has_pages_that_say_so(kept: Any) -> None:
    browser = await kept()
    assert "becomes D-0001" in await browser.text("/")
    assert "Nothing matches" in await browser.text("/history")
    assert "No incident yet" in await browser.text("/stats")
    assert (await browser.get("/d/D-0001")).status == 404


async def test_an_incident_that_was_kept_is_found_searched_and_shown(kept: Any, store: Store) -> None:
    name = await keep(store)
    browser = await kept()
    assert f'href="/d/{name}"' in await browser.text("/")
    assert f'href="/d/{name}"' in await browser.text("/history?gpu=h100&phase=graph_capture&version=%3E%3D0.20&q=capture_model")
    assert "Nothing matches" in await browser.text("/history?gpu=a100")
    assert "is no field" in await browser.text("/history?q=colour:red")
    text = await browser.text(f"/d/{name}")
    assert "lower --gpu-memory-utilization to 0.92" in seen(text)
    assert 'class="first"' in text


async def test_an_outcome_is_written_shown_counted_and_taken_back(kept: Any, store: Store) -> None:
    name = await keep(store)
    browser = await kept()
    token = await browser.token(f"/d/{name}")
    async with browser.post(f"/d/{name}/outcome", data={"token": token, "result": "fixed", "note": "ran all night"}) as answer:
        text = await answer.text()
    assert "A sustained run at that load" in text, "what success earns is the workload test"
    assert "“ran all night”" in text
    assert '<span class="outcome fixed">worked</span>' in await browser.text("/history?outcome=fixed")
    assert "--gpu-memory-utilization" in await browser.text("/stats")
    async with browser.post(f"/d/{name}/undo", data={"token": token}) as answer:
        assert "Taken back" in await answer.text()
    assert "Nothing matches" in await browser.text("/history?outcome=fixed")


async def test_the_same_error_offers_the_next_change(kept: Any, store: Store) -> None:
    name = await keep(store)
    browser = await kept()
    async with browser.post(f"/d/{name}/outcome", data={"token": await browser.token(f"/d/{name}"), "result": "same"}) as answer:
        text = await answer.text()
    assert "Next: lower --max-cudagraph-capture-size to 256" in text
    assert '<p class="do"><b>lower <span class="flag">--max-cudagraph-capture-size</span> to 256</b></p>' in text


async def test_erasing_takes_the_log_from_every_page(kept: Any, store: Store) -> None:
    name = await keep(store)
    browser = await kept()
    async with browser.post(f"/d/{name}/forget", data={"token": await browser.token(f"/d/{name}"), "sure": "yes"}) as answer:
        text = await answer.text()
    assert "The evidence of this incident was erased" in text
    for where in (f"/d/{name}", f"/d/{name}/log/1", "/history", "/"):
        assert "88123" not in await browser.text(where), where
    assert "graph capture" in text


async def test_more_than_a_page_of_incidents_is_turned(kept: Any, store: Store) -> None:
    for _ in range(52):
        await keep(store)
    browser = await kept()
    first = await browser.text("/history?gpu=h100")
    assert 'href="/d/D-0052"' in first
    assert 'href="/d/D-0002"' not in first
    assert 'href="/history?gpu=h100&amp;before=D-0003"' in first
    second = await browser.text("/history?gpu=h100&before=D-0003")
    assert 'href="/d/D-0002"' in second
    assert 'href="/d/D-0003"' not in second


@pytest.mark.parametrize(
    "path",
    [
        "/history?before=xyz", "/history?before=D-999999999999", "/history?before=%00", '/history?q="', "/history?q=%00", "/history?q=a:b:c:*", "/history?q=" + "x" * 4000,
        "/history?q=NEAR(a%20b)%20OR%20*", "/history?since=never&tp=eight&rank=%3E%3Ex&version=%3E%3D", "/history?phase=soup&outcome=soup", "/stats?since=never",
        "/stats?since=99999d", "/stats?since=%00", "/d/D-0001/log/0", "/d/D-0001/log/9", "/d/D-999999999999", "/d/0", "/d/x-1", "/explain?about=%00", "/explain/utilization?incident=x",
        "/size?gpu_memory_bytes=-5&config=%7B%7D", "/size?config=[]", "/size?tensor_parallel_size=0&config=%7B%7D", "/size?q=%00", "/size?tensor_parallel_size=1e9&config=%7B%7D",
        "/api/v1/incidents?limit=1&q=%22", "/api/v1/size?config=%7B%22a%22:1%7D", "/api/v1/stats?since=x", "/examples/..%2f..%2fetc%2fpasswd", "/static/..%2fapp.py",
    ],
)  # fmt: skip
async def test_whatever_stands_in_an_address_the_bot_does_not_fail(kept: Any, store: Store, path: str) -> None:
    await keep(store)
    async with (await kept()).get(URL(path, encoded=True)) as answer:
        text = await answer.text()
        assert answer.status in (200, 400, 404), text


async def test_similar_incidents_are_linked_with_how_they_ended(kept: Any, store: Store) -> None:
    one, two = await keep(store), await keep(store)
    browser = await kept()
    async with browser.post(f"/d/{one}/outcome", data={"token": await browser.token(f"/d/{one}"), "result": "fixed"}):
        pass
    text = await browser.text(f"/d/{two}")
    seen = text[text.index("Seen before") :]
    assert f'href="/d/{one}"' in seen
    assert "worked" in seen


async def test_the_api_answers_in_the_shape_that_it_describes(kept: Any, store: Store) -> None:
    name = await keep(store)
    browser = await kept()
    for path in ("/api/v1/incidents", f"/api/v1/incidents/{name}", "/api/v1/stats"):
        async with browser.get(path) as answer:
            document = await answer.json()
            assert answer.status == 200
        schema = {"/api/v1/incidents": "History", "/api/v1/stats": "Stats"}.get(path, "Incident")
        _fits(document, {"$ref": f"#/components/schemas/{schema}"})


async def test_topics_are_explained_by_name_in_words_and_with_figures(kept: Any, store: Store) -> None:
    name = await keep(store)
    browser = await kept()
    assert "<h1>" in await browser.text("/explain")
    assert "FP8" in await browser.text("/explain?about=does+fp8+kv+halve+memory")
    assert "62.98 GiB" in await browser.text(f"/explain/pool-and-blocks?incident={name}")
    assert "fp8-kv" in await browser.text("/explain/soup", status=404)


async def test_metrics_count_what_waits(kept: Any, store: Store) -> None:
    await store.deliver("T1", "C1", "1.1", "key-1", "event", b"{}")
    text = await (await kept()).text("/metrics")
    assert 'oombot_deliveries{state="waiting"} 1.0' in text


async def test_a_signed_in_person_meets_other_channels_nowhere(kept: Any, store: Store, slack: Slack) -> None:
    seen = await keep(store, Origin("T1", channel="C-general"))
    hidden = await keep(store, Origin("T1", channel="C-secret", private=True), deployment={"model": "secret/model", "gpu": "H100-80GB"})
    elsewhere = await keep(store, Origin("T2", channel="C-general"))
    browser = await kept(settings=behind_sign_in(slack), visible=member)
    assert (await sign_in(browser, slack))[0] == 303
    assert (seen, hidden, elsewhere) == ("D-0001", "D-0002", "D-0001")
    token = await browser.token(f"/d/{seen}")
    for path in (
        f"/d/{hidden}",
        f"/d/{hidden}/log/1",
        f"/d/{hidden}/computed",
        f"/api/v1/incidents/{hidden}",
        "/explain/units?incident=D-0002",
    ):
        assert "secret/model" not in await browser.text(path, status=404)
    for deed, given in (
        ("outcome", {"result": "fixed"}),
        ("undo", {}),
        ("forget", {"sure": "yes"}),
        ("answer", {"answer": "3"}),
        ("evidence", {"paste": "x"}),
    ):
        async with browser.post(f"/d/{hidden}/{deed}", data={"token": token, **given}) as answer:
            assert answer.status == 404, deed
    for path in (
        "/",
        "/history",
        "/history?q=secret",
        "/history?model=secret",
        "/history?q=D-0002",
        "/stats",
        "/api/v1/stats",
        f"/d/{seen}",
        "/api/v1/incidents",
    ):
        text = await browser.text(path)
        assert "secret/model" not in text, path
        assert 'href="/d/D-0002"' not in text, path
    async with browser.get("/api/v1/stats") as answer:
        assert (await answer.json())["incidents"] == 1
    kept_still = await store.load("T1", hidden)
    assert kept_still
    assert (len(kept_still.contributions), kept_still.erased) == (1, False)
