"""What an incident still says after its evidence was erased."""

from collections.abc import Mapping, Sequence
from typing import Any

from bot.domain.incident import Contribution
from bot.usecases.wording import phase_of


def what_stays(document: Mapping[str, Any], outcome: str | None = None) -> Mapping[str, Any]:
    """A diagnosis whose sentences were erased, made readable: a summary of what stays, and no entry that has lost its reason.

    A document that has its sentences comes back as it is.
    """
    if not lost_its_sentences(document):
        return document
    deployment = document.get("deployment") or {}
    known = {
        "phase": phase_of(document) if document.get("phase") else None, "model": deployment.get("model"),
        "GPU": deployment.get("gpu") or "not known", "outcome": outcome or "open",
    }  # fmt: skip
    stays = ", ".join(f"{name} {value}" for name, value in known.items() if value)
    reasoned = {name: [one for one in document.get(name) or () if one.get("because")] for name in ("also_possible", "avoid")}
    asked = [one for one in document.get("questions") or () if one.get("text")]
    return {**document, **reasoned, "questions": asked, "summary": f"The evidence is erased. What stays: {stays}."}


def lost_its_sentences(document: Mapping[str, Any]) -> bool:
    """Whether a diagnosis is of evidence that was erased since, wholly or in part."""
    return document.get("summary") == ""


def is_all_erased(incident: Mapping[str, Any]) -> bool:
    """Whether nothing that was given to an incident (its document, as `show` gives it) can be read any more; outcomes do not count."""
    return bool(incident["erased"]) and not any(one["text"] for one in incident["contributions"] if one["kind"] != "outcome")


def has_evidence(contributions: Sequence[Contribution]) -> bool:
    """Whether a paste or a file can still be read: answers and outcomes alone are about nothing."""
    return any(one.text for one in contributions if one.kind in ("paste", "file"))
