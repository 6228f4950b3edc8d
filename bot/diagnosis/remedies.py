"""One change for the phase that failed, the ones next in line, and the changes that the evidence speaks against."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

from bot.diagnosis.command import command
from bot.diagnosis.figures import by_default, missing
from bot.diagnosis.scene import Scene, holds
from bot.diagnosis.spelled import argument_of, meant
from bot.diagnosis.tried import helpless_last
from bot.diagnosis.values import COMPUTED, ranks_given
from bot.domain.diagnosis import Avoid, Phase, Remedy, ReportedBudget
from bot.domain.size import gib
from bot.rulebook.book import Rulebook
from bot.rulebook.files import AvoidRule, RemedyRule
from bot.rulebook.versions import UnknownVersion, meet
from bot.rulebook.versions import holds as lies_in

MOST_ALTERNATIVES = 3
POINTLESS = 16
"""A context this many times shorter than the one that is asked for is of no use to who asked."""
MUST_REACH = frozenset(
    {
        *("fp8-cache", "raise-utilization", "fewer-batched-tokens", "fewer-scored-tokens", "fewer-profiled-tokens"),
        *("fewer-capture-sizes", "fewer-items", "smaller-items", "smaller-batch", "larger-connector-pool"),
    }
)
"""Values that are None where the change cannot help; then it is not offered."""


def remedies(
    book: Rulebook, scene: Scene, phase: Phase, budget: ReportedBudget | None, refuted: Sequence[Mapping[str, Any]] = ()
) -> list[Remedy]:
    """The changes that may help in this phase, best first; those already refuted in this incident are left out."""
    tried = {t.get("id") for t in refuted}
    found: dict[tuple[str, str], tuple[Remedy, Set[str]]] = {}
    for rule in book.remedies:
        if _offered(book, rule, scene, phase) and rule.id not in tried and (rule.flag or rule.id, rule.direction) not in found:
            remedy = _remedy(book, rule, scene, budget)
            if remedy is not None:
                found[rule.flag or rule.id, rule.direction] = remedy, frozenset(rule.same_step)
    steps = [remedy for remedy, beside in found.values() if not beside & {other.id for other, _ in found.values()}]
    reaching = {rule.id for rule in book.remedies if rule.value in MUST_REACH}
    offered = _pointless_last(helpless_last(book, scene, steps)[: MOST_ALTERNATIVES + 1], scene, reaching)
    return [_enough_or_said(remedy, offered, scene) for remedy in offered]


def _pointless_last(offered: Sequence[Remedy], scene: Scene, reaching: Set[str]) -> list[Remedy]:
    """A context so short that the deployment is of no use says so, and stands last where another change may reach by the figures."""
    asked = scene.evidence.deployment.number("max_model_len") or 0
    short = [one for one in offered if one.flag == "--max-model-len" and one.value and one.value.isdigit()]
    useless = [one for one in short if int(one.value or 0) * POINTLESS < asked]
    useful = [one for one in offered if one not in useless]
    last = any(one.id in reaching for one in useful)
    told = "That is {:,} of {:,} tokens: it passes the check and serves little" + (", so it stands last." if last else ".")
    useless = [replace(one, because=f"{one.because} {told.format(int(one.value or 0), int(asked))}") for one in useless]
    return useful + useless if last else useless + useful


def _enough_or_said(remedy: Remedy, offered: Sequence[Remedy], scene: Scene) -> Remedy:
    """A change that frees less than was missing says so, and what comes with it."""
    lacked = missing(scene)
    if remedy.frees_bytes is None or remedy.frees_bytes >= lacked:
        return remedy
    other = next((one for one in offered if one is not remedy), None)
    beside = "more than it" if other is None else f"{other.direction} {other.flag}" if other.flag else other.id.replace("-", " ")
    short = f"It frees {gib(remedy.frees_bytes)} of the {gib(lacked)} that were missing: that is not enough, and {beside} comes with it."
    return replace(remedy, because=f"{remedy.because} {short}")


def _engine(scene: Scene) -> str:
    """Whose flags may be named: where no engine speaks, vLLM's, but not to who names an engine that is none of those known."""
    return "foreign" if scene.evidence.engine == "unknown" and scene.has("foreign-engine") else scene.evidence.engine


def _offered(book: Rulebook, rule: RemedyRule, scene: Scene, phase: Phase) -> bool:
    engine = _engine(scene)
    return (
        phase in rule.phases
        and (engine in rule.engines or "any" in rule.engines)
        and _has_flag(book, rule, scene)
        and _in_range(rule.vllm, scene.evidence.engine_version)
        and holds(scene, all_=rule.all, any_=rule.any, none=rule.none)
    )


def _has_flag(book: Rulebook, rule: RemedyRule, scene: Scene) -> bool:
    """Has a release that may be the one the flag of this change? Where nothing tells the release, it has."""
    name = argument_of(book, rule.flag)
    wanted = next((argument.vllm for argument in book.arguments if argument.name == name), "")
    if not wanted or scene.evidence.engine not in ("vllm", "unknown"):
        return True
    printed, allowed = scene.evidence.engine_version, scene.evidence.engine_version_range
    return _in_range(wanted, printed) if printed else meet(wanted, allowed or "")


