"""What Slack refuses, limits or leaves out: the person hears of it, and what can be done is done."""

import asyncio
import itertools
import json
from typing import Any

import pytest

from bot.domain.incident import Origin
from tests.fakeslack import Person
from tests.fakeslack.state import Channel, Team
from tests.slack.material import CRASH, NO_RANK
from tests.slack.test_workspaces import install, many
from tests.slack.world import World, words

CLOSED = ["restricted_action", "is_archived", "not_in_channel", "restricted_action_thread_only_channel", "thread_not_found"]


@pytest.mark.parametrize("error", CLOSED)
async def test_where_the_bot_may_not_write_the_asker_gets_the_diagnosis_directly_and_the_reason(world: World, error: str) -> None:
    async with world.bot():
        world.slack.fault("chat.postMessage", "error", value=error)
        world.slack.fault("chat.postEphemeral", "error", value=error)
        await world.ann.mention(world.channel, CRASH)
        direct = world.slack.direct(world.team, world.ann.id)
        await world.until(lambda: world.answers(direct))
        await world.quiet()
        (told,) = world.answers(direct)
        assert "Rank 3 of 4" in words(told)
        assert f"({error})" in words(told)
        assert "For you alone, since" in told["text"]
        assert world.answers(world.channel) == []
        await world.ann.click(direct, told, "fixed")
        await world.until(lambda: "Undo" in words(told))
        await world.quiet()
        assert world.answers(world.channel) == []
        assert world.answers(direct) == [told]


async def test_where_only_a_word_to_one_person_may_be_said_the_diagnosis_is_that(world: World) -> None:
    async with world.bot():
        world.slack.fault("chat.postMessage", "error", times=99, value="restricted_action")
        ts = await world.ann.mention(world.channel, CRASH)
        (told,) = await world.until(lambda: world.ann.sees(world.channel))
        assert "Rank 3 of 4" in words(told)
        assert told["thread_ts"] == ts
        assert world.bob.sees(world.channel) == []
        await world.ann.mention(world.channel, "explain fp8 kv")
        await world.until(lambda: "halve the KV payload" in words(world.ann.sees(world.channel)[-1]))
        await world.ann.mention(world.channel, "hello there")
        await world.until(lambda: "Paste the log here" in words(world.ann.sees(world.channel)[-1]))
        await world.quiet()
        assert world.answers(world.channel) == []


async def test_a_search_in_a_thread_that_is_closed_is_answered_directly(world: World) -> None:
    async with world.bot():
        world.slack.fault("chat.postEphemeral", "error", value="is_archived")
        await world.ann.mention(world.channel, "history")
        direct = world.slack.direct(world.team, world.ann.id)
        told = await world.until(lambda: world.answers(direct))
        assert "0 incidents" in words(told[0])


async def test_another_bot_in_a_closed_channel_is_told_nothing(world: World) -> None:
    async with world.bot():
        await world.ann.slash(world.channel, "watch")
        await world.until(lambda: world.ann.sees(world.channel))
        world.slack.fault("chat.postMessage", "error", times=9, value="is_archived")
        alert = {"type": "message", "subtype": "bot_message", "bot_id": "B_ALERTS", "text": CRASH, "ts": world.slack.clock.ts()}
        await asyncio.gather(*world.slack.add_message(world.team, world.channel, alert))
        await world.quiet()
        assert world.slack.said_by_bot(world.team) == []
        assert (await world.store.backlog())["failed"] == 1


async def test_a_limit_on_posts_to_one_channel_delays_answers_and_loses_none(http_world: World) -> None:
    world = http_world
    async with world.bot():
        world.slack.fault("chat.postMessage", "ratelimited", times=12, value=1)
        sent = [await world.ann.mention(world.channel, CRASH) for _ in range(4)]
        for ts in sent:
            await world.until(lambda ts=ts: world.answers(world.channel, ts), 40)  # type: ignore[misc]
        await world.quiet(30)
        assert len(world.answers(world.channel)) == 4


async def test_calls_that_were_held_back_do_not_all_come_at_once(http_world: World) -> None:
    world = http_world
    async with world.bot():
        for _ in range(3):
            world.slack.fault("chat.postMessage", "ratelimited", value=1)
        for _ in range(3):
            await world.ann.mention(world.channel, CRASH)
        await world.until(lambda: len(world.answers(world.channel)) == 3, 20)
        at = sorted(call.at for call in world.slack.called("chat.postMessage") if call.ok)
        assert min(later - sooner for sooner, later in itertools.pairwise(at)) > 0.5


