"""What happened before: search the history, show one incident."""

from collections.abc import Mapping
from typing import Any

from bot.domain.as_done import as_done
from bot.domain.incident import Contribution, Incident, Trial
from bot.store.numbers import label, stamp
from bot.store.query import parse
from bot.store.search import Found
from bot.usecases.desk import Desk, Viewer, kept
from bot.usecases.erased import what_stays
from bot.usecases.reply import Reply, Unusable

MOST_ROWS = 50
_COLUMNS = ("verdict", "phase", "rank", "engine", "model", "gpu", "gpu_count", "tp", "remedy", "flag", "direction", "value", "outcome")


async def history(desk: Desk, viewer: Viewer, query: str, limit: int = MOST_ROWS, before: str | None = None) -> Reply:
    """Incidents that a query finds, newest first or best first, with counts. `before`: the id of the last row of the page above."""
    asked = parse(query, desk.now())
    found = await kept(desk).search(viewer, asked, max(1, min(limit, MOST_ROWS)), before)
    document = {
        "schema": "oombot.history/1",
        "query": query,
        "count": found.count,
        "count_text": f"{found.count:,}{'+' if found.more else ''}",
        "rows": [_row(row) for row in found.rows],
        "counts": found.counts,
        "ignored": [*asked.ignored, *found.unseen],
    }
    return Reply("history", document, warning=_partial(found))


async def show(desk: Desk, viewer: Viewer, incident_id: str) -> Reply:
    """One incident with everything that was said, judged and tried, and the nearest others."""
    incident = await find(desk, viewer, incident_id)
    similar = await kept(desk).similar(viewer, incident.document, leave_out=incident.id)
    document = {
        "schema": "oombot.incident/1",
        "id": incident.id,
        "at": incident.opened.isoformat(timespec="seconds"),
        "team": incident.origin.team,
        "channel": incident.origin.channel,
        "thread": incident.origin.thread,
        "erased": incident.erased,
        "diagnosis": dict(what_stays(incident.document, next((t.result for t in reversed(incident.trials) if t.result), None))),
        "contributions": [_contribution(number, one) for number, one in enumerate(incident.contributions, start=1)],
        "trials": [shown_trial(trial) for trial in incident.trials],
        "similar": similar,
    }
    return Reply("incident", document)


async def find(desk: Desk, viewer: Viewer, incident_id: str) -> Incident:
    """The incident, if there is one and the viewer may see it; else Unusable, in the same words for both."""
    incident = await kept(desk).load(viewer.team, incident_id)
    if incident is None or not may_see(viewer, incident):
        raise Unusable(f"There is no incident {incident_id} that you can see. `oombot history` lists those there are.")
    return incident


def may_see(viewer: Viewer, incident: Incident) -> bool:
    """Same team, same organisation where both are known, and a channel of the viewer's."""
    origin = incident.origin
    if origin.team != viewer.team or (viewer.enterprise and origin.enterprise not in (None, viewer.enterprise)):
        return False
    return viewer.channels is None or origin.channel in viewer.channels


def shown_trial(trial: Trial) -> dict[str, Any]:
    """A trial as JSON, its change as it was made."""
    return {
        "number": trial.number,
        "change": dict(as_done(trial.change, trial.note)),
        "outcome": trial.result,
        "note": trial.note,
        "by": trial.by,
        "at": trial.at.isoformat(timespec="seconds") if trial.at else None,
    }


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": label(row["number"]),
        "at": stamp(row["key"]),
        **{name: row[name] for name in _COLUMNS},
        "engine_version": row["version"],
        "excerpt": row["excerpt"] or row["error_text"] or "",
        "channel": row["channel"] or None,
        "thread": row["thread"] or None,
        "erased": row["erased"] is not None,
    }


def _contribution(number: int, one: Contribution) -> dict[str, Any]:
    return {
        "number": number,
        "kind": one.kind,
        "name": one.name,
        "author": one.author,
        "at": one.at.isoformat(timespec="seconds") if one.at else None,
        "text": one.text,
        "truncated": one.truncated,
        "redactions": one.redactions,
    }


def _partial(found: Found) -> str | None:
    return "More than 10,000 incidents match; the counts by field are those of the newest 10,000." if found.more else None
