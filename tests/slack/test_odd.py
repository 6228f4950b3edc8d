"""What Slack sends now and then: out of order, of ourselves, more than expected, or of a kind that is no log."""

import asyncio

import pytest

from bot.slack.surfaces import mention
from tests.slack.material import CRASH, NO_RANK
from tests.slack.world import World, words


async def test_the_shortcut_on_an_answer_of_ours_reads_nothing_and_says_which_incident_it_is(world: World) -> None:
    async with world.bot():
        ts = await world.ann.mention(world.channel, CRASH)
        answer = await world.answer(world.channel, ts)
        await world.quiet()
        await world.bob.shortcut(world.channel, answer)
        await world.until(lambda: "answer of mine: D-0001" in str(world.bob.view().body))
        await world.quiet()
        incident = await world.store.load(world.team.id, "D-0001")
        assert incident is not None
        assert len(incident.contributions) == 1
        assert await world.store.load(world.team.id, "D-0002") is None


@pytest.mark.parametrize("known_by", ["user", "bot", "app"])
async def test_in_a_watched_channel_our_own_words_are_no_evidence_however_slack_names_us(world: World, known_by: str) -> None:
    async with world.bot():
        await world.ann.slash(world.channel, "watch")
        await world.until(lambda: world.ann.sees(world.channel))
        ours = {"user": {"user": world.team.bot_user}, "bot": {"bot_id": world.team.bot_id}, "app": {"bot_id": "B_OTHER", "app_id": "A1"}}
        said = {"type": "message", "subtype": "bot_message", "text": CRASH, "ts": world.slack.clock.ts(), **ours[known_by]}
        await asyncio.gather(*world.slack.add_message(world.team, world.channel, said))
        await world.quiet()
        assert await world.store.load(world.team.id, "D-0001") is None


@pytest.mark.parametrize("given", [{"mode": "canvas"}, {"mode": "quip"}, {"mode": "list"}, {"mode": "space"}])
async def test_what_was_written_in_slack_itself_is_no_log_file(http_world: World, given: dict[str, str]) -> None:
    world = http_world
    async with world.bot():
        file = world.ann.file("Incident notes", b"<html>notes</html>", as_html=True, **given)
        await world.ann.mention(world.channel, "please", files=[file])
        shown = await world.until(lambda: world.ann.sees(world.channel))
        assert "was written in Slack itself" in shown[0]["text"]


async def test_of_very_many_files_ten_are_read_and_the_rest_is_said(http_world: World) -> None:
    world = http_world
    async with world.bot():
        files = [world.ann.file(f"rank{n}.log", f"{NO_RANK} of file {n}".encode()) for n in range(12)]
        ts = await world.ann.mention(world.channel, "here", files=files)
        await world.answer(world.channel, ts)
        shown = await world.until(lambda: world.ann.sees(world.channel))
        assert "2 more files were not read" in shown[0]["text"]
        incident = await world.store.load(world.team.id, "D-0001")
        assert incident is not None
        assert [c.name for c in incident.contributions] == [f"rank{n}.log" for n in range(10)]


async def test_a_message_that_comes_after_its_edit_is_read_as_it_stands_now(world: World) -> None:
    """The first delivery was lost, and Slack brings it again when the edit has long been here."""
    async with world.bot():
        ts = await world.ann.mention(world.channel, NO_RANK)
        await world.answer(world.channel, ts)
        await world.quiet()
        world.slack.hear_events = False
        reply = await world.ann.say(world.channel, f"{CRASH} of host secret-host-17", thread=ts)
        late = {k: v for k, v in (world.channel.message(reply) or {}).items() if k != "reactions"}
        world.slack.hear_events = True
        await world.ann.edit(world.channel, reply, CRASH)
        await world.quiet()
        await world.slack.emit(world.team, late | {"channel": world.channel.id, "channel_type": "channel", "event_ts": reply})
        await world.answer(world.channel, ts, lambda said: "Rank 3 of 4" in said)
        await world.quiet()
        incident = await world.store.load(world.team.id, "D-0001")
        assert "secret-host-17" not in repr(incident)


async def test_an_older_edit_that_comes_late_changes_nothing(world: World) -> None:
    async with world.bot():
        ts = await world.ann.mention(world.channel, NO_RANK)
        answer = await world.answer(world.channel, ts)
        await world.quiet()
        world.slack.hear_events = False
        message = world.channel.message(ts)
        assert message is not None
        before = dict(message)
        await world.ann.edit(world.channel, ts, f"<@{world.team.bot_user}> {CRASH} secret-host-17")
        middle = dict(message)
        world.slack.hear_events = True
        await world.ann.edit(world.channel, ts, f"<@{world.team.bot_user}> {CRASH} fine")
        await world.answer(world.channel, ts, lambda said: "Rank 3 of 4" in said)
        await world.quiet()
        late = world.slack.emit_edit(world.team, world.channel, before, middle)
        assert late is not None
        await late
        await world.quiet()
        incident = await world.store.load(world.team.id, "D-0001")
        assert "secret-host-17" not in repr(incident)
        assert "fine" in repr(incident)
        assert "secret-host-17" not in words(answer)


