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
    topics = document.get("topics") or ()
    if topics and not document.get("paragraphs"):
        blocks.append(rich(bullets([[f"{topic['id']}: {topic['title']}"] for topic in topics[:40]])))
    elif topics:
        blocks.append(small("More: " + ", ".join(str(topic["id"]) for topic in topics[:40])))
    text = " ".join([str(document.get("title") or "Explanation"), *map(str, (document.get("paragraphs") or ())[:1])])
    return fit_message(blocks), cut(text, FALLBACK)
