"""What was seen before, as a native table for the asker alone."""

from collections.abc import Mapping, Sequence
from typing import Any

from bot.slack.render.blocks import Block, bold, bullets, header, line, rich, small, table
from bot.slack.render.escape import cut
from bot.slack.render.limits import FALLBACK, fit_message
from bot.slack.render.wording import OUTCOMES, PHASES, moment, number
from bot.usecases.wording import in_few_words, span

Document = Mapping[str, Any]
ROWS = 20


def history_message(document: Document, *, complete: bool) -> tuple[list[Block], str]:
    """Blocks and text of a history document. `complete` False: private channels could not be checked and are left out."""
    rows: Sequence[Document] = document["rows"]
    found = incidents(document)
    title = f"{found} for “{document['query']}”" if document.get("query") else found
    blocks: list[Block] = [header(cut(title, 140))]
    if rows:
        blocks.append(history_table(rows[:ROWS]))
    blocks += [rich(line(cut(str(said), 300))) for said in (document.get("ignored") or ())[:3]]
    notes = []
    if len(rows) > ROWS or document["count"] > len(rows[:ROWS]):
        notes.append(f"The newest {len(rows[:ROWS])} are shown: add words, or model:, gpu:, phase:, outcome:")
    if not complete:
        notes.append("private incidents hidden: Slack did not say which channels you may see")
    if notes or rows:
        blocks.append(small(" · ".join(notes) or "“show” and an id shows one of them"))
    return fit_message(blocks), cut(title, FALLBACK)


def incidents(document: Document) -> str:
    """`1 incident`, `10,000+ incidents`."""
    return "1 incident" if document["count"] == 1 else f"{document['count_text']} incidents"


def history_table(rows: Sequence[Document]) -> Block:
    """Date, model, GPU, phase, rank, change, outcome, id."""
    head = ["Id", "When", "Model", "GPU", "Phase", "Rank", "Change", "Outcome"]
    return table([head, *(_row(row) for row in rows)], numbers_from=9)


def _row(row: Document) -> list[str]:
    what = in_few_words(row) or "–"
    cards = " × ".join(str(row[key]) for key in ("gpu_count", "gpu") if row.get(key))
    outcome = "erased" if row.get("erased") else OUTCOMES.get(row.get("outcome") or "", "open")
    phase = PHASES.get(str(row.get("phase")), str(row.get("phase") or "–"))
    return [
        str(row["id"]),
        moment(row.get("at"))[:16],
        cut(str(row.get("model") or "–"), 40),
        cut(cards, 30) or "–",
        phase,
        number(row.get("rank")),
        cut(what, 45),
        outcome,
    ]


def stats_message(document: Document) -> tuple[list[Block], str]:
    """Blocks and text of a stats document."""
    blocks: list[Block] = [header("What was seen, and what worked")]
    seconds = document.get("mean_seconds_to_outcome")
    count = document.get("incidents") or 0
    said = [f"{number(count)} incident{'s' * (count != 1)}."]
    said += [f"{span(seconds)} from the first log to an outcome, on average."] if seconds is not None else []
    blocks.append(rich(line(" ".join(said))))
    phases = [
        [PHASES.get(str(row["phase"]), str(row["phase"])), number(row["count"]), number(row["fixed"])]
        for row in document.get("phases") or ()
    ]
    if phases:
        blocks.append(table([["Phase", "Incidents", "Fixed"], *phases[:15]]))
    worked = worked_lines(document)
    if worked:
        blocks.append(rich(line(bold("Changes that worked, of those tried")), bullets([[one] for one in worked])))
    wrong = [[f"{row['rule']}: {number(row['count'])}"] for row in (document.get("wrong_rules") or ())[:5]]
    if wrong:
        blocks.append(rich(line(bold("Rules that were wrong")), bullets(wrong)))
    return fit_message(blocks), "What was seen, and what worked."


def worked_lines(document: Document) -> list[str]:
    """Sentences on which changes worked, by phase, from the stats document's `changes` rows."""
    said = []
    for row in (document.get("changes") or ())[:10]:
        if isinstance(row, Mapping) and in_few_words(row):
            counts = f"{number(row.get('fixed') or 0)} of {number(row.get('tried') or 0)}"
            phase = PHASES.get(str(row.get("phase")), str(row.get("phase") or ""))
            said.append(f"{phase}: {in_few_words(row)}: {counts}{_besides(row)}")
    return said


def _besides(row: Mapping[str, Any]) -> str:
    """How many were tried and marked as a wrong diagnosis or something else."""
    said = [f"{number(row[name])} {words}" for name, words in (("wrong", "wrong diagnosis"), ("other", "something else")) if row.get(name)]
    return f" ({', '.join(said)})" if said else ""
