"""The saved layouts as a person sees them, drawn by Chromium; OOMBOT_SAVE_SCREENS=1 keeps the pictures beside their JSON."""

import asyncio
import json
import os

import pytest

from tests.browser.chromium import BINARY, chromium
from tests.fakeslack.playground import EXPECTED, OpenSlack

SCREENS = sorted(path.stem for path in EXPECTED.glob("*.json"))


@pytest.mark.browser
@pytest.mark.skipif(BINARY is None, reason="no Chromium on this machine")
async def test_every_saved_layout_is_drawn_without_a_complaint() -> None:
    async with OpenSlack().running() as slack, chromium() as tab:
        await tab.look(744, "light", 300)
        for name in SCREENS:
            await tab.open(f"{slack.url}/?{name}#show=/expected/{name}.json")
            text = ""
            for _ in range(100):
                shown = await tab.send(
                    "Runtime.evaluate", expression="document.body.dataset.shown ? document.body.innerText : ''", returnByValue=True
                )
                if text := shown["result"]["value"]:
                    break
            first = json.loads((EXPECTED / f"{name}.json").read_text(encoding="utf-8"))["blocks"][0]["text"]["text"]
            assert text.startswith(first), name
            if os.environ.get("OOMBOT_SAVE_SCREENS"):
                await asyncio.to_thread((EXPECTED / f"{name}.png").write_bytes, await tab.picture())
        assert tab.complaints == []
