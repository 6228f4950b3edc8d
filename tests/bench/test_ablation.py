"""What each rule about phases is there for: how many of the project's own documents are answered otherwise without it."""

from collections import defaultdict
from pathlib import Path

import pytest

from bot.diagnosis.phase import findings
from bot.diagnosis.this_run import scene_of
from bot.domain.incident import Contribution
from bot.reading.read import read
from bot.rulebook.load import load_rulebook
from tests.diagnosis.needed import NEEDED
from tests.diagnosis.without import answer, names, without

pytestmark = pytest.mark.bench

CASES = Path(__file__).parents[1] / "cases"


def test_no_rule_about_phases_decides_nothing() -> None:
    book = load_rulebook()
    pastes = [*(path.read_text() for path in sorted(CASES.glob("*/paste.log"))), *(paste for paste, _ in NEEDED.values())]
    documents = [read(book, [Contribution("paste", paste)]) for paste in pastes]
    given = [answer(book, evidence) for evidence in documents]
    speaks = defaultdict(set)
    """The documents that a rule has a say in; what excludes phases has one in all."""
    for place, evidence in enumerate(documents):
        scene = scene_of(book, evidence)
        for name in (*(found.rule for found in findings(book, scene)), *(f"mark.{fact.id}" for fact in scene.facts)):
            speaks[name].add(place)
    everywhere = range(len(documents))
    decides = {
        name: sum(
            answer(less, documents[n]) != given[n] for n in (everywhere if name.startswith("ruled-out.") else speaks[name])
        )
        for name in names(book)
        if (less := without(book, name))
    }  # fmt: skip
    for name, count in sorted(decides.items(), key=lambda item: item[1]):
        print(f"{count:4d}  {name}")
    print(f"{len(documents)} documents, {len(decides)} rules")
    assert [name for name, count in decides.items() if not count] == []
