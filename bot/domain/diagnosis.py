"""The verdict, and everything needed to argue with it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from bot.domain.rank import Rank

Phase = Literal[
    "startup_check", "weight_loading", "profiling", "kv_cache_sizing", "kv_cache_allocation", "graph_capture",
    "warmup", "serving", "wake_up", "host_memory", "not_oom", "unknown",
]  # fmt: skip
Verdict = Literal["certain", "likely", "open"]
Direction = Literal["lower", "raise", "set", "remove"]


@dataclass(frozen=True, slots=True)
class Proof:
    """A line that speaks for the verdict, and the rule that it satisfied."""

    source: int
    line: int
    rule: str
    text: str


ERROR_KINDS = (
    "torch_oom",
    "cuda_oom",
    "hip_oom",
    "xpu_oom",
    "cublas_alloc",
    "cumem",
    "nccl",
    "free_memory_check",
    "no_cache_blocks",
    "context_exceeds_cache",
    "too_few_state_blocks",
    "profiling_assert",
    "sampler_warmup",
    "host_alloc",
    "shm",
    "host_kill",
)
"""The contract's kinds of a first error, the most telling first."""


@dataclass(frozen=True, slots=True)
class FirstError:
    """The first allocation failure or self-naming memory error. Sizes in bytes; None where the text has none."""

    source: int
    line: int
    text: str
    kind: str
    figures: Mapping[str, int | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReportedBudget:
    """What one rank's engine reported. `figures` by the contract's names; `lines` says where each was read, `sources` of which source that
    line is where it is not the first.

    `closes` says whether the terms add up under that version's accounting; None when too few are known.
    """

    rank: int | None
    label: str
    figures: Mapping[str, Any]
    lines: Mapping[str, int]
    engine_label: str | None = None
    reported_by_rank: int | None = None
    closes: bool | None = None
    residual_bytes: int | None = None
    missing: tuple[str, ...] = ()
    sources: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Remedy:
    """One change. `frees_bytes` is counted from the evidence, never promised; None when it cannot be counted."""

    id: str
    flag: str | None
    direction: Direction | None
    value: str | None
    because: str
    costs: str
    disproved_by: str
    keep_fixed: tuple[str, ...]
    command: str | None = None
    frees_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Avoid:
    """A change that the evidence speaks against."""

    flag: str
    direction: Direction
    because: str


@dataclass(frozen=True, slots=True)
class FollowUp:
    """A question whose answer `would_change` the verdict, and the command that answers it."""

    id: str
    text: str
    how: str
    would_change: str
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Possible:
    """A phase that the evidence does not exclude."""

    phase: Phase
    because: str


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Exactly one remedy unless the phase is open; `open` ⇔ phase unknown ⇔ at least one question.

    `container`: the one that failed, where the paste holds several.
    """

    verdict: Verdict
    phase: Phase
    engine: str
    engine_version: str | None
    engine_version_range: str | None
    rank: Rank | None
    first_error: FirstError | None
    budgets: tuple[ReportedBudget, ...]
    deployment: Mapping[str, Any]
    recommendation: Remedy | None
    alternatives: tuple[Remedy, ...]
    avoid: tuple[Avoid, ...]
    questions: tuple[FollowUp, ...]
    proof: tuple[Proof, ...]
    also_possible: tuple[Possible, ...] = ()
    also_failed: tuple[str, ...] = ()
    summary: str = ""
    notes: tuple[str, ...] = ()
    container: str | None = None
    redactions: int = 0
    rulebook: str = ""
