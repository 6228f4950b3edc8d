"""Who sees what: teams, private channels, direct messages, foreign members; and what never leaves."""

import asyncio
import logging

import pytest

from bot.usecases.desk import Desk, Viewer
from bot.usecases.reply import Reply
from tests.fakeslack import Person
from tests.fakeslack.state import Channel
from tests.slack.material import CRASH, NO_RANK, PLANTED, SECRETS, size_words
from tests.slack.world import World, asks, words


async def _incident(world: World, channel: Channel, text: str = CRASH) -> str:
    ts = await world.ann.mention(channel, f"{text}(of {channel.name})\n")  # each channel met another one
    await world.answer(channel, ts)
    await world.quiet()
    return ts


async def _asks(world: World, person: Person, text: str, channel: Channel | None = None) -> str:
    place = channel or world.channel
    before = len(person.sees(place))
    await person.slash(place, text)
    shown = await world.until(lambda: person.sees(place)[before:], what=text)
    return words(shown[-1])


@pytest.mark.parametrize("verb", ["history", "show D-0001", "stats", "forget D-0001", "outcome D-0001 fixed"])
async def test_a_private_channels_incident_is_not_there_for_others(world: World, verb: str) -> None:
    async with world.bot():
        await _incident(world, world.private)
        said = await _asks(world, world.bob, verb)
        assert "Rank 3" not in said
        assert "Qwen" not in said
        assert "D-0001" not in said or "no incident D-0001" in said
        kept = await world.store.load(world.team.id, "D-0001")
        assert kept is not None
        assert not kept.erased
        assert kept.trials[0].result is None
        if verb == "history":
            assert "0 incidents" in said, "not even counted"
        assert "D-0001" in await _asks(world, world.ann, "show D-0001"), "its member sees it"


async def test_a_direct_message_is_seen_by_its_person_only(world: World) -> None:
    async with world.bot():
        ts = await world.ann.dm(CRASH)
        await world.answer(world.slack.direct(world.team, world.ann.id), ts)
        await world.quiet()
        assert "0 incidents" in await _asks(world, world.bob, "history")
        assert "1 incident" in await _asks(world, world.ann, "history")


async def test_a_person_who_left_the_private_channel_sees_its_incidents_no_longer(world: World) -> None:
    async with world.bot():
        await _incident(world, world.private)
        assert "1 incident" in await _asks(world, world.ann, "history")
        world.private.members.remove(world.ann.id)
        await asyncio.sleep(2.1)
        assert "0 incidents" in await _asks(world, world.ann, "history")


async def test_without_the_scope_for_membership_private_incidents_stay_hidden_and_it_says_so(world: World) -> None:
    world.team.scopes -= {"groups:read"}
    world.expected_refusals = {"missing_scope"}
    async with world.bot():
        await _incident(world, world.private)
        said = await _asks(world, world.ann, "history")
        assert "0 incidents" in said
        assert "private incidents hidden" in said


async def test_a_foreign_member_of_a_shared_channel_sees_that_channel_only(world: World) -> None:
    stranger = Person(world.slack, world.team, "eve", home="TFOREIGN")
    shared = world.slack.channel(world.team, "shared", members=[world.ann.id, stranger.id])
    async with world.bot():
        await _incident(world, world.channel)
        await _incident(world, shared)
        await stranger.mention(shared, "history")
        await world.quiet()
        said = words(stranger.sees(shared)[-1])
        assert "D-0002" in said
        assert "D-0001" not in said


async def test_a_guest_sees_the_channels_that_it_is_in_only(world: World) -> None:
    guest = Person(world.slack, world.team, "gil", guest=True)
    own = world.slack.channel(world.team, "project", members=[world.ann.id, guest.id])
    async with world.bot():
        await _incident(world, world.channel)
        await _incident(world, own)
        said = await _asks(world, guest, "history", own)
        assert "1 incident" in said
        assert "D-0002" in said
        assert "D-0001" not in said
        assert "D-0001" not in (await _asks(world, guest, "show D-0001", own)).replace("There is no incident D-0001", "")
        await guest.open_home()
        home = await world.until(lambda: world.team.homes.get(guest.id))
        assert "D-0002" in str(home)
        assert "D-0001" not in str(home)
        assert "D-0001" in await _asks(world, world.bob, "history", world.channel)


async def test_a_form_posts_only_where_its_sender_is(world: World) -> None:
    async with world.bot():
        await world.bob.global_shortcut()
        view = await world.until(lambda: world.bob.view() if world.slack.views else None)
        await world.bob.submit(view, {"text": CRASH, "channel": world.private.id})
        await world.until(lambda: "You are not in that channel" in str(world.bob.view().body))
        await world.quiet()
        assert world.answers(world.private) == []


