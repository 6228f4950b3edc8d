from datetime import timedelta

from bot.domain.incident import Contribution, Origin
from bot.store.numbers import micros
from bot.store.store import Store
from tests.store.material import LOG, NOW, document, paste

HERE = Origin("T1", None, "C1", "1.1")
ELSEWHERE = Origin("T1", None, "C2", "2.2")
HOUR_AGO = NOW - timedelta(hours=1)


async def test_what_another_team_gave_is_neither_counted_nor_found(store: Store) -> None:
    await store.append(Origin("T2", None, "C1", "1.1"), [paste(message="1.1")], document())
    assert await store.given_before(HERE, [LOG], HOUR_AGO) == []
    found = await store.lately("T1", "C1", "U1", HOUR_AGO)
    assert (found.by_person, found.in_channel) == ((), ())


async def test_a_private_channels_log_is_found_there_only(store: Store) -> None:
    await store.append(Origin("T1", None, "G1", "1.1", private=True), [paste()], document())
    assert await store.given_before(HERE, [LOG], HOUR_AGO) == []
    assert await store.given_before(Origin("T1", None, "G1", "3.3", private=True), [LOG], HOUR_AGO) == [("D-0001", micros(NOW))]


async def test_an_older_an_erased_and_a_partly_other_log_are_not_the_same(store: Store) -> None:
    await store.append(HERE, [paste(at=NOW - timedelta(minutes=61))], document())
    await store.append(HERE, [paste()], document())
    await store.forget("T1", "D-0002")
    await store.append(HERE, [paste()], document())
    assert await store.given_before(HERE, [LOG, "something else"], HOUR_AGO) == []
    assert await store.given_before(ELSEWHERE, [LOG], HOUR_AGO) == [("D-0003", micros(NOW))]


async def test_a_message_counts_once_whatever_hangs_on_it_and_an_answer_not_at_all(store: Store) -> None:
    files = [Contribution("file", f"{LOG}{n}", name=f"{n}.log", author="U1", message="1.1", at=NOW) for n in range(3)]
    await store.append(HERE, [*files, Contribution("answer", "rank=3", author="U1", message="1.2", at=NOW)], document())
    await store.append(ELSEWHERE, [paste(author="U1", message="2.2", at=NOW + timedelta(minutes=1))], document())
    found = await store.lately("T1", "C1", "U1", HOUR_AGO)
    assert found.by_person == (micros(NOW), micros(NOW) + 60_000_000)
    assert found.in_channel == (micros(NOW),)
    assert (await store.lately("T1", "C1", None, HOUR_AGO)).by_person == ()
