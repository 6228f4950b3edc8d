"""How a sentence speaks of each moment in it: it was going on, it was over, it had not begun, or it is another matter."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bot.reading.together import COMMA, COMPLAINTS
from bot.reading.words import Mention
from bot.rulebook.files import Moment

WEIGHT = {"while": 3, "at": 2, "bare": 1}
"""The relations of a moment that was going on, by how surely they say so."""
CLAUSE = 60
"""Letters within which a bare moment and a complaint belong together."""
SIDE_BY_SIDE = 14
"""Letters within which two words are one thought: `resume error`, `VRAM or RAM`."""
JOINS = 28
"""Letters between a joining word and the moment that it joins."""
DENIES = 32
"""Letters between a denial and the joining word that it denies: `not considered during`."""
FOLLOWS = 40
"""Letters between a moment and the word behind it that says how it went."""
_ASKED = re.compile(r"[^.!?;。！？；\n]{0,80}[?？]")
_CORRECTS = re.compile(r"wrong|mistake|misleading")
"""What somebody said was wrong, and what is so follows (`I was wrong, it dies while …`); what is over is only over."""
_PARTED = re.compile(f"{COMMA.pattern}|\\|")
"""What parts a moment from what is told before it: another cell of the row too."""
_JOINTS = ("and", "or", ",", "/", "+", "&", "and the", "und", "et", "y", "和", "的", "")
CALLS = tuple(f"{behind} {arrow}" for behind in ("", "()") for arrow in ("->", "→", "=>"))
"""Between what called and what was called: the former says what was going on."""
_SKIPS = ("skip", "disabl", "turn")
_ASIDE = ("prose.launch", "prose.denied", "prose.pressure", "prose.other-fault")
_ANYWHERE = ("prose.load", "prose.serving", "prose.warm-up", "prose.launch")
"""What other software is at too."""
_OF = ("", "of", "of the", "of a")
"""Between a moment and the requests that are its own: `the warm-up of decode buckets`."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """Its words in order, and of each moment among them how it is spoken of: while, at (the same, less surely), bare, past, before, off;
    called, where another one called it.
    """

    start: int
    text: str
    words: Sequence[Mention]
    relations: Mapping[Mention, str]
    means: frozenset[str]

    def has(self, *means: str) -> bool:
        """Is there a word that means one of these?"""
        return not self.means.isdisjoint(means)

    def names(self, *moments: str) -> bool:
        """Does it name one of these moments, however it speaks of it?"""
        return any(one.moment in moments for one in self.relations)

    def all_of(self, *means: str) -> list[Mention]:
        """Its words that mean one of these."""
        return [one for one in self.words if one.means in means] if self.has(*means) else []

    def told(self, *means: str) -> list[Mention]:
        """Those that nobody asks for: in a question, what a comma parts from it (`it says X, what should I do?`)."""
        words = self.all_of(*means)
        if words and self.has("retracted"):
            words = [word for word in words if word >= self._turn] if self._turn is not None else []
        if not words or not self.has("question"):
            return words
        asked = self.all_of("question")[0].start
        return [word for word in words if word.end <= asked and COMMA.search(self.text, word.end, asked)]

    @property
    def _turn(self) -> Mention | None:
        """The word from which on it speaks of what is so, behind what it takes back: `now`, or of a correction what fails."""
        back = self.all_of("retracted")[-1]
        now = next((word for word in self.all_of("but", "now") if word > back), None)
        if now is not None or not _CORRECTS.search(self.text, back.start, back.end):
            return now
        goes_on = any(one > back and relation == "while" for one, relation in self.relations.items())
        return next((word for word in self.all_of(*COMPLAINTS) if goes_on and word > back), None)

    @property
    def taken_back(self) -> bool:
        """Is all that it says of memory over, or was a mistake?"""
        return self.has("retracted") and self._turn is None

    @property
    def asks(self) -> bool:
        """Is it a question and nothing else?"""
        return self.has("question") and not self.told(*COMPLAINTS)

    @property
    def stuck(self) -> bool:
        """Does it say of a moment that it is not got past?"""
        threes = zip(self.words, self.words[1:], self.words[2:], strict=False)
        return any((denies.means, past.means, moment.means) == ("not", "fine", "moment") for denies, past, moment in threes)

    @property
    def supposes(self) -> bool:
        """Does it end as a question and complain of nothing? The requests in it may be none that ran."""
        return not self.has(*COMPLAINTS) and _ASKED.match(self.text, self.words[-1].end) is not None

    def between(self, one: Mention, other: Mention) -> list[Mention]:
        """The words that stand between two of them."""
        first, last = sorted((one, other))
        return [word for word in self.words if first.end <= word.start < last.start]

    def joined(self, one: Mention, other: Mention) -> bool:
        """Does no comma part them?"""
        first, last = sorted((one, other))
        return COMMA.search(self.text, first.end, last.start) is None

    def pairs(self, means: str, other: str, within: int) -> list[tuple[Mention, Mention]]:
        """Two words of these meanings with no more than so many letters between them, the nearest first."""
        if means not in self.means or other not in self.means:
            return []
        found = [(a, b) for a in self.all_of(means) for b in self.all_of(other) if apart(a, b) <= within]
        return sorted(found, key=lambda pair: apart(*pair))


def apart(one: Mention, other: Mention) -> int:
    """Letters between two words."""
    return max(one.start, other.start) - min(one.end, other.end)


def spoken_of(words: Sequence[Mention], text: str, moments: Mapping[str, Moment]) -> Mapping[Mention, str]:
    """The relation of each moment among a sentence's words."""
    elsewhere = any(one.means == "elsewhere" for one in words)
    return {
        one: "off" if elsewhere and one.moment in _ANYWHERE else _relation(one, words, text, moments[one.moment])
        for one in words
        if one.means == "moment"
    }


