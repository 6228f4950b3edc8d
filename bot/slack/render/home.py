"""App Home: what a person may see of the team's incidents, as native tables."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from bot.slack.render.blocks import Block, actions, bold, bullets, button, header, line, menu, option, plainly, rich, small
from bot.slack.render.history import history_table, incidents, worked_lines
from bot.slack.render.limits import fit_view
from bot.slack.render.wording import OUTCOMES, PHASES, number

Document = Mapping[str, Any]
FILTERS = ("model", "gpu", "phase", "outcome")
LABELS = {"model": "Model", "gpu": "GPU", "phase": "Phase", "outcome": "Outcome"}
ROWS = 50


def home_view(
    every: Document,
    shown: Document,
    stats: Document,
    picked: Mapping[str, str],
    above: Sequence[str] = (),
    *,
    complete: bool,
    native: bool = True,
) -> Document:
    """The view for `views.publish`. `above`: the last ids of the pages above, kept in the view itself.

    `native` False: without tables, for a workspace that refuses them.
    """
    blocks: list[Block] = [
        header("Out-of-memory incidents of your channels"),
        actions(
            button("home_size", "Size a model", "size", "Open the sizing form", "primary"),
            button("home_log", "Send a log", "log", "Open the form that takes a log"),
        ),
        *_counts(every),
        *_filters(every, picked),
        *_rows(shown, above),
        *_worked(stats),
        small(
            "Only you see this. "
            + ("" if complete else "Private incidents are hidden: Slack did not say which channels you may see. ")
            + "It is renewed when you open it."
        ),
    ]
    meta = json.dumps(list(above), separators=(",", ":"))
    return {"type": "home", "callback_id": "home", "private_metadata": meta, "blocks": fit_view(blocks if native else plainly(blocks))}


def _counts(every: Document) -> list[Block]:
    counts = (every.get("counts") or {}).get("outcome") or {}
    if not every["count"]:
        return [rich(line("Nothing yet. Mention me with a crash log in a channel, or send me one directly."))]
    parts = ", ".join(f"{OUTCOMES.get(key, 'no outcome yet')}: {number(count)}" for key, count in counts.items())
    return [rich(line(bold(incidents(every)), f". {parts}." if parts else "."))]


def _filters(every: Document, picked: Mapping[str, str]) -> list[Block]:
    counts = every.get("counts") or {}
    menus = []
    for name in FILTERS:
        values = list(counts.get(name) or ())[:99]
        if not values:
            continue
        words = {"phase": PHASES, "outcome": OUTCOMES}.get(name, {})
        options = [option(f"{LABELS[name]}: any", "any"), *(option(words.get(value, value) or "–", value or "any") for value in values)]
        chosen = next((o for o in options if o["value"] == picked.get(name)), options[0])
        menus.append(menu(f"home_{name}", LABELS[name], options, chosen))
    return [actions(*menus)] if menus else []


def _rows(shown: Document, above: Sequence[str]) -> list[Block]:
    rows = shown["rows"][:ROWS]
    before = len(above) * ROWS + len(rows)
    turns = []
    if len(rows) == ROWS and (shown["count"] > before or shown["count_text"].endswith("+")):
        turns.append(button("home_older", "Older", str(rows[-1]["id"]), "Show older incidents"))
    if above:
        turns.append(button("home_newer", "Newer", "newer", "Show newer incidents"))
    where = [small(f"Page {len(above) + 1}" + ("" if rows else ": nothing older"))] if above else []
    return [*([history_table(rows)] if rows else []), *where, *([actions(*turns)] if turns else [])]


def _worked(stats: Document) -> list[Block]:
    said = worked_lines(stats)
    return [rich(line(bold("Changes that worked, by phase")), bullets([[item] for item in said]))] if said else []