def _in_range(wanted: str, version: str | None) -> bool:
    if not wanted:
        return True
    try:
        return version is not None and lies_in(wanted, version)
    except UnknownVersion:
        return False


def _remedy(book: Rulebook, rule: RemedyRule, scene: Scene, budget: ReportedBudget | None) -> Remedy | None:
    value: str | None = rule.value or None
    frees: int | None = None
    if rule.value in COMPUTED:
        value, frees = COMPUTED[rule.value](scene, budget)
    if value == "" or (value is None and rule.value in MUST_REACH) or (value is not None and _is_no_change(book, rule, value, scene)):
        return None
    says = _Says(scene, budget, value)
    return Remedy(
        id=rule.id,
        flag=rule.flag or None,
        direction=rule.direction or None,
        value=value,
        because=says.fill(rule.because),
        costs=says.fill(rule.costs),
        disproved_by=says.fill(rule.disproved_by),
        keep_fixed=tuple(rule.keep_fixed),
        command=command(book, rule, value, scene),
        frees_bytes=frees,
    )


def _is_no_change(book: Rulebook, rule: RemedyRule, value: str, scene: Scene) -> bool:
    """Does this value already stand there, or one further along?"""
    deployment = scene.evidence.deployment
    name = argument_of(book, rule.flag)
    if scene.has(f"{name.replace('_', '-')}-passes"):
        return False  # said of another start: the one that failed was without it
    if rule.direction == "set":
        now_set = deployment.environment[name].value if name in deployment.environment else deployment.value(name)
        turned = value == "true" and rule.flag.startswith("--no-") and now_set is False
        return turned or str(now_set).lower() == value.lower() or (name == "kv_cache_dtype" and "fp8" in str(now_set))
    names = (name, *(one.name for one in meant(book, rule.flag, scene.evidence.engine)))
    default = by_default(scene, name) if deployment.commands else None  # else what was set may stand outside the paste
    now = next((number for one in names if (number := deployment.number(one)) is not None), default)
    if rule.value == "fitting-state-blocks" or rule.value.startswith("proven-"):
        return False  # the message, or who tells of it, says that another figure stood there: this one is of a run since
    if rule.value == "more-tensor-parallel":
        now = ranks_given(scene) or 1
    try:
        return now is not None and (
            (rule.direction == "lower" and float(value) >= now >= 0) or (rule.direction == "raise" and float(value) <= now)
        )
    except ValueError:
        return False


class _Says:
    """Fills the figures that a rule's sentence names; a sentence part in [[ ]] is dropped where its figure is unknown."""

    def __init__(self, scene: Scene, budget: ReportedBudget | None, value: str | None) -> None:
        figures = dict(budget.figures) if budget is not None else {}
        error = dict(scene.error.figures) if scene.error is not None else {}
        known: dict[str, Any] = {k.removesuffix("_bytes"): v for k, v in figures.items()} | {
            "oom_" + k.removesuffix("_bytes"): v for k, v in error.items()
        }
        self._known = {k: gib(v) if isinstance(v, int) and abs(v) > 10**6 else v for k, v in known.items() if v is not None}
        self._known |= {k: k_.value for k, k_ in scene.evidence.deployment.arguments.items()}
        for fact in scene.facts:
            if fact.id.startswith("derived."):
                for name, field in fact.fields.items():
                    text = gib(field) if name == "bytes" and isinstance(field, int) else field
                    self._known.setdefault(f"{fact.id.removeprefix('derived.').replace('-', '_')}_{name}", text)
        if value is not None:
            self._known["value"] = value

    def fill(self, text: str) -> str:
        """The text with its figures; what stands in `[[…]]` is left out where one of its own is not known."""
        pieces = []
        for part in text.split("[["):
            head, closed, tail = part.partition("]]")
            pieces.append(self._optional(head) + tail if closed else head)
        try:
            return " ".join("".join(pieces).format_map(_Unknown(self._known)).split())
        except (KeyError, ValueError, IndexError):
            return " ".join("".join(pieces).split())

    def _optional(self, text: str) -> str:
        try:
            return text.format_map(self._known)
        except (KeyError, ValueError, IndexError):
            return ""


class _Unknown(dict[str, Any]):
    def __missing__(self, key: str) -> str:
        return "?"


def avoid(book: Rulebook, scene: Scene, phase: Phase, chosen: Sequence[Remedy]) -> tuple[Avoid, ...]:
    """The changes not to try in this phase, each with its reason; never the one that is recommended."""
    offered = {(r.flag, r.direction) for r in chosen}
    rows = [rule for rule in book.avoid if _avoided(rule, scene, phase) and (rule.flag, rule.direction) not in offered]
    says = _Says(scene, None, None)
    unique = {(rule.flag, rule.direction): Avoid(rule.flag, rule.direction, says.fill(rule.because)) for rule in reversed(rows)}
    return tuple(reversed(unique.values()))


def _avoided(rule: AvoidRule, scene: Scene, phase: Phase) -> bool:
    if phase not in rule.phases or not _in_range(rule.vllm, scene.evidence.engine_version):
        return False
    return _engine(scene) in rule.engines and holds(scene, all_=rule.all, any_=rule.any, none=rule.none)
