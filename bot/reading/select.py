"""Keeps a large log small: its beginning, its end, and the surroundings of what a rule may want; all in one pass over bytes."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

import ahocorasick_rs

from bot.reading.redact import without_halves
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
AROUND, ABOVE, MANY_LINES = 2048, 12, 100
"""Bytes, and lines, on the other side of a cut that are looked at, so that no half of a secret is kept."""
LEFT_OUT = frozenset({"recurring", "engine-marker", "prose", "boilerplate"})
"""Kinds that no line is kept for: lines that recur by the hundred thousand, and what people write around a paste."""
ALWAYS = ('File "', "Traceback (most recent call last)", " ERROR ", "CRITICAL ", "KV cache usage: 100.0%", "KV cache usage: 99.")


class Sieve:
    """Takes a log chunk by chunk (bytes of UTF-8) and keeps numbered lines. Memory does not grow with the log."""

    def __init__(self, book: Rulebook) -> None:
        self._automaton, self._message = automaton_of(book)
        self._seen = [0] * (max(self._message, default=-1) + 1)
        self._kept: dict[int, bytes] = {}
        self._last: list[deque[Block]] = [deque(maxlen=LAST) for _ in self._seen]
        self._before: dict[int, bytes] = {}  # what stands before the first line of an early block
        self._latest: deque[tuple[bytes, int, int]] = deque()  # chunk, lines before it, lines in it
        self._carry = b""
        self._end = b""  # of the chunk before
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
        tail = list(self._tail())
        above, below = tail[:-TAIL], tail[-TAIL:]
        kept = dict(below) | self._kept
        before = self._before | ({below[0][0]: b"".join(line + b"\n" for _, line in above)} if above else {})
        for blocks in self._last:
            for block in blocks:
                before[block.lines[0][0]] = block.before
                for number, line in block.lines:
                    _keep(kept, number, line)
        return list(_joined(kept, before))

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
                self._before[block.lines[0][0]] = block.before
                for place, line in block.lines:
                    _keep(self._kept, place, line)
            else:
                self._last[message].append(block)
        self.count = number + chunk.count(b"\n", at)
        self._end = chunk[-AROUND:]
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
                _keep(self._kept, number, _piece(line, 0, len(line), 0))

    def _tail(self) -> Iterator[tuple[int, bytes]]:
        """The newest lines, and some that stand above them."""
        for chunk, before, _ in self._latest:
            for number, line in enumerate(chunk.removesuffix(b"\n").split(b"\n"), before + 1):
                if number > self.count - TAIL - ABOVE:
                    yield number, _piece(line, 0, len(line), 0)

    def _block(self, chunk: bytes, start: int, before: int) -> "Block":
        """The line at `start` and its neighbours; `before` lines of the log end before it."""
        begin = chunk.rfind(b"\n", 0, start) + 1
        end = chunk.find(b"\n", start)
        own = _piece(chunk, begin, end if end >= 0 else len(chunk), start - LONGEST // 2)
        (earlier, top), later = _before(chunk, begin), _after(chunk, end)
        if end < 0 or len(later) < AFTER:
            self._owed = max(self._owed, AFTER - len(later))
        above = chunk[max(0, top - AROUND) : top] if top >= AROUND else self._end[top - AROUND :] + chunk[:top]
        return Block(above, [(before + 1 - len(earlier) + n, line) for n, line in enumerate([*earlier, own, *later])])


class Block(NamedTuple):
    """Numbered lines around a message, and what stands before them in the log."""

    before: bytes
    lines: list[tuple[int, bytes]]


class Cut(bytes):
    """A piece of a line that is too long, with what stands around it: few are shown in the end, and only those are looked through."""

    before: bytes
    after: bytes


def _piece(chunk: bytes, begin: int, end: int, first: int) -> bytes:
    """The line between `begin` and `end`; of one that is too long, LONGEST bytes from `first` on."""
    if end - begin <= LONGEST:
        return chunk[begin:end]
    first = max(begin, first)
    last = min(end, first + LONGEST)
    piece = Cut(chunk[first:last])
    piece.before, piece.after = chunk[max(begin, first - AROUND) : first], chunk[last : min(end, last + AROUND)]
    return piece


def _keep(kept: dict[int, bytes], number: int, line: bytes) -> None:
    known = kept.get(number)
    if known is None:
        kept[number] = line
    elif line not in known and len(known) < MOST_OF_A_LINE:
        kept[number] = _whole(known) + b" ... " + _whole(line)  # messages far apart on one line


def _joined(kept: dict[int, bytes], before: dict[int, bytes]) -> Iterator[tuple[int, str]]:
    """Lines in order as text; those behind a gap without the second halves of what it holds."""
    run: list[tuple[int, str]] = []
    for number in sorted(kept):
        if run and number > run[-1][0] + 1:
            yield from _without_halves(run, before.get(run[0][0], b""))
            run = []
        run.append((number, _text(kept[number])))
    yield from _without_halves(run, before.get(run[0][0], b"") if run else b"")


def _without_halves(run: list[tuple[int, str]], before: bytes) -> list[tuple[int, str]]:
    if not before:
        return run
    first = [line for _, line in run[:MANY_LINES]]
    shown = without_halves(_text(before), "\n".join(first)).split("\n")
    return [*((number, line) for (number, _), line in zip(run, shown, strict=False)), *run[len(shown) :]]


def _whole(line: bytes) -> bytes:
    """The line without the halves of secrets at its ends, where it was cut."""
    if not isinstance(line, Cut):
        return line
    before, piece, after = (part.decode("utf-8", errors="replace") for part in (line.before, line, line.after))
    return without_halves(before, piece, after).encode()


def _before(chunk: bytes, begin: int) -> tuple[list[bytes], int]:
    """The few lines that end where a line begins, and where they begin; one by one: a wide stretch would be copied for each message."""
    lines: list[bytes] = []
    while begin > 0 and len(lines) < BEFORE:
        end = begin - 1
        least = max(0, end - 4 * LONGEST)
        begin = chunk.rfind(b"\n", least, end) + 1
        lines.insert(0, _piece(chunk, begin, end, end - LONGEST))
        if begin < least:
            break  # a line without a beginning near by
    return lines, begin


def _after(chunk: bytes, end: int) -> list[bytes]:
    """The few lines behind a line's end; what stands behind the last line end of a chunk is none."""
    lines: list[bytes] = []
    while 0 <= end < len(chunk) - 1 and len(lines) < AFTER:
        begin = end + 1
        end = chunk.find(b"\n", begin)
        last = end if end >= 0 else len(chunk)
        lines.append(chunk[begin:last] if last - begin <= LONGEST else _piece(chunk, begin, last, begin))
    return lines