async def test_people_have_something_posted_in_channels_of_their_own(http_world: World) -> None:
    world = http_world
    guest, stranger = Person(world.slack, world.team, "gil", guest=True), Person(world.slack, world.team, "eve", home="TFOREIGN")
    own = world.slack.channel(world.team, "project", private=True, members=[world.ann.id, guest.id, stranger.id])
    others = world.slack.direct(world.team, world.ann.id)
    async with world.bot() as door:
        who = await door.room.installs.of(None, world.team.id)
        assert who is not None
        channels = {"public": world.channel, "private": world.private, "own": own, "direct": others}
        may = {
            person.name: [name for name, one in channels.items() if await door.room.visibility.may_post(who, person.id, one.id)]
            for person in (world.ann, world.bob, guest)
        }
        assert may == {"ann": ["public", "private", "own", "direct"], "bob": ["public"], "gil": ["own"]}
        assert not await door.room.visibility.may_post(who, stranger.id, own.id, foreign=True)


async def test_where_slack_does_not_say_who_is_a_guest_everyone_sees_their_own_channels_only(world: World) -> None:
    world.team.scopes -= {"users:read"}
    world.expected_refusals = {"missing_scope"}
    other = world.slack.channel(world.team, "elsewhere", members=[world.ann.id])
    async with world.bot():
        await _incident(world, world.channel)
        await _incident(world, other)
        said = await _asks(world, world.bob, "history", world.channel)
        assert "D-0001" in said
        assert "D-0002" not in said
        assert "private incidents hidden" in said


async def test_a_shared_channel_is_not_shown_what_other_channels_met(world: World) -> None:
    shared = world.slack.channel(world.team, "shared", members=[world.ann.id])
    async with world.bot():
        first = await _incident(world, world.channel)
        await world.ann.click(world.channel, world.answers(world.channel, first)[0], "fixed")
        await world.quiet()
        second = await _incident(world, world.channel)
        assert "D-0001" in words(world.answers(world.channel, second)[0]), "the house sees what it met before"
        shared.shared = True
        third = await _incident(world, shared)
        assert "D-0001" not in words(world.answers(shared, third)[0])
        eve = Person(world.slack, world.team, "eve", home="TFOREIGN")
        shared.members.add(eve.id)
        await eve.mention(shared, "show D-0003", thread=third)
        await world.quiet()
        assert "D-0001" not in words(eve.sees(shared)[-1])


async def test_a_sizing_counts_what_all_its_readers_may_know_of(world: World) -> None:
    asked: list[Viewer | None] = []

    async def sized(desk: Desk, words: str, viewer: Viewer | None = None) -> Reply:
        asked.append(viewer)
        return await size_words(desk, words)

    shared = world.slack.channel(world.team, "shared", members=[world.ann.id])
    shared.shared = True
    direct = world.slack.direct(world.team, world.ann.id)
    async with world.bot(asks=asks(size_words=sized)):
        for place in (world.channel, shared, world.private):
            await _asks(world, world.ann, "size llama-3.1-8b gpu=H100", place)
        await world.ann.dm("size llama-3.1-8b gpu=H100")
        await world.until(lambda: len(asked) == 4)
    seen = [viewer.channels for viewer in asked if viewer is not None and viewer.user == world.ann.id]
    assert seen[0] == {world.channel.id, shared.id}, "the house's public channels"
    assert seen[1] == {shared.id}
    assert seen[2] == {world.channel.id, shared.id, world.private.id}
    assert seen[3] is not None
    assert {direct.id, world.private.id, world.channel.id} <= seen[3], "alone with the bot: all that she may see"


async def test_another_team_reads_nothing_of_ours(world: World) -> None:
    async with world.bot():
        await _incident(world, world.channel)
        for other in ("TOTHER", "", "local"):
            assert await world.store.load(other, "D-0001") is None


async def test_a_click_twice_counts_once(world: World) -> None:
    async with world.bot():
        ts = await _incident(world, world.channel)
        answer = world.answers(world.channel, ts)[0]
        await world.ann.click(world.channel, answer, "fixed")
        await world.bob.click(world.channel, answer, "fixed")
        await world.quiet()
        kept = await world.store.load(world.team.id, "D-0001")
        assert kept is not None
        assert [(trial.result, trial.by) for trial in kept.trials] == [("fixed", world.ann.id)]
        assert sum(c.kind == "outcome" for c in kept.contributions) == 1


async def test_same_error_clicked_twice_refutes_one_change_only(world: World) -> None:
    async with world.bot():
        ts = await _incident(world, world.channel)
        answer = world.answers(world.channel, ts)[0]
        await world.ann.click(world.channel, answer, "same")
        await world.ann.click(world.channel, answer, "same")
        await world.quiet()
        kept = await world.store.load(world.team.id, "D-0001")
        assert kept is not None
        assert [trial.result for trial in kept.trials] == ["same", None]


