"""The Web API methods that the bot may call; anything else is an unknown method."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.fakeslack import blocks as rules
from tests.fakeslack.state import Channel, File, Team, View

if TYPE_CHECKING:
    from tests.fakeslack.slack import FakeSlack

Args = dict[str, Any]


class Refusal(Exception):
    def __init__(self, error: str, messages: list[str] | None = None, **extra: Any) -> None:
        super().__init__(error)
        self.error, self.messages, self.extra = error, messages or [], extra


@dataclass(frozen=True)
class Method:
    work: Callable[["FakeSlack", Team, Args], dict[str, Any]]
    scopes: tuple[str, ...] = ()  # any of them
    takes: frozenset[str] = frozenset()
    needs: tuple[str, ...] = ()


def channel_of(slack: "FakeSlack", team: Team, args: Args, *, member: bool = False) -> Channel:
    channel = team.channels.get(str(args["channel"]))
    if channel is None or (channel.private and team.bot_user not in channel.members):
        raise Refusal("channel_not_found")
    if member and team.bot_user not in channel.members:
        raise Refusal("not_in_channel")
    return channel


def laid_out(args: Args, *, update: bool) -> None:
    text, blocks = args.get("text"), args.get("blocks") or []
    if not text and not blocks:
        raise Refusal("no_text")
    if blocks and not text:
        raise Refusal("no_text", ["text is missing beside blocks: screen readers and notifications read nothing"])
    if update and len(str(text).encode()) > 4_000:
        raise Refusal("msg_too_long")
    if found := rules.problems(blocks, rules.MESSAGE):
        raise Refusal("invalid_blocks", found)
    if rules.characters(blocks) > rules.MESSAGE_CHARACTERS:
        raise Refusal("msg_blocks_too_long")
    metadata = args.get("metadata")
    if metadata is not None and (
        not isinstance(metadata, dict) or not metadata.get("event_type") or not isinstance(metadata.get("event_payload"), dict)
    ):
        raise Refusal("invalid_metadata_format")
    if args.get("reply_broadcast"):
        raise Refusal("invalid_arguments", ["the bot never broadcasts a reply"])


def post_message(slack: "FakeSlack", team: Team, args: Args) -> dict[str, Any]:
    channel = channel_of(slack, team, args, member=True)
    laid_out(args, update=False)
    if args.get("unfurl_links") is not False or args.get("unfurl_media") is not False:
        raise Refusal("invalid_arguments", ["unfurls must be off"])
    thread = args.get("thread_ts")
    if thread and channel.message(thread) is None:
        raise Refusal("thread_not_found")
    message = {
        "type": "message",
        "user": team.bot_user,
        "bot_id": team.bot_id,
        "text": args.get("text", "")[:40_000],
        "ts": slack.clock.ts(),
        "team": team.id,
    }
    message |= {"blocks": args["blocks"]} if args.get("blocks") else {}
    message |= {"thread_ts": thread} if thread else {}
    message |= {"metadata": args["metadata"]} if args.get("metadata") else {}
    slack.add_message(team, channel, message)
    return {"channel": channel.id, "ts": message["ts"], "message": message}


def update(slack: "FakeSlack", team: Team, args: Args) -> dict[str, Any]:
    channel = channel_of(slack, team, args)
    laid_out(args, update=True)
    message = channel.message(str(args["ts"]))
    if message is None:
        raise Refusal("message_not_found")
    if message.get("bot_id") != team.bot_id:
        raise Refusal("cant_update_message")
    before = dict(message)
    old = {block.get("block_id") for block in message.get("blocks") or [] if block.get("block_id")}
    if old & {block.get("block_id") for block in args.get("blocks") or []}:
        raise Refusal("invalid_blocks", ["a block_id of the message before was used again"])
    message["text"] = args.get("text", "")
    if "blocks" in args:
        message["blocks"] = args["blocks"]
    elif args.get("text"):
        message.pop("blocks", None)
    slack.edits[channel.id, message["ts"]] += 1
    slack.emit_edit(team, channel, before, message)
    return {"channel": channel.id, "ts": message["ts"], "text": message["text"]}


def delete(slack: "FakeSlack", team: Team, args: Args) -> dict[str, Any]:
    channel = channel_of(slack, team, args)
    message = channel.message(str(args["ts"]))
    if message is None:
        raise Refusal("message_not_found")
    if message.get("bot_id") != team.bot_id:
        raise Refusal("cant_delete_message")
    channel.messages.remove(message)
    return {"channel": channel.id, "ts": message["ts"]}


def permalink(slack: "FakeSlack", team: Team, args: Args) -> dict[str, Any]:
    channel = channel_of(slack, team, args)
    ts = str(args["message_ts"])
    if channel.message(ts) is None:
        raise Refusal("message_not_found")
    return {"channel": channel.id, "permalink": f"https://{team.id.lower()}.slack.com/archives/{channel.id}/p{ts.replace('.', '')}"}


def post_ephemeral(slack: "FakeSlack", team: Team, args: Args) -> dict[str, Any]:
    channel = channel_of(slack, team, args, member=True)
    laid_out(args, update=False)
    if args["user"] not in channel.members:
        raise Refusal("user_not_in_channel")
    shown = {key: args[key] for key in ("user", "text", "blocks", "thread_ts") if args.get(key)}
    channel.ephemerals.append(shown | {"ts": slack.clock.ts()})
    return {"message_ts": channel.ephemerals[-1]["ts"]}


def react(add: bool) -> Callable[["FakeSlack", Team, Args], dict[str, Any]]:
    def work(slack: "FakeSlack", team: Team, args: Args) -> dict[str, Any]:
        message = channel_of(slack, team, args).message(str(args["timestamp"]))
        if message is None:
            raise Refusal("message_not_found")
        names = message.setdefault("reactions", [])
        if add == (args["name"] in names):
            raise Refusal("already_reacted" if add else "no_reaction")
        (names.append if add else names.remove)(args["name"])
        slack.reactions.append((channel_of(slack, team, args).id, args["timestamp"], args["name"], add))
        return {}

    return work


def _shown(slack: "FakeSlack", message: dict[str, Any], args: Args) -> dict[str, Any]:
    given = args.get("include_all_metadata") and slack.gives_metadata
    return message if given else {key: value for key, value in message.items() if key != "metadata"}


def history_scope(channel: Channel) -> str:
    return {"channel": "channels:history", "group": "groups:history", "im": "im:history", "mpim": "mpim:history"}[channel.kind]


def replies(slack: "FakeSlack", team: Team, args: Args) -> dict[str, Any]:
    channel = channel_of(slack, team, args, member=True)
    if history_scope(channel) not in team.scopes:
        raise Refusal("missing_scope", needed=history_scope(channel))
    found = channel.thread(str(args["ts"]))
    if not found:
        raise Refusal("thread_not_found")
    # Slack gives the thread's first message in any case.
    oldest = float(args.get("oldest") or 0)
    least = oldest if args.get("inclusive") else oldest + 1e-6
    return _messages(slack, [m for m in found if m is found[0] or float(m["ts"]) >= least], args)


def history(slack: "FakeSlack", team: Team, args: Args) -> dict[str, Any]:
    channel = channel_of(slack, team, args, member=True)
    if history_scope(channel) not in team.scopes:
        raise Refusal("missing_scope", needed=history_scope(channel))
    oldest = float(args.get("oldest") or 0)
    return _messages(slack, [m for m in reversed(channel.messages) if "thread_ts" not in m and float(m["ts"]) > oldest], args)


def _messages(slack: "FakeSlack", found: list[dict[str, Any]], args: Args) -> dict[str, Any]:
    limit, start = min(int(args.get("limit", 100)), slack.most_messages), int(args.get("cursor") or 0)
    more = start + limit < len(found)
    page = {"messages": [_shown(slack, m, args) for m in found[start : start + limit]], "has_more": more}
    return page | ({"response_metadata": {"next_cursor": str(start + limit)}} if more else {})


def _channel(channel: Channel, team: Team) -> dict[str, Any]:
    return {
        "id": channel.id, "name": channel.name, "is_private": channel.private, "is_im": channel.kind == "im", "is_mpim": channel.kind == "mpim",
        "is_channel": channel.kind == "channel", "is_ext_shared": channel.shared,
        "is_member": team.bot_user in channel.members,
    }  # fmt: skip


READ = {"public_channel": "channels:read", "private_channel": "groups:read", "im": "im:read", "mpim": "mpim:read"}
KIND = {"public_channel": "channel", "private_channel": "group", "im": "im", "mpim": "mpim"}


def _kinds(team: Team, args: Args) -> set[str]:
    if team.by_organisation and not args.get("team_id"):
        raise Refusal("missing_argument", ["team_id is required for an organisation's token"])
    types = [t.strip() for t in str(args.get("types", "public_channel")).split(",")]
    for name in types:
        if name not in READ:
            raise Refusal("invalid_types")
        if READ[name] not in team.scopes:
            raise Refusal("missing_scope", needed=READ[name])
    return {KIND[name] for name in types}


def _page(found: list[dict[str, Any]], args: Args) -> dict[str, Any]:
    limit, start = int(args.get("limit", 100)), int(args.get("cursor") or 0)
    more = str(start + limit) if start + limit < len(found) else ""
    return {"channels": found[start : start + limit], "response_metadata": {"next_cursor": more}}


def list_channels(slack: "FakeSlack", team: Team, args: Args) -> dict[str, Any]:
    kinds = _kinds(team, args)
    return _page(
        [_channel(c, team) for c in team.channels.values() if c.kind in kinds and (not c.private or team.bot_user in c.members)], args
    )


def user_channels(slack: "FakeSlack", team: Team, args: Args) -> dict[str, Any]:
    kinds, user = _kinds(team, args), str(args.get("user") or team.bot_user)
    found = [c for c in team.channels.values() if c.kind in kinds and user in c.members and (not c.private or team.bot_user in c.members)]
    return _page([_channel(c, team) for c in found], args)


def info(slack: "FakeSlack", team: Team, args: Args) -> dict[str, Any]:
    channel = channel_of(slack, team, args)
    needed = {"channel": "channels:read", "group": "groups:read", "im": "im:read", "mpim": "mpim:read"}[channel.kind]
    if needed not in team.scopes:
        raise Refusal("missing_scope", needed=needed)
    return {"channel": _channel(channel, team)}


def user_info(slack: "FakeSlack", team: Team, args: Args) -> dict[str, Any]:
    user = str(args["user"])
    if user not in team.users:
        raise Refusal("user_not_found")
    guest, home = user in team.guests, team.users[user]
    standing = {"is_restricted": guest, "is_ultra_restricted": False, "is_stranger": home != team.id}
    return {"user": {"id": user, "team_id": home, "deleted": False, "is_bot": user == team.bot_user, **standing}}


def open_direct(slack: "FakeSlack", team: Team, args: Args) -> dict[str, Any]:
    if args["users"] not in team.users:
        raise Refusal("user_not_found")
    return {"channel": {"id": slack.direct(team, str(args["users"])).id}}


def file_info(slack: "FakeSlack", team: Team, args: Args) -> dict[str, Any]:
    file = slack.files.get(str(args["file"]))
    if file is not None and file.unknown > 0:  # shared a moment ago
        file.unknown -= 1
        return {"ok": False, "error": "file_not_found"}
    if file is None or file.deleted:
        raise Refusal("file_not_found" if file is None else "file_deleted")
    return {"file": slack.file_body(file)}


def upload_url(slack: "FakeSlack", team: Team, args: Args) -> dict[str, Any]:
    if int(args["length"]) <= 0:
        raise Refusal("invalid_arguments", ["length"])
    file = File(slack.new_id("F"), str(args["filename"]), b"", team.bot_user, size=int(args["length"]))
    slack.files[file.id] = file
    slack.uploads[secrets.token_hex(8)] = file
    ticket = next(t for t, f in slack.uploads.items() if f is file)
    return {"upload_url": f"{slack.url}/upload/{ticket}", "file_id": file.id}


def complete_upload(slack: "FakeSlack", team: Team, args: Args) -> dict[str, Any]:
    files = args["files"]
    for given in files:
        if given["id"] not in slack.files or not slack.files[given["id"]].data:
            raise Refusal("file_not_found")
    if args.get("channel_id"):
        channel = channel_of(slack, team, {"channel": args["channel_id"]}, member=True)
        if args.get("thread_ts") and channel.message(args["thread_ts"]) is None:
            raise Refusal("thread_not_found")
        message = {
            "type": "message",
            "subtype": "file_share",
            "user": team.bot_user,
            "bot_id": team.bot_id,
            "text": args.get("initial_comment") or "",
        }
        message |= {"ts": slack.clock.ts(), "files": [slack.file_body(slack.files[f["id"]]) for f in files], "team": team.id}
        slack.add_message(team, channel, message | ({"thread_ts": args["thread_ts"]} if args.get("thread_ts") else {}))
    return {"files": [{"id": f["id"], "title": f.get("title", "")} for f in files]}


def delete_file(slack: "FakeSlack", team: Team, args: Args) -> dict[str, Any]:
    file = slack.files.get(str(args["file"]))
    if file is None or file.deleted:
        raise Refusal("file_not_found")
    if file.owner != team.bot_user:
        raise Refusal("cant_delete_file")
    file.deleted, file.data = True, b""
    for channel in team.channels.values():
        for message in channel.messages:
            for shown in message.get("files") or ():
                if shown["id"] == file.id:
                    shown["mode"] = "tombstone"
    return {}


def open_view(slack: "FakeSlack", team: Team, args: Args) -> dict[str, Any]:
    trigger = slack.triggers.get(str(args["trigger_id"]))
    if trigger is None:
        raise Refusal("invalid_trigger_id")
    if trigger.used:
        raise Refusal("exchanged_trigger_id")
    if slack.age(trigger.made) > 3.0:
        raise Refusal("expired_trigger_id")
    if found := rules.view_problems(args["view"]) or ([] if args["view"]["type"] == "modal" else ["only modals are opened"]):
        raise Refusal("invalid_arguments", found)
    trigger.used = True
    view = View(slack.new_id("V"), trigger.user, team.id, args["view"], hash=secrets.token_hex(4))
    slack.views[view.id] = view
    return {"view": {**view.body, "id": view.id, "hash": view.hash}}


def update_view(slack: "FakeSlack", team: Team, args: Args) -> dict[str, Any]:
    view = slack.views.get(str(args.get("view_id")))
    if view is None or not view.open:
        raise Refusal("not_found")
    if found := rules.view_problems(args["view"]):
        raise Refusal("invalid_arguments", found)
    view.body, view.hash = args["view"], secrets.token_hex(4)
    return {"view": {**view.body, "id": view.id, "hash": view.hash}}


def publish(slack: "FakeSlack", team: Team, args: Args) -> dict[str, Any]:
    if not slack.manifest["features"]["app_home"]["home_tab_enabled"]:
        raise Refusal("not_enabled")
    if args["user_id"] not in team.users:
        raise Refusal("user_not_found")
    if found := rules.view_problems(args["view"]) or ([] if args["view"]["type"] == "home" else ["only a home is published"]):
        raise Refusal("invalid_blocks", found)
    team.homes[str(args["user_id"])] = args["view"]
    return {"view": {**args["view"], "id": "V" + str(args["user_id"])}}


def auth_test(slack: "FakeSlack", team: Team, args: Args) -> dict[str, Any]:
    return {
        "url": slack.url, "team": team.name, "team_id": team.id, "user": "oombot", "user_id": team.bot_user, "bot_id": team.bot_id,
        "enterprise_id": team.enterprise, "is_enterprise_install": False,
    }  # fmt: skip


_POST = frozenset(
    {
        "channel",
        "text",
        "blocks",
        "thread_ts",
        "metadata",
        "unfurl_links",
        "unfurl_media",
        "mrkdwn",
        "parse",
        "link_names",
        "reply_broadcast",
    }
)
METHODS = {
    "auth.test": Method(auth_test),
    "chat.postMessage": Method(post_message, ("chat:write",), _POST, ("channel",)),
    "chat.update": Method(
        update, ("chat:write",), frozenset({"channel", "ts", "text", "blocks", "metadata", "parse", "link_names"}), ("channel", "ts")
    ),
    "chat.delete": Method(delete, ("chat:write",), frozenset({"channel", "ts"}), ("channel", "ts")),
    "chat.getPermalink": Method(permalink, (), frozenset({"channel", "message_ts"}), ("channel", "message_ts")),
    "chat.postEphemeral": Method(
        post_ephemeral,
        ("chat:write",),
        frozenset({"channel", "user", "text", "blocks", "thread_ts", "parse", "link_names"}),
        ("channel", "user"),
    ),
    "reactions.add": Method(
        react(True), ("reactions:write",), frozenset({"channel", "timestamp", "name"}), ("channel", "timestamp", "name")
    ),
    "reactions.remove": Method(
        react(False), ("reactions:write",), frozenset({"channel", "timestamp", "name"}), ("channel", "timestamp", "name")
    ),
    "conversations.replies": Method(
        replies,
        (),
        frozenset({"channel", "ts", "limit", "cursor", "oldest", "latest", "inclusive", "include_all_metadata"}),
        ("channel", "ts"),
    ),
    "conversations.history": Method(
        history, (), frozenset({"channel", "limit", "cursor", "oldest", "latest", "inclusive", "include_all_metadata"}), ("channel",)
    ),
    "conversations.list": Method(list_channels, (), frozenset({"types", "limit", "cursor", "exclude_archived", "team_id"})),
    "users.conversations": Method(user_channels, (), frozenset({"user", "types", "limit", "cursor", "exclude_archived", "team_id"})),
    "users.info": Method(user_info, ("users:read",), frozenset({"user", "include_locale"}), ("user",)),
    "conversations.info": Method(info, (), frozenset({"channel", "include_locale", "include_num_members"}), ("channel",)),
    "conversations.open": Method(open_direct, ("im:write",), frozenset({"users", "return_im", "prevent_creation"}), ("users",)),
    "files.info": Method(file_info, ("files:read",), frozenset({"file", "cursor", "limit", "page", "count"}), ("file",)),
    "files.getUploadURLExternal": Method(
        upload_url, ("files:write",), frozenset({"filename", "length", "alt_txt", "snippet_type"}), ("filename", "length")
    ),
    "files.completeUploadExternal": Method(
        complete_upload, ("files:write",), frozenset({"files", "channel_id", "channels", "thread_ts", "initial_comment"}), ("files",)
    ),
    "files.delete": Method(delete_file, ("files:write",), frozenset({"file"}), ("file",)),
    "views.open": Method(open_view, (), frozenset({"trigger_id", "view", "interactivity_pointer"}), ("trigger_id", "view")),
    "views.update": Method(update_view, (), frozenset({"view_id", "external_id", "view", "hash"}), ("view",)),
    "views.publish": Method(publish, (), frozenset({"user_id", "view", "hash"}), ("user_id", "view")),
}
