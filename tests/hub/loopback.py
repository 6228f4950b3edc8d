"""A hub on loopback: resolves, redirects nothing, answers ranges, and refuses as the real one does."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def safetensors(tensors: dict[str, tuple[str, list[int], int]], data: bool = False) -> bytes:
    """A file whose header names `tensors` (dtype, shape, bytes); its data is left out unless asked."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name, (dtype, shape, size) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + (b"\0" * at if data else b"")


@dataclass
class Loopback:
    """`files` by (model, name); `gated`, `private` models; `asked` is every request in order, with its range."""

    files: dict[tuple[str, str], bytes] = field(default_factory=dict)
    gated: set[str] = field(default_factory=set)
    private: set[str] = field(default_factory=set)
    broken: set[str] = field(default_factory=set)
    asked: list[tuple[str, str, str | None]] = field(default_factory=list)
    tokens: set[str | None] = field(default_factory=set)
    url: str = ""

    def refusal(self, model: str, revision: str, name: str) -> tuple[int, str] | None:
        """(status, X-Error-Code) of what the hub would refuse, else None."""
        if model in self.broken:
            return 500, ""
        if model in self.gated:
            return 403, "GatedRepo"
        if model in self.private or not any(one == model for one, _ in self.files):
            return 401, "RepoNotFound"
        if revision not in ("main", COMMIT):
            return 404, "RevisionNotFound"
        return None if (model, name) in self.files else (404, "EntryNotFound")


@contextmanager
def serving(hub: Loopback) -> Iterator[Loopback]:
    """The hub, up while the block runs."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self.answer(body=False)

        def do_GET(self) -> None:
            self.answer(body=True)

        def answer(self, *, body: bool) -> None:
            model, _, rest = self.path.lstrip("/").partition("/resolve/")
            revision, _, name = rest.partition("/")
            hub.asked.append((self.command, name, self.headers.get("Range")))
            hub.tokens.add(self.headers.get("Authorization"))
            refused = hub.refusal(model, revision, name)
            content = b"" if refused else hub.files[(model, name)]
            status, wanted = (refused[0] if refused else 200), self.headers.get("Range")
            sent = content
            if wanted and not refused:
                start, _, end = wanted.removeprefix("bytes=").partition("-")
                status, sent = 206, content[int(start) : int(end) + 1 if end else None]
            self.send_response(status)
            self.send_header("Content-Length", str(len(sent)))
            self.send_header("X-Repo-Commit", COMMIT)
            self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
            if refused and refused[1]:
                self.send_header("X-Error-Code", refused[1])
            if status == 206:
                self.send_header("Content-Range", f"bytes 0-{len(sent) - 1}/{len(content)}")
            self.end_headers()
            if body:
                self.wfile.write(sent)

        def log_message(self, *args: Any) -> None:
            """Requests are in `asked`."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    hub.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
