"""What is said where it is not known whether an answer was: a sentence is marked as perhaps the second, more is offered by a button."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from bot.slack.render.blocks import Block, actions, button, line, rich
from bot.slack.render.escape import cut
from bot.slack.render.limits import VALUE
from bot.slack.words import Verb

SHOW = "show_answer"
SENTENCE = 400  # characters: as short as the offer itself would be, and nothing to click
PERHAPS_AGAIN = "Perhaps for the second time, since I was interrupted while I said it:"
READS = frozenset({"size", "history", "show", "explain", "stats", "audit"})
"""Verbs that change nothing, so that what they say can be asked for anew."""
_SAID, _ASKED = "said", "asked"


def reading(verb: Verb, body: Mapping[str, Any]) -> str | None:
    """The button's value that asks the same again, in the same thread; None for what does more than read."""
    value = f"{_ASKED} {json.dumps([verb.name, verb.rest, body.get('thread_ts')])}"
    return value if verb.name in READS and len(value) <= VALUE else None


def offer(text: str, blocks: Sequence[Block], answering: str, anew: str | None) -> tuple[str, list[Block]]:
    """Text and blocks in place of words that may have been said. A short answer lies in the button, a longer one is asked for `anew`."""
    if not blocks and len(text) <= SENTENCE:
        return f"{PERHAPS_AGAIN} {text}", []
    value = f"{_SAID} {json.dumps([text, list(blocks)])}"
    if len(value) > VALUE:
        value = anew or ""
    what = f"I was interrupted while I answered {answering}. If no answer stands above"
    if not value:
        return f"{what}, ask again.", []
    shown = button(SHOW, "Show the answer", value, "Show the answer in place of this line")
    return f"{what}, “Show the answer” gives it.", [rich(line(f"{what}:")), actions(shown)]


def quoted(words: str) -> str:
    """What a person asked, as it is named in the offer."""
    return f"“{cut(' '.join(words.split()), 80)}”"


def said_of(value: str) -> tuple[str, list[Block]] | None:
    """Text and blocks that lie in a button."""
    kind, _, given = value.partition(" ")
    if kind != _SAID:
        return None
    text, blocks = json.loads(given)
    return text, blocks


def asked_of(value: str) -> tuple[Verb, str | None]:
    """The verb that a button asks for anew, and its thread."""
    name, rest, thread = json.loads(value.partition(" ")[2])
    return Verb(name, rest), thread
