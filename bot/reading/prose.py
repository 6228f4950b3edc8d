"""What people write around a log: which rules may match a line of it, by the words that stand there."""

import re
from collections.abc import Sequence
from functools import lru_cache

import ahocorasick_rs

from bot.domain.evidence import LogLine
from bot.rulebook.files import FactRule
from bot.rulebook.needs import alternatives_of, telling

LONGEST = 4000
_SENTENCE = re.compile(r"[A-Za-z']{2,} [A-Za-z'`(]")


class Prose:
    """The rules for sentences. Their patterns are long, so that of each only the alternatives run whose words all stand in the text."""

    def __init__(self, rules: Sequence[FactRule]) -> None:
        alternatives = {rule.id: alternatives_of(rule.pattern) for rule in rules}
        words = sorted({word for each in alternatives.values() for one in each for need in one.needs for word in need})
        places = {word: place for place, word in enumerate(words)}
        self._spans = max([1, *(rule.spans for rule in rules)])
        self._automaton = ahocorasick_rs.AhoCorasick(words)
        self._words_in = lru_cache(maxsize=16)(self._standing)
        self._always = {rule: [one.pattern for one in each if not one.needs] for rule, each in alternatives.items()}
        self._by_word: dict[tuple[str, int], list[tuple[str, list[frozenset[int]]]]] = {}
        for rule, each in alternatives.items():
            for one in each:
                needs = [frozenset(places[word] for word in need) for need in one.needs]
                for word in max(one.needs, key=telling, default=()):
                    self._by_word.setdefault((rule, places[word]), []).append((one.pattern, needs))

    def words(self, line: LogLine, following: Sequence[LogLine]) -> frozenset[int]:
        """The words that stand in a line, or in those that it may go on in, by number."""
        return self._words_in(line.text).union(*(self._words_in(other.text) for other in following[: self._spans]))

    def patterns(self, rule: FactRule, words: frozenset[int]) -> Sequence[str]:
        """What of the rule's pattern may match where these words stand; a pattern that captures something stays whole."""
        found = dict.fromkeys(self._always[rule.id])
        for word in words:
            for pattern, needs in self._by_word.get((rule.id, word), ()):
                for need in needs:
                    if words.isdisjoint(need):
                        break
                else:
                    found[pattern] = None
        return [rule.pattern] if found and rule.fields else list(found)

    def _standing(self, text: str) -> frozenset[int]:
        return frozenset(word for word, _, _ in self._automaton.find_matches_as_indexes(text.lower(), overlapping=True))


def may_be_prose(rule: FactRule, line: LogLine) -> bool:
    """What an engine logs is no prose; what tells of a failure has two words at least."""
    if line.level or line.file or line.speaker.role != "unknown" or len(line.text) > LONGEST:
        return False
    return "(?&" not in rule.pattern or not line.text.isascii() or _SENTENCE.search(line.text) is not None
