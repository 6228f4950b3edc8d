"""What Slack sends is slimmed, redacted and stored before it is acknowledged; the same thing twice is stored once."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bot.reading.redact import redact
from bot.slack.render.escape import as_typed

EVENTS = {
    "app_home_opened": "home",
    "member_joined_channel": "joined",
    "file_deleted": "file_deleted",
    "tokens_revoked": "revoked",
    "app_uninstalled": "revoked",
    "channel_left": "left",
    "group_left": "left",
}
_MENTION = re.compile(r"<@[^<>]*>")
# Message subtypes that carry what a person or another bot said.
SPOKEN = frozenset({None, "file_share", "bot_message", "thread_broadcast", "me_message"})
TURNED = "channel_convert_to_private"


@dataclass(frozen=True, slots=True)
class Arrival:
    """One thing to work on. `thread` orders work: what shares it is worked one after another. `body` is JSON-ready and redacted."""

    kind: str
    team: str
    enterprise: str | None
    channel: str | None
    thread: str | None
    key: str
    body: Mapping[str, Any]

    def payload(self) -> bytes:
        """As it is stored."""
        return json.dumps(self.body, ensure_ascii=True, separators=(",", ":")).encode()


def arrival(body: Mapping[str, Any], bot_user: str) -> Arrival | None:
    """A Slack payload of any kind as an Arrival; None for what nobody works on."""
    kind = body.get("type")
    if kind == "event_callback" and isinstance(body.get("event"), Mapping):
        return _event(body, bot_user)
    if "command" in body:
        return _command(body)
    if kind == "block_actions" and body.get("actions"):
        return _click(body)
    if kind == "view_submission":
        return _submission(body)
    if kind in ("message_action", "shortcut"):
        return _shortcut(body, bot_user)
    return None


def where(body: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """(enterprise, team) through which the app receives this; for shared channels not the sender's own.

    Where an organisation installed it, clicks and forms name no team: then it is that of our message, of the view, or of the person.
    """
    installed: Mapping[str, Any] = next(iter(body.get("authorizations") or ()), {})
    enterprise = installed.get("enterprise_id") or body.get("enterprise_id") or _of(body, "enterprise", "id")
    named = (
        installed.get("team_id"), body.get("context_team_id"), _of(body, "view", "app_installed_team_id"), body.get("team_id"),
        _of(body, "team", "id"), _of(body, "message", "team") if body.get("type") == "block_actions" else None,
        _of(body, "view", "team_id"), _of(body, "user", "team_id"),
    )  # fmt: skip
    return enterprise, next((team for team in named if team and team != enterprise), None)


def _of(body: Mapping[str, Any], part: str, name: str) -> Any:
    found = body.get(part)
    return found.get(name) if isinstance(found, Mapping) else None


def said_in(body: Mapping[str, Any]) -> str | None:
    """What a message is known by before it is looked at: Slack sends one that names the bot as two events."""
    event = body.get("event")
    if not isinstance(event, Mapping) or event.get("type") not in ("message", "app_mention") or event.get("subtype") not in SPOKEN:
        return None
    return f"{where(body)[1]}:{event.get('channel')}:{event.get('ts')}"


def gone(file: str) -> str:
    """The key of a file's deletion."""
    return f"file_deleted:{file}"


def deleted(channel: str | None, ts: str) -> str:
    """The key of a message's deletion."""
    return f"delete:{channel}:{ts}"


def _arrival(kind: str, body: Mapping[str, Any], channel: str | None, thread: str | None, key: str, slim: Mapping[str, Any]) -> Arrival:
    enterprise, team = where(body)
    return Arrival(kind, team or "", enterprise, channel, thread, key, slim)


