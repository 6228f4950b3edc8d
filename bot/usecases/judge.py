"""Contributions in, the contract's diagnosis document out: pure, judged anew from the first line each time."""

from collections.abc import Mapping, Sequence
from typing import Any

from bot.diagnosis.diagnose import diagnose
from bot.domain.incident import Contribution
from bot.reading.read import read
from bot.rulebook.book import Rulebook
from bot.usecases.as_json import diagnosis_document

REFUTED = "same"


def judge(book: Rulebook, contributions: Sequence[Contribution], precedents: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """The diagnosis of everything that was contributed; after an error moved, of the run that came then.

    Changes that did not help here are not offered again; those that failed in like incidents (`precedents` with outcome `same`) are
    ranked down, and it says so.
    """
    moved = moved_at(contributions)
    evidence = read(book, contributions, moved)
    refuted = refuted_changes(contributions[moved:])
    failed = [p for p in precedents if p.get("outcome") == REFUTED]
    document = diagnosis_document(diagnose(book, evidence, refuted, [{"id": p.get("remedy"), "flag": p.get("flag")} for p in failed]))
    offered = {(r["id"], r["flag"]) for r in document["alternatives"]}
    for failure in failed:
        if (failure.get("remedy"), failure.get("flag")) in offered:
            document["notes"].append(
                f"{failure.get('flag') or failure.get('remedy')} did not help in {failure.get('id')}, so it stands further down."
            )
    document["notes"] = list(dict.fromkeys(document["notes"]))
    return document


def moved_at(contributions: Sequence[Contribution]) -> int:
    """How many contributions stand before the error moved last: what comes after is another run, with another error."""
    standing: list[tuple[str, int]] = []
    for place, contribution in enumerate(contributions, 1):
        if contribution.kind == "outcome" and contribution.text:
            result = contribution.text.partition(":")[0].strip()
            if result == "undo":
                del standing[-1:]
            else:
                standing.append((result, place))
    return next((place for result, place in reversed(standing) if result == "moved"), 0)


def refuted_changes(contributions: Sequence[Contribution]) -> list[Mapping[str, Any]]:
    """The remedies that an outcome contribution says did not move the error; `undo` takes the newest outcome back."""
    outcomes: list[tuple[str, str | None]] = []
    for contribution in contributions:
        if contribution.kind != "outcome" or not contribution.text:
            continue
        result = contribution.text.partition(":")[0].strip()
        if result == "undo":
            del outcomes[-1:]
        else:
            outcomes.append((result, contribution.name))
    return [{"id": name} for result, name in outcomes if result == REFUTED and name]
