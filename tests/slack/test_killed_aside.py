"""kill -9 while one person alone is told something, which nobody can look for in Slack: it is neither lost nor said twice."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from bot.slack import workers
from tests.slack.material import CRASH, SECRETS
from tests.slack.test_killed import process
from tests.slack.world import World, asks, words

LINE = "If no answer stands above"


async def _size(world: World) -> None:
    await world.ann.slash(world.channel, "size llama-70b-fp8 gpu=H100")


async def _help(world: World) -> None:
    await world.ann.slash(world.channel, "help")


async def _history(world: World) -> None:
    await world.ann.mention(world.channel, "history gpu:H100")


async def _closed(world: World) -> None:
    world.slack.fault("chat.postMessage", "error", times=99, value="restricted_action")
    await world.ann.mention(world.channel, CRASH)


async def _form(world: World) -> None:
    await world.ann.slash(world.channel, "size")
    view = await world.until(lambda: world.ann.view() if world.slack.views else None)
    await world.ann.submit(view, {"model": "llama-70b-fp8", "gpu": "H100"})


WAYS: dict[str, tuple[str, Callable[[World], Awaitable[None]], str]] = {
    "a command": ("response_url", _size, "562,736"),
    "a command answered in words": ("response_url", _help, "Paste or upload"),
    "a form": ("response_url", _form, "562,736"),
    "a mention": ("chat.postEphemeral", _history, "incident"),
    "a channel where only some may write": ("chat.postEphemeral", _closed, "Rank 3 of 4"),
}


def _shown(world: World, what: str) -> list[dict[str, Any]]:
    return [one for one in world.ann.sees(world.channel) if what in _read(one)]


def _read(one: dict[str, Any]) -> str:
    """What a person reads of it: not what lies in its button."""
    return words({**one, "blocks": [block for block in one.get("blocks") or [] if block["type"] != "actions"]})


@pytest.mark.parametrize("moment", ["slow", "late"])
@pytest.mark.parametrize("way", WAYS)
async def test_an_answer_that_may_have_been_given_is_offered_and_the_click_gives_it_in_that_place(
    world: World, way: str, moment: str
) -> None:
    """`slow`: Slack had not shown it yet; `late`: it had, and the bot did not hear of it any more."""
    method, ask, says = WAYS[way]
    world.slack.fault(method, moment, value=90.0)
    async with process(world) as bot:
        await ask(world)
        await world.until(lambda: _shown(world, says) if moment == "late" else world.slack.called(method))
        await bot.kill()
    before = len(_shown(world, says))
    assert before == (moment == "late")
    async with process(world):
        (line,) = await world.until(lambda: _shown(world, LINE))
        assert len(_shown(world, says)) == before, "not said again"
        await asyncio.gather(*(world.ann.click(world.channel, line, "show_answer") for _ in range(2)))
        await world.until(lambda: says in _read(line))
        await asyncio.sleep(1.5)
        assert len(_shown(world, says)) == before + 1
        assert _shown(world, LINE) == []


async def test_a_process_that_ends_each_time_it_offers_an_answer_does_not_offer_it_for_ever(world: World) -> None:
    for _ in range(3):
        world.slack.fault("response_url", "late", value=90.0)
    for life in range(3):
        async with process(world) as bot:
            if life == 0:
                await _help(world)
            await world.until(lambda life=life: len(world.ann.sees(world.channel)) == life + 1)
            await bot.kill()
    async with process(world):
        await asyncio.sleep(3)
        assert len(_shown(world, "Paste or upload")) == 1
        assert len(_shown(world, LINE)) == 2


async def test_a_sentence_that_may_have_been_said_says_so_the_second_time(world: World) -> None:
    world.slack.fault("chat.postEphemeral", "late", value=90.0)
    async with process(world) as bot:
        await world.ann.mention(world.channel, f"{SECRETS}{CRASH}")
        await world.until(lambda: _shown(world, "secrets hidden"))
        await bot.kill()
    async with process(world):
        await world.until(lambda: len(_shown(world, "secrets hidden")) == 2)
        await asyncio.sleep(1.5)
        first, second = [one["text"] for one in _shown(world, "secrets hidden")]
        assert second == f"Perhaps for the second time, since I was interrupted while I said it: {first}"
        assert len(world.answers(world.channel)) == 1


@pytest.mark.parametrize("method", ["response_url", "chat.postEphemeral"])
async def test_a_connection_that_is_lost_while_an_answer_is_given_leaves_one_answer_and_the_offer(world: World, method: str) -> None:
    world.slack.fault(method, "drop")
    async with world.bot():
        await (_help(world) if method == "response_url" else _history(world))
        await world.until(lambda: _shown(world, LINE))
        await world.quiet()
        assert len(world.ann.sees(world.channel)) == 2


async def test_while_slack_says_that_it_failed_nothing_was_said_and_the_answer_itself_comes(world: World) -> None:
    world.slack.fault("chat.postEphemeral", "status", times=7, value=503)
    async with world.bot():
        await _history(world)
        await world.until(lambda: world.ann.sees(world.channel))
        await world.quiet()
        assert len(_shown(world, "incident")) == 1
        assert _shown(world, LINE) == []


async def test_what_is_given_up_is_said_though_the_worker_ends_while_it_is_put_away(
    http_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = http_world

    async def broken(*given: object, **more: object) -> object:
        raise RuntimeError("broken")

    monkeypatch.setattr(workers, "TRIES", 1)
    async with world.bot(asks=asks(diagnose=broken)) as door:
        alone, ended = door.room.asides.alone, []

        async def ends_once(*given: Any, **more: Any) -> bool:
            if not ended:
                ended.append(1)
                raise asyncio.CancelledError
            return await alone(*given, **more)

        monkeypatch.setattr(door.room.asides, "alone", ends_once)
        await world.ann.mention(world.channel, CRASH)
        await world.until(lambda: _shown(world, "could not be worked on"))
        await world.quiet()
        assert len(world.ann.sees(world.channel)) == 1
