"""A real Chromium, driven over its own debugging protocol: open, look, type, press, read the console."""

import asyncio
import base64
import json
import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

BINARY = shutil.which("chromium") or shutil.which("chromium-browser")

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-port=0",
)  # fmt: skip

KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "/": 191}


class Tab:
    """One page in one browser. `complaints` collects console errors, uncaught exceptions and blocked resources."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket, self._next = socket, 0
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._session: str | None = None
        self._loaded = asyncio.Event()
        self.complaints: list[str] = []
        self._reader = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async for message in self._socket:
            event = json.loads(message.data)
            if "id" in event:
                self._waiting.pop(event["id"]).set_result(event)
            else:
                self._note(event["method"], event["params"])

    def _note(self, method: str, params: dict[str, Any]) -> None:
        if method == "Page.loadEventFired":
            self._loaded.set()
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(str(params["exceptionDetails"].get("exception", params)))
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.complaints.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "assert"):
            self.complaints.append(str(params["args"]))

    async def send(self, method: str, **params: Any) -> dict[str, Any]:
        self._next += 1
        future = self._waiting[self._next] = asyncio.get_running_loop().create_future()
        message: dict[str, Any] = {"id": self._next, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        await self._socket.send_json(message)
        answer = await asyncio.wait_for(future, 30)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return dict(answer["result"])

    async def attach(self) -> None:
        target = (await self.send("Target.createTarget", url="about:blank"))["targetId"]
        self._session = (await self.send("Target.attachToTarget", targetId=target, flatten=True))["sessionId"]
        for domain in ("Page", "Runtime", "Log", "DOM"):
            await self.send(f"{domain}.enable")

    async def look(self, width: int, theme: str, height: int = 900) -> None:
        """Sets the window's width and the colour scheme that the person prefers."""
        await self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500)
        await self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])

    async def open(self, url: str) -> None:
        self._loaded.clear()
        await self.send("Page.navigate", url=url)
        await asyncio.wait_for(self._loaded.wait(), 30)

    async def arrives(self) -> None:
        """Waits for the page that a click or a key led to."""
        await asyncio.wait_for(self._loaded.wait(), 30)

    def expect_page(self) -> None:
        self._loaded.clear()

    async def run(self, script: str) -> Any:
        answer = await self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    async def press(self, key: str, shift: bool = False) -> None:
        text = {"Enter": "\r", " ": " ", "/": "/"}.get(key)
        common = {
            "key": key,
            "code": "Slash" if key == "/" else "Space" if key == " " else key,
            "windowsVirtualKeyCode": KEYS[key],
            "modifiers": 8 if shift else 0,
        }
        await self.send("Input.dispatchKeyEvent", type="keyDown", **common, **({"text": text} if text else {}))
        await self.send("Input.dispatchKeyEvent", type="keyUp", **common)

    async def write(self, text: str) -> None:
        await self.send("Input.insertText", text=text)

    async def choose_file(self, selector: str, path: Path) -> None:
        root = (await self.send("DOM.getDocument"))["root"]["nodeId"]
        node = (await self.send("DOM.querySelector", nodeId=root, selector=selector))["nodeId"]
        await self.send("DOM.setFileInputFiles", nodeId=node, files=[str(path)])

    async def picture(self, whole: bool = True) -> bytes:
        """The page as a PNG."""
        shot = await self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        return base64.b64decode(shot["data"])

    async def close(self) -> None:
        self._reader.cancel()
        await self._socket.close()


@asynccontextmanager
async def chromium() -> AsyncIterator[Tab]:
    """A browser of its own with an empty profile, ended with the test; one that does not come up is started once more."""
    assert BINARY
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        try:
            process, address = await _started(Path(folder, "first"))
        except TimeoutError:
            process, address = await _started(Path(folder, "second"))
        try:
            async with aiohttp.ClientSession() as session:
                tab = Tab(await session.ws_connect(address, max_msg_size=0))
                await tab.attach()
                yield tab
                await tab.close()
        finally:
            process.terminate()
            await process.wait()


async def _started(profile: Path) -> tuple[asyncio.subprocess.Process, str]:
    """A browser and the address of its debugging port. TimeoutError, with what it said, where none opened within 20 seconds."""
    os.mkdir(profile)
    told, said = profile / "DevToolsActivePort", profile / "said.txt"
    with said.open("wb") as errors:
        process = await asyncio.create_subprocess_exec(
            BINARY, *FLAGS, f"--user-data-dir={profile}", "about:blank", stdout=asyncio.subprocess.DEVNULL, stderr=errors
        )
    for _ in range(200):
        if told.is_file() and len(lines := told.read_text().splitlines()) == 2:
            return process, f"ws://127.0.0.1:{lines[0]}{lines[1]}"
        if process.returncode is not None:
            break
        await asyncio.sleep(0.1)
    if process.returncode is None:
        process.kill()
    ended = await process.wait()
    raise TimeoutError(f"Chromium opened no debugging port (ended with {ended}): {said.read_text(errors='replace')[-2000:]}")