def _event(body: Mapping[str, Any], bot_user: str) -> Arrival | None:
    event = body["event"]
    kind = event.get("type")
    if kind in ("message", "app_mention"):
        return _message_event(body, event, bot_user)
    if kind not in EVENTS:
        return None
    if kind == "app_home_opened" and event.get("tab") not in (None, "home"):
        return None
    if kind == "member_joined_channel" and event.get("user") != bot_user:
        return None
    channel = event.get("channel") if isinstance(event.get("channel"), str) else None
    slim = {"user": event.get("user") if isinstance(event.get("user"), str) else None, "channel": channel, "file": event.get("file_id")}
    slim |= {"inviter": event.get("inviter"), "event": kind, "tokens": event.get("tokens"), "at": body.get("event_time")}
    slim["organisation"] = any(given.get("is_enterprise_install") for given in body.get("authorizations") or ())
    if kind == "app_home_opened":
        return _arrival("home", body, None, f"home:{slim['user']}", f"event:{body.get('event_id')}", slim)
    key = gone(str(slim["file"])) if kind == "file_deleted" else f"event:{body.get('event_id')}"
    return _arrival(EVENTS[kind], body, channel, f"{kind}:{event.get('user')}", key, slim)


def _message_event(body: Mapping[str, Any], event: Mapping[str, Any], bot_user: str) -> Arrival | None:
    channel = event["channel"]
    subtype = event.get("subtype")
    if subtype == "message_changed":
        return _edit(body, event, bot_user)
    if subtype == "message_deleted":
        return _delete(body, event, event["deleted_ts"], event.get("previous_message") or {})
    if subtype == TURNED:
        return _arrival("turned", body, channel, event["ts"], f"turned:{channel}:{event['ts']}", {"channel": channel})
    if subtype not in SPOKEN or _is_ours(body, event, bot_user):
        return None
    slim = message(event, bot_user) | {"channel": channel, "channel_type": event.get("channel_type"), "foreign": _foreign(body, event)}
    slim["mention"] = slim["mention"] or event["type"] == "app_mention"
    slim["bare"] = event["type"] == "app_mention" and not slim["files"]
    return _arrival("message", body, channel, _order(channel, event), f"message:{channel}:{event['ts']}", slim)


def _delete(body: Mapping[str, Any], event: Mapping[str, Any], ts: str, before: Mapping[str, Any]) -> Arrival:
    channel = event["channel"]
    slim = {"channel": channel, "ts": ts, "files": [file["id"] for file in before.get("files") or ()]}
    return _arrival("delete", body, channel, _order(channel, {**before, "ts": ts}), deleted(channel, ts), slim)


def _edit(body: Mapping[str, Any], event: Mapping[str, Any], bot_user: str) -> Arrival | None:
    new, old = event["message"], event.get("previous_message") or {}
    if new.get("subtype") == "tombstone":  # deleted, while the answers below it stay
        return _delete(body, event, new["ts"], old)
    if _is_ours(body, new, bot_user) or new.get("subtype") not in SPOKEN:
        return None
    # Unfurls and thread bookkeeping arrive as edits too: only other words or other files are news.
    if new.get("text") == old.get("text") and _file_marks(new) == _file_marks(old):
        return None
    channel = event["channel"]
    edited = (new.get("edited") or {}).get("ts") or event.get("event_ts") or event.get("ts")
    slim = message(new, bot_user) | {
        "edited": str(edited),
        "channel": channel,
        "channel_type": event.get("channel_type"),
        "foreign": _foreign(body, new),
    }
    return _arrival("edit", body, channel, _order(channel, new), f"edit:{channel}:{new['ts']}:{edited}", slim)


def message(event: Mapping[str, Any], bot_user: str) -> dict[str, Any]:
    """A message slimmed to what is worked on: text as typed, secrets hidden and counted, files by id."""
    raw, mentions = re.subn(rf"<@{re.escape(bot_user)}(?:\|[^<>]*)?>\s*[:,]?", " ", text_of(event)) if bot_user else (text_of(event), 0)
    text, hidden = redact(as_typed(raw).strip())
    forwarded = [file for one in event.get("attachments") or () if _is_forwarded(one) for file in one.get("files") or ()]
    files = [
        {"id": file["id"], "name": redact(str(file.get("name") or ""))[0]}
        for file in (*(event.get("files") or ()), *forwarded)
        if file.get("mode") != "tombstone"
    ]
    return {
        "user": event.get("user"),
        "bot": event.get("bot_id"),
        "text": text,
        "hidden": hidden,
        "mention": bool(mentions),
        "ts": event["ts"],
        "thread_ts": event.get("thread_ts"),
        "files": files,
    }


