"""The page on everything real: rules, reading, diagnosis, store. The three examples are diagnosed as they were written."""

from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from aiohttp import FormData
from markupsafe import escape

from bot.domain.incident import Contribution
from bot.rulebook.load import load_rulebook
from bot.settings import Settings
from bot.store.store import Store, open_store
from bot.usecases.asks import Asks
from bot.usecases.desk import Desk
from bot.usecases.judge import judge
from bot.web.examples_shelf import EXAMPLES, example
from bot.web.openapi import DOCUMENT
from tests.web.conftest import NOW, Browser, Serve, seen
from tests.web.test_api import _fits

FOUND = {
    "capture-on-one-of-eight": ("graph capture", "5", "lower --gpu-memory-utilization from 0.95 to 0.93"),
    "context-exceeds-cache": ("KV cache sizing", "none: a check of the engine core", "lower --max-model-len from 131072 to 53888"),
    "card-already-in-use": ("start-up check", "0", "lower --gpu-memory-utilization from 0.9 to 0.54"),
}


async def judged(contributions: Sequence[Contribution], precedents: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    return judge(load_rulebook(), contributions, precedents)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    store = await open_store(f"sqlite+aiosqlite:///{tmp_path / 'oombot.db'}")
    yield store
    await store.close()


@pytest.fixture
async def browser(serve: Serve, store: Store) -> Browser:
    desk = Desk(settings=Settings(), rulebook=load_rulebook, judge=judged, now=lambda: NOW, store=store)
    return await serve(asks=Asks(), desk=desk, store=store)


def test_every_example_is_on_the_shelf() -> None:
    assert {one.slug for one in EXAMPLES} == set(FOUND)


@pytest.mark.parametrize("slug", FOUND)
async def test_an_example_gives_phase_rank_and_change_with_certainty(browser: Browser, slug: str) -> None:
    phase, rank, change = FOUND[slug]
    text = await browser.text(f"/examples/{slug}")
    assert f"<dt>Phase</dt><dd>{phase}</dd>" in text
    assert '<span class="badge certain">' in text
    assert rank in text[text.index("<dt>Rank</dt>") :][:120]
    assert change in seen(text[text.index('<p class="do">') :][:300])
    assert 'class="first"' in text
    assert "None yet." in await browser.text("/"), "an example teaches the history nothing"


@pytest.mark.parametrize("log", [*(one.text for one in EXAMPLES), "CUDA out of memory\n", "Traceback (most recent call last):\nKilled\n"])
async def test_a_real_diagnosis_has_the_shape_that_the_api_describes(browser: Browser, log: str) -> None:
    async with browser.post("/diagnose", data={"token": await browser.token(), "paste": log}):
        pass
    async with browser.get("/api/v1/incidents/D-0001") as answer:
        _fits(await answer.json(), DOCUMENT["components"]["schemas"]["Incident"])


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("hello <b>", '<a href="/explain"><code>oombot explain</code></a> and a few words answer a question.'),
        ("does fp8 kv halve memory?", '<a href="/explain/fp8-kv">'),
        ('{"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": 5120}', '<a href="/size"><code>'),
    ],
)
async def test_talk_in_the_box_is_answered_and_kept_nowhere_but_in_the_box(browser: Browser, said: str, answer: str) -> None:
    async with browser.post("/diagnose", data={"token": await browser.token(), "paste": said}) as answered:
        text = await answered.text()
        assert (answered.status, answered.url.path) == (200, "/diagnose")
    assert answer in text
    assert "Nothing was kept." in text
    assert f">{escape(said)}</textarea>" in text
    assert "None yet." in text, "it is no incident"


async def test_as_many_words_as_nobody_talks_are_read_and_kept(browser: Browser) -> None:
    async with browser.post("/diagnose", data={"token": await browser.token(), "paste": "hello " * 400}) as answer:
        assert answer.url.path == "/d/D-0001"


