"""What is sent to the page: refused without its token, read to the last byte with it."""

import asyncio
import gzip
import io
import multiprocessing
import re
import zipfile
from collections.abc import AsyncIterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import aiohttp
import pytest
from yarl import URL

from bot.domain.incident import Contribution
from bot.settings import Settings
from bot.store.errors import StoreError
from bot.usecases.reply import Reply, Unusable
from bot.web import forms
from bot.web.app import PAGES
from tests.web import documents
from tests.web.conftest import Browser, Serve, Shelf

LOG = "(Worker_TP0 pid=1) ERROR torch.OutOfMemoryError: CUDA out of memory.\n"


def multipart(token: str, *parts: tuple[str, bytes | str | io.BytesIO, str | None]) -> aiohttp.FormData:
    form = aiohttp.FormData()
    form.add_field("token", token)
    for name, value, filename in parts:
        form.add_field(name, value, filename=filename, content_type="application/octet-stream" if filename else "text/plain")
    return form


def given(shelf: Shelf) -> list[Contribution]:
    return list(shelf.calls("diagnose")[-1][0][2])


@pytest.mark.parametrize("route", [route for route in PAGES if route.method == "POST"], ids=lambda route: route.path)
async def test_no_form_is_read_without_the_token_of_this_browser(browser: Browser, shelf: Shelf, route: object) -> None:
    where = getattr(route, "path").split("{")[0]  # noqa: B009
    where = "/d/D-0187" + getattr(route, "path").rsplit("}", 1)[1] if where == "/d/" else where  # noqa: B009
    await browser.token()
    for data in ({"paste": LOG}, {"token": "wrong", "paste": LOG}, multipart("wrong", ("paste", LOG, None))):
        async with browser.post(where, data=data, allow_redirects=False) as answer:
            assert answer.status == 403, where
            assert "out of date" in await answer.text()
    assert not [name for name, _, _ in shelf.asked if name not in ("history", "show")]


async def test_the_token_of_another_browser_is_refused(serve: Serve) -> None:
    one, other = await serve(), await serve()
    stolen = await one.token()
    await other.token()
    assert (await other.post("/diagnose", data={"token": stolen, "paste": LOG}, allow_redirects=False)).status == 403


