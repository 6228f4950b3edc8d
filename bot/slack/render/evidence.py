"""Long evidence as one text file: the verdict, every line that speaks for it, the figures, and what was kept of the log."""

from collections.abc import Mapping
from typing import Any

from bot.slack.render.budget import SHOWN, name_of, read_at
from bot.slack.render.wording import PHASES, size
from bot.usecases.budget_rows import FIGURES
from bot.usecases.wording import in_words, left_alone

MOST_TEXT = 200_000  # characters of one contribution


def evidence_text(incident: Mapping[str, Any]) -> str:
    """An incident document as text; secrets were hidden before it was kept."""
    diagnosis = incident["diagnosis"]
    lines = [
        f"{incident['id']}: {diagnosis.get('summary') or PHASES.get(diagnosis['phase'], diagnosis['phase'])}",
        f"Verdict: {diagnosis['verdict']}",
        "",
    ]
    if diagnosis.get("recommendation"):
        lines += [
            f"Change: {in_words(diagnosis['recommendation'], diagnosis.get('deployment'))}",
            f"Because: {diagnosis['recommendation']['because']}",
            "",
        ]
    lines += [f"Note: {note}" for note in diagnosis.get("notes") or ()]
    lines += [f"Leave alone: {direction} {flag}: {because}" for direction, flag, because in left_alone(diagnosis.get("avoid") or ())]
    lines += ["What speaks for it:"]
    lines += [f"  file {proof['source']}, line {proof['line']}: {proof['text'] or '(erased)'}" for proof in diagnosis["proof"]]
    for budget in diagnosis["budgets"]:
        figures = [f"{FIGURES[name].label} {size(budget[name])}{_line(budget, name)}" for name in SHOWN if budget.get(name) is not None]
        lines.append(f"{name_of(budget)}: {', '.join(figures) or 'nothing reported'}")
    for said in incident.get("contributions") or ():
        lines += ["", f"--- {said['number']}: {said['kind']} {said.get('name') or ''}".rstrip()]
        text = said.get("text")
        lines.append("(erased)" if text is None else str(text)[:MOST_TEXT])
        if said.get("truncated") or (text is not None and len(text) > MOST_TEXT):
            lines.append("(shortened)")
    return "\n".join(lines) + "\n"


def _line(budget: Mapping[str, Any], name: str) -> str:
    where = read_at(budget, name)
    return f" (line {where})" if where else ""
