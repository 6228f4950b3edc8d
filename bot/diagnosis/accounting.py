"""What one version counts in and out of the budget, from rules/accounting, and whether reported terms add up under it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bot.diagnosis.scene import Scene
from bot.domain.evidence import Evidence
from bot.domain.size import GIB
from bot.rulebook.book import Rulebook
from bot.rulebook.versions import RUNNERS, USUAL, UnknownVersion, holds, release

TOLERANCE = round(0.03 * GIB)
"""Six figures of two decimals are off by at most so much together."""
_V0_FACTS = ("vllm.v0-terms", "vllm.v0-instance-budget", "vllm.blocks", "vllm.length-exceeds-tokens")
_V1_FACTS = ("vllm.graph-estimate", "vllm.graph-modes")


@dataclass(frozen=True, slots=True)
class Figure:
    """A reported value, its line, the id of the fact that reported it, and the source that the line stands in."""

    value: Any
    line: int
    fact: str = ""
    source: int = 1


@dataclass(frozen=True, slots=True)
class Accounting:
    """The rules of the releases that may be speaking, and of their runner (v0, v1, v2). Answers None where those releases differ."""

    book: Rulebook
    versions: tuple[str, ...]
    runner: str
    estimate_applied: bool | None = None

    def charged(self, term: str) -> bool | None:
        """Is this term taken out of total × utilization?"""
        if term == "graph_estimate" and self.estimate_applied is not None:
            return self.estimate_applied
        rows = [c for c in self.book.charges if c.term == term and c.runner in ("", self.runner)]
        return _agreed([any(c.charged and holds(c.vllm, v) for c in rows) for v in self.versions])

    def includes(self, figure: Figure, field: str) -> tuple[str, ...] | None:
        """What that printed figure holds beyond its name; None where the releases differ."""
        rows = [p for p in self.book.printed if p.fact == figure.fact and p.field == field]
        found = {
            tuple(t for p in rows if holds(p.vllm, v) for t in p.includes) for v in self.versions
        } or ({tuple(rows[0].includes)} if len(rows) == 1 else {()} if not rows else set())  # fmt: skip
        return found.pop() if len(found) == 1 else None

    def only_first_speaks(self, fact: str) -> bool:
        """Is this line printed by the first worker of a node only?"""
        rows = [s for s in self.book.scopes if s.fact == fact and s.speaks.startswith("first worker") and s.runner in ("", self.runner)]
        return _agreed([any(holds(s.vllm, v) for s in rows) for v in self.versions]) is True


def _agreed(answers: Sequence[bool]) -> bool | None:
    return answers[0] if answers and all(a == answers[0] for a in answers) else None


def accounting_of(book: Rulebook, scene: Scene) -> Accounting:
    """The accounting that this evidence speaks under; of the whole range where the version is only narrowed."""
    versions = _versions(book, scene.evidence)
    runner = _runner(scene, versions)
    return Accounting(book, versions, runner, _estimate_applied(scene, versions, runner))


def _versions(book: Rulebook, evidence: Evidence) -> tuple[str, ...]:
    """The version that is printed, or every release of the range; none where nothing says it."""
    if evidence.engine_version is not None:
        try:
            return (release(evidence.engine_version),)
        except UnknownVersion:
            return ()
    return tuple(one.version for one in book.releases if holds(evidence.engine_version_range or "<0", one.version))


def _runner(scene: Scene, versions: Sequence[str]) -> str:
    """From lines that only one runner prints, else the default of every release that is left."""
    if scene.has("runner-v2"):
        return "v2"
    shown = {f.id for f in scene.facts}
    if shown.intersection(_V1_FACTS):
        return "v1"
    if shown.intersection(_V0_FACTS):
        return "v0"
    places = dict.fromkeys((f.source, f.line) for f in scene.facts if "budget" in f.kinds)  # of a whole export on one line, once
    files = " ".join(scene.evidence.lines.get(place, "") for place in places)
    if "gpu_model_runner.py" in files or any("gpu_model_runner.py" in f.path for f in scene.evidence.frames):
        return "v1"
    if any("v1/worker/gpu/" in f.path for f in scene.evidence.frames):
        return "v2"
    if re.search(r"(?<!\w)model_runner\.py:\d", files):
        return next((name for name in ("v2", "v0") if versions and all(holds(RUNNERS[name], v) for v in versions)), "v1")
    return next((name for name in ("v2", "v0") if versions and all(holds(USUAL[name], v) for v in versions)), "v1")


def _estimate_applied(scene: Scene, versions: Sequence[str], runner: str) -> bool | None:
    """What the engine or its environment says about the graph estimate; None where the version's own default holds."""
    if scene.has("graphs-not-charged"):
        return False
    if scene.has("graphs-charged"):
        return True
    estimate = scene.evidence.deployment.environment.get("VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS")
    if estimate is None:
        return None
    if str(estimate.value).lower() in ("0", "false"):
        return False
    return None if runner == "v2" and not (versions and holds(USUAL["v2"], versions[0])) else True


@dataclass(frozen=True, slots=True)
class Closing:
    """Whether the terms add up, by how many bytes they do not, and which term would be needed to say."""

    closes: bool | None = None
    residual: int | None = None
    missing: tuple[str, ...] = ()


def closing(rules: Accounting, figures: Mapping[str, Figure]) -> Closing:
    """requested − what is resident − activation peak − what else is reserved − pool, and the graph estimate where it is charged."""
    requested, pool, held = _value(figures, "requested_bytes"), _value(figures, "kv_cache_bytes"), _held(figures)
    if requested is None or pool is None or held is None:
        return Closing()
    gap = requested - held - (_value(figures, "other_reserved_bytes") or 0) - pool
    activation = figures.get("activation_peak_bytes")
    within = _counted_as_whole(figures) or activation is None
    counted = () if within or activation is None else rules.includes(activation, "activation_peak_bytes")
    estimate = _value(figures, "graph_estimate_bytes")
    if counted is not None and "graph_estimate" in counted:
        return _judged(gap, 0)
    return _with_estimate(gap, estimate, rules.charged("graph_estimate"))


def _with_estimate(gap: int, estimate: int | None, charged: bool | None) -> Closing:
    if charged is False or (charged is None and abs(gap) <= TOLERANCE):
        return _judged(gap, 0)
    if estimate is None:
        return _judged(gap, 0) if abs(gap) <= TOLERANCE else Closing(None, gap, ("graph_estimate_bytes",))
    return _judged(gap, estimate)


def _judged(gap: int, estimate: int) -> Closing:
    residual = gap - estimate
    return Closing(abs(residual) <= TOLERANCE, residual)


def _held(figures: Mapping[str, Figure]) -> int | None:
    """All that is neither pool nor reserve nor graph: one printed sum, or the terms that make it up."""
    whole, peak, non_torch = _value(figures, "non_kv_bytes"), _value(figures, "peak_torch_bytes"), _value(figures, "non_torch_bytes")
    if whole is not None:
        return whole
    if peak is not None:
        return None if non_torch is None else peak + non_torch
    weights, consumed, activation = (_value(figures, n) for n in ("weights_bytes", "consumed_bytes", "activation_peak_bytes"))
    resident = consumed if consumed is not None else None if weights is None or non_torch is None else weights + non_torch
    return None if resident is None or activation is None else resident + activation


def _counted_as_whole(figures: Mapping[str, Figure]) -> bool:
    return "non_kv_bytes" in figures or "peak_torch_bytes" in figures


def _value(figures: Mapping[str, Figure], name: str) -> int | None:
    figure = figures.get(name)
    return None if figure is None else int(figure.value)
