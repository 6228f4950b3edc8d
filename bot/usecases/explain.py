"""What people ask again and again, answered with an incident's own figures where there are any."""

import difflib
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from bot.domain.size import gib
from bot.rulebook.files import Topic
from bot.usecases.budget_rows import FIGURES
from bot.usecases.desk import Desk, Viewer
from bot.usecases.next_step import question_step
from bot.usecases.recall import find
from bot.usecases.reply import Reply, Unusable
from bot.usecases.size_asked import size_asked

SCHEMA = "oombot.explanation/1"
ENOUGH = 0.5
"""How alike a question and one of a topic's must be: twice the weight of the words they share over that of all that each has."""
WELL, WELL_BESIDE_SIZING = 0.6, 0.7
"""From where a topic surely is meant; a question that names a model, a card or a context is one for sizing first."""
NAMED = float("inf")
NEAREST = "This is the nearest topic; it may not be what you ask."
BESIDE = 3
"""How many topics are named beside the one that is explained."""
LEAST = 2.0
"""What the words that they share must tell together: one that at most six topics use, or several."""
_WORD = re.compile(r"[^\W_]{2,}")
_ENDING = re.compile(r"(?<=\w{3})(?:ing|ed|es|en|s|e)$")
_SAY_NOTHING = frozenset(
    _WORD.findall(
        "the is it its in of on at to so my me we you your can could do does did what which why how when with and or that this these for "
        "not no be are am an any if by from has have there will would should get gets one "
        "der die das ein eine einen ist sind war es im in auf zu wie was warum welche welcher ich wir und oder nicht kein keine mit von "
        "le la les un une des du de est sont il elle en dans sur au aux et ou pas que qu quoi qui comment pourquoi je nous mon ma mes ce "
        "dem den cette model memory vllm works work worked need help helped please thanks"
    )
)
"""What stands in any question, in English, German and French."""


class NoTopicError(Unusable):
    """Nothing here answers what was asked. `document` lists what can be explained."""

    def __init__(self, asked: str, topics: Sequence[Topic]) -> None:
        titles = "\n".join(f"- {topic.title}" for topic in topics)
        super().__init__(f"No topic fits {asked[:200]!r}. Ask in other words, or one of these:\n{titles}")
        self.document = listed(topics).document


async def explain(desk: Desk, viewer: Viewer, topic: str, incident_id: str | None = None) -> Reply:
    """A topic by its id or in the asker's own words, all topics where nothing is asked. NoTopicError when none fits."""
    topics = desk.rulebook().topics
    if not topic.strip():
        return listed(topics)
    if incident_id is None:
        return answered(topics, topic)
    chosen = find_topic(topics, topic)
    incident = await find(desk, viewer, incident_id)
    return explained(topics, chosen, figures_of(chosen, incident.document))


def answered(topics: Sequence[Topic], words: str) -> Reply:
    """A topic without anybody's figures; for a question that names a model, a card or a context, the sizing command that answers it.

    What is only near is called so. NoTopicError when nothing fits.
    """
    match, chosen = nearest(topics, words)
    sizing = size_asked(words) if match < NAMED else None
    if sizing is None:
        if chosen is None or match < ENOUGH:
            raise NoTopicError(words, topics)
        return explained(topics, chosen, (), [NEAREST] if match < WELL else ())
    step = question_step(sizing, None)
    if chosen is not None and match >= WELL_BESIDE_SIZING:
        return explained(topics, chosen, (), [f"For what you name: {step}"])
    return Reply("explanation", _document(topics, topic=None, title="This is a question for sizing", paragraphs=[step]))


def listed(topics: Sequence[Topic]) -> Reply:
    """The document of what can be asked: no topic, and all of them."""
    return Reply("explanation", _document(topics, topic=None, title="What people ask"))


def explained(topics: Sequence[Topic], chosen: Topic, numbers: Sequence[Mapping[str, str]], before: Sequence[str] = ()) -> Reply:
    """The answer's document; `before`: sentences that head it."""
    told = _document(topics, topic=chosen.id, title=chosen.title, near=_named(beside(topics, chosen)))
    return Reply("explanation", {**told, "paragraphs": [*before, *chosen.paragraphs], "numbers": [dict(n) for n in numbers]})


def _document(topics: Sequence[Topic], **told: Any) -> dict[str, Any]:
    return {"schema": SCHEMA, "paragraphs": [], "numbers": [], "near": [], **told, "topics": _named(topics)}


def _named(topics: Sequence[Topic]) -> list[dict[str, str]]:
    return [{"id": topic.id, "title": topic.title} for topic in topics]


def find_topic(topics: Sequence[Topic], words: str) -> Topic:
    """The topic of an id, or the one with the question that is most like what was asked. NoTopicError where none is alike enough."""
    alike, chosen = nearest(topics, words)
    if chosen is not None and alike >= ENOUGH:
        return chosen
    raise NoTopicError(words, topics)


def nearest(topics: Sequence[Topic], words: str) -> tuple[float, Topic | None]:
    """The topic that is nearest, and how alike: NAMED for one that is named, else from 0 to 1."""
    asked = words.strip().lower()
    by_id = {topic.id: topic for topic in topics}
    if asked in by_id:
        return NAMED, by_id[asked]
    close = difflib.get_close_matches(asked.replace(" ", "-"), by_id, n=1, cutoff=0.85)
    if close:
        return NAMED, by_id[close[0]]
    return max(_alike(topics, asked), key=lambda pair: pair[0], default=(0.0, None))


def beside(topics: Sequence[Topic], chosen: Topic) -> list[Topic]:
    """The few that are asked in the words of another's title; fewer where fewer are."""
    alike = sorted(_alike(topics, chosen.title.lower()), key=lambda pair: -pair[0])
    return [topic for likeness, topic in alike if likeness >= ENOUGH / 2 and topic is not chosen][:BESIDE]


def _alike(topics: Sequence[Topic], asked: str) -> list[tuple[float, Topic]]:
    """How alike a question in small letters is to each topic, from 0 to 1."""
    told = [(topic, [_stems(text) for text in (topic.id, topic.title, *topic.asks)]) for topic in topics]
    common = Counter(stem for _, questions in told for stem in frozenset().union(*questions))
    spoken = {stem for stem in _stems(asked) if stem in common or not stem[0].isdigit()}  # 22 GB, 0.5B: a figure of theirs
    weights = {stem: _weight(common[stem], len(topics)) for stem in spoken | common.keys()}
    return [(max(_likeness(spoken, question, weights) for question in questions), topic) for topic, questions in told]


def _weight(users: int, topics: int) -> float:
    """What a word tells where so many of the topics use it. One that none uses is as telling as half of one's own."""
    return math.log(1 + topics / users) if users else math.log(1 + topics) / 2


def _likeness(asked: set[str], question: set[str], weights: Mapping[str, float]) -> float:
    """From 0, nothing shared, to 1, the same telling words."""
    shared = sum(weights[stem] for stem in asked & question)
    if shared < LEAST:
        return 0.0
    both = sum(weights[stem] for stem in asked) + sum(weights[stem] for stem in question)
    return 2 * shared / both if both else 0.0


def _stems(text: str) -> set[str]:
    """Its telling words without their endings: released, releases and release are one."""
    return {_ENDING.sub("", word)[:7] for word in _WORD.findall(text.lower()) if word not in _SAY_NOTHING}


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
