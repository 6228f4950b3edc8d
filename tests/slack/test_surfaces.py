"""Paste, snippet, file, edit, delete, in a channel, a thread, a direct message and a private channel: one reply, in the right place."""

import asyncio
import json
import time

import pytest

from bot.domain.incident import Contribution, Origin
from bot.slack.surfaces.home import turned
from bot.usecases.desk import Viewer
from bot.usecases.forget import forget
from bot.usecases.settle import settle
from bot.usecases.show_anew import show_anew
from tests.fakeslack.state import Channel
from tests.slack import material
from tests.slack.material import CRASH, NO_RANK
from tests.slack.world import World, words

PLACES = ("channel", "thread", "direct", "private")


async def _place(world: World, where: str) -> tuple[Channel, str | None]:
    channel = {"direct": world.slack.direct(world.team, world.ann.id), "private": world.private}.get(where, world.channel)
    root = await world.bob.say(channel, "it broke again") if where == "thread" else None
    return channel, root


async def _send(world: World, channel: Channel, root: str | None, how: str) -> str:
    files = None
    text = CRASH
    if how != "paste":
        text = "have a look"
        files = [
            world.ann.file(
                "untitled" if how == "snippet" else "server.log", CRASH.encode(), mode="snippet" if how == "snippet" else "hosted"
            )
        ]
    if channel.kind == "im":
        return await world.ann.dm(text, thread=root, files=files)
    return await world.ann.mention(channel, text, thread=root, files=files)


@pytest.mark.parametrize("how", ["paste", "snippet", "file"])
@pytest.mark.parametrize("where", PLACES)
async def test_one_reply_in_the_right_place(world: World, where: str, how: str) -> None:
    async with world.bot():
        channel, root = await _place(world, where)
        ts = await _send(world, channel, root, how)
        answer = await world.answer(channel, root or ts)
        await world.quiet()
        assert "Rank 3 of 4" in words(answer)
        assert len(world.slack.said_by_bot(world.team)) == 1
        assert not any(call.args.get("reply_broadcast") for call in world.slack.calls)


@pytest.mark.parametrize("where", PLACES)
async def test_an_edit_is_judged_again_in_the_same_message(world: World, where: str) -> None:
    async with world.bot():
        channel, root = await _place(world, where)
        text = NO_RANK if channel.kind == "im" else f"<@{world.team.bot_user}> {NO_RANK}"
        ts = await world.ann.say(channel, text, thread=root)
        asked = await world.answer(channel, root or ts, lambda said: "Which rank" in said)
        await world.ann.edit(channel, ts, text + "\n" + CRASH)
        answer = await world.answer(channel, root or ts, lambda said: "Rank 3 of 4" in said)
        assert answer["ts"] == asked["ts"]
        await world.quiet()
        assert len(world.answers(channel)) == 1
        incident = await world.store.load(world.team.id, "D-0001")
        assert incident is not None
        assert [c.text is None for c in incident.contributions] == [True, False], "the old words are erased, the new ones kept"


async def test_an_unfurl_of_a_link_is_no_edit(world: World) -> None:
    async with world.bot():
        ts = await world.ann.mention(world.channel, CRASH)
        await world.answer(world.channel, ts)
        await world.quiet()
        before = sum(world.slack.edits.values())
        message = world.channel.message(ts)
        assert message is not None
        task = world.slack.emit_edit(world.team, world.channel, dict(message), {**message, "attachments": [{"title": "preview"}]})
        assert task is not None
        await task
        await world.quiet()
        assert sum(world.slack.edits.values()) == before


