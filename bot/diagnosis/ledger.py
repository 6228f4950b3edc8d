"""The budget of each rank from its own engine's figures: nothing counted twice, nothing invented."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from bot.diagnosis.accounting import Accounting, Figure, accounting_of, closing
from bot.diagnosis.boots import Engine, current_boot, engine_of, shared_with
from bot.diagnosis.failing import failing_rank
from bot.diagnosis.scene import Scene
from bot.domain.diagnosis import ReportedBudget
from bot.domain.evidence import Fact, Speaker
from bot.rulebook.book import Rulebook

FIELDS = (
    "total_bytes", "free_at_start_bytes", "utilization", "requested_bytes", "weights_bytes", "activation_peak_bytes", "non_torch_bytes",
    "consumed_bytes", "graph_bytes", "graph_estimate_bytes", "graphs_inside_budget", "other_reserved_bytes", "kv_cache_bytes",
    "needed_bytes", "kv_tokens", "num_gpu_blocks", "state_blocks", "max_concurrency", "estimated_max_model_len",
    "free_before_profile_bytes", "free_after_profile_bytes", "outside_budget_bytes",
)  # fmt: skip
_ALSO = {"total": "total_bytes", "kv_in_use_bytes": "kv_cache_bytes"} | {n: n for n in ("non_kv_bytes", "peak_torch_bytes", "equivalent")}
_LEAST = ("kv_tokens", "max_concurrency", "num_gpu_blocks")
"""Of several workers' figures that one engine core prints, the smallest governs."""
_TERMS = ("total_bytes", "utilization", "weights_bytes", "activation_peak_bytes", "kv_cache_bytes")
_MEASURED = ("weights_bytes", "kv_cache_bytes", "activation_peak_bytes", "graph_bytes", "consumed_bytes")


def ledger(book: Rulebook, scene: Scene) -> tuple[ReportedBudget, ...]:
    """One ReportedBudget for each process that reported a figure; the engine core's figures stand in each of its workers' rows.

    Only the last start before the failure counts, each container or engine apart.
    """
    rules = accounting_of(book, scene)
    own, wide = _by_speaker(book, scene)
    speakers = {key: facts[0].speaker for key, facts in own.items()}
    rows = {key: _row(scene, rules, speakers[key], facts, shared_with(speakers[key], wide), len(own)) for key, facts in own.items()}
    failing = _signed_by(scene, scene.failing, own) if scene.failing is not None else None
    rows = {key: row for key, row in rows.items() if key == failing or not _copies(row, speakers[key], rows, key)}
    rows = _of_one_paste(scene, rows, {key: facts[-1].source for key, facts in own.items()}, failing)
    ordered = sorted(rows, key=lambda key: (key != failing, rows[key].rank is None, rows[key].rank or 0))
    return tuple(_attributed(rules, rows[key], rows) for key in ordered)


def smallest(budgets: Sequence[ReportedBudget]) -> ReportedBudget | None:
    """Where no rank is known to have failed: the one with the smallest pool, which limits the replica; else the first that reported."""
    pools = [b for b in budgets if b.figures.get("kv_cache_bytes") is not None]
    return min(pools, key=lambda b: b.figures["kv_cache_bytes"] or 0) if pools else next(iter(budgets), None)


def _by_speaker(book: Rulebook, scene: Scene) -> tuple[dict[str, list[Fact]], dict[Engine, list[Fact]]]:
    """Budget facts of the boot that failed, by process; and those that an engine core says of all its workers, by engine."""
    core_ids = {s.fact for s in book.scopes if s.speaks == "engine core"}
    own: dict[str, list[Fact]] = {}
    wide: dict[Engine, list[Fact]] = {}
    for fact in current_boot(scene.facts, scene.error_fact):
        if "budget" not in fact.kinds or _of_another_card(scene, fact):
            continue
        if fact.id in core_ids:
            wide.setdefault(engine_of(fact.speaker), []).append(fact)
        else:
            own.setdefault(fact.speaker.key, []).append(fact)
    if scene.error_fact is not None and scene.error_fact.fields.get("total") and scene.failing is not None:
        own.setdefault(_signed_by(scene, scene.failing, own), []).append(scene.error_fact)
    for engine, facts in wide.items():
        if not any(engine_of(o[0].speaker)[0] == engine[0] for o in own.values()):
            own.setdefault(facts[0].speaker.key, []).extend(facts)
    return own, wide


