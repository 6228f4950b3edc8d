"""Names of cards in running text, each with the number of cards beside it: `2x RTX 3090`, `8xH20`, `dual 4090`, `H100 x8`."""

import re
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import ahocorasick_rs

_LONGEST = 50
"""Letters before its anchor that a name may have, with a number of cards before it."""
_LETTER = "A-Za-z0-9_"
"""Of a word that a name may be part of: Chinese is written without spaces."""
_BEGINS = re.compile(rf"[{_LETTER}](?<![{_LETTER}.\-/].)")
SIBLING = r"[ _-](?:Ti|Super|Laptop|Mobile|Max-?Q|GRE)(?![A-Za-z])"
"""What makes a name that of another card, which is not known."""
_COUNT_WORDS = {
    "single": 1, "one": 1, "dual": 2, "two": 2, "twin": 2, "double": 2, "three": 3, "quad": 4, "four": 4, "eight": 8,
    "zwei": 2, "drei": 3, "vier": 4, "acht": 8, "deux": 2, "trois": 3, "quatre": 4, "cuatro": 4, "ocho": 8, "due": 2, "quattro": 4,
}  # fmt: skip
_SHEETS = {"单": 1, "單": 1, "一": 1, "双": 2, "雙": 2, "两": 2, "兩": 2, "三": 3, "四": 4, "八": 8}
"""Counts of cards before a name (一张 A100, 双卡4090). Others are counted out of more: 第一张, 每一张, 另一张."""
_SHEET = rf"[{''.join(_SHEETS)}][张張块塊卡枚]"
_SHEETS_BEFORE = re.compile(rf"(?<![第每另其任中前后後这這那十])({_SHEET}) ?\Z")


@dataclass(frozen=True, slots=True)
class Named:
    """A name as it stands in the text from `start` to `end`; `count` None where no number of cards stands beside it."""

    name: str
    count: int | None
    text: str
    start: int
    end: int


class _Anchor(NamedTuple):
    """Which letters may stand right before an anchor (others are of another word), and the names that it is part of."""

    before: set[str]
    names: set[str]


class Names:
    """Looks for the telling part of each name in one pass, and tries the whole names only where one stands."""

    def __init__(self, names: Iterable[str]) -> None:
        anchors = _anchors(names)
        self._automaton, self._anchors = ahocorasick_rs.AhoCorasick(list(anchors)), list(anchors.items())
        self._naming = lru_cache(maxsize=256)(self._pattern)

    def _pattern(self, anchors: frozenset[int]) -> re.Pattern[str]:
        """Finds the names with these anchors; one for all of them would take 20 ms to compile."""
        return _names_pattern({name for anchor in anchors for name in self._anchors[anchor][1].names})

    def found(self, text: str) -> Iterator[Named]:
        """Every name in the text, in order."""
        for match in self._matches(text):
            count = _count(match["before"] or match["spaced"] or match["word"] or match["after"] or match["sheets"])
            yield Named(
                match["name"], _sheets(text, match.start()) if count is None else count, match[0].strip(), match.start(), match.end()
            )

    def _matches(self, text: str) -> Iterator[re.Match[str]]:
        lower = text.lower()
        if len(lower) != len(text):  # a letter that grows when lowered would shift every position
            yield from self._naming(frozenset(range(len(self._anchors)))).finditer(text)
            return
        places = list(self._places(lower))
        pattern = self._naming(frozenset(anchor for anchor, _ in places))
        done = 0
        for start in sorted(start for _, start in places):
            if start < done:
                continue
            begins = _BEGINS.finditer(text, max(done, start - _LONGEST), start + 1)
            match = next((match for begin in begins if (match := pattern.match(text, begin.start())) is not None), None)
            if match is not None:
                yield match
                done = match.end()

    def _places(self, lower: str) -> Iterator[tuple[int, int]]:
        """Each anchor that may be a name's, and where it begins."""
        for anchor, start, end in self._automaton.find_matches_as_indexes(lower, overlapping=True):
            (text, (glued, _)), before = self._anchors[anchor], lower[start - 1 : start]
            bare = text.isdigit()
            if (before in glued or not (bare or (before.isalnum() and before.isascii()))) and not (bare and lower[end : end + 1].isdigit()):
                yield anchor, start


