"""What Slack refuses in blocks: for each surface, every type, length, count and empty cell. Written apart from the bot's own limits."""

from typing import Any

MESSAGE, HOME, MODAL = "message", "home", "modal"
ALLOWED = {
    MESSAGE: {
        "header",
        "section",
        "context",
        "context_actions",
        "actions",
        "rich_text",
        "markdown",
        "table",
        "data_table",
        "divider",
        "image",
        "input",
    },
    HOME: {"header", "section", "context", "actions", "rich_text", "table", "data_table", "divider", "image", "input"},
    MODAL: {"header", "section", "context", "actions", "rich_text", "divider", "image", "input", "alert"},
}
KEYS = {
    "header": {"text", "level"},
    "section": {"text", "fields", "accessory", "expand"},
    "context": {"elements"},
    "actions": {"elements"},
    "rich_text": {"elements"},
    "table": {"rows", "column_settings"},
    "data_table": {"rows", "caption", "page_size"},
    "divider": set(),
    "image": {"image_url", "slack_file", "alt_text", "title"},
    "input": {"label", "element", "optional", "hint", "dispatch_action"},
    "markdown": {"text"},
    "alert": {"text", "level"},
    "context_actions": {"elements"},
}
RICH = {"rich_text_section", "rich_text_list", "rich_text_quote", "rich_text_preformatted"}
RICH_PARTS = {"text", "link", "user", "channel", "emoji", "usergroup", "broadcast", "date", "color"}
ACTIONS = {
    "button",
    "static_select",
    "overflow",
    "conversations_select",
    "users_select",
    "channels_select",
    "multi_static_select",
    "datepicker",
    "checkboxes",
    "radio_buttons",
}
INPUTS = (ACTIONS - {"button", "overflow"}) | {"plain_text_input", "file_input", "number_input"}
MESSAGE_CHARACTERS = 11_340


class Problems(list[str]):
    """Sentences like those of response_metadata.messages."""

    def unless(self, holds: object, said: str) -> None:
        if not holds:
            self.append(said)


def problems(blocks: Any, surface: str) -> list[str]:
    """Everything that Slack would refuse; empty when it would accept."""
    found = Problems()
    if not isinstance(blocks, list):
        return ["blocks is not an array"]
    most = 50 if surface == MESSAGE else 100
    found.unless(len(blocks) <= most, f"no more than {most} items allowed [json-pointer:/blocks]")
    ids: set[str] = set()
    cells = 0
    for at, block in enumerate(blocks):
        where = f"[json-pointer:/blocks/{at}]"
        if not isinstance(block, dict) or block.get("type") not in KEYS:
            found.append(f"unsupported type: {block.get('type') if isinstance(block, dict) else block} {where}")
            continue
        kind = block["type"]
        found.unless(kind in ALLOWED[surface], f"{kind} is not allowed in a {surface} {where}")
        extra = set(block) - KEYS[kind] - {"type", "block_id"}
        found.unless(not extra, f"invalid additional property: {sorted(extra)} {where}")
        if "block_id" in block:
            found.unless(isinstance(block["block_id"], str) and 0 < len(block["block_id"]) <= 255, f"block_id length {where}")
            found.unless(block["block_id"] not in ids, f"block_id `{block['block_id']}` already exists {where}")
            ids.add(block["block_id"])
        cells += _CHECKS.get(kind, _nothing)(block, found, where, surface) or 0
    found.unless(cells <= 10_000, "table cells hold more than 10,000 characters in one message")
    return list(found)


def characters(blocks: Any) -> int:
    """What Slack counts towards msg_blocks_too_long: all text in all blocks."""
    if isinstance(blocks, dict):
        return sum(len(v) if k == "text" and isinstance(v, str) else characters(v) for k, v in blocks.items())
    return sum(map(characters, blocks)) if isinstance(blocks, list) else 0


def _nothing(block: Any, found: Problems, where: str, surface: str) -> int:
    return 0


