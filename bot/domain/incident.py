"""An incident: what was contributed, what was judged, what was tried and how it ended. Append only."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, get_args

ContributionKind = Literal["paste", "file", "answer", "outcome"]
Result = Literal["fixed", "moved", "same", "wrong", "other"]
RESULTS: tuple[Result, ...] = get_args(Result)

ABOUT_THE_RANK = ("rank", "failing_rank")
"""What an answer is called that says which process failed first: a word, to which only the question gives sense."""
READ_LIKE_A_PASTE = frozenset(
    {"first_error", "memory_report", "engine_config", "engine_version", "gpu_inventory", "model_config", "workload"}
)
"""The other questions: an answer to one is evidence."""

NOT_KNOWN = "unknown"
"""The answer of who does not know."""

LOCAL_TEAM = "local"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a contribution came from. `team` scopes every row; `channel` and `thread` are None outside chat.

    `private` marks channels and direct messages that only their members may see.
    """

    team: str = LOCAL_TEAM
    enterprise: str | None = None
    channel: str | None = None
    thread: str | None = None
    private: bool = False


@dataclass(frozen=True, slots=True)
class Contribution:
    """All that a person can add. `text` is redacted; `sha256` is of the text as kept; None text means erased.

    An answer's text is `name=value`; an outcome's text is the result, `undo`, or `result: note`.
    """

    kind: ContributionKind
    text: str | None
    name: str | None = None
    author: str | None = None
    message: str | None = None
    at: datetime | None = None
    redactions: int = 0
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class Trial:
    """The one change that was suggested, as the contract's recommendation object, and how it ended."""

    number: int
    change: Mapping[str, Any]
    result: Result | None = None
    note: str | None = None
    by: str | None = None
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Incident:
    """`id` counts per team (D-0187). `document` is the newest diagnosis as the contract's JSON."""

    id: str
    origin: Origin
    opened: datetime
    contributions: tuple[Contribution, ...]
    document: Mapping[str, Any]
    trials: tuple[Trial, ...] = ()
    erased: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)
