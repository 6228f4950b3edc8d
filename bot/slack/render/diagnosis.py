"""The one message of an incident: the verdict, its evidence, the one change, what not to touch, what is still asked, and the buttons."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from bot.domain.incident import NOT_KNOWN
from bot.slack.render.blocks import (
    Block,
    actions,
    bold,
    bullets,
    button,
    code,
    fields,
    header,
    line,
    menu,
    mono,
    option,
    person,
    rich,
    small,
    told,
    words,
)
from bot.slack.render.budget import budget_blocks, missing_figures
from bot.slack.render.escape import cut
from bot.slack.render.limits import FALLBACK, HEADER, fit_message
from bot.slack.render.wording import OUTCOMES, PHASES, as_asked_here, moment, size
from bot.usecases.erased import lost_its_sentences, what_stays
from bot.usecases.next_step import next_step
from bot.usecases.settle import CHECKLIST, NONE_LEFT, WANTED
from bot.usecases.wording import engine_of, in_few_words, in_words, left_alone, named_rank, phase_of, some_named, what_worked, which_rank

Document = Mapping[str, Any]
ROUNDS = 2
_AFTER = {
    "fixed": " A start-up is no proof of stability. Next, test:",
    "moved": " Reply in this thread with the new log, from before its first error.",
    "same": f" That change is refuted: take it back. {NONE_LEFT} reply with {WANTED}.",
    "wrong": " Reply in this thread with more of the log: the next diagnosis reads all of it.",
}
"""What an outcome asks for."""
QUOTE = 170
"""Characters of a log line in the message; the evidence has all of it."""
_RAISED = re.compile(r"[\w.]*(?:Error|Exception)\b")


def diagnosis_message(
    document: Document, trials: Sequence[Document] = (), remark: str | None = None, *, rounds: int = 0, heard: bool = False
) -> tuple[list[Block], str]:
    """Blocks and text of a diagnosis. `trials` as in an incident document; `remark` is one short line on what is new.

    `rounds`: how often something was added since the first question; after two, the message stops asking.
    `heard`: whether evidence came since the newest outcome.
    """
    last = next((trial for trial in reversed(trials) if trial.get("outcome")), None)
    erased = lost_its_sentences(document)
    document = what_stays(document, last["outcome"] if last else None)
    waiting = last is None or trials[-1] is not last
    offered = waiting or (last is not None and (last["outcome"] == "other" or (last["outcome"] == "moved" and heard)))
    blocks = [
        *_verdict(document, erased),
        *_first_error(document),
        *budget_blocks(document),
        *_outcome(document, last, heard=heard or waiting, left=waiting),
        *_change(document if offered else {**document, "notes": []}, offered=offered),  # they speak of the change
        *_avoid(document),
        *_similar(document),
        *(_questions(document, rounds) or _next(document)),
        _footer(document, remark),
        *_buttons(document, trials, last, waiting, erased),
    ]
    return fit_message(blocks), fallback(document, last["outcome"] if last and not offered else None)


def fallback(document: Document, ended: str | None = None) -> str:
    """What notifications and screen readers get: the verdict and the change, or how it `ended` where it is offered no more."""
    said = [cut(str(document.get("summary") or title(document)), 500)]
    if ended:
        said.append(f"Marked: {OUTCOMES.get(ended, ended)}.{_AFTER.get(ended, '') if ended != 'fixed' else ''}")
    elif document.get("recommendation"):
        said.append(f"Suggested change: {in_words(document['recommendation'], document.get('deployment'))}.")
    elif step := next_step(document):
        said.append(cut(as_asked_here(step), 200))
    if document.get("id"):
        said.append(f"Diagnosis {document['id']}.")
    return cut(" ".join(said), FALLBACK)


def title(document: Document) -> str:
    """A short name of what happened, for headers and lists."""
    who = named_rank(document.get("rank"))
    if document["phase"] == "not_oom":
        return "Not an out-of-memory failure"
    if document["phase"] == "unknown":
        return f"Out of memory{' on ' + who if who else ''}; the phase is not decided"
    stopped = str(document.get("summary") or "").removeprefix("Probably: ").lower().startswith("stopped")  # not said to be a shortage
    return f"{'Stopped' if stopped else 'Out of memory'}{' on ' + who if who else ''}, during {PHASES[document['phase']]}"


def _verdict(document: Document, erased: bool) -> list[Block]:
    summary = str(document.get("summary") or title(document))
    opening = [header(summary)] if len(summary) <= HEADER else [header(title(document)), rich(line(cut(summary, 1_000)))]
    facts = [("Phase", f"{phase_of(document)} ({document['verdict']})")]
    facts += [] if erased and not document.get("rank") else [("Rank", which_rank(document))]
    facts += [] if erased and document["engine"] == "unknown" else [("Engine", engine_of(document))]
    deployment = document.get("deployment") or {}
    if deployment.get("model"):
        facts.append(("Model", cut(str(deployment["model"]), 200)))
    if deployment.get("gpu") or deployment.get("gpu_count"):
        facts.append(("GPU", " × ".join(str(deployment[key]) for key in ("gpu_count", "gpu") if deployment.get(key))))
    others = document.get("also_failed") or []
    more = [rich(line(bold("Also out of memory"), f": {', '.join(map(str, others[:8]))}"))] if others else []
    return [*opening, fields(facts[:6]), *more]


def _first_error(document: Document) -> list[Block]:
    first = document.get("first_error")
    if not first:
        return []
    if not first.get("text"):
        return [rich(line(bold("First error"), f", line {first['line']}: its evidence was erased."))]
    quote = quoted(first["text"])
    figures = [("tried", "tried_bytes"), ("free", "free_bytes"), ("of", "total_bytes")]
    known = [f"{word} {size(first[key])}" for word, key in figures if first.get(key) is not None and size(first[key]) not in quote]
    where = f"line {first['line']}" + (f" of file {first['source']}" if first["source"] > 1 else "")
    return [rich(line(bold("First error"), f", {where}" + (f" ({', '.join(known)})" if known else "")), code(quote))]


def quoted(text: str) -> str:
    """A line of a log as long as a message bears it: what signs a long one goes first, then its end."""
    error = _RAISED.search(text) if len(text) > QUOTE else None
    return cut(f"…{text[error.start() :]}" if error and error.start() else text, QUOTE)


def _outcome(document: Document, last: Document | None, *, heard: bool, left: bool) -> list[Block]:
    """How the newest change that was tried ended; `heard`: what it asks for has come, `left`: there is another to try."""
    if last is None or not document.get("id"):
        return []
    said: list[str | Block] = [bold(f"Marked: {OUTCOMES.get(last['outcome'], last['outcome'])}")]
    said.append(f" (change {last['number']}: {in_few_words(last['change'])})")
    if last.get("by"):
        said += [", by ", person(last["by"])]
    said.append(f", {moment(last.get('at'))}.")
    if last["outcome"] == "same" and left:
        said.append(" That change is refuted: take it back before trying the next.")
    elif not heard or last["outcome"] in ("fixed", "same"):
        said += [_AFTER[last["outcome"]]] if last["outcome"] in _AFTER else []
    checklist = [bullets([[item] for item in CHECKLIST])] if last["outcome"] == "fixed" else []
    return [rich(line(*said), *checklist)]


def _change(document: Document, *, offered: bool) -> list[Block]:
    """The one change, and behind it the notes: they say what it rests on."""
    advice = document.get("recommendation")
    notes = [line("\n", *told(cut(note, 400))) for note in _notes(document)]
    if not advice or not offered:
        return [rich(*notes)] if notes else []
    said: list[Block] = [
        line(bold("Change one thing: "), bold(in_words(advice, document.get("deployment"))), ". ", cut(str(advice["because"]), 700))
    ]
    if advice.get("command"):
        said.append(code(cut(advice["command"], 1_500)))
    tail: list[str | Block] = []
    if advice.get("frees_bytes"):
        tail.append(f"Frees {size(advice['frees_bytes'])}. ")
    if advice.get("costs"):
        tail.append(f"Costs: {cut(str(advice['costs']), 300)} ")
    if advice.get("disproved_by"):
        tail += [bold("Wrong if: "), cut(str(advice["disproved_by"]), 400)]
    if advice.get("keep_fixed"):
        tail.append(f" Keep fixed: {', '.join(advice['keep_fixed'])}.")
    return [rich(*said, *([line(*tail)] if tail else []), *notes)]


def _notes(document: Document) -> list[str]:
    """Two beside a change, which says most of it; the others are in the evidence."""
    told_of = [str(note) for note in (document.get("notes") or [])[: 2 if document.get("recommendation") else 3]]
    possible = [f"Not excluded: {PHASES.get(p['phase'], p['phase'])}, because {p['because']}" for p in document["also_possible"][:2]]
    return [*told_of, *possible]


def _avoid(document: Document) -> list[Block]:
    if not document["avoid"]:
        return []
    items: list[list[str | Block]] = [
        [mono(f"{direction} {flag}"), f": {cut(_clause(because), 200)}"] for direction, flag, because in left_alone(document["avoid"])[:3]
    ]
    return [rich(line(bold("Leave alone")), bullets(items))]


def _clause(because: str) -> str:
    """Its first half, which gives the reason: the evidence has all of it."""
    first = because.partition("; ")[0]
    return first if first == because else f"{first}."


def _questions(document: Document, rounds: int) -> list[Block]:
    shown: list[Block] = []
    if document["questions"] and rounds >= ROUNDS:
        unknown = " ".join(cut(str(question["text"]), 200) for question in document["questions"][:2])
        holds = "What is said above holds without it; this would still change it:"
        left = "Without it the phase stays open. What would decide it:" if document["phase"] == "unknown" else holds
        said = [line(bold("I have stopped asking. "), f"{left} {unknown}")]
        if how := document["questions"][0].get("how"):
            said += [line(bold("Next: "), "should it turn up, reply with the log or what this prints"), code(cut(str(how), 500))]
        return [rich(*said)]
    for question in document["questions"][:2]:
        first = not shown and document["phase"] == "unknown"
        parts = [line(bold("Next: " if first else "Still open: "), cut(str(question["text"]), 500))]
        if question.get("how"):
            parts.append(code(cut(str(question["how"]), 500)))
        shown.append(rich(*parts))
        if question["id"] == "failing_rank" and document.get("id"):
            shown.append(actions(_ranks(document)))
    if shown:
        shown.append(words("Reply in this thread: a paste, a file, or plain words (“rank 3”, “gpu3”, “I don't know”)."))
    if shown and document.get("id"):
        asked = ",".join(str(question["id"]) for question in document["questions"][:2])
        nobody = button("dont_know", "I don't know", f"{document['id']} {asked}", "I don't know the answers: say what follows without them")
        shown.append(actions(nobody))
    return shown


def _next(document: Document) -> list[Block]:
    """Where nothing is to be changed and nothing is asked."""
    step = next_step(document)
    return [rich(line(bold("Next: "), *told(step)))] if step else []


def _ranks(document: Document) -> Block:
    deployment = document.get("deployment") or {}
    sizes = [deployment.get(key) or 1 for key in ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")]
    world = min(max(sizes[0] * sizes[1] * sizes[2], deployment.get("gpu_count") or 1), 98)
    names = [option(f"Rank {number}", f"{document['id']} {number}") for number in range(world if world > 1 else 8)]
    return menu("answer_rank", "Failing rank", [*names, option("I don't know", f"{document['id']} {NOT_KNOWN}")])


def _similar(document: Document) -> list[Block]:
    seen = document.get("similar") or []
    items: list[list[str | Block]] = []
    for row in [row for row in seen if row.get("outcome")][:3]:
        where = ", ".join(str(row[key]) for key in ("model", "gpu", "engine_version") if row.get(key))
        said = f"{row['id']}: {in_few_words(row) or 'no change'}: {OUTCOMES.get(row['outcome'], row['outcome'])}"
        items.append([said + (f" ({where})" if where else "")])
    if items:
        worked = what_worked(seen)
        return [rich(line(bold("Seen before"), *([f": {worked}"] if worked else [])), bullets(items))]
    return [rich(line(bold("Seen before"), f": {some_named([row['id'] for row in seen])}, no outcome yet"))] if seen else []


def _footer(document: Document, remark: str | None) -> Block:
    said = []
    if document["proof"]:
        said.append(f"Evidence: line {document['proof'][0]['line']}")
    if missing := missing_figures(document):
        said.append(f"Not in the log: {', '.join(missing)}")
    if document.get("id"):
        said.append(str(document["id"]))
    if remark:
        said.append(remark)
    return small(" · ".join(said) or "oombot")


def undoes(incident: str, trial: Document) -> str:
    """The value of the button that takes this outcome back, and none that came after it."""
    return f"{incident} {trial['number']} {trial['outcome']}"


def _buttons(document: Document, trials: Sequence[Document], last: Document | None, waiting: bool, erased: bool) -> list[Block]:
    incident = document.get("id")
    if not incident:
        return []
    # The value names the trial that was on show: a click on an older layout never counts for the change that came after.
    tried = f"{incident} {trials[-1]['number'] if trials else 1}"
    undo = [button("undo", "Undo", undoes(incident, last), f"Undo the outcome of {incident}")] if last else []
    rows: list[Block] = []
    if waiting and document.get("recommendation"):
        choices = [
            button("fixed", "It worked", tried, f"The change of {incident} worked", "primary"),
            button("moved", "Error moved", tried, f"Another error came after the change of {incident}"),
            button("same", "Same error", tried, f"The same error came after the change of {incident}"),
            button("wrong", "Wrong diagnosis", tried, f"The diagnosis {incident} is wrong"),
        ]
        rows.append(actions(*choices))
    shows = [] if erased else [button("evidence", "Show evidence", incident, f"Show the evidence of {incident}")]
    return [*rows, actions(*shows, *undo)] if shows or undo else rows