def _text(node: Any, found: Problems, where: str, most: int, kinds: tuple[str, ...] = ("plain_text", "mrkdwn")) -> None:
    if not isinstance(node, dict):
        found.append(f"a text object is needed {where}")
        return
    found.unless(node.get("type") in kinds, f"text type {node.get('type')} not in {kinds} {where}")
    text = node.get("text")
    found.unless(isinstance(text, str) and len(text) >= 1, f"must be more than 0 characters {where}")
    found.unless(isinstance(text, str) and len(text) <= most, f"must be less than {most + 1} characters {where}")
    allowed = {"type", "text", "emoji"} if node.get("type") == "plain_text" else {"type", "text", "verbatim"}
    found.unless(set(node) <= allowed, f"invalid additional property {sorted(set(node) - allowed)} {where}")


def _header(block: Any, found: Problems, where: str, surface: str) -> None:
    _text(block.get("text"), found, where, 150, ("plain_text",))


def _section(block: Any, found: Problems, where: str, surface: str) -> None:
    found.unless("text" in block or block.get("fields"), f"section needs text or fields {where}")
    if "text" in block:
        _text(block["text"], found, where, 3_000)
    if "fields" in block:
        found.unless(isinstance(block["fields"], list) and 1 <= len(block["fields"]) <= 10, f"1 to 10 fields {where}")
        for field in block["fields"]:
            _text(field, found, where, 2_000)
    if "accessory" in block:
        _element(block["accessory"], found, where, ACTIONS | {"image"})


def _context(block: Any, found: Problems, where: str, surface: str) -> None:
    elements = block.get("elements") or []
    found.unless(1 <= len(elements) <= 10, f"1 to 10 context elements {where}")
    for element in elements:
        if element.get("type") != "image":
            _text(element, found, where, 2_000)


def _actions(block: Any, found: Problems, where: str, surface: str) -> None:
    elements = block.get("elements") or []
    found.unless(1 <= len(elements) <= 25, f"1 to 25 actions {where}")
    ids = [element.get("action_id") for element in elements]
    found.unless(len(set(ids)) == len(ids), f"action_id twice in one block {where}")
    for element in elements:
        _element(element, found, where, ACTIONS)


def _element(element: Any, found: Problems, where: str, allowed: set[str]) -> None:
    kind = element.get("type")
    found.unless(kind in allowed, f"element {kind} is not allowed here {where}")
    found.unless(isinstance(element.get("action_id"), str) and len(element["action_id"]) <= 255, f"action_id {where}")
    if kind == "button":
        _text(element.get("text"), found, where, 75, ("plain_text",))
        found.unless(len(element.get("value", "")) <= 2_000, f"button value over 2000 {where}")
        found.unless(len(element.get("accessibility_label", "")) <= 75, f"accessibility_label over 75 {where}")
        found.unless(element.get("style") in (None, "primary", "danger"), f"button style {where}")
        extra = set(element) - {"type", "text", "value", "action_id", "style", "url", "confirm", "accessibility_label"}
        found.unless(not extra, f"invalid additional property {sorted(extra)} {where}")
    if "placeholder" in element:
        _text(element["placeholder"], found, where, 150, ("plain_text",))
    if "static_select" in str(kind):
        options = element.get("options") or []
        found.unless(1 <= len(options) <= 100, f"1 to 100 options {where}")
        for option in options:
            _text(option.get("text"), found, where, 75)
            found.unless(isinstance(option.get("value"), str) and 1 <= len(option["value"]) <= 150, f"option value {where}")
        found.unless("initial_option" not in element or element["initial_option"] in options, f"initial_option is no option {where}")
    if kind == "plain_text_input":
        found.unless(element.get("max_length", 3_000) <= 3_000, f"max_length over 3000 {where}")
        found.unless(len(element.get("initial_value", "")) <= 3_000, f"initial_value over 3000 {where}")
    if kind == "file_input":
        found.unless(1 <= element.get("max_files", 10) <= 10, f"max_files {where}")