def text_of(event: Mapping[str, Any]) -> str:
    """A message's words, and those of a message that it forwards; those of other bots often stand in attachments or blocks alone."""
    said = [str(event.get("text") or "")]
    silent = not _MENTION.sub("", said[0]).strip()
    for attachment in event.get("attachments") or ():
        if silent or event.get("bot_id") or _is_forwarded(attachment):
            said += list(_attached(attachment)) or [str(attachment.get("fallback") or "")]
    if silent:
        said += list(_block_texts(event.get("blocks") or ()))
    return "\n".join(part for part in said if part.strip())


def _attached(attachment: Mapping[str, Any]) -> Iterator[str]:
    """An attachment's words, and those of its fields, where an alert may have its log; of its blocks where it has nothing else."""
    parts = [attachment, *(field for field in attachment.get("fields") or () if isinstance(field, Mapping))]
    found = [str(part[key]) for part in parts for key in ("pretext", "title", "text", "value") if part.get(key)]
    yield from found or _block_texts(attachment.get("blocks") or ())


def _is_forwarded(attachment: Mapping[str, Any]) -> bool:
    """A message, not the preview of a page that a link leads to."""
    return bool(attachment.get("is_share") or attachment.get("is_msg_unfurl") or not attachment.get("from_url"))


def _block_texts(node: Any) -> list[str]:
    if isinstance(node, Mapping):
        if isinstance(node.get("text"), str):
            return [node["text"]]
        return [text for value in node.values() for text in _block_texts(value)]
    return [text for child in node for text in _block_texts(child)] if isinstance(node, list | tuple) else []


def _command(body: Mapping[str, Any]) -> Arrival:
    text, hidden = redact(as_typed(str(body.get("text") or "")))
    slim = {key: body.get(key) for key in ("command", "channel_name", "response_url", "trigger_id")}
    slim |= {"user": body["user_id"], "channel": body.get("channel_id"), "text": text, "hidden": hidden}
    trigger = str(body.get("trigger_id") or body.get("response_url"))
    return _arrival("command", body, body.get("channel_id"), f"command:{trigger}", f"command:{trigger}", slim)


def _click(body: Mapping[str, Any]) -> Arrival:
    action = body["actions"][0]
    container = body.get("container") or {}
    shown = body.get("message") or {}
    channel = (body.get("channel") or {}).get("id") or container.get("channel_id")
    ts = container.get("message_ts") or shown.get("ts")
    thread = container.get("thread_ts") or shown.get("thread_ts") or ts
    chosen = action.get("selected_option") or {}
    slim = {
        "user": body["user"]["id"],
        "foreign": _from_elsewhere(body),
        "action": action["action_id"],
        "value": action.get("value") or chosen.get("value"),
        "values": redacted(values_of(body.get("view") or {}) | values_of(body)),
        "channel": channel,
        "ts": ts,
        "thread_ts": thread,
        "ephemeral": bool(container.get("is_ephemeral")),
        "response_url": body.get("response_url"),
        "trigger_id": body.get("trigger_id"),
        "at": action.get("action_ts"),
        "view_id": (body.get("view") or {}).get("id"),
        "home": (body.get("view") or {}).get("type") == "home",
        "meta": (body.get("view") or {}).get("private_metadata"),
    }
    moment = f"{action.get('action_ts')}:{body.get('trigger_id')}"
    key = f"click:{body['user']['id']}:{action['action_id']}:{moment}"
    own = f"home:{body['user']['id']}" if slim["home"] else key  # what was clicked last in a Home is shown last
    order = _order(channel, {"thread_ts": thread, "ts": ts}) if channel else own
    if slim["action"] == "share":  # one after another, so that the second click finds what the first one did
        order = f"share:{body['user']['id']}"
    return _arrival("click", body, channel, order, key, slim)


