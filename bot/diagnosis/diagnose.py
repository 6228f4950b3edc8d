"""Evidence in, Diagnosis out: pure, and the same every time."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from bot.diagnosis.boots import current_boot, with_rehearsals_named
from bot.diagnosis.defaults import defaults_of, possible_defaults
from bot.diagnosis.derived import derived_facts, of_defaults
from bot.diagnosis.failing import also_failed, as_first_error, failing_rank, failing_speaker, first_error_fact
from bot.diagnosis.host_pools import of_host_pools
from bot.diagnosis.ledger import ledger, smallest
from bot.diagnosis.notes import notes_of
from bot.diagnosis.one_process import one_process
from bot.diagnosis.phase import PhaseFinding, also_possible, findings
from bot.diagnosis.questions import questions
from bot.diagnosis.remedies import avoid, remedies
from bot.diagnosis.scene import Scene, Weigh
from bot.diagnosis.summary import container_of, cut_note, deployment_of, sizing_note, summary_of
from bot.diagnosis.verdict import choose
from bot.diagnosis.weights import of_weights
from bot.domain.diagnosis import Diagnosis, Proof
from bot.domain.evidence import Evidence, Fact
from bot.rulebook.book import Rulebook

VLLM_PROCESSES = ("Worker", "VllmWorker", "EngineCore")


def diagnose(
    book: Rulebook,
    evidence: Evidence,
    refuted: Sequence[Mapping[str, Any]] = (),
    failed_elsewhere: Sequence[Mapping[str, Any]] = (),
    weigh: Weigh | None = None,
) -> Diagnosis:
    """The verdict on this evidence. `refuted`: changes that did not help here; `failed_elsewhere`: in like incidents; `weigh`: sizing's
    word on the weights, which takes a while and is asked only where they did not load.
    """
    scene = scene_of(book, evidence)
    found = findings(book, scene)
    chosen, verdict = choose(scene, found)
    phase = chosen.phase if chosen is not None else "unknown"
    rule = chosen.rule if chosen is not None else None
    if phase == "weight_loading":
        scene = replace(scene, weigh=weigh)
        scene = replace(scene, facts=[*scene.facts, *of_weights(scene)])
    evidence = scene.evidence
    rank = failing_rank(evidence, scene.failing, scene.error_fact)
    alone = one_process(scene, phase) if rank is None else None
    rank = rank or (None if alone is None else alone[0])
    budgets = ledger(book, scene)
    own = next((b for b in budgets if rank is not None and b.rank == rank.number), None) or smallest(budgets)
    changes = remedies(book, scene, phase, own, refuted) if phase != "unknown" else []
    changes.sort(key=lambda r: any(f.get("id") == r.id and f.get("flag") == r.flag for f in failed_elsewhere))
    asked = questions(book, scene, phase, verdict, rank)
    change = changes[0] if changes else None
    fractions = possible_defaults(book, evidence, "gpu_memory_utilization")
    return Diagnosis(
        verdict=verdict,
        phase=phase,
        engine=evidence.engine,
        engine_version=evidence.engine_version,
        engine_version_range=evidence.engine_version_range,
        rank=rank,
        first_error=scene.error,
        budgets=budgets,
        deployment=deployment_of(evidence),
        recommendation=change,
        alternatives=tuple(changes[1:]),
        avoid=avoid(book, scene, phase, changes),
        questions=asked,
        proof=_proof(scene, chosen),
        also_possible=() if chosen is None else also_possible(book, scene, chosen, found),
        also_failed=also_failed(scene.failing, scene.facts),
        summary=summary_of(scene, phase, verdict, rank, rule, next((r.says for r in book.rules if r.id == rule), "")),
        notes=cut_note(scene, phase)
        + (() if alone is None else (alone[1],))
        + sizing_note(scene, phase, rule)
        + notes_of(evidence, budgets, rank, scene.facts, change, fractions, scene.error),
        container=container_of(scene),
        redactions=evidence.redactions,
        rulebook=book.digest,
    )


def scene_of(book: Rulebook, evidence: Evidence) -> Scene:
    """What the rules may look at: this run of this engine, its first error, and what follows from figures."""
    evidence = _this_run(evidence)
    fact = first_error_fact(evidence)
    evidence = _one_engine(book, evidence, fact)
    error = None if fact is None else as_first_error(fact, evidence)
    told = with_rehearsals_named(current_boot(evidence.facts, fact), evidence.engine_version)
    evidence = replace(evidence, facts=tuple(told))
    facts = [*evidence.facts, *derived_facts(book, evidence, fact), *of_host_pools(evidence)]
    defaults = defaults_of(book, evidence, facts)
    return Scene(evidence, [*facts, *of_defaults(evidence, defaults, fact)], failing_speaker(evidence, fact), error, fact, defaults)


def _one_engine(book: Rulebook, evidence: Evidence, fact: Fact | None) -> Evidence:
    """Where two engines speak in one paste, the one whose process failed first; what the others say of themselves is left out."""
    speaks = {rule.id: rule.engine for rule in book.facts if rule.engine}
    failed = speaks.get(fact.id) if fact is not None else None
    if failed is None and fact is not None and fact.speaker.label.startswith(VLLM_PROCESSES):
        failed = "vllm"
    if failed is None:
        return evidence
    kept = tuple(f for f in evidence.facts if speaks.get(f.id, failed) == failed)
    return replace(evidence, engine=failed, facts=kept)


def _this_run(evidence: Evidence) -> Evidence:
    """The evidence of the newest run alone; how the engine was started may stand in an earlier one."""
    if evidence.since == 1:
        return evidence
    return replace(
        evidence,
        facts=tuple(f for f in evidence.facts if f.source >= evidence.since),
        frames=tuple(f for f in evidence.frames if f.source >= evidence.since),
        errors=tuple(line for line in evidence.errors if line.source >= evidence.since),
        speakers=tuple(line for line in evidence.speakers if line.source >= evidence.since) or evidence.speakers,
    )


def _proof(scene: Scene, chosen: PhaseFinding | None) -> tuple[Proof, ...]:
    proofs = list(chosen.proof) if chosen is not None else []
    if scene.error is not None and all(p.line != scene.error.line for p in proofs):
        rule = scene.error_fact.id if scene.error_fact is not None else "first-error"
        proofs.append(Proof(scene.error.source, scene.error.line, rule, scene.error.text[:600]))
    return tuple(proofs)
