"""Today's rulebook over everything that was ever stored: what would change; and a wrong diagnosis as a case to learn from."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bot.domain.incident import Incident
from bot.usecases.desk import Desk, Viewer, kept
from bot.usecases.judge import FURTHER_DOWN
from bot.usecases.recall import find
from bot.usecases.reply import Reply, Unusable, notice

_MOST_SHOWN = 200


async def replay(desk: Desk, viewer: Viewer, progress: Callable[[int], None] | None = None) -> Reply:
    """Judge every stored incident again, keep nothing, and say where verdict, phase, rank or recommendation would differ."""
    judged = erased = same = 0
    changed: list[dict[str, Any]] = []
    failed: list[dict[str, str]] = []
    async for incident in kept(desk).walk(viewer):
        if incident.erased or not incident.document:
            erased += 1
            continue
        judged += 1
        try:
            # Without precedents: what others tried since would be a change of the history, not of the rules.
            document = await desk.judge(incident.contributions, ())
        except Exception as error:  # one incident that breaks a rule must not hide the others
            failed.append({"id": incident.id, "says": f"{type(error).__name__}: {error}"[:200]})
            continue
        before, after = _essence(incident.document), _essence(document)
        if _history_chose(incident.document, document):
            after |= {name: before[name] for name in ("remedy", "value")}
        if before == after:
            same += 1
        else:
            changed.append({"id": incident.id, "before": before, "after": after, "outcome": _outcome(incident)})
        if progress:
            progress(judged)
    says = f"{judged:,} incidents judged again: {same:,} the same, {len(changed):,} different, {len(failed):,} failed; {erased:,} erased."
    document = {"schema": "oombot.replay/1", "says": says, "judged": judged, "same": same, "erased": erased}
    return Reply("notice", document | {"changed": changed[:_MOST_SHOWN], "changed_count": len(changed), "failed": failed[:_MOST_SHOWN]})


async def case(desk: Desk, viewer: Viewer, incident_id: str, folder: Path, phase: str | None = None) -> Reply:
    """Write an incident as `<folder>/<slug>/paste.log` and `expect.toml`; `phase` is what it should have been, where that is known."""
    incident = await find(desk, viewer, incident_id)
    texts = [one.text for one in incident.contributions if one.kind in ("paste", "file") and one.text]
    if not texts:
        raise Unusable(f"The evidence of {incident.id} is erased: no case can be made of it.")
    place = folder / _slug(incident)
    try:
        place.mkdir(parents=True)
        (place / "paste.log").write_text("\n".join(texts), encoding="utf-8")
        (place / "expect.toml").write_text(_expect(incident, phase), encoding="utf-8")
    except FileExistsError as error:
        raise Unusable(f"{place} is there already. Remove it first, or mend the expectation in it.") from error
    except OSError as error:
        raise Unusable(f"{place} cannot be written ({error.strerror}).") from error
    return notice(f"{place} holds the case. Mend expect.toml, see it fail, then mend the rule.")


def _essence(document: Mapping[str, Any]) -> dict[str, Any]:
    change = document.get("recommendation") or {}
    return {
        "verdict": document.get("verdict"),
        "phase": document.get("phase"),
        "rank": (document.get("rank") or {}).get("number"),
        "remedy": change.get("id"),
        "value": change.get("value"),
    }


def _history_chose(stored: Mapping[str, Any], document: Mapping[str, Any]) -> bool:
    """Was the stored change offered because others had failed before, and do today's rules still have it in line?"""
    change = stored.get("recommendation") or {}
    in_line = [(one.get("id"), one.get("value")) for one in document.get("alternatives") or ()]
    ranked = any(str(note).endswith(FURTHER_DOWN) for note in stored.get("notes") or ())
    return ranked and (change.get("id"), change.get("value")) in in_line


def _outcome(incident: Incident) -> str | None:
    return next((trial.result for trial in reversed(incident.trials) if trial.result), None)


def _slug(incident: Incident) -> str:
    words = [
        incident.id,
        str(incident.document.get("phase") or "unknown"),
        str((incident.document.get("deployment") or {}).get("model") or ""),
    ]
    return re.sub(r"[^a-z0-9]+", "-", "-".join(words).lower()).strip("-")[:60]


def _expect(incident: Incident, phase: str | None) -> str:
    essence = _essence(incident.document)
    lines = [
        f"# From {incident.id}, marked {_outcome(incident) or 'with no outcome'}. It was judged {essence['phase']}, {essence['verdict']}."
    ]
    lines.append(f"phase = {json.dumps(phase)}" if phase else f'phase = "?"  # what it should have been; it was not {essence["phase"]}')
    if essence["rank"] is not None:
        lines.append(f"rank = {essence['rank']}")
    return "\n".join(lines) + "\n"
