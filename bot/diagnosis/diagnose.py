"""Evidence in, Diagnosis out: pure, and the same every time."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from bot.diagnosis.deployed import deployment_of
from bot.diagnosis.failing import also_failed, failing_rank
from bot.diagnosis.fractions import of_budget
from bot.diagnosis.ledger import ledger, smallest
from bot.diagnosis.notes import notes_of
from bot.diagnosis.one_process import one_process
from bot.diagnosis.phase import PhaseFinding, also_possible, findings
from bot.diagnosis.questions import questions
from bot.diagnosis.remedies import avoid, remedies
from bot.diagnosis.scene import Scene, Weigh
from bot.diagnosis.summary import summary_of
from bot.diagnosis.this_run import scene_of
from bot.diagnosis.verdict import choose
from bot.diagnosis.weights import of_free_memory, of_weights
from bot.domain.diagnosis import Diagnosis, Proof
from bot.domain.evidence import Evidence
from bot.rulebook.book import Rulebook


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
    elif phase == "startup_check":
        scene = replace(scene, facts=[*scene.facts, *of_free_memory(scene)])
    evidence = scene.evidence
    rank = failing_rank(evidence, scene.failing, scene.error_fact)
    why = ""
    if rank is None and (alone := one_process(scene, phase)) is not None:
        rank, why = alone
    budgets = ledger(book, scene)
    own = next((b for b in budgets if rank is not None and b.rank == rank.number), None) or smallest(budgets)
    scene = replace(scene, facts=[*scene.facts, *of_budget(scene, own)])
    changes = remedies(book, scene, phase, own, refuted) if phase != "unknown" else []
    changes.sort(key=lambda r: any(f.get("id") == r.id and f.get("flag") == r.flag for f in failed_elsewhere))
    asked = questions(book, scene, phase, verdict, rank)
    change = changes[0] if changes else None
    return Diagnosis(
        verdict=verdict,
        phase=phase,
        engine=evidence.engine,
        engine_version=evidence.engine_version,
        engine_version_range=evidence.engine_version_range,
        rank=rank,
        first_error=scene.error,
        budgets=budgets,
        deployment=deployment_of(book, evidence),
        recommendation=change,
        alternatives=tuple(changes[1:]),
        avoid=avoid(book, scene, phase, changes),
        questions=asked,
        proof=_proof(scene, chosen),
        also_possible=() if chosen is None else also_possible(book, scene, chosen, found),
        also_failed=also_failed(scene.failing, scene.facts),
        summary=summary_of(scene, phase, verdict, rank, rule, next((r.says for r in book.rules if r.id == rule), "")),
        notes=notes_of(book, scene, phase, rank, budgets, change, why),
        container=scene.container,
        redactions=evidence.redactions,
        rulebook=book.digest,
    )


def _proof(scene: Scene, chosen: PhaseFinding | None) -> tuple[Proof, ...]:
    proofs = list(chosen.proof) if chosen is not None else []
    if scene.error is not None and all(p.line != scene.error.line for p in proofs):
        rule = scene.error_fact.id if scene.error_fact is not None else "first-error"
        proofs.append(Proof(scene.error.source, scene.error.line, rule, scene.error.text[:600]))
    return tuple(proofs)