@pytest.mark.parametrize("gone", ["used up", "too old"])
async def test_a_command_whose_answer_address_is_spent_is_answered_all_the_same(world: World, gone: str) -> None:
    world.expected_refusals = {"used_url"}
    async with world.bot():
        await world.ann.slash(world.channel, "help")
        for known in world.slack.response_urls.values():
            known.uses = 5 if gone == "used up" else 0
        if gone == "too old":
            world.slack.later(1_801)
        shown = await world.until(lambda: world.ann.sees(world.channel))
        assert "Paste or upload" in words(shown[0])


async def test_without_the_scope_for_group_messages_private_channels_are_still_known(world: World) -> None:
    world.team.scopes -= {"mpim:read"}
    world.expected_refusals = {"missing_scope"}
    async with world.bot():
        ts = await world.ann.mention(world.private, CRASH)
        await world.answer(world.private, ts)
        await world.quiet()
        await world.ann.slash(world.channel, "history")
        shown = await world.until(lambda: world.ann.sees(world.channel))
        assert "D-0001" in words(shown[0])
        assert "hidden" not in words(shown[0])


@pytest.mark.parametrize("said", ["", "   ", "hi", "<@UNOBODY00>", ":wave:"])
async def test_a_mention_with_nothing_to_read_gets_one_hint_in_its_thread(world: World, said: str) -> None:
    async with world.bot():
        ts = await world.ann.say(world.channel, f"<@{world.team.bot_user}>{said}")
        hint = await world.answer(world.channel, ts)
        assert "Paste the log here" in words(hint)
        await world.quiet()
        assert len(world.answers(world.channel)) == 1


@pytest.mark.parametrize(
    "form",
    [
        "<@{bot}> help",
        "<@{bot}>: help",
        "<@{bot}>, help",
        "<@{bot}|oombot> help",
        "<@{bot}|oombot>:help",
        "help <@{bot}>",
        "<@{bot}>\u00a0help",
        "<@{bot}>\n\nhelp",
    ],
)
async def test_a_mention_is_understood_in_every_form(http_world: World, form: str) -> None:
    world = http_world
    async with world.bot():
        ts = await world.ann.say(world.channel, form.format(bot=world.team.bot_user))
        shown = await world.until(lambda: world.ann.sees(world.channel) or world.answers(world.channel, ts))
        assert "Paste or upload" in words(shown[0]), words(shown[0])


async def test_files_that_the_naming_event_leaves_out_are_asked_for(world: World) -> None:
    world.slack.bare_mentions = True
    async with world.bot():
        ts = await world.ann.mention(world.channel, "please", files=[world.ann.file("server.log", CRASH.encode())])
        answer = await world.answer(world.channel, ts)
        assert "Rank 3 of 4" in words(answer)
        await world.quiet()
        assert len(world.answers(world.channel)) == 1


async def test_another_bot_that_names_ours_gets_a_diagnosis_once_and_no_talk(world: World) -> None:
    alert = {"bot_id": "B0ALERT", "subtype": "bot_message"}
    async with world.bot():
        for text in ("help", "history", "what is this?"):
            await world.ann.say(world.channel, f"<@{world.team.bot_user}> {text}", **alert)
        await world.quiet()
        assert world.answers(world.channel) == []
        ts = await world.ann.say(world.channel, f"<@{world.team.bot_user}> {CRASH}", **alert)
        await world.answer(world.channel, ts)
        await world.ann.say(world.channel, f"<@{world.team.bot_user}> {NO_RANK}", thread=ts, **alert)
        await world.quiet()
        assert len(world.answers(world.channel)) == 1
        incident = await world.store.load(world.team.id, "D-0001")
        assert incident is not None
        assert len(incident.contributions) == 1


async def test_a_paste_that_was_deleted_above_its_answer_is_erased(world: World) -> None:
    async with world.bot():
        ts = await world.ann.mention(world.channel, CRASH)
        await world.answer(world.channel, ts)
        await world.quiet()
        await world.ann.delete(world.channel, ts)
        message = world.channel.message(ts)
        assert message is not None
        assert message["subtype"] == "tombstone", "an answer stands below it"
        await world.answer(world.channel, ts, lambda said: "evidence is erased" in said)
        incident = await world.store.load(world.team.id, "D-0001")
        assert incident is not None
        assert [c.text for c in incident.contributions] == [None]