def _of_another_card(scene: Scene, fact: Fact) -> bool:
    """Does one process say it of a card that is not the one which failed?"""
    failed = scene.error_fact.fields.get("gpu") if scene.error_fact is not None else None
    return "card" in fact.fields and failed is not None and fact.fields["card"] != failed


def _signed_by(scene: Scene, failing: Speaker, own: Mapping[str, Sequence[Fact]]) -> str:
    """The key of the one process that reported as the rank which failed, where the failure itself bears another signature, or none."""
    rank = failing_rank(scene.evidence, failing, scene.error_fact)
    if failing.key in own or rank is None or rank.number is None:
        return failing.key
    there, ranks = (rank.number, failing.group), scene.evidence.ranks
    same = [key for key, facts in own.items() if key in ranks and (ranks[key].number, facts[0].speaker.group) == there]
    return same[0] if len(same) == 1 else failing.key


def _row(scene: Scene, rules: Accounting, speaker: Speaker, facts: Sequence[Fact], shared: Sequence[Fact], rows: int) -> ReportedBudget:
    figures = _figures_of(facts)
    # among lines that nobody signs, the error's figures are the failing rank's
    failed = scene.error_fact if speaker.role == "unknown" else None
    for name, figure in _figures_of(shared).items():
        figures[name] = figure if failed is not None and figure.fact == failed.id else figures.get(name, figure)
    if failed is not None and failed in (*facts, *shared):
        figures |= dict(_named(failed))  # of several tries in one paste, the one whose error comes first
    _complete(scene, figures)
    result = closing(rules, figures) if not any("kv-pinned" in f.kinds for f in facts) else closing(rules, {})
    number, label = _who(scene, speaker, any(f not in shared for f in facts), rows)
    absent = tuple(n for n in _TERMS if n not in figures and not (n == "weights_bytes" and "consumed_bytes" in figures))
    inside = rules.charged("graph_estimate") if scene.evidence.engine in ("vllm", "unknown") else None
    return ReportedBudget(
        rank=number, label=label, figures={n: figures[n].value for n in FIELDS if n in figures} | {"graphs_inside_budget": inside},
        lines={n: figures[n].line for n in FIELDS if n in figures and figures[n].line}, engine_label=_engine_label(speaker),
        sources={n: figures[n].source for n in FIELDS if n in figures and figures[n].line and figures[n].source > 1},
        closes=result.closes, residual_bytes=result.residual, missing=(*absent, *result.missing),
    )  # fmt: skip


def _figures_of(facts: Sequence[Fact]) -> dict[str, Figure]:
    """The newest figure of each name; of several workers' pools the smallest, of several loads (target and draft) the largest."""
    figures: dict[str, Figure] = {}
    for fact in facts:
        for name, figure in _named(fact):
            before = figures.get(name)
            if before is not None and (before.value, before.fact) == (figure.value, figure.fact):
                continue  # the same sentence again, passed on by another process
            if before is not None and name in _LEAST and before.value < figure.value and before.fact == figure.fact:
                continue
            if before is not None and name == "weights_bytes" and figure.fact == before.fact == "vllm.model-loading":
                figure = max(before, figure, key=lambda f: f.value)
            figures[name] = figure
        if fact.id == "vllm.available-kv":
            figures.pop("graph_bytes", None)  # captured before the pool was sized: model runner V2's estimate, taken apart again
    return figures


def _named(fact: Fact) -> Iterator[tuple[str, Figure]]:
    for name, value in fact.fields.items():
        if name in FIELDS or name in _ALSO:
            yield _ALSO.get(name, name), Figure(value, fact.line, fact.id, fact.source)