def _text(line: bytes) -> str:
    return _whole(line).decode("utf-8", errors="replace").removesuffix("\r")


def anchors_of(book: Rulebook) -> Mapping[str, int]:
    """Every text that a line of a large log is kept for, and the number of the message that it belongs to."""
    anchors = {text: -n for n, text in enumerate(ALWAYS, 1)}
    for number, rule in enumerate(book.facts):
        if not rule.kinds or LEFT_OUT.isdisjoint(rule.kinds):
            for anchor in texts(rule.anchor):
                anchors.setdefault(anchor, number)
    return anchors


@lru_cache(maxsize=2)
def automaton_of(book: Rulebook) -> tuple[ahocorasick_rs.BytesAhoCorasick, list[int]]:
    """An automaton of those texts, and the running number of the message that each belongs to.

    With 110 different bytes in the texts, for 100 now, it was twice as wide and 8 MiB larger: few letters of other scripts belong here.
    """
    anchors = anchors_of(book)
    numbers = {number: n for n, number in enumerate(dict.fromkeys(anchors.values()))}
    automaton = ahocorasick_rs.BytesAhoCorasick([a.encode() for a in anchors], implementation=ahocorasick_rs.Implementation.DFA)
    return automaton, [numbers[number] for number in anchors.values()]


def telling(book: Rulebook, chunks: Iterable[bytes]) -> tuple[list[tuple[int, str]], int]:
    """(numbered lines that were kept, how many lines there are)."""
    sieve = Sieve(book)
    for chunk in chunks:
        sieve.feed(chunk)
    return sieve.lines(), sieve.count