async def test_a_channel_that_turned_private_takes_its_incidents_along(world: World) -> None:
    async with world.bot():
        ts = await world.ann.mention(world.channel, NO_RANK)
        await world.answer(world.channel, ts)
        await world.quiet()
        world.channel.kind = "group"
        world.door.room.visibility._seen.clear()  # a minute later
        await world.ann.say(world.channel, "rank 3", thread=ts)
        await world.answer(world.channel, ts, lambda said: "Rank 3 ran out" in said)
        await world.quiet()
        incident = await world.store.load(world.team.id, "D-0001")
        assert incident is not None
        assert incident.origin.private
        document = dict(incident.document)
        assert await world.store.similar(Origin(world.team.id, channel="CELSEWHERE"), document) == []


async def test_a_form_that_was_closed_meanwhile_is_answered_in_the_channel(world: World) -> None:
    world.expected_refusals = {"not_found"}
    async with world.bot():
        await world.ann.slash(world.channel, "size")
        view = await world.until(lambda: world.ann.view() if world.slack.views else None)
        world.slack.fault("response_url", "status", value=500)
        ack = await world.ann.submit(view, {"model": "llama-70b-fp8", "gpu": "H100"})
        assert ack.body["response_action"] == "update"
        view.open = False
        await world.until(lambda: world.ann.sees(world.channel), 15)
        await world.quiet()
        (shown,) = world.ann.sees(world.channel)
        assert "562,736" in words(shown)


async def test_an_organisations_installation_keeps_its_workspaces_apart(http_world: World) -> None:
    world = http_world
    slack = world.slack
    async with world.bot(many(world)):
        slack.organisation = "E0000001"
        assert (await install(world))[0] == 200
        first = next(team for team in slack.teams.values() if team.by_organisation)
        second = slack.team("Second", enterprise="E0000001")
        second.token, second.bot_user, second.bot_id, second.by_organisation = first.token, first.bot_user, first.bot_id, True
        second.users[second.bot_user] = second.id
        threads = {}
        for team in (first, second):
            ann = Person(slack, team)
            channel = slack.channel(team, "help", members=[ann.id])
            ts = await ann.mention(channel, CRASH)
            await world.answer_in(team, channel, ts)
            threads[team.id] = (ann, channel)
        for team in (first, second):
            ann, channel = threads[team.id]
            incident = await world.store.load(team.id, "D-0001")
            assert incident is not None, "each workspace counts for itself"
            assert (incident.origin.channel, incident.origin.enterprise) == (channel.id, "E0000001")
            await ann.slash(channel, "history")
            shown = await world.until(lambda: ann.sees(channel))  # noqa: B023
            assert "1 incident" in words(shown[-1])
        await slack.emit(first, {"type": "app_uninstalled"})
        await world.quiet()
        assert await world.store.installs() == []
        for team in (first, second):
            assert await world.store.load(team.id, "D-0001") is None, "removed for the organisation: both its workspaces are erased"


@pytest.mark.parametrize("order", [("tokens_revoked", "app_uninstalled"), ("app_uninstalled", "tokens_revoked")])
async def test_a_removed_app_erases_the_workspace_in_whichever_order_slack_says_so(world: World, order: tuple[str, str]) -> None:
    world.expected_refusals = {"token_revoked"}
    async with world.bot():
        ts = await world.ann.mention(world.channel, CRASH)
        await world.answer(world.channel, ts)
        await world.quiet()
        world.team.revoked = True
        for kind in order:
            ack = await world.slack.emit(world.team, {"type": kind, "tokens": {"bot": [world.team.bot_user]}})
            assert ack.status == 200
            await world.quiet()
        assert await world.store.load(world.team.id, "D-0001") is None


@pytest.mark.parametrize("error", ["edit_window_closed", "is_archived"])
async def test_who_clicks_where_our_message_cannot_be_edited_is_told_what_came_of_it(world: World, error: str) -> None:
    world.expected_refusals = {error}
    async with world.bot():
        answer = await world.answer(world.channel, await world.ann.mention(world.channel, CRASH))
        await world.quiet()
        world.slack.fault("chat.update", "error", value=error)
        await world.bob.click(world.channel, answer, "same")
        (told,) = await world.until(lambda: world.bob.sees(world.channel))
        assert "did not move the error, so take it back. Next: lower --max-num-seqs" in told["text"]
        assert "does not let me edit the message above: “show D-0001” shows it as it is now." in told["text"]


