"""The same log again: a link where everyone may see it, a diagnosis where not; and no more than so many within an hour."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from bot.slack.allowance import used_up
from bot.slack.inbox import Arrival
from bot.slack.outbox import Place
from bot.slack.room import Job
from bot.usecases.desk import Desk
from tests.fakeslack import Person
from tests.slack import material
from tests.slack.material import CRASH, NO_RANK
from tests.slack.world import World, words

SAME = "This is the same log as "


async def told(world: World, *, by: Person | None = None, channel: Any = None) -> tuple[str, dict[str, Any]]:
    """The same log once more, and its answer."""
    channel = channel or world.channel
    ts = await (by or world.bob).mention(channel, CRASH)
    answer = await world.answer(channel, ts)
    await world.quiet()
    return ts, answer


async def test_the_same_log_in_another_thread_is_answered_with_a_link(world: World) -> None:
    async with world.bot():
        first, answer = await told(world, by=world.ann)
        assert SAME not in words(answer)
        _, again = await told(world)
        assert again["text"].startswith("This is the same log as D-0001, just now: rank 3, graph capture. https://")
        assert f"/archives/{world.channel.id}/p{answer['ts'].replace('.', '')}" in words(again)
        assert (await world.store.state())["incidents"] == 1
        assert first != again["thread_ts"]


async def test_a_button_diagnoses_it_anew_in_the_same_message(world: World) -> None:
    async with world.bot():
        await told(world, by=world.ann)
        ts, again = await told(world)
        await world.ann.click(world.channel, again, "anew")
        await world.ann.click(world.channel, again, "anew")
        anew = await world.answer(world.channel, ts, lambda said: "Rank 3 of 4 ran out of memory" in said)
        await world.quiet()
        assert anew["ts"] == again["ts"]
        kept = await world.store.load(world.team.id, "D-0002")
        assert kept is not None
        assert [(c.text, c.author, c.message) for c in kept.contributions] == [(CRASH.strip(), world.bob.id, ts)]
        assert (await world.store.state())["incidents"] == 2
        await world.bob.delete(world.channel, ts)
        await world.quiet()
        gone = await world.store.load(world.team.id, "D-0002")
        assert gone is not None
        assert gone.erased


async def test_a_word_in_the_thread_diagnoses_it_anew(world: World) -> None:
    async with world.bot():
        await told(world, by=world.ann)
        ts, _ = await told(world)
        await world.bob.mention(world.channel, "please look at it again", thread=ts)
        await world.answer(world.channel, ts, lambda said: "Rank 3 of 4 ran out of memory" in said)
        assert len(world.answers(world.channel, ts)) == 1


async def test_what_was_erased_since_is_not_diagnosed_anew_but_said(world: World) -> None:
    async with world.bot():
        first, _ = await told(world, by=world.ann)
        _, again = await told(world)
        await world.ann.delete(world.channel, first)
        await world.quiet()
        await world.bob.click(world.channel, again, "anew")
        await world.until(lambda: "erased since" in str(world.bob.sees(world.channel)))
        _, third = await told(world)
        assert SAME not in words(third), "what is erased is no log to be linked to"


async def test_a_private_channels_log_is_named_nowhere_else(world: World) -> None:
    async with world.bot():
        await told(world, by=world.ann, channel=world.private)
        _, answer = await told(world, by=world.ann)
        assert SAME not in words(answer), "others read along here"
        _, again = await told(world, by=world.ann, channel=world.private)
        assert "D-0001" in again["text"] or "D-0002" in again["text"]
        assert SAME in words(again)


async def test_a_guest_is_not_led_to_a_channel_that_is_closed_to_guests(world: World) -> None:
    guest = Person(world.slack, world.team, "guest", guest=True)
    theirs = world.slack.channel(world.team, "with-guests", members=[guest.id, world.ann.id])
    async with world.bot():
        await told(world, by=world.ann)
        _, answer = await told(world, by=guest, channel=theirs)
        assert SAME not in words(answer)


async def test_another_public_channel_is_linked_to(world: World) -> None:
    other = world.slack.channel(world.team, "gpu-more", members=[world.ann.id])
    async with world.bot():
        await told(world, by=world.ann)
        _, answer = await told(world, by=world.ann, channel=other)
        assert SAME in words(answer)
        assert f"/archives/{world.channel.id}/" in words(answer)


async def test_a_direct_message_is_known_to_its_own_person_only(world: World) -> None:
    async with world.bot():
        direct = world.slack.direct(world.team, world.ann.id)
        ts = await world.ann.dm(CRASH)
        await world.answer(direct, ts)
        await world.quiet()
        _, answer = await told(world)
        assert SAME not in words(answer)
        ts = await world.ann.dm(CRASH)
        assert SAME in words(await world.answer(direct, ts))


async def test_an_edit_and_a_further_log_are_no_repetition(world: World) -> None:
    async with world.bot():
        first, _ = await told(world, by=world.ann)
        await world.ann.edit(world.channel, first, f"<@{world.team.bot_user}> {CRASH} ")
        await world.quiet()
        await world.bob.mention(world.channel, CRASH, thread=first)
        await world.quiet()
        ts = await world.bob.mention(world.channel, CRASH + "one line more\n")
        assert SAME not in words(await world.answer(world.channel, ts))
        assert all(SAME not in words(answer) for answer in world.answers(world.channel))


async def test_without_permalinks_the_incident_is_named(world: World) -> None:
    world.expected_refusals = {"unknown_method"}
    async with world.bot():
        await told(world, by=world.ann)
        world.slack.fault("chat.getPermalink", "error", value="unknown_method")
        _, again = await told(world)
        assert again["text"] == "This is the same log as D-0001, just now: rank 3, graph capture."


async def test_an_hour_later_it_is_diagnosed_again(world: World) -> None:
    late = timedelta()
    desk = Desk(world.settings(), SimpleNamespace, material.judge, lambda: datetime.now(UTC) + late)  # type: ignore[arg-type]
    async with world.bot(desk=desk):
        await told(world, by=world.ann)
        late = timedelta(minutes=59)
        assert "59 minutes ago" in words((await told(world))[1])
        late = timedelta(minutes=62)
        assert SAME not in words((await told(world))[1])


@pytest.mark.parametrize("whose", ["person", "channel"])
async def test_what_is_beyond_the_hours_measure_is_refused_to_its_author_alone_with_the_time(world: World, whose: str) -> None:
    async with world.bot(world.settings(**{f"diagnoses_per_{whose}": 2})):
        speaker = [world.ann, world.ann, world.ann] if whose == "person" else [world.ann, world.bob, world.bob]
        for number in range(2):
            ts = await speaker[number].mention(world.channel, f"{NO_RANK} {number}")
            await world.answer(world.channel, ts)
            await world.quiet()
        third = await speaker[2].mention(world.channel, f"{NO_RANK} 3")
        said = (await world.until(lambda: speaker[2].sees(world.channel)))[-1]["text"]
        start = "You have" if whose == "person" else "This channel has"
        assert said == f"{start} had 2 diagnoses within the hour, which is all I give. This one was not read: send it again in 60 minutes."
        await world.quiet()
        assert world.answers(world.channel, third) == []
        await world.ann.say(world.channel, "rank 3", thread=ts)
        await world.answer(world.channel, ts, lambda shown: "Rank 3 ran out" in shown)


async def test_what_was_refused_before_a_crash_is_refused_after_it_too(http_world: World) -> None:
    world = http_world
    async with world.bot(world.settings(diagnoses_per_person=1)) as door:
        room, place = door.room, Place(world.channel.id, "1.1")
        await world.answer(world.channel, await world.ann.mention(world.channel, NO_RANK))
        await world.quiet()
        who = await room.installs.of(None, world.team.id)
        assert who is not None
        second, third = (
            Job(who, Arrival("message", world.team.id, None, world.channel.id, "1.1", key, {"user": world.ann.id}))
            for key in ("message:2", "message:3")
        )
        said = await used_up(room, second, place)
        assert said is not None
        assert said.startswith("You have had 1 diagnosis within the hour")
        assert await used_up(room, replace(second, attempt=2), place) == said
        assert await used_up(room, replace(third, attempt=2), place) is None, "what an earlier try let in stays let in"


async def test_another_person_and_another_channel_are_not_held_back(world: World) -> None:
    async with world.bot(world.settings(diagnoses_per_person=1, diagnoses_per_channel=2)):
        for who, channel in ((world.ann, world.channel), (world.bob, world.channel)):
            ts = await who.mention(channel, f"{NO_RANK} {who.name}")
            await world.answer(channel, ts)
            await world.quiet()
        ts = await world.ann.mention(world.private, f"{NO_RANK} once more")
        await world.until(lambda: world.ann.sees(world.private))
        assert world.answers(world.private, ts) == []


async def test_nought_is_no_measure(world: World) -> None:
    async with world.bot(world.settings(diagnoses_per_person=0, diagnoses_per_channel=0)):
        for number in range(3):
            ts = await world.ann.mention(world.channel, f"{NO_RANK} {number}")
            await world.answer(world.channel, ts)


@pytest.mark.parametrize("way", ["mention", "direct", "thread", "shortcut", "form", "called into a thread"])
async def test_beyond_the_measure_no_file_is_fetched(world: World, way: str) -> None:
    async with world.bot(world.settings(diagnoses_per_person=1)):
        root = await world.ann.mention(world.channel, NO_RANK)
        await world.answer(world.channel, root)
        await world.quiet()
        log = world.ann.file("server.log", CRASH.encode())
        if way == "mention":
            await world.ann.mention(world.channel, "please", files=[log])
        elif way == "direct":
            await world.ann.dm("please", files=[log])
        elif way == "thread":
            await world.ann.say(world.channel, "here it is", thread=root, files=[log])
        elif way == "shortcut":
            message = world.channel.message(await world.ann.say(world.channel, "crashed", files=[log]))
            assert message is not None
            await world.ann.shortcut(world.channel, message)
        elif way == "form":
            await world.ann.global_shortcut()
            await world.ann.submit(await world.until(lambda: world.slack.views and world.ann.view()), {}, files=[log])
        else:
            other = await world.ann.say(world.channel, "crashed", files=[log])
            await world.ann.mention(world.channel, "look", thread=other)
        direct = world.slack.direct(world.team, world.ann.id)
        views = lambda: [view.body for view in world.slack.views.values()]  # noqa: E731
        await world.until(lambda: "You have had 1 diagnosis within" in str([world.ann.sees(world.channel), world.answers(direct), views()]))
        await world.quiet()
        assert world.slack.called("files.info") == []
        assert (await world.store.state())["incidents"] == 1


async def test_in_a_watched_channel_only_words_on_memory_are_told_of_the_measure(world: World) -> None:
    async with world.bot(world.settings(diagnoses_per_channel=1)):
        await world.ann.slash(world.channel, "watch")
        root = await world.ann.mention(world.channel, NO_RANK)
        await world.answer(world.channel, root)
        await world.quiet()
        seen = len(world.bob.sees(world.channel))
        await world.bob.say(world.channel, "the menu", files=[world.bob.file("menu.txt", b"pizza")])
        await world.quiet()
        assert len(world.bob.sees(world.channel)) == seen
        await world.bob.say(world.channel, CRASH)
        await world.until(lambda: "This channel has had 1 diagnosis within" in str(world.bob.sees(world.channel)))
        assert world.slack.called("files.info") == []


async def test_a_try_after_a_failure_is_not_held_back_by_what_it_kept_before(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.slack.seen.SETTLES", 0.5)
    async with world.bot(world.settings(diagnoses_per_person=1)):
        world.slack.fault("chat.postMessage", "error", value="an_error_of_tomorrow")
        ts = await world.ann.mention(world.channel, CRASH)
        await world.answer(world.channel, ts, lambda said: "Rank 3 of 4" in said)
        await world.quiet()
        assert world.ann.sees(world.channel) == []
        assert (await world.store.state())["incidents"] == 1


async def alone(world: World, channel: Any, text: str) -> dict[str, Any]:
    """The shortcut on a message where the bot is no member, and what the asker is shown."""
    before = len(world.ann.sees(channel))
    message = channel.message(await world.ann.say(channel, text))
    await world.ann.shortcut(channel, message)
    shown: dict[str, Any] = (await world.until(lambda: world.ann.sees(channel)[before:]))[0]
    await world.quiet()
    return shown


async def test_for_the_asker_alone_a_log_that_is_known_is_named_and_diagnosed_anew_on_request(world: World) -> None:
    world.expected_refusals = {"channel_not_found", "not_in_channel"}
    elsewhere = world.slack.channel(world.team, "elsewhere", private=True, members=[world.ann.id], with_bot=False)
    async with world.bot():
        assert "Rank 3 of 4" in words(await alone(world, elsewhere, CRASH))
        again = await alone(world, elsewhere, CRASH)
        assert SAME + "D-0001" in again["text"]
        assert (await world.store.state())["incidents"] == 1
        await world.ann.click(elsewhere, again, "anew")
        await world.until(lambda: "D-0002" in words(world.ann.sees(elsewhere)[-1]))
        assert "Rank 3 of 4" in words(world.ann.sees(elsewhere)[-1])


async def test_for_the_asker_alone_too_the_hours_measure_holds(world: World) -> None:
    world.expected_refusals = {"channel_not_found", "not_in_channel"}
    elsewhere = world.slack.channel(world.team, "elsewhere", private=True, members=[world.ann.id], with_bot=False)
    async with world.bot(world.settings(diagnoses_per_person=1)):
        await alone(world, elsewhere, CRASH)
        message = elsewhere.message(await world.ann.say(elsewhere, NO_RANK))
        await world.ann.shortcut(elsewhere, message)
        await world.until(lambda: any("You have had 1 diagnosis within" in str(view.body) for view in world.slack.views.values()))
        await world.quiet()
        assert (await world.store.state())["incidents"] == 1


async def test_an_outcome_may_be_clicked_where_the_bot_may_not_write(world: World) -> None:
    world.expected_refusals = {"channel_not_found", "not_in_channel"}
    elsewhere = world.slack.channel(world.team, "elsewhere", private=True, members=[world.ann.id], with_bot=False)
    async with world.bot():
        shown = await alone(world, elsewhere, CRASH)
        await world.ann.click(elsewhere, shown, "fixed")
        await world.until(lambda: "Marked: it worked" in words(world.ann.sees(elsewhere)[-1]))


@pytest.mark.parametrize("way", ["shortcut", "called into a thread"])
async def test_a_log_counts_for_who_had_it_read_and_not_for_who_wrote_it(world: World, way: str) -> None:
    async with world.bot(world.settings(diagnoses_per_person=1)):
        ts = await world.bob.say(world.channel, f"{NO_RANK} {way}")
        if way == "shortcut":
            message = world.channel.message(ts)
            assert message is not None
            await world.ann.shortcut(world.channel, message)
        else:
            await world.ann.mention(world.channel, "look", thread=ts)
        await world.answer(world.channel, ts)
        await world.quiet()
        own = await world.bob.mention(world.channel, CRASH)
        await world.answer(world.channel, own)
        await world.quiet()
        await world.ann.mention(world.channel, f"{NO_RANK} once more")
        await world.until(lambda: "You have had 1 diagnosis within" in str(world.ann.sees(world.channel)))
