"""Requests that no browser sends: each is answered in a sentence, none is a fault of the bot, none locks a browser out."""

import asyncio

import pytest

from bot.usecases.asks import Asks
from bot.web import forms
from tests.web.conftest import Browser, Serve, Shelf
from tests.web.test_forms import multipart

BOTTOMLESS = ('{"a":' * 50_000, "[" * 100_000)


async def raw(browser: Browser, *head: str, body: bytes = b"") -> tuple[int, str]:
    """What a server says to a request written by hand: status and text."""
    reader, writer = await asyncio.open_connection("127.0.0.1", browser.port)
    lines = [*head, f"Content-Length: {len(body)}", "Connection: close", "", ""]
    writer.write("\r\n".join(lines).encode("latin-1") + body)
    answer = (await reader.read()).decode("utf-8", "replace")
    writer.close()
    return int(answer.split()[1]), answer


@pytest.mark.parametrize("cookie", ["oombot_said=\xff.\xff", "oombot_form=\xff\xfe", "oombot_session=\xff.\xff"])
async def test_a_cookie_that_is_no_text_is_no_cookie_at_all(browser: Browser, cookie: str) -> None:
    for where in ("/", "/size", "/nowhere"):
        status, _ = await raw(browser, f"GET {where} HTTP/1.1", f"Host: 127.0.0.1:{browser.port}", f"Cookie: {cookie}")
        assert status == (404 if where == "/nowhere" else 200)


@pytest.mark.parametrize("host", ["[127.0.0.1]", "[::1", "]", "127.0.0.1]:80", "[", "\xff", "a b"])
async def test_half_a_host_is_not_this_machine(browser: Browser, host: str) -> None:
    status, text = await raw(browser, "GET / HTTP/1.1", f"Host: {host}")
    assert status in (400, 404)
    assert "Traceback" not in text


@pytest.mark.parametrize("origin", ["http://[::1", "http://]", "\xff", "http://[bad]/"])
async def test_half_an_origin_is_another_site(browser: Browser, origin: str) -> None:
    body = b"token=x"
    kind = "Content-Type: application/x-www-form-urlencoded"
    head = ("POST /size HTTP/1.1", f"Host: 127.0.0.1:{browser.port}", kind, f"Origin: {origin}")
    assert (await raw(browser, *head, body=body))[0] == 403


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "multipart/form-data; boundary=b"])
async def test_a_body_that_is_not_packed_as_it_says_arrived_damaged(browser: Browser, coding: str, kind: str) -> None:
    head = ("POST /size HTTP/1.1", f"Host: 127.0.0.1:{browser.port}", f"Content-Type: {kind}", f"Content-Encoding: {coding}")
    status, text = await raw(browser, *head, body=b"\xffno such packing" * 10)
    assert status == 400
    assert "Traceback" not in text


@pytest.mark.parametrize("config", BOTTOMLESS)
async def test_a_bottomless_config_is_no_json(serve: Serve, config: str) -> None:
    browser = await serve(asks=Asks())
    token = await browser.token("/size")
    async with browser.post("/size", data={"token": token, "config": config}) as answer:
        assert answer.status == 400
        assert "nested too deeply" in await answer.text()


async def test_fields_that_are_no_evidence_count_against_the_limit_too(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forms, "LIMIT", 2**20)
    form = multipart(await browser.token(), *((f"field{n}", "x" * 2**18, None) for n in range(8)))
    async with browser.post("/diagnose", data=form) as answer:
        assert answer.status == 413


async def test_all_fields_together_take_no_more_memory_than_one_may(
    browser: Browser, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forms, "FIELD_LIMIT", 1000)
    data = multipart(await browser.token(), ("pad", "x" * 900, None), ("result", "fixed", None), ("note", "y" * 900, None))
    async with browser.post("/d/D-0187/outcome", data=data, allow_redirects=False) as answer:
        assert answer.status == 303
    assert shelf.calls("settle")[0][0][4] == "y" * 95


async def test_more_files_than_a_process_may_hold_open_are_refused(browser: Browser) -> None:
    form = multipart(await browser.token(), *(("file", b"log", f"{n}.log") for n in range(forms.MOST_PARTS + 1)))
    async with browser.post("/diagnose", data=form) as answer:
        assert answer.status == 413
        assert "in one zip" in await answer.text()


async def test_a_question_too_long_for_an_address_is_answered_where_it_was_asked(serve: Serve) -> None:
    browser = await serve(asks=Asks())
    token = await browser.token("/size")
    async with browser.post(
        "/size", data={"token": token, "q": "llama-3.3-70b on h100 " + "please " * 1000}, allow_redirects=False
    ) as answer:
        assert answer.status == 200
        assert "Llama-3.3-70B" in await answer.text()
    async with browser.post("/size", data={"token": token, "q": "llama-3.3-70b on h100"}, allow_redirects=False) as answer:
        assert answer.status == 303


@pytest.mark.parametrize("figure", ["1e400", "inf", "nan", "-1e400", "9" * 400, "9" * 5000, "1e30"])
@pytest.mark.parametrize("name", ["max_model_len", "gpu_memory_bytes", "max_num_seqs", "gpu_memory_utilization"])
async def test_a_figure_beyond_all_figures_is_refused_in_a_sentence(serve: Serve, name: str, figure: str) -> None:
    browser = await serve(asks=Asks())
    for where in ("/size", "/api/v1/size"):
        async with browser.get(where, params={"model": "llama-3.3-70b", "gpu": "H100", name: figure}) as answer:
            assert answer.status == 400
            assert f"{name} is" in (await answer.text()).replace("&#39;", "'")
