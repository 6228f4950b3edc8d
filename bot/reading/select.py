"""Keeps a large log small: only lines that a rule may want, and their surroundings, are read further."""

import re
from collections.abc import Sequence

from bot.reading.facts import finder_of
from bot.rulebook.book import Rulebook

MANY = 20_000
AROUND = 3
_KEEP = re.compile(r'File "|Traceback|Error|ERROR|CRITICAL|WARNING|--[a-z]|Killed|=')


def telling(book: Rulebook, lines: Sequence[str]) -> list[tuple[int, str]]:
    """Numbered lines of a text. Beyond MANY lines: head, tail, and whatever has an anchor, with its neighbours.

    A recurring line (throughput, access log) counts only at its first and last few occurrences.
    """
    if len(lines) <= MANY:
        return list(enumerate(lines, 1))
    finder = finder_of(book)
    wanted: set[int] = set(range(2000)) | set(range(len(lines) - 4000, len(lines)))
    seen: dict[str, list[int]] = {}
    for index, line in enumerate(lines):
        if index in wanted:
            continue
        rules = finder.candidates(line)
        if not rules and 'File "' not in line:
            continue
        if rules and all("recurring" in rule.kinds or "engine-marker" in rule.kinds for rule in rules):
            seen.setdefault(rules[0].id, []).append(index)
            continue
        wanted.update(range(max(0, index - AROUND), min(len(lines), index + AROUND + 1)))
    for indexes in seen.values():
        wanted.update(indexes[:20])
        wanted.update(indexes[-200:])
    return [(i + 1, lines[i]) for i in sorted(wanted)]
