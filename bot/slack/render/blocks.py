"""The few kinds of block that the bot speaks in; foreign text goes into plain or rich text only, where Slack reads no markup."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bot.slack.render.escape import visible
from bot.slack.render.wording import as_asked_here

Block = dict[str, Any]


def header(text: str) -> Block:
    """A title: plain text, at most 150 characters after fitting."""
    return {"type": "header", "text": {"type": "plain_text", "text": visible(text).replace("\n", " "), "emoji": False}}


def words(mrkdwn: str) -> Block:
    """Our own sentence; anything foreign in it has gone through `escape` or `still`. `verbatim`: no link is made of a bare address."""
    return {"type": "section", "text": {"type": "mrkdwn", "text": mrkdwn, "verbatim": True}, "expand": True}


def fields(pairs: Iterable[tuple[str, str]]) -> Block:
    """Label and value, two in a row; values are plain text."""
    return {
        "type": "section",
        "fields": [{"type": "plain_text", "text": f"{label}\n{visible(value)}", "emoji": False} for label, value in pairs],
    }


def small(text: str) -> Block:
    """A footer line, plain text."""
    return {"type": "context", "elements": [{"type": "plain_text", "text": visible(text), "emoji": False}]}


def rich(*elements: Block) -> Block:
    """Sections, lists and code in one block."""
    return {"type": "rich_text", "elements": list(elements)}


def line(*parts: str | Block) -> Block:
    """One paragraph of rich text; strings are shown as they are."""
    return {"type": "rich_text_section", "elements": [_part(part) for part in parts]}


def told(text: str) -> list[str | Block]:
    """A sentence of ours as parts of a line, what stands between backticks in the code face."""
    text = as_asked_here(text)
    return [mono(piece) if n % 2 else piece for n, piece in enumerate(text.split("`")) if piece] if text.count("`") % 2 == 0 else [text]


def code(text: str) -> Block:
    """Preformatted: a command, or lines of a log."""
    return {"type": "rich_text_preformatted", "elements": [_part(text)]}


def bullets(items: Sequence[Sequence[str | Block]]) -> Block:
    """A bulleted list, each item a paragraph."""
    return {"type": "rich_text_list", "style": "bullet", "elements": [line(*item) for item in items]}


def bold(text: str) -> Block:
    """Bold rich text."""
    return {"type": "text", "text": visible(text), "style": {"bold": True}}


def mono(text: str) -> Block:
    """Rich text in the code face."""
    return {"type": "text", "text": visible(text), "style": {"code": True}}


def person(user: str) -> Block:
    """A member by id."""
    return {"type": "user", "user_id": user}


def channel(id: str) -> Block:
    """A channel by id; a direct message has no name to be shown by."""
    return {"type": "text", "text": "a direct message"} if id.startswith("D") else {"type": "channel", "channel_id": id}


def link(address: str, text: str) -> Block:
    """Rich text that leads to an address of ours or Slack's."""
    return {"type": "link", "url": address, "text": visible(text)}


def figure(value: float, text: str) -> Block:
    """A number as a cell of a table, and how it is shown."""
    return {"type": "raw_number", "value": value, "text": text}


def table(rows: Sequence[Sequence[str | Block]], numbers_from: int = 1) -> Block:
    """A native table: the first row is its head; columns from `numbers_from` on are right-aligned."""
    width = max(len(row) for row in rows)
    return {
        "type": "table",
        "column_settings": [{"align": "left" if at < numbers_from else "right"} for at in range(width)],
        "rows": [[{"type": "raw_text", "text": visible(cell) or "–"} if isinstance(cell, str) else cell for cell in row] for row in rows],
    }


def button(action: str, text: str, value: str, label: str, style: str | None = None) -> Block:
    """A button; `label` is what a screen reader says."""
    shown: Block = {
        "type": "button",
        "action_id": action,
        "text": {"type": "plain_text", "text": text, "emoji": False},
        "value": value,
        "accessibility_label": label[:75],
    }
    return shown if style is None else {**shown, "style": style}


def actions(*elements: Block) -> Block:
    """One row of buttons or menus. No block id of ours: Slack wants a new one at every edit, and makes it itself."""
    return {"type": "actions", "elements": list(elements)}


def option(text: str, value: str) -> Block:
    """One choice of a menu."""
    return {"text": {"type": "plain_text", "text": text[:75], "emoji": False}, "value": value[:150]}


def menu(action: str, placeholder: str, options: Sequence[Block], initial: Block | None = None) -> Block:
    """A static menu of at most 100 choices."""
    shown: Block = {
        "type": "static_select",
        "action_id": action,
        "placeholder": {"type": "plain_text", "text": placeholder[:150], "emoji": False},
        "options": list(options[:100]),
    }
    return shown if initial is None else {**shown, "initial_option": initial}


def plainly(blocks: Iterable[Block]) -> list[Block]:
    """The same content in the oldest kinds of block only, for a workspace that refuses a newer one."""
    return [_plain(block) for block in blocks]


def _plain(block: Block) -> Block:
    if block["type"] in ("table", "data_table"):
        rows = [" | ".join(str(cell.get("text", "–")) for cell in row) for row in block["rows"]]
        return rich(code("\n".join(rows)[:3_000]))
    if block["type"] == "header":
        return {"type": "section", "text": {"type": "plain_text", "text": block["text"]["text"], "emoji": False}}
    return {key: value for key, value in block.items() if key not in ("expand", "column_settings")}


def _part(part: str | Mapping[str, Any]) -> Block:
    return {"type": "text", "text": visible(part)} if isinstance(part, str) else dict(part)