@pytest.mark.parametrize("way", ["slash", "shortcut", "home", "change inputs"])
async def test_a_form_that_cannot_be_opened_in_time_is_said(world: World, way: str) -> None:
    async with world.bot():
        direct = world.slack.direct(world.team, world.ann.id)
        if way == "home":
            await world.ann.open_home()
            await world.until(lambda: world.team.homes.get(world.ann.id))
        if way == "change inputs":
            await world.ann.slash(world.channel, "size llama-70b-fp8 gpu=H100")
            await world.until(lambda: world.ann.sees(world.channel))
        world.slack.fault("views.open", "error", value="expired_trigger_id")
        if way == "slash":
            ack = await world.ann.slash(world.channel, "size")
        elif way == "shortcut":
            ack = await world.ann.global_shortcut()
        elif way == "home":
            ack = await world.ann.click_home("home_size")
        else:
            ack = await world.ann.click(world.channel, world.ann.sees(world.channel)[-1], "change_inputs")
        assert ack.status == 200
        told = lambda: [*world.answers(direct), *world.ann.sees(world.channel)]  # noqa: E731
        await world.until(lambda: any("could not be opened" in words(one) for one in told()))


async def test_home_comes_plainly_where_a_table_is_refused(world: World) -> None:
    async with world.bot():
        ts = await world.ann.mention(world.channel, CRASH)
        await world.answer(world.channel, ts)
        await world.quiet()
        world.slack.fault("views.publish", "error", value="invalid_blocks")
        await world.ann.open_home()
        home = await world.until(lambda: world.team.homes.get(world.ann.id))
        assert "table" not in {block["type"] for block in home["blocks"]}
        assert "D-0001" in str(home)


async def test_the_messages_tab_is_no_home(world: World) -> None:
    async with world.bot():
        event = {"type": "app_home_opened", "user": world.ann.id, "channel": "D1", "tab": "messages", "event_ts": "1.1"}
        assert (await world.slack.emit(world.team, event)).status == 200
        await world.quiet()
        assert world.team.homes == {}


async def test_without_the_scope_for_files_the_evidence_is_told(world: World) -> None:
    world.team.scopes -= {"files:write"}
    world.expected_refusals = {"missing_scope"}
    async with world.bot():
        ts = await world.ann.mention(world.channel, CRASH)
        answer = await world.answer(world.channel, ts)
        await world.ann.click(world.channel, answer, "evidence")
        shown = await world.until(lambda: world.ann.sees(world.channel))
        assert "lacks files:write" in words(shown[-1])
        await world.quiet()


async def test_a_file_of_which_the_event_holds_a_stub_only_is_read(world: World) -> None:
    async with world.bot():
        file = world.ann.file("server.log", CRASH.encode())
        stub = {"id": file.id, "created": 0, "mode": "file_access", "file_access": "check_file_info"}
        ts = await world.ann.say(world.channel, f"<@{world.team.bot_user}>", subtype="file_share")
        message = world.channel.message(ts)
        assert message is not None
        await world.quiet()
        event = {**message, "ts": world.slack.clock.ts(), "files": [stub], "channel": world.channel.id, "channel_type": "channel"}
        world.channel.messages.append(event)
        await world.slack.emit(world.team, event | {"event_ts": event["ts"]})
        answer = await world.answer(world.channel, event["ts"])
        assert "Rank 3 of 4" in words(answer)


async def test_a_snippet_that_its_author_edits_is_read_again(world: World) -> None:
    async with world.bot():
        file = world.ann.file("server.log", NO_RANK.encode(), mode="snippet")
        ts = await world.ann.mention(world.channel, "please", files=[file])
        await world.answer(world.channel, ts)
        await world.quiet()
        message = world.channel.message(ts)
        assert message is not None
        before = {**message, "files": [dict(message["files"][0])]}
        file.data = CRASH.encode()
        message["files"] = [{**world.slack.file_body(file), "edit_timestamp": 1_796_000_000}]
        task = world.slack.emit_edit(world.team, world.channel, before, message)
        assert task is not None
        await task
        await world.answer(world.channel, ts, lambda said: "Rank 3 of 4" in said)
        await world.quiet()
        assert len(world.answers(world.channel)) == 1