@pytest.mark.parametrize("where", PLACES)
async def test_deleting_the_message_erases_its_evidence_and_the_lines_quoted_from_it(world: World, where: str) -> None:
    async with world.bot():
        channel, root = await _place(world, where)
        ts = await _send(world, channel, root, "paste")
        await world.answer(channel, root or ts, lambda said: "Tried to allocate 64.00 MiB" in said)
        await world.quiet()
        await world.ann.delete(channel, ts)
        await world.quiet()
        incident = await world.store.load(world.team.id, "D-0001")
        assert incident is not None
        assert all(c.text is None for c in incident.contributions)
        assert "Tried to allocate" not in words(world.answers(channel)[0])


async def test_deleting_the_file_erases_its_evidence(world: World) -> None:
    async with world.bot():
        log = world.ann.file("server.log", CRASH.encode())
        ts = await world.ann.mention(world.channel, "please", files=[log])
        await world.answer(world.channel, ts)
        await world.quiet()
        await world.ann.delete_file(log)
        await world.quiet()
        incident = await world.store.load(world.team.id, "D-0001")
        assert incident is not None
        assert [c.text for c in incident.contributions] == [None]


async def test_a_second_paste_updates_the_message_and_says_so(world: World) -> None:
    async with world.bot():
        ts = await world.ann.mention(world.channel, NO_RANK)
        first = await world.answer(world.channel, ts)
        await world.bob.say(world.channel, CRASH, thread=ts)
        answer = await world.answer(world.channel, ts, lambda said: "Updated with your reply" in said)
        assert answer["ts"] == first["ts"]
        assert "Rank 3 of 4" in words(answer)


async def test_an_answer_outside_the_thread_of_a_direct_message_belongs_to_the_newest_incident(world: World) -> None:
    async with world.bot():
        ts = await world.ann.dm(NO_RANK)
        direct = world.slack.direct(world.team, world.ann.id)
        await world.answer(direct, ts)
        await world.ann.dm("rank 3")
        await world.answer(direct, ts, lambda said: "Rank 3 ran out" in said)
        assert len(world.answers(direct)) == 1


async def test_an_unwatched_channel_is_left_alone_and_a_watched_one_answers_evidence_only(world: World) -> None:
    async with world.bot():
        ack = await world.ann.slash(world.channel, "watch")
        assert ack.status == 200
        await world.until(lambda: "Watching" in words(world.ann.sees(world.channel)[-1]) if world.ann.sees(world.channel) else False)
        await world.bob.say(world.channel, "shall we order pizza?")
        await world.bob.say(world.channel, "the OOM killer talk is at 3")
        ts = await world.bob.say(world.channel, CRASH)
        await world.answer(world.channel, ts)
        await world.quiet()
        assert len(world.answers(world.channel)) == 1
        await world.ann.slash(world.channel, "watch off")
        await world.until(lambda: len(world.ann.sees(world.channel)) == 2)
        await world.bob.say(world.channel, CRASH)
        await world.quiet()
        assert len(world.answers(world.channel)) == 1


async def test_another_bots_alert_in_a_watched_channel_is_answered_once_in_its_thread(world: World) -> None:
    async with world.bot():
        await world.ann.slash(world.channel, "watch")
        await world.until(lambda: world.ann.sees(world.channel))
        alert = {"bot_id": "BALERT", "subtype": "bot_message", "attachments": [{"title": "Pod crashed", "text": CRASH}]}
        ts = await world.bob.say(world.channel, "", **alert)
        await world.answer(world.channel, ts)
        await world.bob.say(world.channel, "", thread=ts, **alert)
        await world.quiet()
        assert len(world.answers(world.channel)) == 1
        incident = await world.store.load(world.team.id, "D-0001")
        assert incident is not None
        assert len(incident.contributions) == 1


async def test_the_message_shortcut_answers_in_the_thread_and_shows_at_once_that_it_reads(world: World) -> None:
    async with world.bot():
        ts = await world.bob.say(world.channel, CRASH)
        message = world.channel.message(ts)
        assert message is not None
        ack = await world.ann.shortcut(world.channel, message)
        assert (ack.status, ack.body) == (200, None)
        assert ack.seconds < 0.5
        answer = await world.answer(world.channel, ts)
        assert "Rank 3 of 4" in words(answer)
        await world.until(lambda: "Answered in the thread: D-0001" in str(world.ann.view().body))


