"""A person in front of Slack: pastes, uploads, replies, edits, deletes, clicks, submits, types commands, opens Home."""

import asyncio
from typing import Any

from tests.fakeslack.slack import Ack, FakeSlack
from tests.fakeslack.state import Channel, File, Team, View


class Person:
    """Drives the app as Slack would; every method waits for the acknowledgement, none for the answer."""

    def __init__(self, slack: FakeSlack, team: Team, name: str = "U", *, home: str | None = None, guest: bool = False) -> None:
        self.slack, self.team = slack, team
        self.id = slack.new_id("U")
        self.name = name
        team.users[self.id] = home or team.id
        self.home = home or team.id
        if guest:
            team.guests.add(self.id)

    # Saying

    async def say(self, channel: Channel, text: str, *, thread: str | None = None, files: list[File] | None = None, **extra: Any) -> str:
        """A message; returns its ts when every event it raised has been acknowledged."""
        assert self.id in channel.members, f"{self.id} is not in {channel.name}"
        message: dict[str, Any] = {
            "type": "message",
            "user": self.id,
            "text": text,
            "ts": self.slack.clock.ts(),
            "team": self.home,
            **extra,
        }
        if self.home != self.team.id:
            message |= {"user_team": self.home, "source_team": self.home}
        if thread:
            message["thread_ts"] = thread
        if files:
            message |= {"subtype": "file_share", "files": [self.slack.file_body(file) for file in files], "upload": True}
        await asyncio.gather(*self.slack.add_message(self.team, channel, message))
        return str(message["ts"])

    async def mention(self, channel: Channel, text: str, **more: Any) -> str:
        return await self.say(channel, f"<@{self.team.bot_user}> {escaped(text)}", **more)

    async def dm(self, text: str, **more: Any) -> str:
        return await self.say(self.slack.direct(self.team, self.id), escaped(text), **more)

    def file(self, name: str, data: bytes, **more: Any) -> File:
        made = File(self.slack.new_id("F"), name, data, self.id, **more)
        self.slack.files[made.id] = made
        return made

    async def edit(self, channel: Channel, ts: str, text: str) -> None:
        message = channel.message(ts)
        assert message is not None
        before = dict(message)
        message |= {"text": text, "edited": {"user": self.id, "ts": self.slack.clock.ts()}}
        task = self.slack.emit_edit(self.team, channel, before, message)
        if task is not None:
            await task

    async def delete(self, channel: Channel, ts: str) -> None:
        message = channel.message(ts)
        assert message is not None
        if len(channel.thread(ts)) > 1:
            # What has answers below it stays as a stone: to apps that is an edit.
            before = dict(message)
            message.clear()
            message |= {"type": "message", "subtype": "tombstone", "user": "USLACKBOT", "hidden": True, "ts": ts, "thread_ts": ts}
            message |= {"text": "This message was deleted."}
            task = self.slack.emit_edit(self.team, channel, before, message)
            if task is not None:
                await task
            return
        channel.messages.remove(message)
        event = {
            "type": "message",
            "subtype": "message_deleted",
            "hidden": True,
            "channel": channel.id,
            "channel_type": channel.kind,
            "deleted_ts": ts,
        }
        await self.slack.emit(
            self.team, event | {"ts": self.slack.clock.ts(), "event_ts": self.slack.clock.ts(), "previous_message": message}
        )

    async def delete_file(self, file: File) -> None:
        file.deleted = True
        await self.slack.emit(self.team, {"type": "file_deleted", "file_id": file.id, "event_ts": self.slack.clock.ts()})

    # Doing

    async def click(
        self,
        channel: Channel,
        message: dict[str, Any],
        action: str,
        *,
        value: str | None = None,
        option: str | None = None,
        team: str | None = None,
    ) -> Ack:
        """Clicks a button or picks from a menu of a message; the control must be there."""
        block, element = find(message.get("blocks") or [], action)
        action_body: dict[str, Any] = {
            "action_id": action,
            "block_id": block.get("block_id", "b"),
            "type": element["type"],
            "action_ts": self.slack.clock.ts(),
        }
        if element["type"] == "button":
            action_body["value"] = value or element.get("value")
        else:
            action_body["selected_option"] = next(o for o in element["options"] if o["value"] == option)
        ephemeral = message in channel.ephemerals
        body = {
            "type": "block_actions", "user": {"id": self.id, "team_id": self.home}, "team": {"id": team or self.team.id}, "api_app_id": "A1",
            "container": {"type": "message", "message_ts": message["ts"], "channel_id": channel.id, "is_ephemeral": ephemeral},
            "trigger_id": self.slack.trigger(self.team, self.id), "channel": {"id": channel.id, "name": channel.name},
            "response_url": self.slack.response_url(self.team, channel, self.id, message["ts"]), "actions": [action_body], "state": {"values": {}},
        }  # fmt: skip
        if message.get("thread_ts"):
            body["container"]["thread_ts"] = message["thread_ts"]
        if not ephemeral:
            body["message"] = message
        return await self._interactive(body)

    async def click_home(self, action: str, *, option: str | None = None) -> Ack:
        view = self.team.homes[self.id]
        _, element = find(view["blocks"], action)
        values: dict[str, Any] = {}
        for block in view["blocks"]:
            for e in block.get("elements", ()) if block["type"] == "actions" else ():
                if e["type"] == "static_select":
                    picked = option if e["action_id"] == action else (e.get("initial_option") or {}).get("value")
                    values.setdefault(block.get("block_id", "home"), {})[e["action_id"]] = {
                        "type": "static_select",
                        "selected_option": next((o for o in e["options"] if o["value"] == picked), None),
                    }
        did: dict[str, Any] = {"action_id": action, "type": element["type"], "action_ts": self.slack.clock.ts()}
        did |= {"value": element.get("value")} if element["type"] == "button" else {"selected_option": {"value": option}}
        shown = {**view, "id": "V" + self.id, "state": {"values": values}}
        body = {
            "type": "block_actions", "user": {"id": self.id, "team_id": self.home}, "team": {"id": self.team.id}, "view": shown, "actions": [did],
            "container": {"type": "view", "view_id": "V" + self.id}, "trigger_id": self.slack.trigger(self.team, self.id),
        }  # fmt: skip
        return await self._interactive(body)

    async def submit(self, view: View, values: dict[str, Any], files: list[File] | None = None) -> Ack:
        """Fills a modal by action id and submits it; applies what the acknowledgement says about the view."""
        state: dict[str, Any] = {}
        for block in view.body["blocks"]:
            if block["type"] != "input":
                continue
            element = block["element"]
            name, given = element["action_id"], values.get(element["action_id"])
            if given is None and not block.get("optional") and element["type"] == "plain_text_input" and not element.get("initial_value"):
                raise AssertionError(f"Slack would not let {name} be empty")
            if element["type"] == "plain_text_input":
                entry: dict[str, Any] = {"type": element["type"], "value": given or element.get("initial_value")}
            elif element["type"] == "static_select":
                chosen = given or (element.get("initial_option") or {}).get("value")
                entry = {"type": element["type"], "selected_option": next((o for o in element["options"] if o["value"] == chosen), None)}
            elif element["type"] == "file_input":
                entry = {"type": element["type"], "files": [self.slack.file_body(file) for file in files or []]}
            else:
                entry = {"type": element["type"], "selected_conversation": given}
            state.setdefault(block.get("block_id", name), {})[name] = entry
        shown = {**view.body, "id": view.id, "hash": view.hash, "state": {"values": state}, "app_installed_team_id": self.team.id}
        ack = await self._interactive(
            {"type": "view_submission", "user": {"id": self.id, "team_id": self.home}, "team": {"id": self.team.id}, "view": shown,
             "trigger_id": self.slack.trigger(self.team, self.id), "response_urls": []}
        )  # fmt: skip
        does = (ack.body or {}).get("response_action") if isinstance(ack.body, dict) else None
        if does == "update":
            from tests.fakeslack.blocks import view_problems

            assert not view_problems(ack.body["view"]), view_problems(ack.body["view"])
            view.body = ack.body["view"]
        elif does != "errors":
            view.open = False
        return ack

    async def slash(self, channel: Channel, text: str) -> Ack:
        body = {
            "command": "/oom", "text": escaped(text), "user_id": self.id, "user_name": self.name, "channel_id": channel.id, "channel_name": channel.name or "directmessage",
            "team_id": self.team.id, "team_domain": "acme", "api_app_id": "A1", "is_enterprise_install": str(self.team.by_organisation).lower(), "trigger_id": self.slack.trigger(self.team, self.id),
            "response_url": self.slack.response_url(self.team, channel, self.id), "token": "verification-token-of-old",
        }  # fmt: skip
        if self.team.enterprise:
            body |= {"enterprise_id": self.team.enterprise, "enterprise_name": "Org"}
        return await self._timed("slash_commands", body)

    async def shortcut(self, channel: Channel, message: dict[str, Any]) -> Ack:
        """“Diagnose this message”."""
        return await self._interactive(
            {"type": "message_action", "callback_id": "diagnose_message", "user": {"id": self.id, "team_id": self.home}, "team": {"id": self.team.id},
             "channel": {"id": channel.id, "name": channel.name}, "message": {k: v for k, v in message.items() if k != "reactions"}, "message_ts": message["ts"],
             "trigger_id": self.slack.trigger(self.team, self.id), "response_url": self.slack.response_url(self.team, channel, self.id)}
        )  # fmt: skip

    async def global_shortcut(self) -> Ack:
        return await self._interactive(
            {"type": "shortcut", "callback_id": "diagnose_log", "user": {"id": self.id, "team_id": self.home}, "team": {"id": self.team.id},
             "trigger_id": self.slack.trigger(self.team, self.id)}
        )  # fmt: skip

    async def open_home(self) -> None:
        channel = self.slack.direct(self.team, self.id).id
        event = {"type": "app_home_opened", "user": self.id, "channel": channel, "tab": "home", "event_ts": self.slack.clock.ts()}
        await self.slack.emit(self.team, event)

    def view(self) -> View:
        """The modal on top of this person's screen."""
        return [view for view in self.slack.views.values() if view.user == self.id and view.open][-1]

    def sees(self, channel: Channel) -> list[dict[str, Any]]:
        """What only this person was shown in a channel."""
        return [shown for shown in channel.ephemerals if shown["user"] == self.id]

    async def _interactive(self, body: dict[str, Any]) -> Ack:
        organisation = {"id": self.team.enterprise, "name": "Org"} if self.team.enterprise else None
        more = {"api_app_id": "A1", "enterprise": organisation, "is_enterprise_install": self.team.by_organisation}
        if "view" in body:
            body = body | {"view": body["view"] | {"team_id": self.home}}
        if self.team.by_organisation:  # then Slack names no workspace
            body = body | {"team": None}
            body.get("view", {}).pop("app_installed_team_id", None)
        return await self._timed("interactive", more | body)

    async def _timed(self, kind: str, body: dict[str, Any]) -> Ack:
        begun = asyncio.get_running_loop().time()
        status, answer = await self.slack.deliver(kind, body)
        return Ack(status, answer, asyncio.get_running_loop().time() - begun, 1)


def find(blocks: list[dict[str, Any]], action: str) -> tuple[dict[str, Any], dict[str, Any]]:
    for block in blocks:
        for element in block.get("elements") or []:
            if element.get("action_id") == action:
                return block, element
    raise AssertionError(f"no control {action}")


def escaped(text: str) -> str:
    """As Slack sends what people type."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
