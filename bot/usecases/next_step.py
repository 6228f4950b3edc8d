"""What to do next where no change is recommended: the one step, the same at every door."""

from collections.abc import Mapping
from typing import Any

from bot.usecases.judge import QUESTION

TOPICS = {"not-oom.preemption": "preemption", "not-oom.preemptions-counted": "preemption"}
"""What rules found that is no failure, and a topic explains."""
NOTHING_FAILED = ("not-oom.ready", "not-oom.stopped", QUESTION)
_LOG = "send the log from the server's start to its first error"


def nothing_failed(document: Mapping[str, Any]) -> bool:
    """Does the evidence show a server that came up, or was asked to stop, or only a question, and no failure at all?"""
    return bool(document["proof"]) and document["proof"][0]["rule"] in NOTHING_FAILED


def next_step(document: Mapping[str, Any]) -> str:
    """A sentence for a diagnosis without a change: the question, a topic, or the line to go by. Empty where a change is the next step."""
    if document.get("recommendation"):
        return ""
    if document["phase"] != "not_oom":
        return next((str(question["text"]) for question in document["questions"]), "")
    proof = next(iter(document["proof"]), {"rule": None, "text": None})
    if proof["rule"] == QUESTION:
        said = question_step(document.get("sizing"), document.get("topic"))  # diagnoses of before there were any have none
        if said:
            return f"{said} If something failed, {_LOG}."
        return f"Ask it as `oombot explain` and a few words of it (alone it lists the topics), or {_LOG}."
    if proof["rule"] in TOPICS:
        return f"`oombot explain {TOPICS[proof['rule']]}` says when this matters and what helps."
    if nothing_failed(document):
        return "If it failed later, send the log from there to its first error."
    if not proof["text"]:
        return f"If memory ran out all the same, {_LOG}."
    return f"Go by line {proof['line']}, which says what it was. If memory ran out all the same, {_LOG}."


def to_talk(document: Mapping[str, Any]) -> str:
    """What is said to words that are no evidence: what answers a question, else where questions are answered and what to give."""
    if document["phase"] == "not_oom":
        return f"{document['summary']} {next_step(document)}"
    return f"{document['summary']} If something failed, {_LOG}. `oombot explain` and a few words answer a question."


def question_step(sizing: str | None, topic: Mapping[str, Any] | None) -> str:
    """What answers a question: a sizing command, and a topic, which may be meant. Empty for neither."""
    said = []
    if sizing:
        put = [f"{word} stands for {what}" for word, what in (("MODEL", "the model"), ("NAME", "the card")) if word in sizing.split()]
        said.append(f"`{sizing}` tells what it needs and what fits{': ' + ', '.join(put) if put else ''}.")
    if topic:
        said.append(f"`oombot explain {topic['id']}` may answer it: {topic['title']}")
    return " ".join(said)