async def test_the_message_shortcut_where_the_bot_is_not_a_member_answers_the_asker_alone(world: World) -> None:
    world.expected_refusals = {"channel_not_found", "not_in_channel"}
    elsewhere = world.slack.channel(world.team, "elsewhere", private=True, members=[world.ann.id], with_bot=False)
    async with world.bot():
        ts = await world.ann.say(elsewhere, CRASH)
        message = elsewhere.message(ts)
        assert message is not None
        await world.ann.shortcut(elsewhere, message)
        shown = await world.until(lambda: world.ann.sees(elsewhere))
        assert "Rank 3 of 4" in words(shown[0])
        await world.quiet()
        incident = await world.store.load(world.team.id, "D-0001")
        assert incident is not None
        assert incident.origin.private


async def test_the_global_shortcut_takes_a_file_and_answers_in_a_direct_message(world: World) -> None:
    async with world.bot():
        await world.ann.global_shortcut()
        view = await world.until(lambda: world.ann.view() if world.slack.views else None)
        ack = await world.ann.submit(view, {})
        assert ack.body["response_action"] == "errors"
        log = world.ann.file("server.log", CRASH.encode())
        ack = await world.ann.submit(view, {}, files=[log])
        assert ack.body["response_action"] == "update"
        direct = world.slack.direct(world.team, world.ann.id)
        await world.until(lambda: len(world.answers(direct)) == 2)
        root, answer = world.answers(direct)
        assert answer["thread_ts"] == root["ts"]
        assert "Rank 3 of 4" in words(answer)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("help", "Paste or upload"),
        ("", "Paste or upload"),
        ("explain fp8 kv", "halve the KV payload"),
        ("stats", "What was seen"),
        ("settings", "OOMBOT_RETENTION_DAYS: 90"),
        ("show D-9999", "no incident D-9999"),
        ("show", "Which one?"),
        ("size llama-70b-fp8 gpu=H100 tp=4", "562,736"),
        ("history", "1 incident"),
        ("history pizza", "0 incidents"),
        ("show D-0001", "Rank 3 of 4"),
        ("D-1", "Rank 3 of 4"),
        ("banana split", "I do not know “banana”."),
        ("histroy", "Did you mean “history”?"),
        ("help banana", "Paste or upload"),
    ],
)
async def test_every_verb_by_slash_command_is_acknowledged_at_once_and_answered_to_the_asker_alone(
    world: World, said: str, expected: str
) -> None:
    async with world.bot():
        ts = await world.ann.mention(world.channel, CRASH)
        await world.answer(world.channel, ts)
        await world.quiet()
        ack = await world.ann.slash(world.channel, said)
        assert ack.status == 200
        assert ack.body["text"]
        assert ack.body["response_type"] == "ephemeral"
        assert ack.seconds < 0.5
        shown = await world.until(lambda: world.ann.sees(world.channel), what=said)
        assert expected in words(shown[-1])
        assert world.bob.sees(world.channel) == []
        assert len(world.answers(world.channel)) == 1


@pytest.mark.parametrize(
    ("said", "expected", "shared"),
    [
        ("help", "Paste or upload", False),
        ("explain fp8 kv", "Weights of rank 3 in D-0001", True),
        ("stats", "What was seen", False),
        ("history", "1 incident", False),
        ("show", "Rank 3 of 4", False),
        ("size llama-70b-fp8 gpu=H100", "562,736", True),
        ("outcome D-0001 fixed", "Noted", False),
        ("forget D-0001", "is erased", False),
    ],
)
async def test_the_same_verbs_by_mention_in_the_thread(world: World, said: str, expected: str, shared: bool) -> None:
    async with world.bot():
        ts = await world.ann.mention(world.channel, CRASH)
        await world.answer(world.channel, ts)
        await world.quiet()
        await world.ann.mention(world.channel, said, thread=ts)
        await world.quiet()
        if shared:
            assert expected in words(world.answers(world.channel, ts)[1])
        else:
            shown = world.ann.sees(world.channel)
            assert expected in words(shown[-1])
            assert shown[-1]["thread_ts"] == ts
            assert len(world.answers(world.channel)) == 1


