"""What was said, by whom, on which line."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from bot.domain.deployment import Deployment
from bot.domain.rank import Grid, Rank


@dataclass(frozen=True, slots=True)
class Speaker:
    """A process of the engine as the log signs it. `role`: worker, engine-core, api-server, raylet, or unknown.

    `key` is equal for lines of the same process; `group` tells containers or engines of one paste apart.
    """

    key: str
    role: str = "unknown"
    label: str = ""
    pid: int | None = None
    ip: str | None = None
    group: str = ""
    parts: Mapping[str, int] = field(default_factory=dict, compare=False, hash=False)


class LogLine(NamedTuple):
    """One signed line. `number` is the 1-based line of the text as given. There are many, and a tuple is made in a third of the time."""

    source: int
    number: int
    text: str
    speaker: Speaker
    level: str | None = None
    at: str | None = None
    file: str | None = None
    file_line: int | None = None
    repeats: int = 1
    signed: bool = False


@dataclass(frozen=True, slots=True)
class Fact:
    """A message that the rulebook knows. `fields` are parsed: sizes in bytes, counts as int.

    `at`: the stamp of its line, as printed. `repeats`: of lines that recur with other figures, how many this one stands for: itself
    and those counted before it.
    """

    id: str
    kinds: frozenset[str]
    fields: Mapping[str, Any]
    speaker: Speaker
    source: int
    line: int
    text: str
    order: int = 0
    repeats: int = 1
    at: str | None = None


@dataclass(frozen=True, slots=True)
class Frame:
    """One traceback frame: `path` as printed, `function` as printed, `echo` the source line below it."""

    path: str
    function: str
    speaker: Speaker
    source: int
    line: int
    file_line: int | None = None
    echo: str = ""
    order: int = 0

    def stands_in(self, wanted: str) -> bool:
        """Does it stand in that file (the end of a path) or folder (`models/`)? A cut path may be shorter than what is wanted."""
        path = self.path.replace("\\", "/")
        if wanted.endswith("/"):
            return wanted in path
        return path.endswith(wanted) or ("/" in path and wanted.endswith(path.lstrip("/")))


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that reading found.

    `version_because`: why the releases outside `engine_version_range` are left out, a sentence for each step.

    `speakers` holds the first line of each process, `errors` the lines of level ERROR. Sources before `since` are of an earlier run:
    they say how the engine was started, not how it failed. `cut`: something was sent that was not kept. `ranks_said`: what each person
    answered last about the rank that failed.
    """

    facts: tuple[Fact, ...] = ()
    frames: tuple[Frame, ...] = ()
    deployment: Deployment = field(default_factory=Deployment)
    ranks: Mapping[str, Rank] = field(default_factory=dict)
    engine: str = "unknown"
    engine_version: str | None = None
    engine_version_range: str | None = None
    version_because: tuple[str, ...] = ()
    lines: Mapping[tuple[int, int], str] = field(default_factory=dict)
    answers: Mapping[str, str] = field(default_factory=dict)
    ranks_said: tuple[str, ...] = ()
    redactions: int = 0
    cut: bool = False
    grid: Grid = field(default_factory=Grid)
    speakers: tuple[LogLine, ...] = ()
    errors: tuple[LogLine, ...] = ()
    since: int = 1