def _complete(scene: Scene, figures: dict[str, Figure]) -> None:
    """What follows from what was reported: total × utilization, what lies outside, and the estimate behind two printed fractions."""
    given = scene.evidence.deployment.arguments.get("gpu_memory_utilization")
    if "utilization" not in figures and given is not None and isinstance(given.value, float) and scene.evidence.engine != "sglang":
        figures["utilization"] = Figure(given.value, given.line or 0, source=given.source or 1)
    total, utilization, equivalent = figures.get("total_bytes"), figures.get("utilization"), figures.get("equivalent")
    if "requested_bytes" not in figures and total is not None and utilization is not None:
        figures["requested_bytes"] = Figure(round(total.value * utilization.value), total.line, source=total.source)
    requested = figures.get("requested_bytes")
    if total is not None and requested is not None:
        figures["outside_budget_bytes"] = Figure(total.value - requested.value, requested.line, source=requested.source)
    if total is not None and utilization is not None and equivalent is not None and "graph_estimate_bytes" not in figures:
        estimate = round((utilization.value - equivalent.value) * total.value)
        figures["graph_estimate_bytes"] = Figure(estimate, equivalent.line, source=equivalent.source)


def _who(scene: Scene, speaker: Speaker, reports: bool, rows: int) -> tuple[int | None, str]:
    """The rank that a row belongs to. A process without one is rank 0 only where it is the only worker."""
    rank = scene.evidence.ranks.get(speaker.key)
    if rank is not None:
        return rank.number, rank.label
    failed = failing_rank(scene.evidence, speaker, scene.error_fact) if speaker == scene.failing else None
    if failed is not None and failed.number is not None:
        return failed.number, failed.label
    undecided = speaker == scene.failing and (failed is None or failed.number is None) and scene.evidence.grid.world != 1
    alone = (
        not undecided and scene.evidence.grid.single and reports and speaker.role != "front-end" and speaker.label != "VllmWorkerProcess"
    )
    number = 0 if alone and (rows == 1 or speaker.role != "unknown" or speaker.key == "") else None
    return number, speaker.label or ("log" if reports else "engine")


def _engine_label(speaker: Speaker) -> str | None:
    if speaker.group:
        return speaker.group
    index = engine_of(speaker)[1]
    return f"engine {index}" if index else None


def _copies(row: ReportedBudget, speaker: Speaker, rows: Mapping[str, ReportedBudget], key: str) -> bool:
    """Does a front end or engine core only repeat what another row of its container says?"""
    if speaker.role not in ("front-end", "engine-core", "unknown") or row.rank is not None:
        return False
    said = {n: v for n, v in row.figures.items() if v is not None and n not in ("graphs_inside_budget", "utilization")}
    return any(
        other is not row and other.engine_label == row.engine_label and all(other.figures.get(n) == v for n, v in said.items())
        for name, other in rows.items() if name != key
    )  # fmt: skip


def _of_one_paste(
    scene: Scene, rows: Mapping[str, ReportedBudget], sources: Mapping[str, int], failing: str | None
) -> dict[str, ReportedBudget]:
    """The rows without those of another paste's start, where a process of the same rank reported in the paste that failed, or later."""
    failed = scene.error_fact.source if scene.error_fact is not None else None
    chosen: dict[tuple[str | None, int | None], int] = {}
    for key in sorted(rows, key=lambda key: (key == failing, sources[key] == failed, sources[key])):  # the last one is the best
        if any(name in rows[key].figures for name in _MEASURED):
            chosen[rows[key].engine_label, rows[key].rank] = sources[key]
    return {
        key: row
        for key, row in rows.items()
        if key == failing or row.rank is None or sources[key] == chosen.get((row.engine_label, row.rank), sources[key])
    }


def _attributed(rules: Accounting, row: ReportedBudget, rows: Mapping[str, ReportedBudget]) -> ReportedBudget:
    """The row, with whose figures it holds: its own rank's, or the first worker's where that one alone prints and this one did not."""
    if any(name in row.figures for name in _MEASURED):
        return replace(row, reported_by_rank=row.rank)
    firsts = [r.rank for r in rows.values() if r.rank is not None and r.rank != row.rank and any(n in r.figures for n in _MEASURED)]
    silent = any(rules.only_first_speaks(fact) for fact in ("vllm.available-kv", "vllm.model-loading"))
    return replace(row, reported_by_rank=min(firsts)) if firsts and silent and row.rank else row