async def test_the_sizing_form_answers_the_asker_who_shares_it_or_changes_its_inputs(world: World) -> None:
    async with world.bot():
        ack = await world.ann.slash(world.channel, "size")
        assert ack.body["text"]
        view = await world.until(lambda: world.ann.view() if world.slack.views else None)
        ack = await world.ann.submit(view, {"model": "llama-70b-fp8", "gpu": "H100", "tp": "lots", "ctx": "long"})
        assert set(ack.body["errors"]) == {"tp", "ctx"}
        ack = await world.ann.submit(view, {"model": "llama-70b-fp8", "gpu": "H100", "tp": "4", "ctx": "131072", "kv": "fp8"})
        assert ack.body["response_action"] == "update"
        shown = await world.until(lambda: world.ann.sees(world.channel))
        assert "It fits: llama-70b-fp8 on H100-80GB" in words(shown[-1])
        assert world.answers(world.channel) == []
        await world.ann.click(world.channel, shown[-1], "change_inputs")
        again = await world.until(lambda: view if (view := world.ann.view()).body["callback_id"] == "sizing" else None)
        filled = {block["element"]["action_id"]: block["element"].get("initial_value") for block in again.body["blocks"]}
        assert filled["model"] == "llama-70b-fp8"
        assert filled["gpu"] == "H100"
        await world.ann.click(world.channel, shown[-1], "share")
        await world.until(lambda: world.answers(world.channel))
        assert world.ann.id in words(world.answers(world.channel)[0])
        await world.until(lambda: "Shared in the channel." in words(shown[-1]))


async def test_home_shows_the_incidents_of_the_persons_channels_with_filters(world: World) -> None:
    async with world.bot():
        await world.answer(world.channel, await world.ann.mention(world.channel, CRASH))
        await world.answer(world.private, await world.ann.mention(world.private, NO_RANK))
        await world.quiet()
        await world.bob.open_home()
        home = await world.until(lambda: world.team.homes.get(world.bob.id))
        assert "D-0001" in str(home)
        assert "D-0002" not in str(home), "bob is not in the private channel"
        await world.ann.open_home()
        home = await world.until(lambda: world.team.homes.get(world.ann.id))
        assert "D-0001" in str(home)
        assert "D-0002" in str(home)
        ack = await world.ann.click_home("home_phase", option="graph_capture")
        assert ack.status == 200
        await world.until(lambda: "D-0002" not in str(world.team.homes[world.ann.id]))
        assert "D-0001" in str(world.team.homes[world.ann.id])


async def test_home_turns_pages_that_new_arrivals_do_not_move(world: World) -> None:
    async def kept(count: int) -> None:
        origin = Origin(world.team.id, channel=world.channel.id, thread="1.1")
        for _ in range(count):
            await world.store.append(origin, [Contribution("paste", CRASH)], material.certain())

    def shown() -> list[str]:
        table = next((block for block in world.team.homes[world.ann.id]["blocks"] if block["type"] == "table"), {"rows": [[]]})
        return [row[0]["text"] for row in table["rows"][1:]]

    async def turns(action: str) -> list[str]:
        before = shown()
        await world.ann.click_home(action)
        await world.until(lambda: shown() != before)
        return shown()

    async with world.bot():
        await kept(120)
        await world.ann.open_home()
        await world.until(lambda: world.team.homes.get(world.ann.id))
        first = shown()
        second = await turns("home_older")
        await kept(3)
        third = await turns("home_older")
        assert first + second + third == [f"D-{number:04d}" for number in range(120, 0, -1)]
        assert "home_older" not in str(world.team.homes[world.ann.id])
        assert await turns("home_newer") == second
        assert (await turns("home_newer"))[:3] == ["D-0123", "D-0122", "D-0121"], "the first page has the newest"
        assert "home_newer" not in str(world.team.homes[world.ann.id])


