"""What people ask again and again, answered with an incident's own figures where there are any."""

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from bot.domain.size import gib
from bot.rulebook.files import Topic
from bot.usecases.desk import Desk, Viewer
from bot.usecases.recall import find
from bot.usecases.reply import Reply, Unusable

_NAMES = {
    "total_bytes": "device memory",
    "requested_bytes": "budget",
    "utilization": "utilization",
    "weights_bytes": "weights",
    "activation_peak_bytes": "activation peak",
    "non_torch_bytes": "outside PyTorch",
    "kv_cache_bytes": "KV pool",
    "needed_bytes": "one full request needs",
    "graph_bytes": "graphs",
    "outside_budget_bytes": "outside the budget",
    "max_concurrency": "full requests",
    "kv_tokens": "tokens in the pool",
}


async def explain(desk: Desk, viewer: Viewer, topic: str, incident_id: str | None = None) -> Reply:
    """A topic by its id or in the asker's own words. Unusable lists the topics when none fits."""
    topics = desk.rulebook().topics
    chosen = find_topic(topics, topic)
    numbers: list[dict[str, str]] = []
    if incident_id is not None:
        incident = await find(desk, viewer, incident_id)
        numbers = _numbers(chosen, incident.document)
    return explained(topics, chosen, numbers)


def explained(topics: Sequence[Topic], chosen: Topic, numbers: Sequence[Mapping[str, str]]) -> Reply:
    """The answer's document."""
    document = {
        "schema": "oombot.explanation/1",
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
    close = difflib.get_close_matches(asked.replace(" ", "-"), by_id, n=1, cutoff=0.75)
    if close:
        return by_id[close[0]]
    spoken = {w.strip("?.,!") for w in asked.split() if len(w) > 2}
    ranked = sorted(topics, key=lambda t: (-len(set(t.id.split("-")) & spoken), -_shared(t, spoken)))
    if ranked and spoken and _shared(ranked[0], spoken) >= max(1, min(2, len(spoken))):
        return ranked[0]
    raise Unusable(f"There is no topic {words!r}. Topics: {', '.join(by_id)}.")


def _shared(topic: Topic, spoken: set[str]) -> int:
    words = {w.strip("?.,!").lower() for text in (topic.id.replace("-", " "), topic.title, *topic.asks) for w in text.split()}
    return len(words & spoken)


def _numbers(topic: Topic, document: Mapping[str, Any]) -> list[dict[str, str]]:
    budgets = document.get("budgets") or []
    if not budgets:
        return []
    wanted = topic.numbers or list(_NAMES)
    found = []
    for name in wanted:
        value = budgets[0].get(name)
        if value is not None:
            shown = gib(value) if name.endswith("_bytes") else f"{value:,}"
            found.append({"label": f"{_NAMES.get(name, name)} (line {budgets[0]['lines'].get(name, '?')})", "value": shown})
    return found
