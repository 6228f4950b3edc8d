"""What the double knows: a team with people and channels, messages, files, views, and what the app was granted."""

import itertools
import time
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Channel:
    id: str
    name: str
    kind: str = "channel"  # channel | group | im | mpim
    members: set[str] = field(default_factory=set)
    messages: list[dict[str, Any]] = field(default_factory=list)
    ephemerals: list[dict[str, Any]] = field(default_factory=list)
    shared: bool = False

    @property
    def private(self) -> bool:
        return self.kind != "channel"

    def message(self, ts: str) -> dict[str, Any] | None:
        return next((m for m in self.messages if m["ts"] == ts), None)

    def thread(self, ts: str) -> list[dict[str, Any]]:
        return [m for m in self.messages if m["ts"] == ts or m.get("thread_ts") == ts]


@dataclass
class File:
    id: str
    name: str
    data: bytes
    owner: str
    mode: str = "hosted"
    size: int | None = None  # what Slack claims, when it is not the truth
    hops: list[str] = field(default_factory=list)  # redirects before the bytes come
    as_html: bool = False
    slow: float = 0.0
    external: bool = False
    deleted: bool = False
    unknown: int = 0  # times that Slack does not know it yet
    url: str | None = None


@dataclass
class Trigger:
    user: str
    team: str
    made: float = field(default_factory=time.monotonic)
    used: bool = False


@dataclass
class ResponseUrl:
    team: str
    channel: str
    user: str
    ts: str | None = None
    made: float = field(default_factory=time.monotonic)
    uses: int = 0


@dataclass
class View:
    id: str
    user: str
    team: str
    body: dict[str, Any]
    hash: str = "0"
    open: bool = True


@dataclass
class Team:
    id: str
    name: str
    bot_user: str
    bot_id: str
    token: str
    scopes: set[str]
    users: dict[str, str] = field(default_factory=dict)  # user -> home team
    guests: set[str] = field(default_factory=set)
    channels: dict[str, Channel] = field(default_factory=dict)
    homes: dict[str, dict[str, Any]] = field(default_factory=dict)
    revoked: bool = False
    enterprise: str | None = None
    by_organisation: bool = False  # the app was installed for all its workspaces


class Clock:
    """Message timestamps: never the same twice, always later."""

    def __init__(self) -> None:
        self._count = itertools.count(1)
        self._base = int(time.time())

    def ts(self) -> str:
        number = next(self._count)
        return f"{self._base + number // 1000}.{number % 1000:03d}{number % 1000:03d}"
