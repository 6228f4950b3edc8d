"""Whole incidents in the real formats: what the engine prints or people write, and what must, and must never, be said about it.

expect.toml: `phase` (or several that the evidence allows), `verdict`, `rank` (a number, or "unknown"), `first_error` (a line, or "none"),
`first_change` ("flag direction [value]" or the id of a change without a flag; one of them comes first), `never` (offered nowhere),
`[figures]` of the first error, `[budget]` of any rank.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bot.domain.incident import Contribution
from bot.rulebook.load import load_rulebook
from bot.usecases.judge import judge

BOOK = load_rulebook()
CASES = sorted(path.parent for path in Path(__file__).parent.glob("*/expect.toml"))


def is_change(change: Mapping[str, Any], wanted: str) -> bool:
    """Is this change the one that a line of expect.toml describes?"""
    words = wanted.split()
    if len(words) == 1:
        return bool(change["id"] == words[0])
    same = change["flag"] == words[0] and change["direction"] == words[1]
    return same and (len(words) == 2 or change["value"] == words[2])


@pytest.mark.parametrize("folder", CASES, ids=lambda folder: folder.name)
def test_an_incident_is_diagnosed_as_it_was(folder: Path) -> None:
    expect = tomllib.loads((folder / "expect.toml").read_text())
    document = judge(BOOK, [Contribution("file", (folder / "paste.log").read_text())])
    phases = expect["phase"] if isinstance(expect["phase"], list) else [expect["phase"]]
    assert document["phase"] in phases
    assert document["verdict"] == expect.get("verdict", document["verdict"])
    if "rank" in expect:
        number = (document["rank"] or {}).get("number")
        assert ("unknown" if number is None else number) == expect["rank"]
    if "first_error" in expect:
        assert ((document["first_error"] or {}).get("line") or "none") == expect["first_error"]
    for name, value in expect.get("figures", {}).items():
        assert document["first_error"][name] == value
    for name, value in expect.get("budget", {}).items():
        assert value in [budget[name] for budget in document["budgets"]]


@pytest.mark.parametrize("folder", CASES, ids=lambda folder: folder.name)
def test_the_first_change_is_one_that_helps_and_none_is_offered_that_does_not(folder: Path) -> None:
    expect = tomllib.loads((folder / "expect.toml").read_text())
    document = judge(BOOK, [Contribution("file", (folder / "paste.log").read_text())])
    first = document["recommendation"]
    offered = [change for change in (first, *document["alternatives"]) if change is not None]
    if "first_change" in expect:
        assert first is not None
        assert any(is_change(first, wanted) for wanted in expect["first_change"]), (first["id"], first["flag"], first["direction"])
    assert [wanted for wanted in expect.get("never", []) for change in offered if is_change(change, wanted)] == []


@pytest.mark.parametrize("folder", CASES, ids=lambda folder: folder.name)
def test_every_answer_keeps_the_contract(folder: Path) -> None:
    document = judge(BOOK, [Contribution("file", (folder / "paste.log").read_text())])
    is_open = document["phase"] == "unknown"
    assert (document["verdict"] == "open") == is_open
    assert is_open <= (document["recommendation"] is None)
    assert document["recommendation"] is not None or document["phase"] in ("unknown", "not_oom")
    assert bool(document["questions"]) or not is_open
    assert len(document["questions"]) <= 2
    assert document["verdict"] != "certain" or document["also_possible"] == []
    changes = [c for c in (document["recommendation"], *document["alternatives"]) if c is not None]
    assert len({(c["flag"] or c["id"], c["direction"]) for c in changes}) == len(changes)
    assert not {(a["flag"], a["direction"]) for a in document["avoid"]} & {(c["flag"], c["direction"]) for c in changes if c["flag"]}
    for text in (s for c in changes for s in (c["because"], c["costs"], c["disproved_by"])):
        assert text == text.strip()
        assert not any(mark in text for mark in ("[[", "]]", "{", " ?", "? ", "  ", " .", " ,", ":.", "()"))
        assert "None" not in text[1:]