async def test_a_file_is_read_whatever_it_says(browser: Browser) -> None:
    form = FormData({"token": await browser.token()})
    form.add_field("file", b"hello", filename="hello.log")
    async with browser.post("/diagnose", data=form) as answer:
        assert answer.url.path == "/d/D-0001"


@pytest.mark.parametrize("slug", FOUND)
async def test_a_pasted_log_is_kept_found_again_and_settled(browser: Browser, slug: str) -> None:
    shown = example(slug)
    assert shown
    async with browser.post("/diagnose", data={"token": await browser.token(), "paste": shown.text}) as answer:
        assert answer.url.path == "/d/D-0001"
        text = await answer.text()
    assert f"<dt>Phase</dt><dd>{FOUND[slug][0]}</dd>" in text
    async with browser.post("/d/D-0001/outcome", data={"token": await browser.token("/d/D-0001"), "result": "same"}) as answer:
        text = await answer.text()
    assert "did not move the error" in text
    assert '<span class="outcome same">same error</span>' in text
    assert 'href="/d/D-0001"' in await browser.text("/history?outcome=same")


async def test_what_the_page_diagnosed_is_counted_by_phase_and_verdict(browser: Browser) -> None:
    await browser.text("/examples/card-already-in-use")
    assert 'oombot_diagnoses_total{phase="startup_check",verdict="certain"} 1.0' in await browser.text("/metrics")


async def test_a_wrapper_alone_is_asked_about_and_an_added_log_decides(browser: Browser) -> None:
    wrapper = "(APIServer pid=4102) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n"
    async with browser.post("/diagnose", data={"token": await browser.token(), "paste": wrapper}) as answer:
        text = await answer.text()
    assert '<span class="badge open">' in text
    assert "No change yet" in text
    assert 'name="question"' in text
    shown = example("capture-on-one-of-eight")
    assert shown
    async with browser.post("/d/D-0001/evidence", data={"token": await browser.token("/d/D-0001"), "paste": shown.text}) as answer:
        text = await answer.text()
    assert "<dt>Phase</dt><dd>graph capture</dd>" in text
    assert 'id="S2L61" class="first"' in text, "the first error stands in the second source"
    assert 'href="#S2L61"' in text


async def test_a_question_that_nobody_can_answer_is_not_asked_again(browser: Browser) -> None:
    wrapper = "(APIServer pid=4102) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n"
    async with browser.post("/diagnose", data={"token": await browser.token(), "paste": wrapper}) as answer:
        text = await answer.text()
    question = text[text.index('name="question" value="') :].split('"')[3]
    data = {"token": await browser.token("/d/D-0001"), "question": question, "answer": "", "unknown": "yes"}
    async with browser.post("/d/D-0001/answer", data=data) as answer:
        text = await answer.text()
    assert f"{question}=unknown" in text
    assert f'value="{question}"' not in text


async def test_an_erased_incident_takes_no_harm_from_a_late_form(browser: Browser) -> None:
    shown = example("card-already-in-use")
    assert shown
    async with browser.post("/diagnose", data={"token": await browser.token(), "paste": shown.text}):
        pass
    token = await browser.token("/d/D-0001")
    async with browser.post("/d/D-0001/forget", data={"token": token, "sure": "yes"}):
        pass
    late = {
        "outcome": ({"result": "same"}, 303), "undo": ({}, 303), "answer": ({"question": "workload", "answer": "serving"}, 409),
        "evidence": ({"paste": "a line\n"}, 409), "forget": ({"sure": "yes"}, 303), "computed": ({"config": "{}"}, 400),
    }  # fmt: skip
    for what, (fields, status) in late.items():
        async with browser.post(f"/d/D-0001/{what}", data={"token": token, **fields}, allow_redirects=False) as answer:
            assert answer.status == status, (what, await answer.text())
    assert "ValueError" not in await browser.text("/d/D-0001"), "no line of the log is quoted any more"
