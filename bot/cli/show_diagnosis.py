"""A diagnosis as it stands in a terminal."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bot.cli.terminal import bold, command, figure, headline, shortened, table, wrapped
from bot.usecases.budget_rows import FIGURES, at_the_error, not_reported, of_what_failed
from bot.usecases.next_step import next_step
from bot.usecases.wording import KNOWN_BY, engine_of, in_few_words, in_words, left_alone, then_each, what_runs, what_worked


def diagnosis_text(document: Mapping[str, Any]) -> str:
    """Verdict, rank, first error, budget, the one change, what not to touch, questions."""
    return "\n".join(_parts(document))


def _parts(document: Mapping[str, Any]) -> Iterator[str]:
    yield headline(document["summary"])
    wording = " by its wording" if document["engine_version_range"] else ""
    number = f" · {document['id']}" if document["id"] else ""
    yield wrapped(f"{document['verdict']} · phase {document['phase']} · {engine_of(document)}{wording}{number}", indent="")
    if runs := what_runs(document):
        yield wrapped(f"runs {runs}", indent="")
    yield from _where(document)
    yield from _budgets(document)
    yield from _change(document)
    for question in document["questions"]:
        yield "\n" + bold("Question") + f" (it would change the {question['would_change']})"
        yield wrapped(question["text"])
        yield f"    {question['how']}"
        if document["id"]:
            yield f"  Answer with: oombot diagnose --into {document['id']} --answer {question['id']}=…"
    if document["notes"]:
        yield "\n" + bold("To know")
        yield from (wrapped(note) for note in document["notes"])
    yield from similar_lines(document["similar"])
    if document["redactions"]:
        yield f"\n{document['redactions']} secret{'s' * (document['redactions'] != 1)} hidden."


def _where(document: Mapping[str, Any]) -> Iterator[str]:
    rank = document["rank"]
    if rank is not None and rank["number"] is not None:
        device = f"GPU {rank['gpu_index']} as that process counts" if rank["gpu_index"] is not None else ""
        label = "" if rank["label"] in (f"rank {rank['number']}", f"GPU {rank['gpu_index']}") else rank["label"]
        known = ", ".join(part for part in (label, device) if part)
        yield "\n" + wrapped(f"rank {rank['number']}" + (f": {known}" if known else "") + f" (known by {KNOWN_BY[rank['basis']]})")
    elif rank is not None:
        yield f"\n  rank not decided: GPU {rank['gpu_index']} is an index inside one process"
    if document["also_failed"]:
        yield f"  also out of memory: {', '.join(document['also_failed'])}"
    error = document["first_error"]
    if error is not None:
        yield f"\n{bold('First error')}, {_place(document, error)}"
        yield wrapped(shortened(error["text"].strip(), 700))
    proofs = [{**p, "text": "the first error itself"} if _is_same_line(p, error) else p for p in document["proof"]]
    if proofs:
        yield f"\n{bold('Proof')}"
        yield from (wrapped(f"{_place(document, p)}: {shortened(p['text'].strip(), 300)}", indent="    ", first="  ") for p in proofs)
    for other in document["also_possible"]:
        yield wrapped(f"Not excluded: {other['phase']}, because {other['because']}.")


def _read_at(document: Mapping[str, Any], budget: Mapping[str, Any], name: str) -> str:
    """Where a figure was read; nothing where no line says it."""
    line = budget["lines"].get(name)
    return _place(document, {"line": line, "source": (budget.get("sources") or {}).get(name, 1)}) if line else ""


def _place(document: Mapping[str, Any], told: Mapping[str, Any]) -> str:
    """`line 9`, and of which source where what is told comes from several: of the first too."""
    several = any(one["source"] > 1 for one in (*document["proof"], *filter(None, [document["first_error"]])))
    several = several or any(budget.get("sources") for budget in document["budgets"])
    return f"line {told['line']}" + (f" of source {told['source']}" if several else "")


def _is_same_line(proof: Mapping[str, Any], error: Mapping[str, Any] | None) -> bool:
    return error is not None and (proof["source"], proof["line"]) == (error["source"], error["line"])


def _budgets(document: Mapping[str, Any]) -> Iterator[str]:
    if told := at_the_error(document):
        yield f"\n{bold('The card at the first error')}, {_place(document, document['first_error'])}"
        yield table([(label, figure("_bytes", size)) for label, size in told], right=(1,))
    budgets = of_what_failed(document)
    for budget in budgets[:2]:
        shown = [(name, of.label) for name, of in FIGURES.items() if budget[name] is not None]
        rank = f"rank {budget['rank']}" if budget["rank"] is not None else "an unnamed rank" if len(budgets) > 1 else "the engine"
        names = [name for name in (budget["label"], budget.get("engine_label")) if name and name not in ("log", "engine", rank)]
        whose = f" ({' of '.join(names)})" if names else ""
        yield f"\n{bold('Budget')} of {rank}{whose}, as reported" + _closing(budget)
        yield table([(label, figure(k, budget[k]), _read_at(document, budget, k)) for k, label in shown], right=(1,))
        if missing := not_reported(document, budget):
            yield wrapped(f"not reported: {', '.join(missing)}")
    more = len(budgets) - 2
    if more > 0:
        yield f"  {more} more rank{'s' * (more > 1)} reported; --json has them all."


def _closing(budget: Mapping[str, Any]) -> str:
    if budget["closes"] is None:
        return ""
    if budget["closes"]:
        return "; the terms add up"
    return f"; {figure('residual_bytes', budget['residual_bytes'])} of the budget is not accounted for"


def _change(document: Mapping[str, Any]) -> Iterator[str]:
    change = document["recommendation"]
    if change is not None:
        yield "\n" + wrapped(f"{bold('The one change')}: {in_words(change, document['deployment'])}", first="")
        if change["command"]:
            yield command(change["command"])
            if "MODEL" in change["command"].split():
                yield wrapped("MODEL stands for yours.")
        yield wrapped(change["because"])
        if change["frees_bytes"]:
            yield f"  It frees {figure('frees_bytes', change['frees_bytes'])}."
        yield wrapped(f"Costs: {change['costs']}")
        yield wrapped(f"Wrong if: {change['disproved_by']}")
        yield wrapped(f"Keep fixed: {', '.join(change['keep_fixed'])}.")
    elif step := next_step(document) if document["phase"] == "not_oom" else "":
        yield "\n" + wrapped(f"{bold('Next')}: {step}", first="")
    if document["alternatives"]:
        yield wrapped(f"If the error does not move, take it back and try: {then_each(document['alternatives'], document['deployment'])}.")
    if document["avoid"]:
        yield f"\n{bold('Leave alone')}"
        told = left_alone(document["avoid"])
        yield from (wrapped(f"{direction} {flag}: {because}", indent="    ", first="  ") for direction, flag, because in told)


def similar_lines(similar: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The nearest past incidents: what was changed there and whether it worked."""
    if not similar:
        return
    worked = what_worked(similar)
    yield f"\n{bold('Like it')}" + (f": {worked}" if worked else "")
    yield table([[one["id"], str(one.get("at") or "")[:10], one.get("outcome") or "no outcome yet", in_few_words(one)] for one in similar])