async def test_in_a_watched_channel_an_edit_that_brings_the_evidence_is_answered(http_world: World) -> None:
    world = http_world
    async with world.bot():
        ts = await world.ann.say(world.channel, "it crashed again, log follows")
        await world.ann.edit(world.channel, ts, CRASH)
        await world.quiet()
        assert world.answers(world.channel) == [], "not watched"
        await world.ann.slash(world.channel, "watch")
        await world.until(lambda: world.ann.sees(world.channel))
        await world.ann.edit(world.channel, ts, "nothing, it was me")
        await world.ann.edit(world.channel, ts, CRASH + "again")
        await world.answer(world.channel, ts)


async def _answered_in_an_organisation(world: World) -> tuple[Team, Person, Channel, dict[str, Any]]:
    """Installed for the whole organisation; one of its people has had a log diagnosed."""
    world.slack.organisation = "E0000001"
    await install(world)
    team = next(team for team in world.slack.teams.values() if team.by_organisation)
    ann = Person(world.slack, team)
    channel = world.slack.channel(team, "help", members=[ann.id])
    answer = await world.answer_in(team, channel, await ann.mention(channel, CRASH))
    await world.quiet()
    return team, ann, channel, answer


async def test_in_an_organisations_installation_clicks_and_forms_name_no_workspace_and_are_worked(http_world: World) -> None:
    world, slack = http_world, http_world.slack
    async with world.bot(many(world)):
        team, ann, channel, answer = await _answered_in_an_organisation(world)
        await ann.click(channel, answer, "fixed")
        await world.quiet()
        assert "Undo" in words(answer)
        await ann.global_shortcut()
        view = await world.until(lambda: ann.view() if slack.views else None)
        await ann.submit(view, {}, files=[ann.file("vllm.log", NO_RANK.encode())])
        await world.quiet()
        assert await world.store.load(team.id, "D-0002") is not None
        await ann.open_home()
        await world.until(lambda: "D-0002" in json.dumps(team.homes.get(ann.id)))
        await ann.click_home("home_outcome", option="fixed")
        await world.until(lambda: "D-0002" not in json.dumps(team.homes[ann.id]["blocks"]))
        assert "D-0001" in json.dumps(team.homes[ann.id]["blocks"])


async def test_a_click_by_a_member_of_the_organisations_other_workspace_is_worked_where_our_message_stands(http_world: World) -> None:
    world = http_world
    async with world.bot(many(world)):
        _, ann, channel, answer = await _answered_in_an_organisation(world)
        ann.home = "T_NEXT_DOOR"
        await ann.click(channel, answer, "fixed")
        await world.quiet()
        assert "Undo" in words(answer)


@pytest.mark.parametrize("way", ["not yet known", "no address yet"])
async def test_a_file_that_slack_does_not_know_yet_is_asked_for_again(world: World, way: str) -> None:
    async with world.bot():
        file = world.ann.file("vllm.log", CRASH.encode(), **({"unknown": 2} if way == "not yet known" else {}))
        if way == "no address yet":
            file.url = ""
            asyncio.get_running_loop().call_later(0.8, setattr, file, "url", None)
        ts = await world.ann.mention(world.channel, "please", files=[file])
        assert "D-0001" in words(await world.answer(world.channel, ts))
        assert world.ann.sees(world.channel) == []


async def test_where_home_is_switched_off_nothing_is_tried_again_and_nobody_is_told(world: World) -> None:
    world.expected_refusals = {"not_enabled"}
    world.slack.manifest["features"]["app_home"]["home_tab_enabled"] = False
    async with world.bot():
        await world.ann.open_home()
        await world.quiet()
        assert len(world.slack.called("views.publish")) == 1
        assert world.answers(world.slack.direct(world.team, world.ann.id)) == []


@pytest.mark.parametrize("fault", [("error", "internal_error"), ("error", "ratelimited"), ("status", 500), ("error", "invalid_arguments")])
async def test_what_slack_itself_ended_is_tried_again_at_once(
    world: World, fault: tuple[str, object], caplog: pytest.LogCaptureFixture
) -> None:
    async with world.bot():
        world.slack.fault("chat.postMessage", fault[0], times=4 if fault[1] == "invalid_arguments" else 1, value=fault[1])
        ts = await world.ann.mention(world.channel, CRASH)
        await world.until(lambda: world.answers(world.channel, ts), 8)
        await world.quiet()
        assert len(world.answers(world.channel, ts)) == 1
    assert "AttributeError" not in caplog.text