@pytest.mark.parametrize("first", ["the mention", "the log"])
async def test_replies_that_came_before_the_mention_they_answer_are_heard(
    world: World, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    """The bot was away for a minute: Slack brings each message again by itself, in any order."""
    monkeypatch.setattr(mention, "LATE", 0.0)
    async with world.bot():
        world.slack.hear_events = first != "the mention"
        ts = await world.ann.mention(world.channel, NO_RANK if first == "the mention" else "what is this?")
        world.slack.hear_events = True
        reply = await world.bob.say(world.channel, CRASH, thread=ts)
        await world.quiet()
        late = world.channel.message(ts if first == "the mention" else reply)
        assert late is not None
        event = {k: v for k, v in late.items() if k != "reactions"}
        await world.slack.emit(world.team, event | {"channel": world.channel.id, "channel_type": "channel", "event_ts": late["ts"]})
        await world.answer(world.channel, ts, lambda said: "Rank 3 of 4" in said)
        await world.quiet()
        incident = await world.store.load(world.team.id, "D-0001")
        assert incident is not None
        assert len([c for c in incident.contributions if c.text and "capture_model" in c.text]) == 1


async def test_a_late_mention_whose_thread_cannot_be_read_is_answered_all_the_same(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mention, "LATE", 0.0)
    async with world.bot():
        world.slack.fault("conversations.replies", "error", value="missing_scope")
        await world.answer(world.channel, await world.ann.mention(world.channel, CRASH), lambda said: "Rank 3 of 4" in said)
        await world.quiet()
        assert world.ann.sees(world.channel) == []


PREVIEW = {"from_url": "https://example.com/x", "service_name": "Example", "title": "CUDA out of memory", "text": CRASH}
FORWARDED = {"is_share": True, "is_msg_unfurl": True, "from_url": "https://acme.slack.com/archives/C1/p1", "text": CRASH, "fallback": "f"}


@pytest.mark.parametrize("way", ["forwarded", "blocks alone", "forwarded file"])
async def test_a_log_that_is_not_in_the_words_themselves_is_read(world: World, way: str) -> None:
    file = world.bob.file("crash.log", CRASH.encode())
    block = {"type": "rich_text", "elements": [{"type": "rich_text_preformatted", "elements": [{"type": "text", "text": CRASH}]}]}
    more = {
        "forwarded": {"attachments": [FORWARDED]},
        "blocks alone": {"blocks": [block]},
        "forwarded file": {"attachments": [{**FORWARDED, "text": "look", "files": [world.slack.file_body(file)]}]},
    }
    async with world.bot():
        said = "" if way == "blocks alone" else "what is this?"
        ts = await world.ann.mention(world.channel, said, **more[way])
        await world.answer(world.channel, ts, lambda said: "Rank 3 of 4" in said)


async def test_the_preview_of_a_page_is_no_evidence(http_world: World) -> None:
    world = http_world
    async with world.bot():
        ts = await world.ann.mention(world.channel, "have a look at this", attachments=[PREVIEW])
        await world.until(lambda: world.answers(world.channel, ts))
        await world.quiet()
        assert await world.store.load(world.team.id, "D-0001") is None


async def test_evidence_that_somebody_deleted_is_shown_again(world: World) -> None:
    world.expected_refusals = {"file_deleted"}
    async with world.bot():
        ts = await world.ann.mention(world.channel, CRASH)
        answer = await world.answer(world.channel, ts)
        uploads = lambda: [f for f in world.slack.files.values() if f.name.endswith("evidence.txt")]  # noqa: E731
        await world.ann.click(world.channel, answer, "evidence")
        await world.until(uploads)
        await world.quiet()
        await world.bob.delete_file(uploads()[0])
        await world.quiet()
        await world.ann.click(world.channel, answer, "evidence")
        await world.until(lambda: len(uploads()) == 2)
        await world.quiet()
        await world.ann.click(world.channel, answer, "evidence")
        await world.until(lambda: any("already in the thread" in words(one) for one in world.ann.sees(world.channel)))
        assert len(uploads()) == 2


async def test_evidence_that_may_not_be_uploaded_is_begun_for_the_asker_alone(world: World) -> None:
    async with world.bot():
        ts = await world.ann.mention(world.channel, CRASH)
        answer = await world.answer(world.channel, ts)
        world.slack.fault("files.completeUploadExternal", "error", value="is_archived")
        await world.ann.click(world.channel, answer, "evidence")
        shown = await world.until(lambda: world.ann.sees(world.channel))
        assert "that channel is archived" in shown[-1]["text"]
        assert "D-0001: Rank 3 of 4" in shown[-1]["text"]