@pytest.mark.parametrize("header", [{"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}])
async def test_a_form_that_another_site_wrote_is_refused(browser: Browser, header: dict[str, str]) -> None:
    token = await browser.token()
    async with browser.post("/diagnose", data={"token": token, "paste": LOG}, headers=header, allow_redirects=False) as answer:
        assert answer.status == 403
        assert "another site" in await answer.text()


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("multipart/form-data", b"x"),
        ("multipart/form-data; boundary=edge", b"no boundary at all"),
        (
            "multipart/form-data; boundary=edge",
            b'--edge\r\nContent-Disposition: form-data; name="token"\r\n\r\nTOKEN\r\n--edge\r\nContent-Dis',
        ),
        (
            "multipart/form-data; boundary=edge",
            b'--edge\r\nContent-Disposition: form-data; name="token"\r\n\r\nTOKEN\r\n--edge\r\nnonsense\r\n\r\nx\r\n--edge--\r\n',
        ),
        ("multipart/mixed; boundary=edge", b"--edge\r\nContent-Type: multipart/mixed; boundary=in\r\n\r\n--in--\r\n--edge--\r\n"),
        ("application/json", b"{}"),
        ("application/x-www-form-urlencoded", b"%ff%fe=&" * 5000),
        ("application/x-www-form-urlencoded", b"a=1&" * 5000),
    ],
)
async def test_a_damaged_form_is_refused_in_a_sentence(browser: Browser, shelf: Shelf, kind: str, body: bytes) -> None:
    body = body.replace(b"TOKEN", (await browser.token()).encode())
    async with browser.post("/diagnose", data=body, headers={"Content-Type": kind}, allow_redirects=False) as answer:
        assert answer.status in (400, 403), await answer.text()
    assert not shelf.calls("diagnose")


async def test_a_form_that_came_through_the_public_address_is_ours(serve: Serve, shelf: Shelf) -> None:
    browser = await serve(Settings(public_url="http://oom.example"))
    token = await browser.token()
    for origin, status in (("http://oom.example", 303), ("http://oom.example.evil.example", 403)):
        async with browser.post(
            "/diagnose", data={"token": token, "paste": LOG}, headers={"Origin": origin}, allow_redirects=False
        ) as answer:
            assert answer.status == status, origin


async def test_a_line_end_in_an_address_makes_no_line_in_the_log(serve: Serve, shelf: Shelf, caplog: pytest.LogCaptureFixture) -> None:
    async def fails(*args: object) -> object:
        raise RuntimeError

    await (await serve(asks=replace(shelf.asks(), explain=fails))).get(URL("/explain/a%0AINFO", encoded=True))
    assert "a%0AINFO" in caplog.records[-1].getMessage()
    assert "\n" not in caplog.records[-1].getMessage()


@pytest.mark.parametrize("paste", ["", "   \n\t\n"])
async def test_an_empty_paste_gets_a_sentence_and_the_box_again(browser: Browser, shelf: Shelf, paste: str) -> None:
    async with browser.post("/diagnose", data=multipart(await browser.token(), ("paste", paste, None))) as answer:
        assert answer.status == 400
        text = await answer.text()
    assert "There is nothing to read yet" in text
    assert "<textarea" in text
    assert not shelf.calls("diagnose")


async def test_a_picture_gets_a_sentence(browser: Browser, shelf: Shelf) -> None:
    png = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40
    async with browser.post("/diagnose", data=multipart(await browser.token(), ("file", png, "screen.png"))) as answer:
        assert answer.status == 400
        assert "screen.png" in await answer.text()
    assert not shelf.calls("diagnose")


async def test_a_paste_becomes_an_incident_and_the_browser_goes_there(browser: Browser, shelf: Shelf) -> None:
    async with browser.post("/diagnose", data=multipart(await browser.token(), ("paste", LOG, None)), allow_redirects=False) as answer:
        assert (answer.status, answer.headers["Location"]) == (303, "/d/D-0187")
    assert [(one.kind, one.text, one.name) for one in given(shelf)] == [("paste", LOG, None)]


async def test_line_ends_of_a_text_box_are_those_that_were_pasted(browser: Browser, shelf: Shelf) -> None:
    data = multipart(await browser.token(), ("paste", "one\r\n10%\r20%\r\n", None), ("file", b"kept\r\n", "windows.log"))
    async with browser.post("/diagnose", data=data, allow_redirects=False):
        pass
    assert [one.text for one in given(shelf)] == ["one\n10%\r20%\n", "kept\r\n"]


async def test_a_plain_form_without_files_is_read_the_same_way(browser: Browser, shelf: Shelf) -> None:
    async with browser.post("/diagnose", data={"token": await browser.token(), "paste": LOG}, allow_redirects=False) as answer:
        assert answer.status == 303
    assert given(shelf)[0].text == LOG


async def test_files_and_paste_are_kept_apart_and_in_order(browser: Browser, shelf: Shelf) -> None:
    data = multipart(
        await browser.token(),
        ("paste", "a paste\n", None),
        ("file", b"one\n", "one.log"),
        ("file", "zwei ü\n".encode("utf-16"), "zwei.log"),
    )
    async with browser.post("/diagnose", data=data, allow_redirects=False) as answer:
        assert answer.status == 303
    assert [(one.kind, one.name, one.text) for one in given(shelf)] == [
        ("paste", None, "a paste\n"),
        ("file", "one.log", "one\n"),
        ("file", "zwei.log", "zwei ü\n"),
    ]


async def test_a_secret_is_hidden_before_the_use_case_sees_it(browser: Browser, shelf: Shelf) -> None:
    secret = "hf_" + "AbCdEfGhIjKlMnOpQrStUvWxYz01234567"
    async with browser.post(
        "/diagnose", data=multipart(await browser.token(), ("paste", f"HF_TOKEN={secret}\n{LOG}", None)), allow_redirects=False
    ):
        pass
    assert secret not in (given(shelf)[0].text or "")
    assert given(shelf)[0].redactions >= 1


async def test_more_than_the_limit_gets_a_sentence(browser: Browser, shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forms, "LIMIT", 2 * 2**20)
    big = b"x" * (3 * 2**20)
    async with browser.post("/diagnose", data=multipart(await browser.token(), ("file", io.BytesIO(big), "big.log"))) as answer:
        assert answer.status == 413
        assert "more than 200 MB" in await answer.text()
    head = f'--edge\r\nContent-Disposition: form-data; name="token"\r\n\r\n{await browser.token()}\r\n--edge\r\nContent-Disposition: form-data; name="file"; filename="big.log"\r\n\r\n'

    async def unannounced() -> AsyncIterator[bytes]:
        yield head.encode()
        for start in range(0, len(big), 65536):
            yield big[start : start + 65536]
        yield b"\r\n--edge--\r\n"

    async with browser.post("/diagnose", data=unannounced(), headers={"Content-Type": "multipart/form-data; boundary=edge"}) as answer:
        assert answer.status == 413, "a length that was not announced is counted as it comes"
    assert not shelf.calls("diagnose")


async def test_what_could_not_be_kept_is_shown_all_the_same(serve: Serve, shelf: Shelf) -> None:
    shelf.diagnosis = documents.diagnosis(id=None)
    shelf.warning = "The database is read-only: /data/oombot.db."
    browser = await serve()
    async with browser.post("/diagnose", data=multipart(await browser.token(), ("paste", LOG, None))) as answer:
        text = await answer.text()
        assert answer.status == 200
    assert "This diagnosis was not kept. The database is read-only" in text
    assert "/outcome" not in text


async def test_an_outcome_is_settled_and_its_checklist_is_shown_once(browser: Browser, shelf: Shelf) -> None:
    token = await browser.token("/d/D-0187")
    async with browser.post("/d/D-0187/outcome", data={"token": token, "result": "fixed", "note": " held for an hour "}) as answer:
        assert answer.url.fragment == "", "the confirmation stands at the top"
        text = await answer.text()
    (args, _) = shelf.calls("settle")[-1]
    assert args[2:] == ("D-0187", "fixed", "held for an hour")
    assert "Kept: it worked." in text
    assert "<li>Run for an hour.</li>" in text
    assert "Kept: it worked." not in await browser.text("/d/D-0187")


async def test_a_made_up_outcome_is_refused(browser: Browser, shelf: Shelf) -> None:
    token = await browser.token("/d/D-0187")
    async with browser.post("/d/D-0187/outcome", data={"token": token, "result": "<b>"}) as answer:
        assert answer.status == 400
    assert not shelf.calls("settle")


async def test_an_outcome_can_be_taken_back(browser: Browser, shelf: Shelf) -> None:
    token = await browser.token("/d/D-0187")
    async with browser.post("/d/D-0187/undo", data={"token": token}) as answer:
        assert "Taken back." in await answer.text()
    assert shelf.calls("undo")[-1][0][2] == "D-0187"


async def test_an_answer_goes_into_the_incident_by_name(browser: Browser, shelf: Shelf) -> None:
    token = await browser.token("/d/D-0187")
    for data, expected in (
        ({"question": "failing_rank", "answer": " rank\n3 "}, ("answer", "failing_rank=rank 3")),
        ({"question": "workload", "answer": "", "choice": "serving"}, ("paste", "serving")),
        ({"answer": "", "unknown": "yes"}, ("answer", "gpu_inventory=unknown")),
        ({"answer": "pid, name\n88123, python"}, ("paste", "pid, name\n88123, python")),
        ({"question": "engine_config", "answer": "vllm serve acme/heron"}, ("paste", "vllm serve acme/heron")),
    ):
        async with browser.post(
            "/d/D-0187/answer", data={"token": token, "question": "gpu_inventory", **data}, allow_redirects=False
        ) as answer:
            assert answer.status == 303
        assert (given(shelf)[0].kind, given(shelf)[0].text) == expected
        assert shelf.calls("diagnose")[-1][1] == {"into": "D-0187"}


async def test_an_empty_answer_is_refused(browser: Browser, shelf: Shelf) -> None:
    token = await browser.token("/d/D-0187")
    async with browser.post("/d/D-0187/answer", data={"token": token, "question": "gpu_inventory", "answer": " "}) as answer:
        assert answer.status == 400
        assert "The answer is empty" in await answer.text()
    assert not shelf.calls("diagnose")


async def test_nothing_is_added_to_an_incident_that_may_not_be_seen(browser: Browser, shelf: Shelf) -> None:
    token = await browser.token()
    for what in ("evidence", "answer", "outcome", "undo", "forget"):
        data = {"token": token, "paste": LOG, "question": "first_error", "answer": "x", "result": "fixed", "sure": "yes"}
        async with browser.post(f"/d/D-0404/{what}", data=data, allow_redirects=False) as answer:
            assert answer.status == 404, what
    assert {name for name, _, _ in shelf.asked} <= {"history", "show"}


async def test_erasing_asks_first(browser: Browser, shelf: Shelf) -> None:
    token = await browser.token("/d/D-0187")
    assert (await browser.post("/d/D-0187/forget", data={"token": token})).status == 400
    assert not shelf.calls("forget")
    async with browser.post("/d/D-0187/forget", data={"token": token, "sure": "yes"}) as answer:
        assert "D-0187 was erased." in await answer.text()


async def test_a_failure_of_the_bot_is_a_sentence_with_a_mark_and_no_traceback(
    serve: Serve, shelf: Shelf, caplog: pytest.LogCaptureFixture
) -> None:
    shelf.found = {}
    async with (await serve()).get("/") as answer:
        text = await answer.text()
        assert answer.status == 500
    mark = caplog.records[-1].getMessage().rsplit(" ", 1)[1]
    assert mark in text
    assert "Traceback" not in text
    assert "UndefinedError" not in text


async def test_a_use_case_that_refuses_is_quoted(serve: Serve, shelf: Shelf) -> None:
    async def refuses(*args: object, **named: object) -> object:
        raise Unusable("That is a recipe for soup, not a log.")

    browser = await serve(asks=replace(shelf.asks(), diagnose=refuses))
    async with browser.post("/diagnose", data={"token": await browser.token(), "paste": LOG}) as answer:
        assert answer.status == 400
        assert "recipe for soup" in await answer.text()


async def test_a_database_that_fails_is_a_sentence(serve: Serve, shelf: Shelf) -> None:
    async def fails(*args: object, **named: object) -> object:
        raise StoreError("The database is locked by another process: /data/oombot.db. Close it, or wait, and try again.")

    async with (await serve(asks=replace(shelf.asks(), history=fails))).get("/") as answer:
        assert answer.status == 503
        assert "locked by another process" in await answer.text()


async def test_a_compressed_log_is_read(browser: Browser, shelf: Shelf) -> None:
    data = multipart(await browser.token(), ("file", gzip.compress(LOG.encode()), "server.log.gz"))
    async with browser.post("/diagnose", data=data, allow_redirects=False) as answer:
        assert answer.status == 303
    assert (given(shelf)[0].text, given(shelf)[0].name) == (LOG, "server.log")


async def test_every_log_of_a_zip_is_read_and_a_broken_one_is_named(browser: Browser, shelf: Shelf) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("rank0.log", "zero\n")
        archive.writestr("rank1.log", "one\n")
    async with browser.post("/diagnose", data=multipart(await browser.token(), ("file", packed.getvalue(), "logs.zip"))):
        pass
    assert [(one.name, one.text) for one in given(shelf)] == [("rank0.log", "zero\n"), ("rank1.log", "one\n")]
    async with browser.post("/diagnose", data=multipart(await browser.token(), ("file", packed.getvalue()[:60], "half.zip"))) as answer:
        assert answer.status == 400
        assert "half.zip cannot be read" in await answer.text()


@pytest.mark.parametrize("where", ["/diagnose", "/d/D-0187/evidence"])
async def test_what_was_left_out_of_an_archive_is_said_on_the_page_that_follows(browser: Browser, shelf: Shelf, where: str) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for number in range(51):
            archive.writestr(f"rank{number:02d}.log", "torch.OutOfMemoryError\n" if number == 50 else f"{number}\n")
    async with browser.post(where, data=multipart(await browser.token("/d/D-0187"), ("file", packed.getvalue(), "logs.zip"))) as answer:
        assert answer.status == 200
        assert "logs.zip holds 51 text files; 50 were read, those that hold an error first." in await answer.text()


async def test_a_gzip_file_that_was_cut_short_says_so_also_when_the_diagnosis_was_not_kept(browser: Browser, shelf: Shelf) -> None:
    shelf.diagnosis["id"] = None
    shelf.warning = "The database is locked."
    half = gzip.compress("\n".join(str(number**5) for number in range(9_000)).encode())[:-2_000]
    async with browser.post("/diagnose", data=multipart(await browser.token(), ("file", half, "server.log.gz"))) as answer:
        text = await answer.text()
    assert "The database is locked." in text
    assert "server.log.gz was cut short: only its beginning could be read." in text


@pytest.fixture(params=["thread", "process"])
async def aside(request: pytest.FixtureRequest) -> AsyncIterator[Any]:
    if request.param == "thread":
        yield None
        return
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield partial(asyncio.get_running_loop().run_in_executor, pool)


async def test_of_a_very_large_log_the_telling_lines_are_kept_with_their_numbers(serve: Serve, shelf: Shelf, aside: Any) -> None:
    browser = await serve(aside=aside)
    noise = "INFO 11-18 09:12:41 [launcher.py:46] Route: /ping, Methods: GET\n"
    large = noise * 70_000 + LOG + noise * 30_000
    async with browser.post("/diagnose", data=multipart(await browser.token(), ("file", io.BytesIO(large.encode()), "large.log"))):
        pass
    kept = given(shelf)[0]
    assert kept.truncated
    assert len(kept.text or "") < 2**20
    assert LOG.strip() in (kept.text or "")
    shelf.incident = documents.incident(contributions=[{"kind": "file", "name": "large.log", "text": kept.text, "truncated": True}])
    text = await browser.text("/d/D-0187/log/1")
    assert f'<li id="L70001"><a class="n" href="#L70001" aria-label="Line 70001">70001</a><code>{LOG.strip()}</code>' in text
    assert "lines not kept" in text


async def test_the_same_form_sent_several_times_is_one_incident(browser: Browser, shelf: Shelf) -> None:
    text = await browser.text("/")
    found = [re.search(rf'name="{name}" value="([^"]+)"', text) for name in ("token", "key")]
    data = {name: match[1] for name, match in zip(("token", "key"), found, strict=True) if match} | {"paste": LOG}
    assert len(data) == 3

    async def send(**changed: str) -> str:
        async with browser.post("/diagnose", data={**data, **changed}, allow_redirects=False) as answer:
            return answer.headers["Location"]

    assert len(set(await asyncio.gather(send(), send(), send()))) == 1
    await send()
    assert len(shelf.calls("diagnose")) == 1
    await send(paste=f"{LOG}and more")
    await send(key="of another form")
    assert len(shelf.calls("diagnose")) == 3


async def test_a_form_without_a_key_is_one_only_while_it_is_read(serve: Serve, shelf: Shelf) -> None:
    begun, go_on = 0, asyncio.Event()

    async def slowly(*named: Any, **options: Any) -> Reply:
        nonlocal begun
        begun += 1
        await go_on.wait()
        return Reply("diagnosis", shelf.diagnosis)

    browser = await serve(asks=replace(shelf.asks(), diagnose=slowly))
    data = {"token": await browser.token(), "paste": LOG}
    both = [asyncio.create_task(browser.post("/diagnose", data=data, allow_redirects=False)) for _ in range(2)]
    await asyncio.sleep(0.2)
    go_on.set()
    assert [(await one).status for one in both] == [303, 303]
    assert begun == 1
    async with browser.post("/diagnose", data=data, allow_redirects=False):
        assert begun == 2


async def test_a_form_that_failed_may_be_sent_again(serve: Serve, shelf: Shelf) -> None:
    tried = 0

    async def refuses(*named: Any, **options: Any) -> Reply:
        nonlocal tried
        tried += 1
        raise Unusable("There is nothing to diagnose.")

    browser = await serve(asks=replace(shelf.asks(), diagnose=refuses))
    data = {"token": await browser.token(), "paste": LOG, "key": "one"}
    for _ in range(2):
        async with browser.post("/diagnose", data=data) as answer:
            assert answer.status == 400
    assert tried == 2