def _count(text: str | None) -> int | None:
    return None if not text else _COUNT_WORDS.get(text.lower()) or int(text)


def _sheets(text: str, start: int) -> int | None:
    found = _SHEETS_BEFORE.search(text[max(0, start - 4) : start])
    return _SHEETS[found[1][0]] if found is not None else None


def _anchors(names: Iterable[str]) -> Mapping[str, _Anchor]:
    """The part of each name that is looked for first: its word with a digit in it, else its longest.

    The space before it may be missing, and an x may count the cards. A bare figure needs one of these: else it is a port or a time.
    """
    found: dict[str, _Anchor] = {}
    for name in names:
        words = re.split(r"[ _-]", name.lower())
        telling = [word for word in words if word != "nvidia"]  # which stands in front of other names and of many a tool's
        text = next((word for word in telling if len(word) > 1 and any(c.isdigit() for c in word)), max(telling, key=len))
        anchor = found.setdefault(text, _Anchor(set("x×* _-张块卡枚"), set()))
        anchor.before.update(word[-1:] for word in words[: words.index(text)][-1:])
        anchor.names.add(name)
    return found


def _names_pattern(names: Set[str]) -> re.Pattern[str]:
    """A name stands alone as a word. A bare figure (`4090`) or a common word counts only with a number of cards or a maker before it."""
    strong = _alternation(filter(_telling, names)) or "(?!)"
    weak = _alternation(name for name in names if not _telling(name)) or "(?!)"
    size = r"(?:[ _-]?(?:SXM\d?|PCIe?|HBM\d?e?|NVL|OAM)\b)*(?:[ _-]?\(?\d{2,3} ?(?:GB|GiB|G)\b(?: VRAM| each)?\)?)?"
    maker = r"(?:NVIDIA|AMD|Intel\(R\)|Tesla|GeForce|Instinct|Radeon|Jetson)[ _-]"
    number = r"(?P<before>\d{1,3}) ?[x×*张块卡枚]卡? ?"
    spaced = r"(?P<spaced>(?:[2-9]|1[0-9]|[2-9]\d)) (?!NVIDIA|Tesla)"
    word = rf"(?P<word>{'|'.join(_COUNT_WORDS)})[ -]"
    figures = _alternation(name for name in names if name.split()[0].isdigit()) or "(?!)"
    article = r"(?P<article>an?|the|my|our|his|this|einer?|eine[mn]|meiner?|une?) "
    sheet = rf"(?:(?<={_SHEET})|(?<={_SHEET} ))"
    bare = rf"(?(before)(?:{weak})|(?(word)(?:{weak})|(?(article)(?:{figures})|{sheet}(?:{figures}))))"
    return re.compile(
        rf"(?<![{_LETTER}.\-/])(?:{number}|{spaced}|{word}|{article})?(?P<name>(?:(?:{maker})*(?:{strong})|{maker}(?:{weak})|{bare}){size})"
        rf"s?(?![{_LETTER}]|-[{_LETTER}]|\.\d| (?:tok|req|block|step|seq)|{SIBLING})"
        rf"(?: ?\(?[x×*] ?(?P<after>\d{{1,3}})\b| ?(?P<sheets>\d{{1,2}}) ?[枚张块])?",
        re.IGNORECASE,
    )


def _telling(name: str) -> bool:
    if " " in name and not any(c.isdigit() for c in name):
        return True  # no two words stand side by side by chance: DGX Spark, Strix Halo
    return any(c.isdigit() for c in name) and any(c.isalpha() for c in name.split()[0]) and not re.match(r"[Bb]\d\d$", name)


def _alternation(names: Iterable[str]) -> str:
    """Longest first, grouped by first letter so that a word costs one look at most of them; space, dash and underscore are one."""
    grouped: dict[str, list[str]] = {}
    for name in sorted(names, key=lambda n: (-len(n), n)):
        grouped.setdefault(name[0].lower(), []).append(name)
    return "|".join(f"{re.escape(first)}(?:{'|'.join(_loose(name[1:]) for name in group)})" for first, group in sorted(grouped.items()))


def _loose(name: str) -> str:
    return "[ _-]?".join(re.escape(part) for part in re.split(r"[ _-]", name))