def test_the_pages_above_fit_into_the_view_however_many_there_are() -> None:
    meta: list[str] = []
    for number in range(999_999_999, 999_999_000, -1):
        meta = turned({"action": "home_older", "value": f"D-{number}", "meta": json.dumps(meta)})
    assert len(json.dumps(meta, separators=(",", ":"))) <= 3_000
    assert turned({"action": "home_phase", "value": None, "meta": json.dumps(meta)}) == []
    assert turned({"action": "home_older", "value": "D-0001", "meta": "not ours"}) == ["D-0001"]


async def test_evidence_is_put_into_the_thread_as_one_file_once(world: World) -> None:
    async with world.bot():
        ts = await world.ann.mention(world.channel, CRASH)
        answer = await world.answer(world.channel, ts)
        await world.ann.click(world.channel, answer, "evidence")
        await world.until(lambda: len(world.answers(world.channel, ts)) == 2)
        shared = world.answers(world.channel, ts)[1]
        assert next(file["name"] for file in shared["files"]) == "D-0001-evidence.txt"
        assert [file["name"] for file in shared["files"]][1] == "D-0001-budget.png"
        assert world.slack.files[shared["files"][1]["id"]].data.startswith(b"\x89PNG")
        assert b"Tried to allocate" in world.slack.files[shared["files"][0]["id"]].data
        await world.quiet()
        await world.bob.click(world.channel, answer, "evidence")
        await world.quiet()
        assert len(world.answers(world.channel, ts)) == 2
        assert "already in the thread" in words(world.bob.sees(world.channel)[-1])


async def test_the_bot_says_hello_to_the_inviter_alone(world: World) -> None:
    async with world.bot():
        event = {"type": "member_joined_channel", "user": world.team.bot_user, "channel": world.channel.id, "inviter": world.ann.id}
        await world.slack.emit(world.team, event)
        await world.until(lambda: world.ann.sees(world.channel))
        assert world.answers(world.channel) == []
        assert world.bob.sees(world.channel) == []


async def test_a_day_without_an_outcome_is_asked_about_once(world: World) -> None:
    async with world.bot() as door:
        ts = await world.ann.mention(world.channel, CRASH)
        await world.answer(world.channel, ts)
        await world.quiet()
        await door.room.reminders.look(time.time() + 3_600)
        await world.quiet()
        assert len(world.answers(world.channel, ts)) == 1, "not before a day is over"
        for _ in range(2):
            await door.room.reminders.look(time.time() + 90_000)
            await world.quiet()
        assert ["Did the suggested change help" in words(m) for m in world.answers(world.channel, ts)] == [False, True]


async def test_no_reminder_where_an_outcome_is_known(world: World) -> None:
    async with world.bot() as door:
        ts = await world.ann.mention(world.channel, CRASH)
        answer = await world.answer(world.channel, ts)
        await world.ann.click(world.channel, answer, "fixed")
        await world.quiet()
        await door.room.reminders.look(time.time() + 90_000)
        await world.quiet()
        assert len(world.answers(world.channel, ts)) == 1


async def test_a_mention_that_is_edited_to_hold_the_log_is_answered(world: World) -> None:
    async with world.bot():
        ts = await world.ann.mention(world.channel, "help, it crashed, log follows")
        await world.answer(world.channel, ts, lambda said: "Paste the log here" in said)
        await world.ann.edit(world.channel, ts, f"<@{world.team.bot_user}> {CRASH}")
        await world.answer(world.channel, ts, lambda said: "Rank 3 of 4" in said)


