"""Which lines are tracebacks: the frames in the order of the text, each with the source that the lines around it show."""

import re
from collections.abc import Sequence
from dataclasses import replace

from bot.domain.evidence import Frame, LogLine
from bot.reading.frames import CONTEXT, MOST_JOINED, frame_of, is_carets, is_echo, may_show_frame, numbered_source, says_more, source_blocks

UNNUMBERED = 4
"""Lines of a speaker behind its frame among which the source stands, where lines have no numbers."""

_LIBRARY = re.compile(r"(?:site|dist)-packages/|/torch/|/vllm/(?:v1|worker|model_executor|engine|entrypoints|executor|lora|attention)/")


def without_library_code(lines: Sequence[LogLine], frames: Sequence[Frame]) -> Sequence[LogLine]:
    """The lines less the source that a traceback shows of a library: what it calls with which arguments, nobody set. A script of one's
    own shows there how the engine was started.
    """
    shown = {(frame.source, frame.echo) for frame in frames if "=" in frame.echo and _LIBRARY.search(frame.path)}
    return [line for line in lines if (line.source, line.text.strip()) not in shown] if shown else lines


def next_lines(lines: Sequence[LogLine], order: int, count: int) -> Sequence[LogLine]:
    """Of so many lines behind the one at `order` those of the same source."""
    following = lines[order + 1 : order + 1 + count]
    own = lines[order].source
    return following if not following or following[-1].source == own else [line for line in following if line.source == own]


class Tracebacks:
    """The frames so far, each with the source that the lines below it show."""

    def __init__(self, lines: Sequence[LogLine]) -> None:
        self.frames: list[Frame] = []
        self._lines = lines
        self._latest: dict[str, int] = {}
        """Where the frame stands that a speaker's next lines may show the source of."""
        self._blocks = source_blocks(lines)
        self._source = {order for _, source in self._blocks.values() for order in source}

    def takes(self, order: int) -> bool:
        """Is the line at this place a frame, or nothing but the source of one?"""
        if order in self._source:
            return True
        if (found := self._frame(order)) is not None:
            frame, joined = found
            self.frames.append(frame)
            self._latest[self._lines[order].speaker.key] = order + joined
            self._source.update(range(order + 1, order + joined + (not frame.echo)))
            return not says_more(frame)
        if not self._latest:
            return False
        key = self._lines[order].speaker.key
        if key in self._latest and self._shows_source(order):
            return True
        self._latest.pop(key, None)
        return False

    def _frame(self, order: int) -> tuple[Frame, int] | None:
        if order in self._blocks:
            return self._blocks[order][0], 0
        if not may_show_frame(self._lines[order].text):
            return None
        return frame_of(self._lines[order], next_lines(self._lines, order, MOST_JOINED), order)

    def _shows_source(self, order: int) -> bool:
        """Is the line below a speaker's frame its source?"""
        line, text = self._lines[order], self._lines[order].text
        numbered = numbered_source(text, self.frames[-1])
        if not self._near(order, CONTEXT if numbered else UNNUMBERED) or not is_echo(line):
            return False
        own = self.frames[-1].speaker.key == line.speaker.key
        if numbered is not None:
            if numbered[0] and own:
                self.frames[-1] = replace(self.frames[-1], echo=numbered[1])
            return True
        if not is_carets(text) and own and not self.frames[-1].echo:
            self.frames[-1] = replace(self.frames[-1], echo=text.strip())
        return text[:1] in " \t" or text.lstrip().startswith(("raise ", "self.", "return ", "^", "~")) or is_carets(text)

    def _near(self, order: int, most: int) -> bool:
        """Is the line among so many of its speaker behind the latest frame?"""
        key = self._lines[order].speaker.key
        return sum(line.speaker.key == key for line in self._lines[self._latest[key] + 1 : order]) < most
