"""What people write around a log: which rules may match a line of it, by the words that stand there."""

import re
from collections.abc import Sequence

import ahocorasick_rs

from bot.domain.evidence import LogLine
from bot.rulebook.files import FactRule
from bot.rulebook.needs import alternatives_of

LONGEST = 4000
_SENTENCE = re.compile(r"[A-Za-z']{2,} [A-Za-z'`(]")


class Prose:
    """The rules for sentences. Their patterns are long, so that of each only the alternatives run whose words all stand in the text."""

    def __init__(self, rules: Sequence[FactRule]) -> None:
        alternatives = {rule.id: alternatives_of(rule.pattern) for rule in rules if rule.pattern}
        words = sorted({word for each in alternatives.values() for one in each for need in one.needs for word in need})
        bits = {word: 1 << place for place, word in enumerate(words)}
        self._spans = max([1, *(rule.spans for rule in rules)])
        self._automaton = ahocorasick_rs.AhoCorasick(words)
        self._needs = {
            rule: [(one.pattern, [sum(bits[word] for word in need) for need in one.needs]) for one in each]
            for rule, each in alternatives.items()
        }

    def words(self, line: LogLine, following: Sequence[LogLine]) -> int:
        """The words that stand in a line, or in those that it may go on in: one bit for each."""
        text = " ".join([line.text, *(other.text for other in following[: self._spans])])
        found = 0
        for word, _, _ in self._automaton.find_matches_as_indexes(text.lower(), overlapping=True):
            found |= 1 << word
        return found

    def patterns(self, rule: FactRule, words: int) -> Sequence[str]:
        """What of the rule's pattern may match where these words stand; a pattern that captures something stays whole."""
        found = [pattern for pattern, needs in self._needs.get(rule.id, ()) if all(words & need for need in needs)]
        return [rule.pattern] if found and rule.fields else found


def may_be_prose(rule: FactRule, line: LogLine) -> bool:
    """What an engine logs is no prose; what tells of a failure has two words at least."""
    if line.level or line.file or line.speaker.role != "unknown" or len(line.text) > LONGEST:
        return False
    return "(?&" not in rule.pattern or not line.text.isascii() or _SENTENCE.search(line.text) is not None