def _relation(moment: Mention, words: Sequence[Mention], text: str, rule: Moment) -> str:
    place = words.index(moment)
    before = list(reversed(words[:place]))
    behind, ahead = _behind(moment, words[place + 1 :], text), _ahead(moment, before, text, rule)
    relation = "while" if behind == "past" and ahead == "before" else behind or ahead or "bare"
    wrong = relation == "bare" and moment.moment == "prose.profiling"
    if wrong and any(one.means == "misjudged" and apart(one, moment) <= CLAUSE for one in words):
        return "off"  # what it measured was wrong: memory ran out later
    if behind == "while" and ahead == "off":
        return "off"  # `不是在加载时`
    if relation == "before" and any(one.means == "otherwise" and one.start >= moment.end for one in words):
        return "while"  # what must happen before, or else it fails there
    if relation == "past" and words[place + 1 : place + 2] and words[place + 1].means == "not" and words[place + 1].start - moment.end <= 3:
        return "while"  # `klappt das Laden nicht`
    if relation in ("at", "bare") and moment.joined:
        return "while"
    if rule.again and relation in WEIGHT and _is_of_another(moment, words, text):
        return "off"
    if relation == "bare" and text[moment.end : moment.end + 1] == ":" and not any(one.means != "moment" for one in before):
        return "at"  # what the sentence is about
    if relation in WEIGHT and not rule.lasting and any(one.means == "later" and one.start >= moment.end for one in words):
        return "past"
    if rule.lasting and relation == "after":
        return "while"
    if rule.again and relation == "past":  # the first ones may well have worked
        return "bare" if any(one.means == "moment" and one.moment not in (moment.moment, "prose.launch") for one in words) else "while"
    if rule.again and any(one.means == "wish" and 0 <= moment.start - one.end <= JOINS for one in words):
        return "off"
    return "past" if relation == "after" else relation


def _behind(moment: Mention, following: Sequence[Mention], text: str) -> str | None:
    """What stands behind it: `finishes`, `does not complete`, and in some languages what joins it."""
    denied = False
    for one in following:
        gap = one.start - moment.end
        if one.means in ("then", "thereafter"):
            if gap <= 4:
                return "while" if one.means == "then" else "after"
            continue
        if one.means == "absent" and gap <= FOLLOWS and not COMMA.search(text, moment.end, one.start):
            return "off"
        if gap > FOLLOWS or one.means in (*COMPLAINTS, "moment", "but", "before", "after") or COMMA.search(text, moment.end, one.start):
            return None
        denied = denied or one.means == "not"
        if one.means == "fine":
            return "while" if denied else "past"
    return None


def _ahead(moment: Mention, preceding: Sequence[Mention], text: str, rule: Moment) -> str | None:
    """What stands before it: `during`, `after`, `gets past`, `without`."""
    for place, one in enumerate(preceding):
        if one.means == "moment":
            between = text[one.end : moment.start].strip()
            if f" {between}".replace(" ()", "()") in CALLS:
                return "called"
            joined = between in _JOINTS
            return _relation(one, [*reversed(preceding[place:])], text, rule) if joined else None
        if moment.start - one.end > JOINS or one.means in (*COMPLAINTS, "but") or _PARTED.search(text, one.end, moment.start):
            return None
        if one.means in ("while", "at", "after") and _is_denied(one, preceding[place + 1 :], text):
            return "off"
        if one.means == "at" and rule.again and _is_told_of_a_moment(one, moment, preceding[place + 1 : place + 2]):
            return "off"
        if one.means in ("while", "at", "after", "before"):
            return one.means
        if one.means == "fine":  # `never gets past the load`
            return "while" if any(w.means == "not" and one.start - w.end <= 1 for w in preceding[place + 1 : place + 2]) else "past"
        if one.means in ("not", "bygone", "absent"):
            return "off"
        if one.means == "triggers":  # what sets something else off says what was going on
            return "off" if any(w.means == "moment" for w in preceding[place:]) else None
    return None


def _is_told_of_a_moment(joining: Mention, moment: Mention, before: Sequence[Mention]) -> bool:
    """`The warm-up with 1024 requests`: they are the warm-up's own."""
    return any(one.means == "moment" and one.moment != moment.moment and joining.start - one.end <= 1 for one in before)


def _is_of_another(moment: Mention, words: Sequence[Mention], text: str) -> bool:
    """`The warm-up of decode buckets`, `prefill warm-up`: the requests are that moment's own."""
    for one in words:
        if one.means == "moment" and one.moment not in (moment.moment, *_ASIDE):
            first, last = sorted((one, moment))
            if text[first.end : last.start].strip() in (_OF if first is one else ("",)):
                return True
    return False


def _is_denied(joining: Mention, preceding: Sequence[Mention], text: str) -> bool:
    """Does a word before it say no, that it is bygone or was not counted, or that there was no shortage? What is skipped is what follows
    at once.
    """
    behind = joining
    for word in preceding:
        if joining.start - word.end > DENIES or word.means == "but" or _PARTED.search(text, word.end, joining.start):
            return False
        if word.means in ("bygone", "misjudged") or word.moment == "prose.denied":
            return True
        if word.means == "not" and behind.means != "fine" and not text.startswith(_SKIPS, word.start):
            return True
        behind = word
    return False
