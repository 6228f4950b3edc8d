"""Who did what, asked for in Slack: noted with the deed, shown to members of the channel, never to others."""

from tests.fakeslack import Person
from tests.slack.material import CRASH
from tests.slack.test_workspaces import install, many
from tests.slack.world import World, words


async def shown(world: World, who: Person) -> str:
    """What `/oom audit` says to somebody."""
    before = len(who.sees(world.channel))
    await who.slash(world.channel, "audit")
    return words((await world.until(lambda: who.sees(world.channel)[before:]))[-1])


async def test_before_anybody_did_anything_it_says_so(world: World) -> None:
    async with world.bot():
        assert "Nothing yet" in await shown(world, world.ann)


async def test_what_members_switched_and_erased_is_told_with_their_names_and_no_evidence(world: World) -> None:
    async with world.bot():
        await world.answer(world.channel, await world.ann.mention(world.channel, CRASH))
        await world.quiet()
        for said in ("watch", "settings digest on", "forget D-0001", "watch off", "settings digest off"):
            seen = len(world.bob.sees(world.channel))
            await world.bob.slash(world.channel, said)
            await world.until(lambda seen=seen: len(world.bob.sees(world.channel)) > seen)
        await world.quiet()
        told = await shown(world, world.ann)
        for says in ("the watch on", "the weekly digest on", "erased the evidence of D-0001", "the watch off", "the weekly digest off"):
            assert f"switched {says}" in told or says in told
        assert told.count(f'"user_id": "{world.bob.id}"') == 5
        assert told.count(f'"channel_id": "{world.channel.id}"') == 5
        assert "capture_model" not in str(await world.store.audit(None))


async def test_who_is_not_in_a_private_channel_reads_nothing_of_it(world: World) -> None:
    async with world.bot():
        await world.ann.mention(world.private, "watch")
        await world.until(lambda: world.answers(world.private))
        await world.quiet()
        assert "switched the watch on" in await shown(world, world.ann)
        assert "Nothing yet" in await shown(world, world.bob)


async def test_a_member_of_another_organisation_is_told_nothing(world: World) -> None:
    stranger = Person(world.slack, world.team, "zoe", home="T_ELSEWHERE")
    world.channel.members.add(stranger.id)
    async with world.bot():
        await world.ann.slash(world.channel, "watch")
        await world.until(lambda: world.ann.sees(world.channel))
        assert "Only members of the workspace" in await shown(world, stranger)


async def test_the_same_by_mention_is_whispered(world: World) -> None:
    async with world.bot():
        await world.ann.slash(world.channel, "watch")
        await world.until(lambda: world.ann.sees(world.channel))
        seen = len(world.bob.sees(world.channel))
        await world.bob.mention(world.channel, "audit")
        told = await world.until(lambda: world.bob.sees(world.channel)[seen:])
        assert "switched the watch on" in words(told[-1])
        assert "switched the watch on" not in str(world.answers(world.channel))


async def test_installing_is_noted_and_removing_leaves_no_name(http_world: World) -> None:
    world = http_world
    async with world.bot(many(world)):
        await install(world)
        team = next(team for team in world.slack.teams.values() if team.name.startswith("Installed"))
        noted = [(row["team"], row["by"], row["deed"]) for row in await world.store.audit(None)]
        assert noted == [(team.id, "U_INSTALLER", "installed")]
        await world.slack.emit(team, {"type": "app_uninstalled", "event_ts": "1.0"})
        await world.quiet()
        noted = [(row["by"], row["deed"]) for row in await world.store.audit(None)]
        assert noted == [(None, "uninstalled")]
