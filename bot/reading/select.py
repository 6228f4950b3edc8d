"""Keeps a large log small: its beginning, its end, and the surroundings of what a rule may want; all in one pass over bytes."""

from collections import deque
from collections.abc import Iterable, Iterator
from functools import lru_cache

import ahocorasick_rs

from bot.rulebook.book import Rulebook, texts

MANY = 20_000
HEAD, TAIL = 300, 1200
FIRST, LAST = 40, 40
"""Occurrences that are kept of each message: the first ones and the last ones."""
OFTEN, FEW = 1000, 5
"""What was said so often is looked at a few times a chunk only; the newest lines are kept anyway."""
BEFORE, AFTER = 3, 8
LONGEST = 16 * 1024
MOST_OF_A_LINE = 64 * LONGEST
LEFT_OUT = frozenset({"recurring", "engine-marker", "prose", "boilerplate"})
"""Kinds that no line is kept for: lines that recur by the hundred thousand, and what people write around a paste."""
ALWAYS = ('File "', "Traceback (most recent call last)", " ERROR ", "CRITICAL ", "KV cache usage: 100.0%", "KV cache usage: 99.")


class Sieve:
    """Takes a log chunk by chunk (bytes of UTF-8) and keeps numbered lines. Memory does not grow with the log."""

    def __init__(self, book: Rulebook) -> None:
        self._automaton, self._message = automaton_of(book)
        self._seen = [0] * (max(self._message, default=-1) + 1)
        self._kept: dict[int, bytes] = {}
        self._last: list[deque[list[tuple[int, bytes]]]] = [deque(maxlen=LAST) for _ in self._seen]
        self._latest: deque[tuple[bytes, int, int]] = deque()  # chunk, lines before it, lines in it
        self._carry = b""
        self._owed = 0
        self.count = 0

    def feed(self, data: bytes) -> None:
        """The next part of the log, of any length."""
        data = self._carry + data
        end = data.rfind(b"\n") + 1
        if not end and len(data) < 64 * LONGEST:
            self._carry = data
            return
        end = end or len(data)
        self._carry = data[end:]
        self._chunk(data[:end])

    def lines(self) -> list[tuple[int, str]]:
        """Numbered lines in order, as text; of a line longer than LONGEST bytes, what surrounds its messages."""
        if self._carry:
            self._chunk(self._carry)
            self._carry = b""
            self.count += 1
        kept = dict(self._tail()) | self._kept
        for blocks in self._last:
            for block in blocks:
                for number, line in block:
                    _keep(kept, number, line)
        return [(number, _text(kept[number])) for number in sorted(kept)]

    def _chunk(self, chunk: bytes) -> None:
        """Whole lines, or a part of one that is too long to wait for its end."""
        self._ends(chunk)
        wanted, late = self._hits(chunk)
        at, number = 0, self.count
        for start, message in sorted([*((s, -1) for s in wanted), *late]):
            number += chunk.count(b"\n", at, start)
            at = start
            block = self._block(chunk, start, number)
            if message < 0:
                for place, line in block:
                    _keep(self._kept, place, line)
            else:
                self._last[message].append(block)
        self.count = number + chunk.count(b"\n", at)
        self._latest[-1] = (chunk, self._latest[-1][1], self.count - self._latest[-1][1])
        while sum(lines for _, _, lines in self._latest) - self._latest[0][2] >= TAIL:
            self._latest.popleft()

    def _hits(self, chunk: bytes) -> tuple[set[int], list[tuple[int, int]]]:
        """(positions of early occurrences, positions of the latest ones with their message)."""
        wanted: set[int] = set()
        late: dict[int, deque[int]] = {}
        seen, message_of = self._seen, self._message
        for index, start, _ in self._automaton.find_matches_as_indexes(chunk):
            message = message_of[index]
            seen[message] += 1
            if seen[message] <= FIRST:
                wanted.add(start)
            elif message in late:
                late[message].append(start)
            else:
                late[message] = deque((start,), maxlen=LAST if seen[message] < OFTEN else FEW)
        return wanted, [(start, message) for message, starts in late.items() for start in starts]

    def _ends(self, chunk: bytes) -> None:
        """The beginning of the log, and what the last chunk's messages are owed."""
        owed = max(self._owed, HEAD - self.count)
        self._owed = 0
        self._latest.append((chunk, self.count, 0))
        if owed > 0:
            for number, line in enumerate(chunk.removesuffix(b"\n").split(b"\n", owed)[:owed], self.count + 1):
                _keep(self._kept, number, line[:LONGEST])

    def _tail(self) -> Iterator[tuple[int, bytes]]:
        """The newest lines."""
        for chunk, before, _ in self._latest:
            for number, line in enumerate(chunk.removesuffix(b"\n").split(b"\n"), before + 1):
                if number > self.count - TAIL:
                    yield number, line[:LONGEST]

    def _block(self, chunk: bytes, start: int, before: int) -> list[tuple[int, bytes]]:
        """The line at `start` and its neighbours; `before` lines of the log end before it."""
        begin = chunk.rfind(b"\n", 0, start) + 1
        end = chunk.find(b"\n", start)
        own = chunk[begin : end if end >= 0 else len(chunk)]
        if len(own) > LONGEST:
            left = max(0, start - begin - LONGEST // 2)
            own = own[left : left + LONGEST]
        earlier, later = _before(chunk, begin), _after(chunk, end)
        if end < 0 or len(later) < AFTER:
            self._owed = max(self._owed, AFTER - len(later))
        return [(before + 1 - len(earlier) + n, line) for n, line in enumerate([*earlier, own, *later])]


def _keep(kept: dict[int, bytes], number: int, line: bytes) -> None:
    known = kept.get(number)
    if known is None:
        kept[number] = line
    elif line not in known and len(known) < MOST_OF_A_LINE:
        kept[number] = known + b" ... " + line  # messages far apart on one line


def _before(chunk: bytes, begin: int) -> list[bytes]:
    """The few lines that end where a line begins, found one by one: a wide stretch would be copied for each message."""
    lines: list[bytes] = []
    while begin > 0 and len(lines) < BEFORE:
        end = begin - 1
        least = max(0, end - 4 * LONGEST)
        begin = chunk.rfind(b"\n", least, end) + 1
        lines.insert(0, chunk[max(begin, end - LONGEST) : end])
        if begin < least:
            break  # a line without a beginning near by
    return lines


def _after(chunk: bytes, end: int) -> list[bytes]:
    """The few lines behind a line's end; what stands behind the last line end of a chunk is none."""
    lines: list[bytes] = []
    while 0 <= end < len(chunk) - 1 and len(lines) < AFTER:
        begin = end + 1
        end = chunk.find(b"\n", begin)
        lines.append(chunk[begin : min(end, begin + LONGEST) if end >= 0 else begin + LONGEST])
    return lines


def _text(line: bytes) -> str:
    return line.decode("utf-8", errors="replace").removesuffix("\r")


@lru_cache(maxsize=2)
def automaton_of(book: Rulebook) -> tuple[ahocorasick_rs.BytesAhoCorasick, list[int]]:
    """An automaton of every anchor that lines are kept for, and the number of the message that each belongs to."""
    anchors: dict[bytes, int] = {text.encode(): -n for n, text in enumerate(ALWAYS, 1)}
    for number, rule in enumerate(book.facts):
        if not rule.kinds or LEFT_OUT.isdisjoint(rule.kinds):
            for anchor in texts(rule.anchor):
                anchors.setdefault(anchor.encode(), number)
    numbers = {number: n for n, number in enumerate(dict.fromkeys(anchors.values()))}
    automaton = ahocorasick_rs.BytesAhoCorasick(list(anchors), implementation=ahocorasick_rs.Implementation.DFA)
    return automaton, [numbers[number] for number in anchors.values()]


def telling(book: Rulebook, chunks: Iterable[bytes]) -> tuple[list[tuple[int, str]], int]:
    """(numbered lines that were kept, how many lines there are)."""
    sieve = Sieve(book)
    for chunk in chunks:
        sieve.feed(chunk)
    return sieve.lines(), sieve.count