def _submission(body: Mapping[str, Any]) -> Arrival:
    view = body["view"]
    values = values_of(view)
    files = [
        {"id": file["id"], "name": redact(str(file.get("name") or ""))[0]}
        for value in values.values()
        if isinstance(value, list)
        for file in value
        if isinstance(file, Mapping) and "id" in file
    ]
    slim = {
        "user": body["user"]["id"],
        "foreign": _from_elsewhere(body),
        "callback": view.get("callback_id"),
        "values": redacted({name: value for name, value in values.items() if not isinstance(value, list)}),
        "files": files,
        "meta": view.get("private_metadata"),
        "view_id": view["id"],
        "response_urls": body.get("response_urls") or [],
    }
    key = f"submission:{view['id']}:{view.get('hash')}"
    return _arrival("submission", body, None, key, key, slim)


def _shortcut(body: Mapping[str, Any], bot_user: str) -> Arrival:
    trigger = str(body.get("trigger_id"))
    slim: dict[str, Any] = {
        "user": body["user"]["id"],
        "callback": body.get("callback_id"),
        "trigger_id": trigger,
        "foreign": _from_elsewhere(body),
    }
    if body["type"] == "shortcut":
        return _arrival("shortcut", body, None, f"shortcut:{trigger}", f"shortcut:{trigger}", slim)
    channel = body["channel"]["id"]
    said = body["message"]
    slim |= message({"ts": body.get("message_ts"), **said}, bot_user) | {
        "user": body["user"]["id"],
        "author": said.get("user"),
        "channel": channel,
    }
    slim["response_url"] = body.get("response_url")
    return _arrival("message_shortcut", body, channel, _order(channel, {"ts": body.get("message_ts"), **said}), f"shortcut:{trigger}", slim)


def values_of(view: Mapping[str, Any]) -> dict[str, Any]:
    """What a form holds, by action id: text, the chosen value, the chosen conversation, files."""
    found: dict[str, Any] = {}
    for actions in ((view.get("state") or {}).get("values") or {}).values():
        for action_id, state in actions.items():
            chosen = state.get("selected_option")
            found[action_id] = (
                chosen["value"] if chosen else state.get("value") or state.get("selected_conversation") or state.get("files") or
                ([option["value"] for option in state["selected_options"]] if state.get("selected_options") else None)
            )  # fmt: skip
    return found


def redacted(values: Mapping[str, Any]) -> dict[str, Any]:
    """The same with secrets hidden in every text."""
    return {name: redact(value)[0] if isinstance(value, str) else value for name, value in values.items()}


def _order(channel: str | None, message: Mapping[str, Any]) -> str | None:
    """Work in one thread is done in order; in a direct message all of it is one conversation."""
    if channel is None or channel.startswith("D"):
        return "direct"
    return message.get("thread_ts") or message.get("ts")


def _file_marks(message: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    return [(file.get("id"), file.get("mode"), file.get("edit_timestamp"), file.get("size")) for file in message.get("files") or ()]


def _is_ours(body: Mapping[str, Any], said: Mapping[str, Any], bot_user: str) -> bool:
    """In a shared channel other workspaces' bots of the same app speak too."""
    return said.get("user") == bot_user or bool(said.get("bot_id") and said.get("app_id") and said["app_id"] == body.get("api_app_id"))


def _foreign(body: Mapping[str, Any], event: Mapping[str, Any]) -> bool:
    team = where(body)[1]
    home = event.get("user_team") or event.get("source_team") or event.get("team")
    return bool(team and home and home != team and not body.get("enterprise_id"))


def _from_elsewhere(body: Mapping[str, Any]) -> bool:
    home = (body.get("user") or {}).get("team_id")
    team = where(body)[1]
    return bool(home and team and home != team and not body.get("enterprise"))
