"""What an incident still says after its evidence was erased."""

from collections.abc import Mapping
from typing import Any


def what_stays(document: Mapping[str, Any], outcome: str | None = None) -> Mapping[str, Any]:
    """A diagnosis whose sentences were erased, made readable: a summary of what stays, and no entry that has lost its reason.

    A document that has its sentences comes back as it is.
    """
    if document.get("summary") != "":
        return document
    deployment = document.get("deployment") or {}
    known = {
        "phase": document.get("phase"), "model": deployment.get("model"),
        "GPU": deployment.get("gpu") or "not known", "outcome": outcome or "open",
    }  # fmt: skip
    stays = ", ".join(f"{name} {value}" for name, value in known.items() if value)
    reasoned = {name: [one for one in document.get(name) or () if one.get("because")] for name in ("also_possible", "avoid")}
    asked = [one for one in document.get("questions") or () if one.get("text")]
    return {**document, **reasoned, "questions": asked, "summary": f"The evidence is erased. What stays: {stays}."}


def is_all_erased(incident: Mapping[str, Any]) -> bool:
    """Whether nothing that was given to an incident (its document, as `show` gives it) can be read any more; outcomes do not count."""
    return bool(incident["erased"]) and not any(one["text"] for one in incident["contributions"] if one["kind"] != "outcome")