async def test_an_outcome_clicked_in_ones_own_view_changes_that_view_and_the_thread(world: World) -> None:
    async with world.bot():
        ts = await world.ann.mention(world.channel, CRASH)
        await world.answer(world.channel, ts)
        await world.quiet()
        await world.bob.slash(world.channel, "show D-0001")
        shown = await world.until(lambda: world.bob.sees(world.channel))
        await world.bob.click(world.channel, shown[-1], "fixed")
        await world.answer(world.channel, ts, lambda said: "Marked: it worked" in said)
        await world.until(lambda: world.bob.sees(world.channel)[-1].get("replaced"))
        assert "Marked: it worked" in words(world.bob.sees(world.channel)[-1])


async def test_a_sizing_answer_that_is_shared_twice_at_once_stands_once(world: World) -> None:
    async with world.bot():
        await world.ann.slash(world.channel, "size llama-70b-fp8 gpu=H100")
        shown = (await world.until(lambda: world.ann.sees(world.channel)))[-1]
        await asyncio.gather(*(world.ann.click(world.channel, shown, "share") for _ in range(3)))
        await world.quiet()
        assert len(world.answers(world.channel)) == 1


async def test_a_second_click_on_share_is_known_though_slack_gives_the_answer_another_name(world: World) -> None:
    async with world.bot():
        await world.ann.slash(world.channel, "size llama-70b-fp8 gpu=H100")
        shown = (await world.until(lambda: world.ann.sees(world.channel)))[-1]
        first = asyncio.create_task(world.ann.click(world.channel, shown, "share"))
        await asyncio.sleep(0)
        shown["ts"] = world.slack.clock.ts()
        await asyncio.gather(first, world.ann.click(world.channel, shown, "share"))
        await world.quiet()
        assert len(world.answers(world.channel)) == 1


async def test_a_button_that_nobody_knows_any_more_says_so(world: World) -> None:
    async with world.bot():
        answer = await world.answer(world.channel, await world.ann.mention(world.channel, CRASH))
        await world.quiet()
        old = {"blocks": [{"type": "actions", "elements": [{"type": "button", "action_id": "accept_v0", "value": "D-0001"}]}]}
        await world.ann.click(world.channel, answer | old, "accept_v0")
        shown = await world.until(lambda: world.ann.sees(world.channel))
        assert "another version" in shown[0]["text"]


async def test_other_words_behind_watch_ask_whether_it_is_on(world: World) -> None:
    async with world.bot():
        await world.ann.slash(world.channel, "watch status")
        shown = await world.until(lambda: world.ann.sees(world.channel))
        assert "not watched" in shown[-1]["text"]
        assert not await world.store.watched(world.team.id, world.channel.id)


async def test_a_watch_where_the_bot_hears_nothing_asks_to_be_invited(world: World) -> None:
    apart = world.slack.channel(world.team, "apart", members=[world.ann.id], with_bot=False)
    async with world.bot():
        await world.ann.slash(apart, "watch")
        shown = await world.until(lambda: world.ann.sees(apart))
        assert "Invite me" in shown[-1]["text"]


async def test_what_is_settled_and_erased_on_the_page_is_shown_in_the_thread(world: World) -> None:
    async with world.bot() as door:
        ts = await world.ann.mention(world.channel, CRASH)
        answer = await world.answer(world.channel, ts)
        await world.quiet()
        viewer = Viewer(world.team.id, world.bob.id, None, frozenset({world.channel.id}))
        await settle(door.room.desk, viewer, "D-0001", "fixed")
        await show_anew(door.room.desk, viewer, "D-0001")
        await world.until(lambda: "Undo" in words(answer))
        await forget(door.room.desk, viewer, "D-0001")
        await world.until(lambda: "is erased" in words(answer))
        await world.quiet()
        assert "Tried to allocate" not in words(answer)
        assert len(world.answers(world.channel)) == 1
