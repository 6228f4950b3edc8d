"""What people say in their own words: what the engine was at when memory ran out, read from how a sentence joins the two.

A sentence has complaints (it ran out, it crashed, it was killed) and moments (loading, capture, a request). The moment that was going on,
said best and standing nearest to the complaint, is what the sentence says. The words stand in rules/words.toml.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from bot.reading.idioms import SURE, says_by_itself
from bot.reading.sentences import CLAUSE, COMPLAINTS, SIDE_BY_SIDE, WEIGHT, Sentence, apart, bounds, spoken_of
from bot.reading.words import Mention, Plain, words_of
from bot.rulebook.book import Rulebook
from bot.rulebook.files import Moment

LONGEST = 60
"""Words of the rulebook that are read of one sentence: nobody says more, and each is held against the others."""
_RATHER = {"prose.serving": -1, "prose.launch": -1, "prose.startup-check": 1}
"""People say serving and starting of everything; what had not begun is said of nothing else."""


@dataclass(frozen=True, slots=True)
class Said:
    """A moment that somebody names, and where in the text. `weight`: how well; `fails`: more than an unnamed error is said of it."""

    moment: Moment
    at: int
    weight: int = SURE
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
        every = [self._sentence(start, words[:LONGEST], given.text) for start, words in parts if words]
        best = max((said for one in every if (said := self._of(one)) is not None), key=lambda said: said.weight, default=None)
        if best is None or best.moment.id == "prose.launch":
            best = self._together(every) or best
        elsewhere = any(one.names("prose.other-fault", "prose.denied") for one in every) and not any(one.has("shortage") for one in every)
        failed = self._at("prose.it-failed", best.at, 0) if best is not None and best.fails and not elsewhere else None
        found = (self._shortage(every), self._failure(every), best, failed, *self._beside(every))
        return [replace(said, at=given.place(said.at)) for said in found if said is not None]

    def _sentence(self, start: int, words: Sequence[Mention], text: str) -> Sentence:
        words = _with_cache(Sentence(start, text, words, {}))
        return Sentence(start, text, words, spoken_of(words, text, self._moments))

    def _of(self, one: Sentence) -> Said | None:
        """What the sentence says by itself."""
        by_itself = says_by_itself(one, self._moments)
        return self._at(*by_itself) if by_itself is not None else self._bound(one)

    def _bound(self, one: Sentence) -> Said | None:
        """The moment that a complaint of the sentence belongs to."""
        complaints = [] if one.has("question") else one.all_of(*COMPLAINTS)
        if not complaints or (one.names("prose.other-fault", "prose.pressure") and not one.has("shortage")):
            return None
        rated: list[tuple[int, int, Said]] = []
        for moment, relation in one.relations.items():
            nearest = min(complaints, key=lambda complaint: apart(complaint, moment))
            meant, relation = self._meant(moment, one)
            if relation in WEIGHT and self._belongs(moment, relation, nearest, one):
                weight = WEIGHT[relation] + 2 * (moment.telling or meant != moment.moment) + _RATHER.get(meant, 0)
                said = Said(self._moments[meant], moment.start, weight, nearest.means not in ("error", "killed"))
                rated.append((weight, -apart(nearest, moment), said))
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
        loud = {n for n, one in enumerate(every) if one.has("shortage", "killed")}
        loud = loud or {n for n, one in enumerate(every) if one.has(*COMPLAINTS)}
        over = {m.moment for one in every for m, relation in one.relations.items() if relation in ("past", "before", "off")}
        rated: list[tuple[int, int, Said]] = []
        for place, one in enumerate(every):
            near = 0 if not loud or place in loud else 1
            if (near and not {place - 1, place + 1} & loud) or one.has("question") or (loud and one.text.startswith("#", one.start)):
                continue
            for moment in (word for word in one.relations if word.telling):
                meant, relation = self._meant(moment, one)
                if relation not in WEIGHT or meant == "prose.launch" or (meant in over if loud else meant != "prose.serving"):
                    continue
                rated.append((-near, WEIGHT[relation] - (meant == "prose.serving"), self._at(meant, moment.start)))
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

    def _at(self, moment: str, at: int, weight: int = SURE) -> Said:
        return Said(self._moments[moment], at, weight)


def _with_cache(one: Sentence) -> list[Mention]:
    """The words of a sentence, with the making of a cache as a moment of its own."""
    parting = (*COMPLAINTS, "moment", "but", "before", "after", "while")
    for made, cache in one.pairs("make", "cache", 36):
        if one.joined(made, cache) and not any(word.means in parting for word in one.between(made, cache)):
            first, last = sorted((made, cache))
            rest = [word for word in one.words if word not in (made, cache)]
            return sorted([*rest, Mention(first.start, last.end, "moment", "prose.allocation", True)])
    return list(one.words)


@lru_cache(maxsize=4)
def speech_of(book: Rulebook) -> Speech:
    """The reader of a rulebook's words, prepared once."""
    return Speech(book)
