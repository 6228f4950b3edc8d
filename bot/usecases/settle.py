"""How a suggested change ended, and what follows: the next change, the new log that is needed, or the workload test."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from bot.domain.as_done import as_done
from bot.domain.incident import RESULTS, Contribution, Incident, Result, Trial
from bot.reading.redact import redact
from bot.store.derived import change_key
from bot.store.errors import ErasedMeanwhileError
from bot.usecases.desk import Desk, Viewer, kept
from bot.usecases.erased import lost_its_sentences
from bot.usecases.recall import find
from bot.usecases.reply import Reply, Unusable
from bot.usecases.said_when import in_order_said, said_after
from bot.usecases.wording import deed, in_words

OF_A_CHANGE: tuple[Result, ...] = ("fixed", "moved", "same")
"""Outcomes that say what a change did; the others are about the diagnosis, and need none."""
LONGEST_NOTE = 3_000
"""Characters; as many as a form in Slack takes."""
CHECKLIST = (
    "The longest input and the longest output that you accept, together in one request.",
    "The multimodal limits, if the model takes images, audio or video: as many and as large as you allow.",
    "The concurrency that you promise, with requests of real length.",
    "Cancelled requests: memory and running requests go back to where they were.",
    "A sustained run at that load: preemptions and tail latency stay flat, memory outside the pool does not creep up.",
)
"""A start is not yet stability: what a successful change earns is this test."""
NONE_LEFT = "No other change is known for this evidence:"
WANTED = "a longer log of the run with that change, from the server's start to its first error"
"""What may show another change once the last one is refuted."""


async def settle(
    desk: Desk, viewer: Viewer, incident_id: str, result: str, note: str | None = None, *, message: str | None = None,
    at: datetime | None = None,
) -> Reply:  # fmt: skip
    """Record how the newest change ended. `same` refutes it and offers the next one; the outcome is one more contribution.

    `message`: what it was said in; said in the same one again, it is recorded once. `at`: when, where it comes late: what was said of the
    change since then stands.
    """
    if result not in RESULTS:
        raise Unusable(f"{result!r} is no outcome. It is one of {', '.join(RESULTS)}.")
    if note and len(note) > LONGEST_NOTE:
        raise Unusable(f"The note has {len(note):,} characters: it takes {LONGEST_NOTE:,}. A log is better added as evidence.")
    note = redact(note)[0] if note else note
    incident = await find(desk, viewer, incident_id)
    if _was_said(incident, message) and (done := next((trial for trial in reversed(incident.trials) if trial.result), None)):
        return _reply(incident, done, done.result, _sentence(incident, done, str(done.result)))
    if result in OF_A_CHANGE and not _change(incident):
        raise Unusable(_without_change(incident, result))
    said = _outcome(desk, viewer, incident, f"{result}: {note}" if note else result, message, at)
    if (stands := _said_since(incident, said)) is not None:
        return await _kept_beside(desk, viewer, incident, said, stands)
    document = await _next_document(desk, incident, said) if result == "same" else None
    try:
        trial = await kept(desk).record_outcome(
            viewer.team, incident.id, _result(result), viewer.user, note, contributions=(said,), document=document,
            heard=incident.contributions,
        )  # fmt: skip
    except ErasedMeanwhileError:
        return await settle(desk, viewer, incident_id, result, note, message=message, at=at)
    after = await find(desk, viewer, incident.id)
    return _reply(after, trial, result, _sentence(after, trial, result))


async def undo(desk: Desk, viewer: Viewer, incident_id: str, *, message: str | None = None, at: datetime | None = None) -> Reply:
    """Take the newest outcome back, and the change that was offered because of it; the one before it of the same change stands again.
    `message` and `at` as in `settle`.
    """
    incident = await find(desk, viewer, incident_id)
    if _was_said(incident, message):
        before = incident.trials[-1] if incident.trials else Trial(1, {})
        return _reply(incident, before, before.result, _taken_back(incident, before))
    taken = next((trial for trial in reversed(incident.trials) if trial.result), None)
    if taken is None:
        raise Unusable(f"{incident.id} has no outcome that could be taken back.")
    said = _outcome(desk, viewer, incident, "undo", message, at)
    if (stands := _said_since(incident, said)) is not None:
        return await _kept_beside(desk, viewer, incident, said, stands)
    document = None
    if taken.result == "same":
        document = await _judged(desk, incident, said)
        if taken.change and change_key(document.get("recommendation")) != change_key(taken.change):
            document = {**document, "recommendation": dict(taken.change), "alternatives": _others(document, taken.change)}
    try:
        trial = await kept(desk).undo_outcome(
            viewer.team, incident.id, viewer.user, contributions=(said,), document=document, heard=incident.contributions
        )
    except ErasedMeanwhileError:
        return await undo(desk, viewer, incident_id, message=message, at=at)
    after = await find(desk, viewer, incident.id)
    left = trial or replace(taken, result=None)
    return _reply(after, left, left.result, _taken_back(incident, left))


def _change(incident: Incident) -> Mapping[str, Any] | None:
    """The change that an outcome would be of; None where none was ever suggested."""
    return incident.trials[-1].change if incident.trials else None


def _without_change(incident: Incident, result: str) -> str:
    mended = " What mended it without one is worth a note (other)." if result == "fixed" else ""
    return (
        f"{incident.id} has suggested no change, so none can have had the outcome {result!r}. Add a longer log or a new one to it, "
        f"or say that the diagnosis was wrong.{mended}"
    )


def _taken_back(incident: Incident, trial: Trial) -> str:
    what = deed(trial.change) if trial.change else incident.id
    return f"Taken back: {what} has {f'the outcome {trial.result}' if trial.result else 'no outcome'} again."


async def _next_document(desk: Desk, incident: Incident, said: Contribution) -> Mapping[str, Any]:
    """The diagnosis after a change was refuted: never the same change again, else the next alternative."""
    document = await _judged(desk, incident, said)
    refuted = {change_key(trial.change) for trial in incident.trials if trial.result == "same"}
    refuted |= {change_key(incident.trials[-1].change)} if incident.trials else set()
    if change_key(document.get("recommendation")) not in refuted:
        return document
    offers = [offer for offer in document.get("alternatives") or () if change_key(offer) not in refuted]
    if not offers:  # nothing else is known: the last change stays named, and no new trial is opened
        return {**document, "recommendation": dict(incident.trials[-1].change) or None, "alternatives": []} if incident.trials else document
    return {**document, "recommendation": offers[0], "alternatives": offers[1:]}


async def _judged(desk: Desk, incident: Incident, said: Contribution) -> Mapping[str, Any]:
    if lost_its_sentences(incident.document):  # the evidence is gone: what was judged from it stands
        return incident.document
    precedents = await kept(desk).precedents(incident.origin, incident.document, leave_out=incident.id)
    return await desk.judge((*incident.contributions, said), precedents)


def _was_said(incident: Incident, message: str | None) -> bool:
    return message is not None and any(one.kind == "outcome" and one.message == message for one in incident.contributions)


def _said_since(incident: Incident, said: Contribution) -> Trial | None:
    """The trial whose result was said after this word, which only arrives now."""
    newest = next((one for one in reversed(in_order_said(incident.contributions)) if one.kind == "outcome"), None)
    if newest is None or not said_after(newest, said):
        return None
    return next((trial for trial in reversed(incident.trials) if trial.result), None)


async def _kept_beside(desk: Desk, viewer: Viewer, incident: Incident, said: Contribution, stands: Trial) -> Reply:
    """A word that came late is kept as what it is, one of before."""
    await kept(desk).append(incident.origin, (said,), None, into=incident.id)
    after = await find(desk, viewer, incident.id)
    return _reply(after, stands, stands.result, f"What was said after it stands. {_sentence(after, stands, str(stands.result))}")


def _outcome(desk: Desk, viewer: Viewer, incident: Incident, text: str, message: str | None, at: datetime | None) -> Contribution:
    """An outcome as a contribution; its name is the remedy that it speaks about."""
    remedy = incident.trials[-1].change.get("id") if incident.trials else None
    return Contribution("outcome", text, name=remedy, author=viewer.user, message=message, at=at or desk.now())


def _others(document: Mapping[str, Any], change: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    offers = [document.get("recommendation"), *(document.get("alternatives") or ())]
    return [offer for offer in offers if offer and change_key(offer) != change_key(change)]


def _reply(incident: Incident, trial: Trial, result: str | None, says: str) -> Reply:
    document = {
        "schema": "oombot.outcome/1",
        "id": incident.id,
        "trial": trial.number,
        "outcome": result,
        "says": says,
        "next": _next(incident, trial) if result == "same" else None,
        "checklist": list(CHECKLIST) if result == "fixed" else [],
        "diagnosis": dict(incident.document),
    }
    return Reply("outcome", document)


def _next(incident: Incident, trial: Trial) -> Mapping[str, Any] | None:
    newest = incident.trials[-1]
    return dict(newest.change) if newest.number > trial.number else None


def _sentence(incident: Incident, trial: Trial, result: str) -> str:
    change = deed(as_done(trial.change, trial.note))
    if result == "fixed":
        return f"Noted: {change} fixed it. A start is not yet proof: give it the workload test."
    if result == "moved":
        return f"Noted: after {change} the error moved. Add the new log to {incident.id}; it is read together with the first one."
    if result == "wrong":
        spoke = _rules(incident.document.get("proof") or ())
        return f"Noted: this diagnosis was wrong. What spoke for it: {spoke}. A longer log, added to {incident.id}, may show what it was."
    if result == "other":
        return f"Noted for {incident.id}."
    offered = _next(incident, trial)
    if offered is None:
        return f"Noted: {change} did not move the error, so take it back. {NONE_LEFT} add {WANTED}."
    return f"Noted: {change} did not move the error, so take it back. Next: {in_words(offered, incident.document.get('deployment'))}."


def _rules(proof: Sequence[Mapping[str, Any]]) -> str:
    return ", ".join(dict.fromkeys(str(line["rule"]) for line in proof if line.get("rule"))) or "none that quoted a line"


def _result(text: str) -> Result:
    return next(known for known in RESULTS if known == text)
