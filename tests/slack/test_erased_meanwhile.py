"""What is forgotten, deleted or grown old while it is worked on: nothing of it comes back, and what stands in Slack says so."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from bot.domain.incident import Contribution
from bot.slack.outbox import Outbox
from bot.store.deliveries import HELD
from bot.store.store import Store
from bot.usecases.desk import Desk
from bot.usecases.forget import purge
from tests.fakeslack.state import Channel
from tests.slack import material
from tests.slack.material import CRASH, NO_RANK
from tests.slack.world import World, words

QUOTED = "Tried to allocate 64.00 MiB"


def meddled(world: World, meddle: Any, when: str = "second paste") -> Desk:
    """A desk at which, while a text with `when` is judged the first time, something else happens."""
    done: list[bool] = []

    async def judge(contributions: Sequence[Contribution], precedents: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        if not done and any(when in (c.text or "") for c in contributions):
            done.append(True)
            held = HELD.get()
            HELD.set(None)  # it is somebody else who does it
            await meddle()
            HELD.set(held)
        return material.judged(contributions)

    return Desk(world.settings(), SimpleNamespace, judge, lambda: datetime.now(UTC))  # type: ignore[arg-type]


async def kept_of(world: World) -> str:
    """All that the incidents still hold."""
    found = [await world.store.load(world.team.id, f"D-{number}") for number in (1, 2)]
    return repr([(i.contributions, i.document, i.trials) for i in found if i is not None])


async def test_what_is_forgotten_while_a_second_paste_is_read_does_not_come_back(world: World) -> None:
    async def forgotten() -> None:
        await world.store.forget(world.team.id, "D-0001", "U1")

    async with world.bot(desk=meddled(world, forgotten)):
        ts = await world.ann.mention(world.channel, CRASH)
        answer = await world.answer(world.channel, ts, lambda said: QUOTED in said)
        await world.ann.say(world.channel, f"{NO_RANK} second paste", thread=ts)
        await world.until(lambda: QUOTED not in words(answer))
        await world.quiet()
        assert QUOTED not in words(answer)
        assert QUOTED not in await kept_of(world)
        assert "second paste" in await kept_of(world)


async def test_what_is_forgotten_while_an_outcome_is_judged_does_not_come_back(world: World) -> None:
    async def forgotten() -> None:
        await world.store.forget(world.team.id, "D-0001", "U1")

    async with world.bot(desk=meddled(world, forgotten, when="same")):
        ts = await world.ann.mention(world.channel, CRASH)
        answer = await world.answer(world.channel, ts, lambda said: QUOTED in said)
        await world.quiet()
        await world.ann.click(world.channel, answer, "same")
        await world.until(lambda: QUOTED not in words(answer))
        await world.quiet()
        assert QUOTED not in await kept_of(world)
        incident = await world.store.load(world.team.id, "D-0001")
        assert incident is not None
        assert [trial.result for trial in incident.trials][:1] == ["same"]


@pytest.mark.parametrize("how", ["message", "file"])
async def test_what_is_deleted_while_it_is_read_is_not_kept(world: World, how: str) -> None:
    """Slack may name neither the thread nor the message of what was deleted, so that nothing holds its deletion back."""
    file = world.ann.file("crash.log", CRASH.encode(), slow=1.5)

    async def sent() -> str:
        if how == "file":
            return await world.ann.mention(world.channel, "see", files=[file])
        return await world.ann.mention(world.channel, CRASH)

    async def deleted() -> None:
        assert how == "message"
        ts = world.channel.messages[0]["ts"]
        event = {"type": "message", "subtype": "message_deleted", "channel": world.channel.id, "channel_type": "channel", "deleted_ts": ts}
        await world.slack.emit(world.team, event | {"ts": world.slack.clock.ts(), "previous_message": {"thread_ts": "1.1"}})
        await asyncio.sleep(1.5)

    async with world.bot(desk=meddled(world, deleted, when="capture_model" if how == "message" else "never")):
        ts = await sent()
        if how == "file":
            await asyncio.sleep(0.5)
            await world.ann.delete_file(file)
        await world.quiet()
        assert QUOTED not in await kept_of(world)
        assert all(QUOTED not in words(one) for one in world.answers(world.channel, ts))


async def test_what_was_erased_while_its_delivery_was_in_work_is_soon_in_no_file(world: World) -> None:
    async def forgotten() -> None:
        await world.store.forget(world.team.id, "D-0001", "U1")

    def on_disk() -> bool:
        return any(b"second paste" in file.read_bytes() for file in world.folder.iterdir())

    async with world.bot(desk=meddled(world, forgotten)):
        ts = await world.ann.mention(world.channel, CRASH)
        await world.answer(world.channel, ts)
        await world.quiet()
        world.slack.fault("chat.update", "slow", value=2.0)
        await world.ann.say(world.channel, f"{NO_RANK} second paste", thread=ts)
        await world.until(on_disk)
        await world.until(lambda: world.slack.called("chat.update"))
        await world.store.forget(world.team.id, "D-0001", "U1")
        await world.quiet()
        await world.until(lambda: not on_disk(), 15)


async def test_words_whose_deletion_came_before_them_or_that_were_no_evidence_are_soon_in_no_file(http_world: World) -> None:
    world = http_world

    def on_disk(said: bytes) -> bool:
        return any(said in file.read_bytes() for file in world.folder.iterdir())

    async with world.bot():
        early = {"type": "message", "channel": world.channel.id, "channel_type": "channel", "ts": world.slack.clock.ts()}
        gone = {**early, "subtype": "message_deleted", "deleted_ts": early["ts"], "ts": world.slack.clock.ts()}
        await world.slack.emit(world.team, gone | {"previous_message": {}})
        await world.quiet()
        await world.slack.emit(world.team, early | {"user": world.ann.id, "text": f"<@{world.team.bot_user}> early zebrafish"})
        assert on_disk(b"early zebrafish")
        await world.until(lambda: not on_disk(b"early zebrafish"), 15)
        talk = await world.ann.mention(world.channel, "idle zebrafish")
        await world.quiet()
        assert on_disk(b"idle zebrafish")
        await world.ann.delete(world.channel, talk)
        await world.until(lambda: not on_disk(b"idle zebrafish"), 15)


async def test_a_file_that_came_with_two_messages_is_erased_from_both(world: World) -> None:
    file = world.ann.file("crash.log", CRASH.encode())
    other: Channel = world.slack.channel(world.team, "other", members=[world.ann.id, world.bob.id])
    world.slack.channel(world.team, "unseen", members=[])
    async with world.bot():
        for channel in (world.channel, other):
            ts = await world.ann.mention(channel, "see diagnose it anew" if channel is other else "see", files=[file])
            answer = await world.answer(channel, ts)
            await world.quiet()
            if "same log" in words(answer):
                await world.ann.click(channel, answer, "anew")
                await world.quiet()
        assert QUOTED in await kept_of(world)
        assert len([i for i in (1, 2) if await world.store.load(world.team.id, f"D-{i}")]) == 2
        await world.ann.delete_file(file)
        await world.quiet()
        assert QUOTED not in await kept_of(world)


@pytest.mark.parametrize("how", ["message", "file", "edit"])
async def test_what_is_left_of_an_incident_is_diagnosed_anew(world: World, how: str) -> None:
    async with world.bot():
        file = world.bob.file("other.log", NO_RANK.replace("Engine", "Other").encode())
        ts = await world.ann.mention(world.channel, CRASH)
        answer = await world.answer(world.channel, ts)
        await world.quiet()
        later = await world.bob.say(world.channel, NO_RANK if how != "file" else "see", thread=ts, files=[file] if how == "file" else [])
        await world.until(lambda: "Updated with" in words(answer))
        await world.quiet()
        if how == "file":
            await world.bob.delete_file(file)
        elif how == "message":
            await world.bob.delete(world.channel, later)
        else:
            await world.bob.edit(world.channel, later, "never mind")
        await world.until(lambda: "Updated with" not in words(answer))
        await world.quiet()
        assert "Rank 3 of 4" in words(answer)
        assert QUOTED in words(answer)
        assert "erased" not in words(answer)
        assert "initialization failed" not in await kept_of(world)


async def test_a_deletion_that_ended_half_way_is_still_shown(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    erase, tries = Store.erase_message, []

    async def ends(store: Store, *given: Any, **named: Any) -> list[str]:
        touched = await erase(store, *given, **named)
        tries.append(touched)
        if len(tries) == 1:
            raise OSError("the process ended here")
        return touched

    monkeypatch.setattr(Store, "erase_message", ends)
    async with world.bot():
        ts = await world.ann.mention(world.channel, CRASH)
        answer = await world.answer(world.channel, ts, lambda said: QUOTED in said)
        await world.quiet()
        await world.ann.delete(world.channel, ts)
        await world.until(lambda: QUOTED not in words(answer))
        await world.quiet()
        assert tries == [["D-0001"], []]


async def test_evidence_that_is_forgotten_while_it_is_put_into_the_thread_does_not_stay_there(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload = Outbox.upload

    async def slowly(outbox: Outbox, *given: Any) -> Sequence[str]:
        files = await upload(outbox, *given)
        await world.ann.slash(world.channel, "forget D-0001")
        await world.until(lambda: any("is erased" in words(one) for one in world.ann.sees(world.channel)))
        await asyncio.sleep(1.0)
        return files

    monkeypatch.setattr(Outbox, "upload", slowly)
    async with world.bot():
        await world.answer(world.channel, await world.ann.mention(world.channel, CRASH))
        await world.quiet()
        await world.ann.slash(world.channel, "show D-0001")
        shown = await world.until(lambda: [one for one in world.ann.sees(world.channel) if "D-0001" in words(one)])
        await world.ann.click(world.channel, shown[-1], "evidence")
        await world.until(lambda: [file for file in world.slack.files.values() if file.name.endswith("evidence.txt") and file.deleted])


async def test_evidence_that_grew_old_is_gone_from_slack_too_without_a_new_message(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.store.erasure._APART", 0.1)
    async with world.bot() as door:
        first = await world.ann.mention(world.channel, CRASH)
        answer = await world.answer(world.channel, first)
        second = await world.ann.mention(world.channel, CRASH + "another line\n")
        gone = await world.answer(world.channel, second)
        await world.quiet()
        await world.ann.click(world.channel, answer, "evidence")
        await world.quiet()
        (evidence,) = [file for file in world.slack.files.values() if file.name.endswith("evidence.txt")]
        world.channel.messages.remove(gone)  # an administrator did that: it is not said again
        posted = len(world.slack.called("chat.postMessage"))
        world.expected_refusals = {"message_not_found"}
        later = Desk(
            world.settings(), door.room.desk.rulebook, door.room.desk.judge, lambda: datetime.now(UTC) + timedelta(days=91), world.store
        )
        await purge(later)
        await world.until(lambda: "is erased" in words(answer))
        await asyncio.sleep(0.5)
        await world.quiet()
        assert QUOTED not in words(answer)
        assert evidence.deleted
        assert len(world.slack.called("chat.postMessage")) == posted
