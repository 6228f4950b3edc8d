"""Contributions in, the contract's diagnosis document out: pure, judged anew from the first line each time."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from bot.diagnosis.diagnose import diagnose
from bot.diagnosis.first_error import CAN_BE_FIRST
from bot.domain.evidence import Evidence
from bot.domain.incident import Contribution
from bot.reading.read import read
from bot.reading.redact import hidden_in
from bot.rulebook.book import Rulebook
from bot.rulebook.load import load_rulebook
from bot.usecases.as_json import diagnosis_document
from bot.usecases.said_when import in_order_said
from bot.usecases.wording import named_change, some_named

REFUTED = "same"
WORKED = "fixed"
FURTHER_DOWN = "so it stands further down."
"""How a note ends that says which change the history ranked down."""
QUESTION = "not-oom.question"
"""The rule that reads words as a question about memory."""


def judge(book: Rulebook, contributions: Sequence[Contribution], precedents: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """The diagnosis of everything that was contributed; after an error moved, of the run that came then.

    Changes that did not help here are not offered again; those that failed in like incidents (`precedents`) more often than they
    worked are ranked down, and it says so.
    """
    contributions = in_order_said(contributions)
    moved = moved_at(contributions)
    evidence = read(book, contributions, moved)
    others = strangers(book, contributions, evidence)
    if others:
        left_out = [one for one, _ in others]
        evidence = read(book, [replace(one, text="\n") if one in left_out else one for one in contributions], moved)
    refuted = refuted_changes(contributions[moved:])
    failed = failed_changes(precedents)
    document = diagnosis_document(diagnose(book, evidence, refuted, [{"id": name, "flag": flag} for name, flag in failed], _weigh))
    offered = [(change["id"], change["flag"]) for change in document["alternatives"]]
    demoted = [(name, flag) for name, flag in offered if (name, flag) in failed]
    document["notes"] += [f"{named_change(name, flag)} {failed[name, flag]}, {FURTHER_DOWN}" for name, flag in demoted]
    document["notes"] += [
        f"{one.name or 'Another paste'} holds the failure of another model, {named}: judge it by itself." for one, named in others
    ]
    document["notes"] = list(dict.fromkeys(document["notes"]))
    document["sizing"], document["topic"] = _answers(book, document, contributions)
    shown: dict[str, Any] = hidden_in(document)
    return shown


def _answers(
    book: Rulebook, document: Mapping[str, Any], contributions: Sequence[Contribution]
) -> tuple[str | None, dict[str, str] | None]:
    """What answers where nothing but a question was found: the sizing command, a topic that surely is meant. Looked for only then."""
    if not any(one["rule"] == QUESTION for one in document["proof"][:1]):
        return None, None
    from bot.usecases.explain import WELL, WELL_BESIDE_SIZING, nearest
    from bot.usecases.size_asked import size_asked

    words = " ".join(one.text for one in contributions if one.text and one.kind != "outcome")
    sizing = size_asked(words)
    match, topic = nearest(book.topics, str(document["proof"][0]["text"]))
    if topic is None or match < (WELL_BESIDE_SIZING if sizing else WELL):
        return sizing, None
    return sizing, {"id": topic.id, "title": topic.title}


async def judged_here(contributions: Sequence[Contribution], precedents: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The same in this process, by its own rules: for who has nothing else to answer meanwhile, such as a command."""
    return judge(load_rulebook(), contributions, precedents)


def _weigh(evidence: Evidence, ranks: int) -> tuple[int, int] | None:
    """What sizing says of the weights. Its rules are read only where that is asked."""
    from bot.usecases.sizing.share import weights_share

    return weights_share(evidence, ranks)


def strangers(book: Rulebook, contributions: Sequence[Contribution], evidence: Evidence) -> list[tuple[Contribution, str]]:
    """Logs of another model that failed too, beside the one whose error came first, each with that model: another incident."""
    failed = {fact.source for fact in evidence.facts if fact.kinds & CAN_BE_FIRST}
    logs = [one for one in contributions if one.kind in ("paste", "file") and one.text]
    if len(failed) < 2 or len(logs) < 2:
        return []
    models: list[tuple[Contribution, str]] = []
    for one in logs:
        alone = read(book, [one])
        if alone.deployment.model is not None and any(fact.kinds & CAN_BE_FIRST for fact in alone.facts):
            models.append((one, alone.deployment.model.value))
    return [(one, model) for one, model in models[1:] if _last_part(model) != _last_part(models[0][1])]


def _last_part(model: str) -> str:
    return model.rstrip("/").rpartition("/")[2].lower()


def failed_changes(precedents: Sequence[Mapping[str, Any]]) -> dict[tuple[str | None, str | None], str]:
    """(remedy, flag) of the changes that failed more often than they worked, each with where: `did not help in D-0004, D-0009`."""
    ended: dict[tuple[str | None, str | None], dict[str, list[str]]] = {}
    for one in precedents:
        ended.setdefault((one.get("remedy"), one.get("flag")), {}).setdefault(str(one.get("outcome")), []).append(str(one.get("id")))
    return {
        change: f"did not help in {some_named(how[REFUTED])}" + (f" and did in {some_named(how[WORKED])}" if WORKED in how else "")
        for change, how in ended.items()
        if len(how.get(REFUTED, ())) > len(how.get(WORKED, ()))
    }


def moved_at(contributions: Sequence[Contribution]) -> int:
    """How many contributions stand before the error moved last: what comes after is another run, with another error."""
    return next((place for result, _, place in reversed(_outcomes(contributions)) if result == "moved"), 0)


def refuted_changes(contributions: Sequence[Contribution]) -> list[Mapping[str, Any]]:
    """The remedies that an outcome contribution says did not move the error."""
    return [{"id": remedy} for result, remedy, _ in _outcomes(contributions) if result == REFUTED and remedy]


def _outcomes(contributions: Sequence[Contribution]) -> list[tuple[str, str | None, int]]:
    """(result, remedy, how many contributions stand up to it) of each outcome that stands.

    `undo` takes the newest one back. One about the same change, with nothing read between, corrects the one before.
    """
    standing: list[tuple[str, str | None, int]] = []
    for place, contribution in enumerate(contributions, 1):
        if contribution.kind == "outcome" and contribution.text:
            result = contribution.text.partition(":")[0].strip()
            if result == "undo":
                del standing[-1:]
            else:
                if standing and standing[-1][1] == contribution.name and _only_outcomes(contributions[standing[-1][2] : place]):
                    del standing[-1]
                standing.append((result, contribution.name, place))
    return standing


def _only_outcomes(contributions: Sequence[Contribution]) -> bool:
    return all(one.kind == "outcome" for one in contributions)
