"""The weekly digest: off by default, once a week whatever happens, and only what the channel itself has seen."""

from datetime import UTC, datetime, timedelta

import pytest

from bot.slack import digests
from bot.usecases.digest import week_of
from tests.slack.material import CRASH
from tests.slack.world import World, words


@pytest.mark.parametrize(
    ("moment", "week"),
    [
        (datetime(2026, 11, 30, 7, 59, tzinfo=UTC), "2026-W48"),
        (datetime(2026, 11, 30, 8, 0, tzinfo=UTC), "2026-W49"),
        (datetime(2026, 12, 6, 23, 0, tzinfo=UTC), "2026-W49"),
        (datetime(2027, 1, 3, 12, 0, tzinfo=UTC), "2026-W53"),
    ],
)
def test_a_week_begins_on_monday_at_eight(moment: datetime, week: str) -> None:
    assert week_of(moment) == week


def posts(world: World) -> list[dict[str, object]]:
    """What stands in the public channel outside every thread."""
    return [m for m in world.answers(world.channel) if not m.get("thread_ts")]


async def test_nothing_comes_unasked_or_in_the_week_in_which_it_was_asked_for(http_world: World) -> None:
    world = http_world
    async with world.bot():
        now = datetime.now(UTC)
        assert not await digests.look(world.store, now + timedelta(days=7))
        await world.ann.slash(world.channel, "settings digest on")
        await world.until(lambda: "On Mondays" in str(world.ann.sees(world.channel)))
        assert not await digests.look(world.store, now)
        await world.ann.slash(world.channel, "settings")
        await world.until(lambda: "Weekly digest: on" in str(world.ann.sees(world.channel)))
        await world.ann.slash(world.channel, "settings digest off")
        await world.until(lambda: "No weekly digest" in str(world.ann.sees(world.channel)))
        assert not await digests.look(world.store, now + timedelta(days=7))


async def test_a_week_is_reported_once_with_the_channels_own_incidents_only(http_world: World) -> None:
    world = http_world
    async with world.bot() as door:
        for channel in (world.channel, world.private):
            ts = await world.ann.mention(channel, CRASH)
            await world.answer(channel, ts)
        await world.ann.slash(world.channel, "settings digest on")
        await world.until(lambda: "On Mondays" in str(world.ann.sees(world.channel)))
        next_week = datetime.now(UTC) + timedelta(days=7)
        assert await digests.look(world.store, next_week)
        assert not await digests.look(world.store, next_week), "another replica finds it done"
        door._workers.wake()
        await world.until(lambda: posts(world))
        await world.quiet()
        (post,) = posts(world)
        assert post["text"] == "1 incident in this channel in the last seven days."
        assert "settings digest off" in words(post)


async def test_a_week_without_incidents_is_not_mentioned(http_world: World) -> None:
    world = http_world
    async with world.bot() as door:
        await world.ann.slash(world.channel, "settings digest on")
        await world.until(lambda: "On Mondays" in str(world.ann.sees(world.channel)))
        assert await digests.look(world.store, datetime.now(UTC) + timedelta(days=7))
        door._workers.wake()
        await world.quiet()
        assert posts(world) == []
