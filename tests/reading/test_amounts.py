"""Figures of a sentence held against each other."""

import pytest

from bot.reading.amounts import falls_short
from bot.reading.plain import Plain
from bot.reading.talk import talks
from bot.reading.words import words_of
from bot.rulebook.load import load_rulebook

BOOK = load_rulebook()
WORDS = words_of(BOOK)
ASKED = WORDS.among(WORDS.bits("need", "demand", "cache"))
MOMENTS = {moment.id: moment for moment in BOOK.moments}


def short(text: str) -> bool:
    [talk] = talks(WORDS, MOMENTS, ASKED, Plain(text).text, [0])
    return falls_short(talk[0]) is not None


@pytest.mark.parametrize(
    "text",
    [
        "it needs 4.2 GiB and 4.3 GiB are available",
        "it needs 900 MiB and 1.5 GiB are left",
        "it needs four and three are available",
        "there are 256 Mamba blocks for 128 sequences",
        "2 cards have 80 GiB, the model needs 60",
    ],
)
def test_where_there_is_enough_or_nothing_to_compare_nothing_falls_short(text: str) -> None:
    assert not short(text)


@pytest.mark.parametrize(
    "text",
    [
        "it needs 4.2 GiB and 3.9 GiB are available",
        "it would take 1.5 GiB, only 900 MiB remain",
        "32768 tokens need 6.0 GiB and 5.2 are left",
        "Eine Anfrage braucht 5,2 GiB, verfügbar sind 4.8 GiB",
        "2.2GiB가 필요한데 사용 가능한 메모리가 1.6GiB",
        "there are 512 Mamba blocks for 1,024 sequences",
        "340 state blocks against 512 requests",
    ],
)
def test_more_asked_for_than_there_is(text: str) -> None:
    assert short(text)
