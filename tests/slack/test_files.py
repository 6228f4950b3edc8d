"""Hostile and unlucky files: each gets a sentence for its author, none gets the token."""

import gzip
import io
import tracemalloc
import zipfile

import pytest
from aiohttp import web

from bot.settings import SettingsError
from bot.slack.hosts import hosts_of
from tests.fakeslack.state import File
from tests.slack.material import CRASH
from tests.slack.world import World, words


def zipped(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


REFUSED = {
    "another host": ({"data": b"x", "url": "https://files.slack.com.evil.example/F1/x"}, "not Slack's"),
    "plain http": ({"data": b"x", "url": "http://files.slack.com/F1/x"}, "not Slack's"),
    "a user in the address": ({"data": b"x", "url": "https://files.slack.com@evil.example/x"}, "not Slack's"),
    "another port": ({"data": b"x", "url": "https://files.slack.com:8443/x"}, "not Slack's"),
    "a redirect elsewhere": ({"data": b"x", "hops": ["https://evil.example/steal"]}, "not Slack's"),
    "redirects without end": ({"data": b"x", "hops": [""] * 9}, "redirected more than 3 times"),
    "a remote file": ({"data": b"x", "external": True}, "kept outside Slack"),
    "a remote file by mode": ({"data": b"x", "mode": "external"}, "kept outside Slack"),
    "a page instead of a file": ({"data": CRASH.encode(), "as_html": True}, "web page instead of"),
    "too large, as said": ({"data": b"x", "size": 30 * 2**20}, "at most 20 MiB"),
    "too large, unsaid": ({"data": b"x" * (21 * 2**20), "size": 100}, "larger than 20 MiB"),
    "cut short": ({"data": CRASH.encode(), "size": 9_999}, "where Slack says"),
    "empty": ({"data": b""}, "empty"),
    "a picture": ({"data": b"\x89PNG\r\n\x1a\n" + b"\0" * 50}, "PNG"),
    "a broken zip": ({"data": b"PK\x03\x04" + b"\1" * 40}, "cannot be read"),
    "a broken gzip": ({"data": b"\x1f\x8b" + b"\1" * 40}, "damaged"),
    "a zip of nothing": ({"data": zipped()}, "holds no text file"),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_a_file_that_is_not_read_is_explained_to_its_author(world: World, name: str) -> None:
    given, expected = REFUSED[name]
    async with world.bot():
        file = world.ann.file("server.log", **given)  # type: ignore[arg-type]
        await world.ann.mention(world.channel, "please", files=[file])
        shown = await world.until(lambda: world.ann.sees(world.channel), 20)
        assert expected in shown[0]["text"]
        await world.quiet()
        assert world.answers(world.channel) == []


@pytest.mark.parametrize("kind", ["gzip", "zip", "gzip in zip"])
async def test_a_bomb_is_stopped_before_it_fills_memory(http_world: World, kind: str) -> None:
    world = http_world
    big = gzip.compress(b"\0" * (300 * 2**20), 9)
    data = {"gzip": lambda: big, "zip": lambda: zipped(a=b"\0" * (300 * 2**20)), "gzip in zip": lambda: zipped(a=big)}[kind]()
    assert len(data) < 2**20
    async with world.bot():
        file = world.ann.file("server.log.gz", data)
        tracemalloc.start()
        try:
            await world.ann.mention(world.channel, "please", files=[file])
            shown = await world.until(lambda: world.ann.sees(world.channel), 30)
            assert tracemalloc.get_traced_memory()[1] < 280 * 2**20
        finally:
            tracemalloc.stop()
        assert "unpacks to more than 100 MiB" in shown[0]["text"]


@pytest.mark.parametrize(
    "data",
    [
        gzip.compress(CRASH.encode()), gzip.compress(b"first\n") + gzip.compress(CRASH.encode()), zipped(**{"a.log": b"hello\n", "b.log": CRASH.encode()}),
        zipped(**{"a.png": b"\x89PNG\r\n\x1a\n", "b.log": CRASH.encode()}), CRASH.encode("utf-16"), CRASH.replace("\n", "\r\n").encode(),
        b"\xfe stray \x80\n" + CRASH.encode(), gzip.compress(CRASH.encode() * 50)[:-8],
    ],
    ids=["gzip", "two gzip members", "zip", "zip with a picture", "utf-16", "crlf", "stray bytes", "gzip cut short"],
)  # fmt: skip
async def test_logs_in_every_wrapping_are_read(http_world: World, data: bytes) -> None:
    world = http_world
    async with world.bot():
        file = world.ann.file("server.log", data)
        ts = await world.ann.mention(world.channel, "please", files=[file])
        answer = await world.answer(world.channel, ts)
        assert "Rank 3 of 4" in words(answer)


async def test_a_redirect_within_slack_is_followed_with_the_token(world: World) -> None:
    async with world.bot():
        file = world.ann.file("server.log", CRASH.encode(), hops=["", ""])
        ts = await world.ann.mention(world.channel, "please", files=[file])
        assert "Rank 3 of 4" in words(await world.answer(world.channel, ts))


async def test_no_token_reaches_another_host(http_world: World) -> None:
    """Loopback is allowed in tests, so what is judged here is the rule for Slack itself."""
    hosts = hosts_of("https://slack.com/api/")
    good = ["https://files.slack.com/files-pri/T1-F1/download/x.log", "https://files-origin.slack.com/x", "https://slack-files.com/x"]
    bad = [
        "https://files.slack.com.evil.example/x", "https://evil.example/files.slack.com", "http://files.slack.com/x", "https://files.slack.com:8443/x",
        "https://u@files.slack.com/x", "https://files.slack.com\\@evil.example/x", "https://127.0.0.1/x", "http://localhost/x", "https://169.254.169.254/x",
        "file:///etc/passwd", "https://FILES.slack.com.", "", "https://[::1", "https://hooks.slack.com/x", "https://xfiles.slack.com/x",
    ]  # fmt: skip
    assert [url for url in good if not hosts.may_download(url)] == []
    assert [url for url in bad if hosts.may_download(url)] == []
    assert hosts.may_answer("https://hooks.slack.com/commands/T1/2/3")
    assert not hosts.may_answer("https://files.slack.com/x")
    for url in ("https://slack.com.evil.example/api/", "http://slack.com/api/", "https://evil.example/", "nonsense"):
        with pytest.raises(SettingsError, match="SLACK_API_URL"):
            hosts_of(url)


async def test_a_response_address_that_is_not_slacks_is_not_written_to(http_world: World) -> None:
    world = http_world
    asked: list[str] = []

    async def listen(request: web.Request) -> web.Response:
        asked.append(request.path)
        return web.Response()

    app = web.Application()
    app.router.add_route("*", "/{rest:.*}", listen)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        async with world.bot() as door:
            assert not await door.room.asides.respond("https://evil.example/x", "hello")
            assert not await door.room.asides.respond(f"ftp://127.0.0.1:{runner.addresses[0][1]}/x", "hello")
            assert asked == []
    finally:
        await runner.cleanup()


async def test_a_slow_download_ends(http_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world = http_world
    monkeypatch.setattr("bot.slack.files.MOST_SECONDS", 0.5)
    async with world.bot():
        file: File = world.ann.file("server.log", CRASH.encode(), slow=5.0)
        await world.ann.mention(world.channel, "please", files=[file])
        shown = await world.until(lambda: world.ann.sees(world.channel))
        assert "took longer" in shown[0]["text"]


async def test_a_file_and_a_refused_file_together_answer_with_the_one_that_could_be_read(http_world: World) -> None:
    world = http_world
    async with world.bot():
        good, bad = world.ann.file("good.log", CRASH.encode()), world.ann.file("bad.log", b"x", external=True)
        ts = await world.ann.mention(world.channel, "please", files=[good, bad])
        answer = await world.answer(world.channel, ts)
        assert "Rank 3 of 4" in words(answer)
        told = await world.until(lambda: world.ann.sees(world.channel))
        assert "bad.log is kept outside Slack" in words(told[0])