async def test_a_stranger_to_the_private_channel_settles_nothing(world: World) -> None:
    async with world.bot():
        ts = await _incident(world, world.private)
        answer = world.answers(world.private, ts)[0]
        await world.bob.click(world.private, answer, "fixed")
        await world.until(lambda: world.bob.sees(world.private))
        assert "not a member" in words(world.bob.sees(world.private)[-1])
        kept = await world.store.load(world.team.id, "D-0001")
        assert kept is not None
        assert kept.trials[0].result is None


async def test_a_click_of_a_foreign_member_settles_nothing_and_says_why(world: World) -> None:
    foreigner = Person(world.slack, world.team, "fay", home="TFOREIGN")
    world.channel.members.add(foreigner.id)
    world.channel.shared = True
    async with world.bot():
        ts = await _incident(world, world.channel)
        answer = world.answers(world.channel, ts)[0]
        for button in ("fixed", "evidence"):
            await foreigner.click(world.channel, answer, button)
        await world.until(lambda: len(foreigner.sees(world.channel)) == 2)
        assert {one["text"] for one in foreigner.sees(world.channel)} == {"Only members of the workspace that installed me can do this."}
        kept = await world.store.load(world.team.id, "D-0001")
        assert kept is not None
        assert [trial.result for trial in kept.trials] == [None]


async def test_a_click_from_another_team_settles_nothing(world: World) -> None:
    stranger = Person(world.slack, world.team, "eve", home="TFOREIGN")
    world.channel.members.add(stranger.id)
    async with world.bot():
        ts = await _incident(world, world.channel)
        answer = world.answers(world.channel, ts)[0]
        await stranger.click(world.channel, answer, "fixed", team="TFOREIGN")
        await stranger.click(world.channel, answer, "fixed")
        await world.quiet()
        kept = await world.store.load(world.team.id, "D-0001")
        assert kept is not None
        assert kept.trials[0].result is None


async def test_a_click_after_the_evidence_was_erased_is_still_recorded(world: World) -> None:
    async with world.bot():
        ts = await _incident(world, world.channel)
        answer = world.answers(world.channel, ts)[0]
        await _asks(world, world.ann, "forget D-0001")
        await world.quiet()
        await world.ann.click(world.channel, answer, "fixed")
        await world.quiet()
        kept = await world.store.load(world.team.id, "D-0001")
        assert kept is not None
        assert kept.trials[0].result == "fixed"
        assert "Tried to allocate" not in words(world.answers(world.channel, ts)[0])


async def test_a_click_on_what_is_not_known_is_answered(world: World) -> None:
    async with world.bot():
        ts = await _incident(world, world.channel)
        answer = world.answers(world.channel, ts)[0]
        await world.ann.click(world.channel, answer, "fixed", value="D-0999 1")
        await world.until(lambda: world.ann.sees(world.channel))
        assert "D-0999 is not known here" in words(world.ann.sees(world.channel)[-1])


async def test_planted_secrets_never_leave(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="bot")
    async with world.bot():
        text = SECRETS + CRASH
        log = world.ann.file(f"{PLANTED[0]}.log", text.encode())
        ts = await world.ann.mention(world.channel, text, files=[log])
        await world.answer(world.channel, ts)
        await world.quiet()
        await world.ann.say(world.channel, text + "again", thread=ts)
        await world.quiet()
        await world.ann.edit(world.channel, ts, f"<@{world.team.bot_user}> {text} edited")
        await world.ann.slash(world.channel, f"size {PLANTED[0]} gpu=H100")
        await world.ann.slash(world.channel, f"history {PLANTED[0]}")
        await world.ann.click(world.channel, world.answers(world.channel, ts)[0], "evidence")
        await world.ann.global_shortcut()
        view = await world.until(lambda: world.ann.view() if world.slack.views else None)
        await world.ann.submit(view, {"text": text})
        await world.quiet()
    kept = b"".join(path.read_bytes() for path in world.folder.iterdir())
    for secret in (*PLANTED, world.team.token, world.slack.signing_secret, world.slack.app_token):
        assert secret.encode() not in kept
        assert secret not in world.slack.everything_said()
        assert secret not in caplog.text


async def test_a_deleted_workspace_takes_its_evidence_along(world: World) -> None:
    async with world.bot():
        await _incident(world, world.channel, NO_RANK)
        await world.slack.emit(world.team, {"type": "app_uninstalled"})
        await world.quiet()
        assert await world.store.load(world.team.id, "D-0001") is None


