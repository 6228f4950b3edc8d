"""The budget of each rank from its own engine's figures: nothing counted twice, nothing invented."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from bot.diagnosis.scene import Scene
from bot.domain.diagnosis import ReportedBudget
from bot.domain.evidence import Fact
from bot.domain.size import GIB
from bot.rulebook.book import Rulebook

FIELDS = (
    "total_bytes",
    "free_at_start_bytes",
    "utilization",
    "requested_bytes",
    "weights_bytes",
    "activation_peak_bytes",
    "non_torch_bytes",
    "consumed_bytes",
    "graph_bytes",
    "graph_estimate_bytes",
    "graphs_inside_budget",
    "other_reserved_bytes",
    "kv_cache_bytes",
    "needed_bytes",
    "kv_tokens",
    "num_gpu_blocks",
    "state_blocks",
    "max_concurrency",
    "estimated_max_model_len",
    "free_before_profile_bytes",
    "free_after_profile_bytes",
    "outside_budget_bytes",
)
TOLERANCE = round(0.05 * GIB)


@dataclass(frozen=True, slots=True)
class _Reading:
    value: Any
    line: int


def ledger(book: Rulebook, scene: Scene) -> tuple[ReportedBudget, ...]:
    """One ReportedBudget for each process that reported a figure; the engine core's figures stand in each of its workers' rows."""
    version = _version(scene)
    wide_ids = {s.fact for s in book.scopes if s.speaks == "engine core"}
    own: dict[str, list[Fact]] = {}
    wide: dict[str, list[Fact]] = {}
    for fact in scene.facts:
        if "budget" in fact.kinds:
            (wide if fact.id in wide_ids else own).setdefault(fact.speaker.group if fact.id in wide_ids else fact.speaker.key, []).append(
                fact
            )
    if scene.error_fact is not None and scene.error_fact.fields.get("total") and scene.failing is not None:
        own.setdefault(scene.failing.key, []).append(scene.error_fact)
    if not own and wide:
        own = {facts[0].speaker.key: [] for facts in wide.values()}
    rows = [_row(book, scene, key, facts, wide, version) for key, facts in own.items()]
    failing = scene.failing.key if scene.failing is not None else None
    keyed = sorted(zip(own, rows, strict=True), key=lambda pair: (pair[0] != failing, pair[1].rank is None, pair[1].rank or 0))
    return tuple(row for _, row in keyed)


def _row(
    book: Rulebook, scene: Scene, key: str, facts: Sequence[Fact], wide: Mapping[str, Sequence[Fact]], version: Version | None
) -> ReportedBudget:
    speaker = next((f.speaker for f in facts), None) or next(f.speaker for group in wide.values() for f in group if f.speaker.key == key)
    figures: dict[str, _Reading] = {}
    for fact in facts:
        figures |= dict(_figures(fact))
    for fact in wide.get(speaker.group, ()):
        for name, reading in _figures(fact):
            figures.setdefault(name, reading)
    rank = scene.evidence.ranks.get(key)
    number = rank.number if rank is not None else (0 if scene.evidence.grid.single and speaker.role != "front-end" and facts else None)
    _complete(scene, figures)
    closes, residual = _closes(book, figures, version, _runner(scene))
    return ReportedBudget(
        rank=number,
        label=(rank.label if rank else speaker.label) or ("engine" if not facts else "log"),
        figures={n: figures[n].value for n in FIELDS if n in figures}
        | {"graphs_inside_budget": _inside(book, version, _runner(scene), scene)},
        lines={n: r.line for n, r in figures.items() if r.line},
        engine_label=speaker.group or None,
        reported_by_rank=number if _only_first_prints(book, facts, version) else None,
        closes=closes,
        residual_bytes=residual,
        missing=tuple(
            n for n in ("total_bytes", "utilization", "weights_bytes", "activation_peak_bytes", "kv_cache_bytes") if n not in figures
        ),
    )


def _figures(fact: Fact) -> Iterator[tuple[str, _Reading]]:
    for name, value in fact.fields.items():
        if name in FIELDS:
            yield name, _Reading(value, fact.line)
        elif name == "total":
            yield "total_bytes", _Reading(value, fact.line)
        elif name == "kv_in_use_bytes":
            yield "kv_cache_bytes", _Reading(value, fact.line)


def _complete(scene: Scene, figures: dict[str, _Reading]) -> None:
    """What follows from what was reported: total × utilization, and what lies outside."""
    given = scene.evidence.deployment.arguments.get("gpu_memory_utilization")
    if "utilization" not in figures and given is not None and isinstance(given.value, float) and scene.evidence.engine != "sglang":
        figures["utilization"] = _Reading(given.value, given.line or 0)
    total, utilization = figures.get("total_bytes"), figures.get("utilization")
    if "requested_bytes" not in figures and total is not None and utilization is not None:
        figures["requested_bytes"] = _Reading(round(total.value * utilization.value), total.line)
    requested = figures.get("requested_bytes")
    if total is not None and requested is not None:
        figures["outside_budget_bytes"] = _Reading(total.value - requested.value, requested.line)


def charged(book: Rulebook, term: str, version: Version | None, runner: str) -> bool | None:
    """Does that version take this term out of the budget? None when the version is not known."""
    if version is None:
        return None
    rows = [c for c in book.charges if c.term == term and (not c.runner or c.runner == runner)]
    return any(version in SpecifierSet(c.vllm, prereleases=True) for c in rows)


def _inside(book: Rulebook, version: Version | None, runner: str, scene: Scene) -> bool | None:
    estimate = scene.evidence.deployment.environment.get("VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS")
    if estimate is not None and scene.evidence.engine == "vllm":
        return str(estimate.value) not in ("0", "False", "false")
    return charged(book, "graph_estimate", version, runner) if scene.evidence.engine in ("vllm", "unknown") else None


def _closes(book: Rulebook, figures: Mapping[str, _Reading], version: Version | None, runner: str) -> tuple[bool | None, int | None]:
    """Does requested = weights + activation + non-torch (+ graph estimate) + pool hold, and what is left over?"""

    def value(name: str) -> int | None:
        return figures[name].value if name in figures else None

    requested, kv, activation = value("requested_bytes"), value("kv_cache_bytes"), value("activation_peak_bytes")
    weights, non_torch, consumed = value("weights_bytes"), value("non_torch_bytes"), value("consumed_bytes")
    resident = consumed if consumed is not None else None if weights is None or non_torch is None else weights + non_torch
    if requested is None or kv is None or activation is None or resident is None:
        return None, None
    estimate = value("graph_estimate_bytes") or 0
    included = any(
        p.field == "activation_peak_bytes"
        and "graph_estimate" in p.includes
        and version is not None
        and version in SpecifierSet(p.vllm, prereleases=True)
        for p in book.printed
    )
    inside = estimate if charged(book, "graph_estimate", version, runner) and not included else 0
    residual = requested - resident - activation - inside - kv
    return abs(residual) <= TOLERANCE, residual


def _only_first_prints(book: Rulebook, facts: Sequence[Fact], version: Version | None) -> bool:
    wanted = {s.fact: s.vllm for s in book.scopes if s.speaks.startswith("first worker")}
    return version is not None and any(f.id in wanted and version in SpecifierSet(wanted[f.id], prereleases=True) for f in facts)


def _runner(scene: Scene) -> str:
    return "v2" if scene.has("runner-v2") or any("v1/worker/gpu/" in f.path for f in scene.evidence.frames) else "v1"


def _version(scene: Scene) -> Version | None:
    text = scene.evidence.engine_version
    if text is None:
        return None
    try:
        return Version(Version(text).base_version)
    except InvalidVersion:
        return None
