"""Slack's limits, kept before Slack refuses: lengths, counts, empty cells and the undocumented total of one message."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from bot.slack.render.escape import cut

Block = dict[str, Any]

HEADER, SECTION, FIELD, BUTTON, VALUE, CELLS = 150, 3_000, 2_000, 75, 2_000, 10_000
MESSAGE_BLOCKS, VIEW_BLOCKS, ROWS, COLUMNS, OPTIONS = 50, 100, 100, 20, 100
PREFORMATTED = 3_000
# Slack counts about 12,000 over all blocks and refuses from somewhere below it (11,341 was seen refused): stay well under.
MESSAGE_TEXT = 9_000
# What stands beside the blocks: notifications and screen readers. chat.update refuses more than about 4,000 bytes of it.
FALLBACK = 600


def fit_message(blocks: Iterable[Block]) -> list[Block]:
    """Blocks of one message within every limit; what does not fit is dropped from the end, buttons and footer kept, and said."""
    fitted = [fit(block) for block in blocks]
    while len(fitted) > MESSAGE_BLOCKS or characters(fitted) > MESSAGE_TEXT:
        at = _least_needed(fitted)
        if at is None:
            break
        fitted[at : at + 1] = []
        if _CUT not in fitted:
            fitted.insert(at, _CUT)
    return fitted


def fit_view(blocks: Iterable[Block]) -> list[Block]:
    """Blocks of a modal or Home within every limit."""
    fitted = [fit(block) for block in blocks]
    return fitted if len(fitted) <= VIEW_BLOCKS else [*fitted[: VIEW_BLOCKS - 1], _CUT]


_CUT: Block = {
    "type": "context",
    "elements": [{"type": "plain_text", "text": "Shortened to fit one message: Show evidence has the rest.", "emoji": False}],
}


def _least_needed(blocks: list[Block]) -> int | None:
    """The last block that is neither a button row, nor the note on the cut, nor one of the first two."""
    for at in range(len(blocks) - 1, 1, -1):
        if blocks[at]["type"] not in ("actions", "context", "input"):
            return at
    return None


def fit(block: Block) -> Block:
    """One block within its own limits."""
    return _FITTERS.get(block["type"], dict)(block)


def _header(block: Block) -> Block:
    return {**block, "text": {**block["text"], "text": cut(block["text"]["text"], HEADER) or "–"}}


def _section(block: Block) -> Block:
    fitted = dict(block)
    if "text" in block:
        fitted["text"] = {**block["text"], "text": cut_escaped(block["text"]["text"], SECTION) or "–"}
    if "fields" in block:
        fitted["fields"] = [{**item, "text": cut_escaped(item["text"], FIELD) or "–"} for item in block["fields"][:10]]
    return fitted


def _context(block: Block) -> Block:
    return {**block, "elements": [_context_element(element) for element in block["elements"][:10]]}


def _context_element(element: Block) -> Block:
    return element if "text" not in element else {**element, "text": cut_escaped(element["text"], FIELD) or "–"}


def _actions(block: Block) -> Block:
    return {**block, "elements": [_element(element) for element in block["elements"][:25]]}


def _element(element: Block) -> Block:
    fitted = dict(element)
    if element["type"] == "button":
        fitted["text"] = {**element["text"], "text": cut(element["text"]["text"], BUTTON)}
    if "options" in element:
        fitted["options"] = element["options"][:OPTIONS]
    return fitted


def _table(block: Block) -> Block:
    left = CELLS
    rows = []
    for row in block["rows"][:ROWS]:
        cells = [_cell(cell) for cell in row[:COLUMNS]]
        left -= sum(text_length(cell) for cell in cells)
        if left < 0:
            break
        rows.append(cells)
    return {**block, "rows": rows}


def _cell(cell: Block) -> Block:
    """Slack refuses a whole message for one empty cell."""
    return cell if cell.get("type") == "rich_text" or str(cell.get("text", "")).strip() else {**cell, "text": "–"}


def _rich_text(block: Block) -> Block:
    return {**block, "elements": [_rich(element) for element in block["elements"]]}


def _rich(element: Block) -> Block:
    if "elements" in element:
        inner = [_rich(child) for child in element["elements"]]
        return {**element, "elements": [child for child in inner if child.get("text", "–") != ""] or [{"type": "text", "text": "–"}]}
    return {**element, "text": cut(element["text"], PREFORMATTED)} if "text" in element and isinstance(element["text"], str) else element


_FITTERS: Mapping[str, Callable[[Block], Block]] = {
    "header": _header,
    "section": _section,
    "context": _context,
    "actions": _actions,
    "table": _table,
    "rich_text": _rich_text,
}


def cut_escaped(text: str, limit: int) -> str:
    """`cut`, never inside an escaped entity (`&lt;`)."""
    short = cut(text, limit)
    if short == text:
        return text
    body = short.removesuffix("…")
    at = body.rfind("&", max(0, len(body) - 5))
    return (body[:at] if at >= 0 and ";" not in body[at:] else body) + "…"


def characters(blocks: Iterable[Block]) -> int:
    """Every character that Slack may count in these blocks."""
    return sum(text_length(block) for block in blocks)


def text_length(node: Any) -> int:
    """Characters under every `text` of a block, and of plain strings in its table cells."""
    if isinstance(node, Mapping):
        return sum(
            len(value) if key == "text" and isinstance(value, str) else text_length(value)
            for key, value in node.items()
            if key not in ("value", "action_id")
        )
    if isinstance(node, list | tuple):
        return sum(text_length(child) for child in node)
    return 0