async def test_an_incident_of_a_channel_that_turned_private_is_named_nowhere_else(world: World) -> None:
    was_public = world.slack.channel(world.team, "was-public", members=[world.ann.id])
    async with world.bot():
        ts = await world.ann.mention(was_public, CRASH)
        await world.answer(was_public, ts)
        await world.quiet()
        ts = await world.bob.mention(world.channel, CRASH + "one line more\n")
        assert "D-0001" in words(await world.answer(world.channel, ts)), "public: who reads here may read there"
        was_public.kind = "group"
        world.door.room.visibility.forget(was_public.id)
        await world.quiet()
        ts = await world.bob.mention(world.channel, CRASH + "two lines more\n")
        answer = await world.answer(world.channel, ts)
        assert "D-0001" not in words(answer)
        assert "D-0002" in words(answer)


@pytest.mark.parametrize("said", [True, False])
async def test_a_channel_that_turns_private_is_closed_to_others_at_once(world: World, said: bool) -> None:
    """Slack says so in the channel; where that is not heard, a few seconds later."""
    turned = world.slack.channel(world.team, "turns", members=[world.ann.id])
    async with world.bot():
        await _incident(world, turned)
        assert "1 incident" in await _asks(world, world.bob, "history")
        turned.kind = "group"
        event = {"type": "message", "subtype": "channel_convert_to_private", "channel": turned.id, "channel_type": "group"}
        if said:
            await world.slack.emit(
                world.team, event | {"user": world.ann.id, "text": "made this channel private", "ts": world.slack.clock.ts()}
            )
            await world.quiet()
        else:
            await asyncio.sleep(3.1)
        assert "0 incidents" in await _asks(world, world.bob, "history")
        assert "1 incident" in await _asks(world, world.ann, "history")
        kept = await world.store.load(world.team.id, "D-0001")
        assert kept is not None
        assert kept.origin.private is said, "its rows too, as soon as it is heard of"


@pytest.mark.parametrize("way", ["forget", "delete", "edit"])
async def test_the_evidence_file_in_the_thread_goes_with_what_it_was_taken_from(world: World, way: str) -> None:
    world.expected_refusals = {"cant_delete_file"}
    async with world.bot():
        ts = await _incident(world, world.channel)
        answer = world.answers(world.channel, ts)[0]
        await world.ann.click(world.channel, answer, "evidence")
        await world.until(lambda: len(world.answers(world.channel, ts)) == 2)
        await world.quiet()
        shared = [world.slack.files[file["id"]] for file in world.answers(world.channel, ts)[1]["files"]]
        assert [file.deleted for file in shared] == [False, False]
        await world.bob.click(world.channel, answer, "fixed")
        await world.quiet()
        assert [file.deleted for file in shared] == [False, False], "an outcome erases nothing"
        if way == "forget":
            await world.ann.slash(world.channel, "forget D-0001")
        elif way == "delete":
            await world.ann.delete(world.channel, ts)
        else:
            await world.ann.edit(world.channel, ts, f"<@{world.team.bot_user}> {CRASH}without the secret name")
        await world.until(lambda: all(file.deleted for file in shared))
        await world.quiet()


async def test_a_file_that_slack_does_not_let_go_keeps_nothing_from_being_erased(world: World) -> None:
    world.expected_refusals = {"unknown_method"}
    async with world.bot():
        ts = await _incident(world, world.channel)
        await world.ann.click(world.channel, world.answers(world.channel, ts)[0], "evidence")
        await world.until(lambda: len(world.answers(world.channel, ts)) == 2)
        await world.quiet()
        world.slack.fault("files.delete", "error", times=2, value="unknown_method")
        assert "is erased" in await _asks(world, world.ann, "forget D-0001")


@pytest.mark.parametrize("way", ["called into the thread", "known and then diagnosed anew"])
async def test_a_deleted_file_takes_its_evidence_along_however_it_came(world: World, way: str) -> None:
    async with world.bot():
        log = world.bob.file("server.log", CRASH.encode())
        if way == "called into the thread":
            root = await world.bob.say(world.channel, "it crashed", files=[log])
            await world.ann.mention(world.channel, "look at this", thread=root)
        else:
            await world.answer(world.channel, await world.ann.mention(world.channel, "", files=[world.ann.file("a.log", CRASH.encode())]))
            root = await world.bob.mention(world.channel, "", files=[log])
            again = await world.answer(world.channel, root, lambda said: "the same log" in said)
            await world.quiet()
            await world.bob.click(world.channel, again, "anew")
        await world.answer(world.channel, root, lambda said: "Rank 3 of 4" in said)
        await world.quiet()
        await world.bob.delete_file(log)
        await world.quiet()
        newest = await world.store.in_thread(world.team.id, world.channel.id, root)
        assert newest is not None
        assert [c.text for c in newest.contributions] == [None]
