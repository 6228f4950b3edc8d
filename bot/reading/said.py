"""What people say in their own words: what the engine was at when memory ran out, read from how a sentence joins the two.

A sentence has complaints (it ran out, it crashed, it was killed) and moments (loading, capture, a request); the sentence that says best
which moment failed speaks for its paragraph. The words stand in rules/words.toml.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate

from bot.reading.amounts import DEMANDS, falls_short, implies, only_so_much
from bot.reading.complaints import RATHER, Said, complained_of, meant
from bot.reading.idioms import SURE, TELLING, plenty, ran_out_later, says_by_itself
from bot.reading.plain import Plain
from bot.reading.sentences import WEIGHT, Sentence
from bot.reading.talk import Talk, talks
from bot.reading.together import COMPLAINTS, unsaid
from bot.reading.words import Mention, words_of
from bot.rulebook.book import Rulebook

_HEADS = re.compile(r"[^.!?\n—–:]{0,60}(?:—|\s–\s|:\s)")
_HEAD = 8
"""Letters before what a line is about: the mark of an item, its number."""
PLAIN = frozenset({"prose.profiling", "prose.allocation", "prose.wake-up"})
"""Moments that people do not name loosely, as they name loading and serving."""


class Speech:
    """Reads what people say with the rulebook's words."""

    def __init__(self, book: Rulebook) -> None:
        self._words = words_of(book)
        self._moments = {moment.id: moment for moment in book.moments}
        self._aside = {moment.id for moment in book.moments if moment.aside}
        bits = self._words.bits
        self._shortages, self._complaints, self._failures = bits("shortage"), bits(*COMPLAINTS), bits("failure", "error", "killed")
        halves = [half for pair in self._words.pairs for half in pair[:2]]
        self._moment, self._pairs = bits("moment"), [(bits(one), bits(other)) for one, other, _ in self._words.pairs]
        self._named, self._asides = bits("moment", *halves), bits(*self._aside, "retracted")
        self._telling = bits(*TELLING, *(moment.id for moment in book.moments if moment.alone))
        self._free, self._eager, self._short = bits("free"), bits("eager"), bits("shortage", "lack")
        self._before, self._sure = bits("before"), bits("telling", *halves)
        self._joined = bits("there", "request-length")
        self._asked = self._words.among(self._complaints | self._named | self._telling | self._before | self._joined | self._asides)
        self._rather = bits(*(name for name, more in RATHER.items() if more > 0))

    def read(self, paragraphs: Sequence[str]) -> list[list[Said]]:
        """What each paragraph (of whole lines) says: that memory ran out, what was going on (as one sentence says it best, or all
        together), what denies it.
        """
        several = list(dict.fromkeys(paragraphs))  # what is said again and again is read once
        given = Plain("".join(several))
        begins = [0, *accumulate(map(len, several))][:-1]
        every = talks(self._words, self._moments, self._asked, given.text, [*map(given.place, begins)])
        said = {
            paragraph: [replace(said, at=given.given(said.at) - begin) for said in self._all(talk)] if talk else []
            for paragraph, begin, talk in zip(several, begins, every, strict=True)
        }
        return [said[paragraph] for paragraph in paragraphs]

    def _all(self, talk: Talk) -> list[Said]:
        best = self._best(talk)
        if best is not None and best.moment.id == "prose.capture":
            best = self._plainly(talk, best) or best
        best = best if best is None or best.moment.alone else self._headed(talk, best)
        grows = best is not None and best.moment.id == "prose.growth"  # over requests, where nothing else is named
        if best is None or grows or best.moment.id == "prose.launch":
            together = self._together(talk)
            best = best if together is None or (grows and together.moment.again) else together
        best = self._served(talk) if best is None else best
        not_then = None if best is not None else self._not_then(talk)
        failed = self._at("prose.it-failed", best.at, 0) if best is not None and best.fails and not self._elsewhere(talk) else None
        found = (self._shortage(talk), self._failure(talk), best, failed, not_then, *self._beside(talk))
        return [said for said in found if said is not None]

    def _best(self, talk: Talk) -> Said | None:
        """What one sentence says best, the first of several: what may say most is read first, and what cannot say more never."""
        best, place = None, 0
        for most, number in sorted(self._bounds(talk)):
            if most == 0 or (best is not None and -most < best.weight):
                break
            if best is not None and -most == best.weight and number > place:
                continue
            said = self._of(talk[number]) or self._there(talk, number)
            if said is not None and (best is None or (said.weight, -number) > (best.weight, -place)):
                best, place = said, number
        return best

    def _plainly(self, talk: Talk, best: Said) -> Said | None:
        """What a sentence says failed in so many words, where of graphs only is said that it works without them."""
        if all(word.start != best.at for number in talk.holding(self._eager) for word in talk[number].all_of("eager")):
            return None
        named = (complained_of(talk[number], self._moments) for number in talk.holding(self._named))
        return next((said for said in named if said is not None and said.weight >= SURE and said.moment.id in PLAIN), None)

    def _headed(self, talk: Talk, best: Said) -> Said:
        """What the line is about whose later sentence complains, where it begins with a moment (`First request — … The tuner fails`)."""
        number = talk.heads(best.at)
        one = None if number is None or not talk.held(number) & self._moment else talk[number]
        first = None if one is None else next((m for m in one.relations if m.telling and m.start - one.start <= _HEAD), None)
        if one is None or first is None or first.moment in self._aside or one.relations[first] not in WEIGHT:
            return best
        return replace(best, moment=self._moments[first.moment], at=first.start) if _HEADS.match(one.text, first.start) else best

    def _bounds(self, talk: Talk) -> Iterator[tuple[int, int]]:
        """(how much a sentence may say at most, less than nothing, its number) of each."""
        most: dict[int, int] = {}  # of the words that it may hold: most sentences hold the same
        for number in talk.holding(self._named | self._telling | self._joined):
            held = talk.held(number)
            if held not in most:
                most[held] = -self._most(held)
            yield most[held], number

    def _most(self, held: int) -> int:
        """How well a sentence with these words can say something at most: of what had not begun, it says what was going on instead."""
        by_itself = SURE if held & (self._telling | self._joined) else 0
        if not (self._names(held) and held & self._complaints):
            return by_itself
        instead = bool(held & self._before)
        return max(by_itself, max(WEIGHT.values()) + 2 * bool(held & self._sure or instead) + bool(held & self._rather or instead))

    def _names(self, held: int) -> bool:
        """May a sentence with these words name a moment, by one of them or by two together?"""
        return held & self._moment != 0 or any(held & one and held & other for one, other in self._pairs)

    def _of(self, one: Sentence) -> Said | None:
        """What the sentence says by itself."""
        by_itself, complained = says_by_itself(one, self._moments), complained_of(one, self._moments)
        if by_itself is None or complained is None or complained.moment.id != by_itself[0]:
            return complained if by_itself is None else self._at(*by_itself)
        return replace(self._at(*by_itself), fails=complained.fails)

    def _there(self, talk: Talk, number: int) -> Said | None:
        """The moment that the sentence before named, where this one complains of nothing but `in there`."""
        one = talk[number]
        if not number or not one.has("there") or not one.told(*COMPLAINTS):
            return None
        named = [moment for moment in talk[number - 1].relations if moment.telling and not self._moments[moment.moment].aside]
        return self._at(named[-1].moment, one.all_of("there")[0].start) if named else None

    def _together(self, talk: Talk) -> Said | None:
        """What all sentences leave: a moment named beyond doubt in or beside one that complains, that none says was over or to come.

        Where nobody complains, a log may: then what only a server that runs is asked.
        """
        if next(talk.holding(self._sure), None) is None:
            return None
        complaining = [number for number in talk.holding(self._complaints) if talk[number].has(*COMPLAINTS) and not talk[number].taken_back]
        loud = {number for number in complaining if talk[number].has("shortage", "killed")} or {*complaining}
        naming = [number for number in talk.holding(self._named) if self._names(talk.held(number)) and talk[number].relations]
        loud |= {number for number in naming if talk[number].stuck}
        loud = loud or {number for number in naming if implies(talk[number])}
        failed = any(talk[number].has("shortage", "failure") or implies(talk[number]) for number in loud)
        over = {m.moment for n in naming for m, relation in talk[n].relations.items() if relation in ("past", "before", "off")}
        rated: list[tuple[int, int, Said]] = []
        for place, one in ((place, talk[place]) for place in naming):
            near = 0 if not loud or place in loud else 1
            if one.asks or one.taken_back or (loud and one.text.startswith("#", one.start)) or (near and not talk.beside(place) & loud):
                continue
            if near and len({word.moment for word in one.relations if word.telling}) > 1:
                continue  # of several things one complains of none
            for moment in (word for word in one.relations if word.telling):
                going_on, relation = meant(moment, one, self._moments)
                if going_on == "prose.serving" and loud and (one.supposes or (near and one.has(*DEMANDS))):
                    continue
                if relation not in WEIGHT or going_on == "prose.launch" or (going_on in over if loud else going_on != "prose.serving"):
                    continue
                said = Said(self._moments[going_on], moment.start, fails=relation == "while" and failed)
                rated.append((-near, WEIGHT[relation] - (going_on == "prose.serving"), said))
        return max(rated, key=lambda rate: rate[:2])[2] if rated else None

    def _served(self, talk: Talk) -> Said | None:
        """That memory ran out later, where the sentence before says that the server answered."""
        for number in talk.holding(self._shortages):
            up = next((talk[n] for n in talk.beside(number) if n < number), None)
            was_up = up is not None and up.has("ran") and not up.asks and not up.told(*COMPLAINTS)
            if was_up and (short := ran_out_later(talk[number], was_up)) is not None:
                return self._at("prose.serving", short.start, SURE - 1)
        return None

    def _elsewhere(self, talk: Talk) -> bool:
        """Is another fault named, or memory's denied, and nowhere that memory ran out?"""
        if any(talk[number].has("shortage") for number in talk.holding(self._shortages)):
            return False
        aside = map(talk.__getitem__, self._speak_aside(talk))
        named = any(one.names("prose.other-fault", "prose.denied") or one.taken_back for one in aside)
        return named or self._plenty(talk) is not None

    def _speak_aside(self, talk: Talk) -> list[int]:
        """The sentences that may say that memory is not what failed: by a word, or, where one was read, by a complaint denied."""
        return sorted({*talk.holding(self._asides), *talk.denying})

    def _plenty(self, talk: Talk) -> Mention | None:
        return next((free for number in talk.holding(self._free) if (free := plenty(talk[number]))), None)

    def _shortage(self, talk: Talk) -> Said | None:
        """That memory ran out, in words or, where something failed, in figures; a question whether it would says nothing."""
        every = map(talk.__getitem__, talk.holding(self._shortages))
        word = next((words[0] for one in every if (words := one.told("shortage"))), None)
        if word is None:
            failing = (talk[number] for number in talk.holding(self._failures) if talk[number].has(*DEMANDS))
            word = next((word for one in failing if one.told("failure", "killed") and (word := falls_short(one))), None)
        if word is None and not talk.holds(self._complaints):
            word = next((word for one in talk.read if (word := only_so_much(one))), None)
        return None if word is None else self._at("prose.oom", word.start, 0)

    def _failure(self, talk: Talk) -> Said | None:
        """That something went wrong, whatever it was."""
        found = (word for number in talk.holding(self._failures) for word in talk[number].all_of("failure", "error", "killed"))
        return next((self._at("prose.failure", word.start, 0) for word in found), None)

    def _not_then(self, talk: Talk) -> Said | None:
        """When it did not fail, where nothing says when it did."""
        off = (m for one in talk.read for m, relation in one.relations.items() if relation == "off" and self._denied(one, m))
        asked = (one.all_of("question", "retracted")[0] for one in talk.read if one.relations and (one.asks or one.taken_back))
        found = next(off, None) or next(asked, None)
        return None if found is None else self._at("prose.not-then", found.start, 0)

    def _denied(self, one: Sentence, moment: Mention) -> bool:
        """Is it this moment itself that was not, or was not when it failed?"""
        near = any(0 <= moment.start - word.end <= len(" the ") for word in one.all_of("not"))
        return moment.moment not in self._aside and (near or one.has("absent", "elsewhere"))

    def _beside(self, talk: Talk) -> Iterator[Said]:
        """What says that memory is not what failed; another fault only where something failed at all."""
        if not talk.denying and not talk.holds(self._asides | self._free):
            return
        aside = [talk[number] for number in self._speak_aside(talk)]
        failed = any(talk[n].has(*COMPLAINTS) for n in talk.holding(self._complaints))
        for one in aside:
            for moment in (moment for moment in one.relations if moment.moment in self._aside):
                if moment.moment == "prose.other-fault" and not moment.telling and not failed:
                    continue
                if not (unsaid(moment, talk.text) and any(talk[n].has("killed") for n in talk.holding(self._failures))):
                    yield self._at(moment.moment, moment.start, 0)
            for word in one.all_of("retracted") if one.taken_back else ():
                yield self._at("prose.denied", word.start, 0)
        if failed and not talk.holds(self._short) and (free := self._plenty(talk)) is not None:
            yield self._at("prose.denied", free.start, 0)

    def _at(self, moment: str, at: int, weight: int = SURE) -> Said:
        return Said(self._moments[moment], at, weight)


@lru_cache(maxsize=4)
def speech_of(book: Rulebook) -> Speech:
    """The reader of a rulebook's words, prepared once."""
    return Speech(book)
