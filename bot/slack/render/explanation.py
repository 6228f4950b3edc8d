"""An explanation: paragraphs, and this thread's own numbers where there are any."""

from collections.abc import Mapping
from typing import Any

from bot.slack.render.blocks import Block, bullets, header, line, rich, small, table, told
from bot.slack.render.escape import cut
from bot.slack.render.limits import FALLBACK, fit_message


def explanation_message(document: Mapping[str, Any]) -> tuple[list[Block], str]:
    """Blocks and text of an explanation document."""
    blocks = [header(str(document["title"]))] if document.get("title") else []
    blocks += [rich(line(*told(cut(str(paragraph), 2_000)))) for paragraph in document.get("paragraphs") or ()]
    numbers = document.get("numbers") or ()
    if numbers:
        blocks.append(table([["Here", "Value"], *([str(row["label"]), str(row["value"])] for row in numbers[:30])]))
    if document.get("paragraphs"):
        near = " · ".join(str(topic["title"]) for topic in document.get("near") or ())
        blocks.append(small(f"{f'Near it: {near} · ' if near else ''}“explain” alone lists every topic."))
    else:
        blocks.append(rich(bullets([[str(topic["title"])] for topic in document["topics"]])))
    text = " ".join([str(document.get("title") or "Explanation"), *map(str, (document.get("paragraphs") or ())[:1])])
    return fit_message(blocks), cut(text, FALLBACK)