def _rich_text(block: Any, found: Problems, where: str, surface: str) -> None:
    found.unless(block.get("elements"), f"rich_text needs elements {where}")
    for element in block.get("elements") or []:
        found.unless(element.get("type") in RICH, f"rich_text element {element.get('type')} {where}")
        if element.get("type") == "rich_text_list":
            found.unless(element.get("style") in ("bullet", "ordered"), f"list style {where}")
            found.unless(element.get("elements"), f"empty list {where}")
            for item in element.get("elements") or []:
                found.unless(item.get("type") == "rich_text_section", f"list item {item.get('type')} {where}")
                _rich_parts(item, found, where)
        else:
            _rich_parts(element, found, where)


def _rich_parts(element: Any, found: Problems, where: str) -> None:
    found.unless(element.get("elements"), f"empty {element.get('type')} {where}")
    for part in element.get("elements") or []:
        found.unless(part.get("type") in RICH_PARTS, f"rich text part {part.get('type')} {where}")
        if part.get("type") == "text":
            found.unless(isinstance(part.get("text"), str) and part["text"], f"empty rich text {where}")
            found.unless(set(part.get("style", {})) <= {"bold", "italic", "strike", "code"}, f"style {where}")
        if part.get("type") == "user":
            found.unless(str(part.get("user_id", "")).startswith(("U", "W")), f"user_id {where}")
        if part.get("type") == "broadcast":
            found.append(f"the bot never notifies a whole channel {where}")


def _table(block: Any, found: Problems, where: str, surface: str) -> int:
    rows = block.get("rows") or []
    found.unless(1 <= len(rows) <= 100, f"1 to 100 rows {where}")
    found.unless(len({len(row) for row in rows}) <= 1, f"rows of different length {where}")
    total = 0
    for row in rows:
        found.unless(1 <= len(row) <= 20, f"1 to 20 columns {where}")
        for cell in row:
            kind = cell.get("type")
            found.unless(kind in ("raw_text", "raw_number", "rich_text"), f"cell type {kind} {where}")
            if kind == "raw_number":
                found.unless(type(cell.get("value")) in (int, float), f"a number cell without its number {where}")
            if kind in ("raw_text", "raw_number"):
                found.unless(str(cell.get("text", "")).strip(), f"empty cell {where}")
                total += len(str(cell.get("text", "")))
            if kind == "rich_text":
                _rich_text(cell, found, where, surface)
                total += characters(cell)
    settings = block.get("column_settings") or []
    found.unless(len(settings) <= 20 and all(set(s or {}) <= {"align", "is_wrapped"} for s in settings), f"column_settings {where}")
    return total


def _input(block: Any, found: Problems, where: str, surface: str) -> None:
    _text(block.get("label"), found, where, 2_000, ("plain_text",))
    _element(block.get("element") or {}, found, where, INPUTS if surface == MODAL else INPUTS - {"file_input"})


_CHECKS = {
    "header": _header,
    "section": _section,
    "context": _context,
    "actions": _actions,
    "rich_text": _rich_text,
    "table": _table,
    "input": _input,
}


def view_problems(view: Any) -> list[str]:
    """A modal or a Home."""
    kind = view.get("type")
    if kind not in (MODAL, HOME):
        return [f"view type {kind}"]
    found = Problems(problems(view.get("blocks"), kind))
    found.unless(len(view.get("private_metadata", "")) <= 3_000, "private_metadata over 3000")
    found.unless(len(view.get("callback_id", "")) <= 255, "callback_id over 255")
    if kind == MODAL:
        for name in ("title", "submit", "close"):
            if name in view or name == "title":
                _text(view.get(name), found, f"/view/{name}", 24, ("plain_text",))
        has_input = any(block.get("type") == "input" for block in view.get("blocks") or [])
        found.unless(not has_input or "submit" in view, "submit is required when an input block is within blocks")
    extra = set(view) - {
        "type",
        "title",
        "submit",
        "close",
        "blocks",
        "private_metadata",
        "callback_id",
        "clear_on_close",
        "notify_on_close",
        "external_id",
        "submit_disabled",
    }
    found.unless(not extra, f"invalid additional property {sorted(extra)}")
    return list(found)
