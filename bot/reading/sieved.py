"""Rules of people's words that need another word, held against all their lines at once: many lines name what they name, few say it."""

from collections.abc import Collection, Container, Iterator, Mapping, Sequence

from bot.domain.evidence import LogLine
from bot.reading.anchored import SHORT
from bot.reading.figures import Figures, Wanted
from bot.rulebook.files import FactRule
from bot.rulebook.patterns import compiled

Anchored = Mapping[int, Mapping[str, FactRule]]
FURTHEST = 3
"""Lines that what people say runs over, besides its first, at the most."""


class _Told:
    """Lines of a person that are alike, with what follows them: their places, and the ids of the rules that they match.

    `more`: with the line behind; `small`: that in small letters.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self.text, *self._tail = texts
        self.more = self.over(1)
        self.small = self.more.lower()
        self.places: list[int] = []
        self.said: set[str] = set()

    def over(self, spans: int) -> str:
        """The line with so many of those behind it."""
        return " ".join((self.text.rstrip(), *map(str.strip, self._tail[:spans]))) if self._tail else self.text


def sieved(anchored: Anchored, lines: Sequence[LogLine], figures: Figures, talking: Container[LogLine]) -> Anchored:
    """The rules that lines may match, without those of people's words that match neither the line nor it with what follows.

    `talking`: the lines that hold a person's words. What a program prints recurs, and most of it is never read.
    """
    kept, alike, asked = _parted(anchored, lines, figures, talking)
    for rule, several in asked:
        for told in _matching(rule, several, figures.of(rule)):
            told.said.add(rule.id)
    for told in alike:
        for place in told.places if told.said else ():
            kept[place] = {name: rule for name, rule in anchored[place].items() if name in told.said or not _is_asked(rule, figures)}
    return kept


def _parted(
    anchored: Anchored, lines: Sequence[LogLine], figures: Figures, talking: Container[LogLine]
) -> tuple[dict[int, Mapping[str, FactRule]], Collection[_Told], Collection[tuple[FactRule, Sequence[_Told]]]]:
    """(what lines may match besides, the lines that are held against rules, each of those rules with the lines that it is held against)."""
    kept: dict[int, Mapping[str, FactRule]] = {}
    alike: dict[tuple[str, ...], _Told] = {}
    asked: dict[str, tuple[FactRule, list[_Told]]] = {}
    split: dict[int, tuple[Mapping[str, FactRule], Sequence[FactRule]]] = {}
    for place, rules in anchored.items():
        if id(rules) not in split:  # the same where lines hold the same anchors
            several = [rule for rule in rules.values() if _is_asked(rule, figures)]
            split[id(rules)] = {name: rule for name, rule in rules.items() if rule not in several}, several
        others, spoken = split[id(rules)]
        if not spoken or lines[place] not in talking:
            kept[place] = rules
            continue
        if others:
            kept[place] = others
        texts = _going_on(lines, place)
        if texts not in alike:
            alike[texts] = _Told(texts)
            for rule in spoken:
                asked.setdefault(rule.id, (rule, []))[1].append(alike[texts])
        alike[texts].places.append(place)
    return kept, alike.values(), asked.values()


def _is_asked(rule: FactRule, figures: Figures) -> bool:
    return "prose" in rule.kinds and figures.need_words(rule)


def _going_on(lines: Sequence[LogLine], place: int) -> tuple[str, ...]:
    """The line and those behind it that may go on with what a person says."""
    line = lines[place]
    texts = [line.text]
    for nxt in lines[place + 1 : place + 1 + FURTHEST]:
        text = nxt.text
        if not text or text.isspace() or nxt.level is not None or nxt.source != line.source or (nxt.signed and nxt.speaker != line.speaker):
            break
        texts.append(text)
    return tuple(texts)


def _matching(rule: FactRule, several: Sequence[_Told], wanted: Wanted) -> Iterator[_Told]:
    """The lines that the rule matches, by themselves or with what follows; of a long one that is found out later."""
    search = compiled(rule.pattern).search
    for told in several:
        more, small = (told.more, told.small) if rule.spans < 2 else (told.over(rule.spans), "")
        if len(more) > SHORT:
            yield told
        elif wanted.words_stand_in(small or more.lower()):
            for text in (more,) if more is told.text else (more, told.text):
                if wanted.forms_stand_in(text.lower()) and search(text) is not None:
                    yield told
                    break
