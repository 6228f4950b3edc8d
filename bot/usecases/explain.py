"""What people ask again and again, answered with an incident's own figures where there are any."""

import difflib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from bot.domain.size import gib
from bot.rulebook.files import Topic
from bot.usecases.budget_rows import FIGURES
from bot.usecases.desk import Desk, Viewer
from bot.usecases.recall import find
from bot.usecases.reply import Reply, Unusable

SCHEMA = "oombot.explanation/1"
ENOUGH = 0.5
"""The words that a question must share with a topic: one that two topics use, or several that more do."""
_WORD = re.compile(r"[a-z0-9]{2,}")
_SAY_NOTHING = frozenset(
    _WORD.findall(
        "the is it in of on at to so my me we you can do does did what which why how when with and or that this for not no be an if are "
        "model memory vllm work works need help"
    )
)


class NoTopicError(Unusable):
    """Nothing here answers what was asked. `document` lists what can be explained."""

    def __init__(self, asked: str, topics: Sequence[Topic]) -> None:
        super().__init__(f"There is no topic {asked!r}. Topics: {', '.join(topic.id for topic in topics)}.")
        self.document = listed(topics).document


async def explain(desk: Desk, viewer: Viewer, topic: str, incident_id: str | None = None) -> Reply:
    """A topic by its id or in the asker's own words. NoTopicError when none fits."""
    topics = desk.rulebook().topics
    chosen = find_topic(topics, topic)
    numbers: list[dict[str, str]] = []
    if incident_id is not None:
        incident = await find(desk, viewer, incident_id)
        numbers = figures_of(chosen, incident.document)
    return explained(topics, chosen, numbers)


def listed(topics: Sequence[Topic]) -> Reply:
    """The document of what can be asked: no topic, and all of them."""
    named = [{"id": t.id, "title": t.title} for t in topics]
    document = {"schema": SCHEMA, "topic": None, "title": "What people ask", "paragraphs": [], "numbers": [], "topics": named}
    return Reply("explanation", document)


def explained(topics: Sequence[Topic], chosen: Topic, numbers: Sequence[Mapping[str, str]]) -> Reply:
    """The answer's document."""
    document = {
        "schema": SCHEMA,
        "topic": chosen.id,
        "title": chosen.title,
        "paragraphs": list(chosen.paragraphs),
        "numbers": [dict(n) for n in numbers],
        "topics": [{"id": t.id, "title": t.title} for t in topics],
    }
    return Reply("explanation", document)


def find_topic(topics: Sequence[Topic], words: str) -> Topic:
    """The topic of an id, or the one whose questions share most words with what was asked."""
    asked = words.strip().lower()
    by_id = {topic.id: topic for topic in topics}
    if asked in by_id:
        return by_id[asked]
    close = difflib.get_close_matches(asked.replace(" ", "-"), by_id, n=1, cutoff=0.85)
    if close:
        return by_id[close[0]]
    spoken = _stems(asked)
    told = [(topic, _stems(" ".join((topic.id, topic.title, *topic.asks)))) for topic in topics]
    common = Counter(stem for _, stems in told for stem in stems)
    weighed = [(sum(1 / common[stem] for stem in spoken & stems), topic) for topic, stems in told]
    best, chosen = max(weighed, key=lambda pair: pair[0], default=(0.0, None))
    if chosen is not None and best >= ENOUGH:
        return chosen
    raise NoTopicError(words, topics)


def _stems(text: str) -> set[str]:
    """Its telling words, and their beginnings: upgrade and upgrading share one."""
    words = _WORD.findall(text.lower())
    return {stem for word in words for stem in (word, word[:6])} - _SAY_NOTHING


def figures_of(topic: Topic, document: Mapping[str, Any]) -> list[dict[str, str]]:
    """The figures of the rank that failed; what it did not report, or where nobody knows which failed, of the first that did, by name."""
    budgets = document.get("budgets") or []
    failing = (document.get("rank") or {}).get("number")
    ordered = sorted(budgets, key=lambda budget: failing is None or budget["rank"] != failing)
    found = []
    for name in topic.numbers or FIGURES:
        budget = next((one for one in ordered if one.get(name) is not None), None)
        if budget is not None:
            value, line = budget[name], f"line {budget['lines'].get(name, '?')}"
            where = line if budget is ordered[0] or not budget["label"] else f"{budget['label']}, {line}"
            shown = gib(value) if name.endswith("_bytes") else f"{value:,}"
            found.append({"label": f"{FIGURES[name].label if name in FIGURES else name} ({where})", "value": shown})
    return found
