"""What people say in their own words: what the engine was at when memory ran out, read from how a sentence joins the two.

A sentence has complaints (it ran out, it crashed, it was killed) and moments (loading, capture, a request). The moment that was going on,
said best and standing nearest to the complaint, is what the sentence says. The words stand in rules/words.toml.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from bot.reading.sentences import COMPLAINTS, Sentence, apart, bounds, spoken_of
from bot.reading.words import Mention, Plain, words_of
from bot.rulebook.book import Rulebook
from bot.rulebook.files import Moment

CLAUSE = 60
"""Letters within which a bare moment and a complaint belong together."""
SIDE_BY_SIDE = 14
"""Letters within which two words are one thought: `resume error`, `VRAM or RAM`."""
_WEIGHT = {"while": 3, "at": 2, "bare": 1}
_SURE = 4
_FIGURE = re.compile(r"\d")
_NEGATIVE = re.compile(r"(?<![\w.])[-−]\d+(?:\.\d+)?\ ?[gm]i?b")
_NOTHING = re.compile(r"(?<![\w.])(?:-\d|−\d|0(?:\.0+)?\ ?(?:g|m|b)|no\b)")


@dataclass(frozen=True, slots=True)
class Said:
    """A moment that somebody names, and where in the text. `weight`: how well; `fails`: more than an unnamed error is said of it."""

    moment: Moment
    at: int
    weight: int = _SURE
    fails: bool = False


class Speech:
    """Reads what people say with the rulebook's words."""

    def __init__(self, book: Rulebook) -> None:
        self._words = words_of(book)
        self._moments = {moment.id: moment for moment in book.moments}
        self._aside = {moment.id for moment in book.moments if moment.aside}

    def read(self, text: str) -> list[Said]:
        """What a paragraph says: that memory ran out, what was going on (as one sentence says it best, or all together), what denies it."""
        given = Plain(text)
        mentions = [one for one in self._words.mentions(given.text) if one.means != "nothing"]
        starts = [one.start for one in mentions]
        parts = ((start, mentions[bisect_left(starts, start) : bisect_left(starts, end)]) for start, end in bounds(given.text))
        every = [self._sentence(start, words, given.text) for start, words in parts if words]
        best = max((said for one in every if (said := self._of(one)) is not None), key=lambda said: said.weight, default=None)
        if best is None or best.moment.id == "prose.launch":
            best = self._together(every) or best
        elsewhere = any(one.names("prose.other-fault") for one in every) and not any(one.has("shortage") for one in every)
        failed = self._at("prose.it-failed", best.at, 0) if best is not None and best.fails and not elsewhere else None
        found = (self._shortage(every), self._failure(every), best, failed, *self._beside(every))
        return [replace(said, at=given.place(said.at)) for said in found if said is not None]

    def _sentence(self, start: int, words: Sequence[Mention], text: str) -> Sentence:
        words = _with_cache(Sentence(start, text, words, {}))
        return Sentence(start, text, words, spoken_of(words, text, self._moments))

    def _of(self, one: Sentence) -> Said | None:
        """What the sentence says by itself."""
        readings = (self._alone, self._but_eager, self._too_small, self._of_host, self._growing, self._not_free, self._bound)
        return next((said for reading in readings if (said := reading(one)) is not None), None)

    def _alone(self, one: Sentence) -> Said | None:
        """A moment that complains by its name."""
        found = (m for m, relation in one.relations.items() if self._moments[m.moment].alone and relation != "off")
        return next((self._at(moment.moment, moment.start) for moment in found), None)

    def _but_eager(self, one: Sentence) -> Said | None:
        """It works without graphs."""
        for eager, fine in one.pairs("eager", "fine", 44):
            if not any(word.means in ("not", "but", *COMPLAINTS) for word in one.between(eager, fine)):
                return self._at("prose.capture", eager.start)
        return None

    def _too_small(self, one: Sentence) -> Said | None:
        """The cache cannot hold one request, or there is none."""
        if one.has("asking") or one.names("prose.pressure"):
            return None
        for cache, lack in (*one.pairs("cache", "lack", 44), *one.pairs("cache", "need", 44)):
            if lack.means == "need" and not _figure_near(one.text, lack):
                continue
            if not any(word.means in ("moment", "but", "failure") for word in one.between(cache, lack)):
                return self._at("prose.sizing", lack.start)
        if negative := next((cache for cache in one.all_of("cache") if _is_negative(one.text, cache)), None):
            return self._at("prose.sizing", negative.start)
        lacks = one.all_of("lack", "longer") if one.has("request-length") and one.has("cache", "pool") else []
        return self._at("prose.sizing", lacks[0].start) if lacks else None

    def _of_host(self, one: Sentence) -> Said | None:
        """The complaint about the machine's own memory, where the sentence does not leave open whose it was."""
        hosts, devices = one.all_of("host", "shm"), one.all_of("device")
        refused = [word for word in one.all_of("failure") if one.text.startswith(("cannot allocate", "can't allocate"), word.start)]
        complaints = [*one.all_of("shortage", "killed", "lack"), *refused]
        pairs = ((host, device) for host in hosts for device in devices if apart(host, device) <= SIDE_BY_SIDE)
        if any(not {*complaints}.intersection(one.between(host, device)) for host, device in pairs):
            return None
        for complaint in complaints:
            host = min(hosts, key=lambda host: apart(host, complaint), default=complaint)
            near = apart(host, complaint) if hosts else CLAUSE + 1
            if near <= CLAUSE and near <= min((apart(card, complaint) for card in devices if one.joined(card, complaint)), default=near):
                return self._at("prose.shared-memory" if host.means == "shm" else "prose.host", complaint.start)
        return None

    def _growing(self, one: Sentence) -> Said | None:
        """Memory became more and more."""
        memory = one.all_of("memory", "device", "host")
        slowly = [w for w in one.all_of("grows") if one.has("slowly") and any(0 <= w.start - m.end <= 30 for m in memory)]
        growth = (one.all_of("growth") or slowly) if memory else []
        elsewhere = any(m.telling and relation in _WEIGHT and not self._moments[m.moment].again for m, relation in one.relations.items())
        return (
            self._at("prose.host" if one.has("host") else "prose.growth", growth[0].start, _SURE - 1) if growth and not elsewhere else None
        )

    def _not_free(self, one: Sentence) -> Said | None:
        """Less was free at the start than the fraction asks for."""
        free = one.all_of("free") if one.has(*COMPLAINTS, "need") and not one.has("host") else []
        starting = one.has("fraction") or one.names("prose.launch", "prose.load")
        later = any(
            m.telling and relation == "while" and m.moment not in ("prose.launch", "prose.load") for m, relation in one.relations.items()
        )
        return self._at("prose.startup-check", free[0].start) if free and starting and not later else None

    def _bound(self, one: Sentence) -> Said | None:
        """The moment that a complaint of the sentence belongs to."""
        complaints = [] if one.has("question") else one.all_of(*COMPLAINTS)
        if not complaints or (one.names("prose.other-fault", "prose.pressure") and not one.has("shortage")):
            return None
        rated: list[tuple[int, int, Said]] = []
        for moment, relation in one.relations.items():
            nearest = min(complaints, key=lambda complaint: apart(complaint, moment))
            meant, relation = self._meant(moment, one)
            if relation in _WEIGHT and self._belongs(moment, relation, nearest, one):
                telling = moment.telling or meant != moment.moment
                weight = _WEIGHT[relation] + 2 * telling - (meant in ("prose.serving", "prose.launch")) + (meant == "prose.startup-check")
                rated.append(
                    (
                        weight,
                        -apart(nearest, moment),
                        Said(self._moments[meant], moment.start, weight, nearest.means not in ("error", "killed")),
                    )
                )
        return max(rated, key=lambda rate: rate[:2])[2] if rated else None

    def _belongs(self, moment: Mention, relation: str, complaint: Mention, one: Sentence) -> bool:
        """Is the complaint about this moment? A weak word, or an error without a name, must be joined to it."""
        serving = moment.moment == "prose.serving"
        if serving and {word.means for word in one.all_of(*COMPLAINTS)} == {"error"}:
            return False
        if relation != "bare":
            return relation == "while" or moment.telling or not serving
        if complaint.means == "error" and not (moment.telling and apart(complaint, moment) <= SIDE_BY_SIDE):
            return False
        parted = not self._moments[moment.moment].lasting and any(word.means == "but" for word in one.between(complaint, moment))
        return (moment.telling or not serving) and apart(complaint, moment) <= CLAUSE and not parted

    def _meant(self, moment: Mention, one: Sentence) -> tuple[str, str]:
        """The moment that was going on, and how it is said: of one that had not begun, the one before it; none where it is said aside."""
        relation, rule = one.relations[moment], self._moments[moment.moment]
        if rule.aside or (relation == "before" and (not rule.begins_after or "past" in one.relations.values())):
            return "", "off"
        return (rule.begins_after, "while") if relation == "before" else (rule.id, relation)

    def _together(self, every: Sequence[Sentence]) -> Said | None:
        """What all sentences leave: a moment named beyond doubt in or beside one that complains, that none says was over or to come.

        Where nobody complains, a log may: then what only a server that runs is asked.
        """
        loud = [n for n, one in enumerate(every) if one.has("shortage", "killed")] or [
            n for n, one in enumerate(every) if one.has(*COMPLAINTS)
        ]
        over = {m.moment for one in every for m, relation in one.relations.items() if relation in ("past", "before", "off")}
        rated: list[tuple[int, int, Said]] = []
        for place, one in enumerate(every):
            near = min((abs(place - there) for there in loud), default=0)
            if near > 1 or one.has("question", "asking") or (loud and one.text.startswith("#", one.start)):
                continue
            for moment in (word for word in one.relations if word.telling):
                meant, relation = self._meant(moment, one)
                if relation not in _WEIGHT or meant == "prose.launch" or (meant in over if loud else meant != "prose.serving"):
                    continue
                rated.append((-near, _WEIGHT[relation] - (meant == "prose.serving"), self._at(meant, moment.start)))
        return max(rated, key=lambda rate: rate[:2])[2] if rated else None

    def _shortage(self, every: Sequence[Sentence]) -> Said | None:
        """That memory ran out; a question whether it would says nothing."""
        found = (words[0] for one in every if (words := one.all_of("shortage")) and not one.has("question"))
        return next((self._at("prose.oom", word.start, 0) for word in found), None)

    def _failure(self, every: Sequence[Sentence]) -> Said | None:
        """That something went wrong, whatever it was."""
        found = (word for one in every for word in one.all_of("failure", "error", "killed"))
        return next((self._at("prose.failure", word.start, 0) for word in found), None)

    def _beside(self, every: Sequence[Sentence]) -> Iterator[Said]:
        """What says that memory is not what failed; another fault only where something failed at all."""
        failed = any(one.has(*COMPLAINTS) for one in every)
        for moment in (moment for one in every for moment in one.relations if moment.moment in self._aside):
            if failed or moment.moment != "prose.other-fault":
                yield self._at(moment.moment, moment.start, 0)

    def _at(self, moment: str, at: int, weight: int = _SURE) -> Said:
        return Said(self._moments[moment], at, weight)


def _with_cache(one: Sentence) -> list[Mention]:
    """The words of a sentence, with the making of a cache as a moment of its own."""
    parting = (*COMPLAINTS, "moment", "but", "before", "after", "while")
    for made, cache in one.pairs("make", "cache", 36):
        if not any(word.means in parting for word in one.between(made, cache)):
            first, last = sorted((made, cache))
            rest = [word for word in one.words if word not in (made, cache)]
            return sorted([*rest, Mention(first.start, last.end, "moment", "prose.allocation", True)])
    return list(one.words)


def _is_negative(text: str, cache: Mention) -> bool:
    """Does less than nothing remain for it?"""
    return _NEGATIVE.search(text, max(0, cache.start - 30), cache.end + 30) is not None


def _figure_near(text: str, need: Mention) -> bool:
    """A figure that is needed; one that is left only where it is nothing or less."""
    around = text[max(0, need.start - 30) : need.end + 30]
    return (_NOTHING if text.startswith(("left", "leaves", "remains"), need.start) else _FIGURE).search(around) is not None


@lru_cache(maxsize=4)
def speech_of(book: Rulebook) -> Speech:
    """The reader of a rulebook's words, prepared once."""
    return Speech(book)
