"""The page on a real socket, with documents to show, and a real Chromium in front of it."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from bot.settings import Settings
from bot.usecases.sizing.ask import size_arguments, size_words
from tests.browser.chromium import BINARY, Tab, chromium
from tests.web.conftest import Shelf, serve, shelf

__all__ = ["serve", "shelf"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marked `browser`, and skipped by name where there is no Chromium."""
    for item in items:
        if "tests/browser" in item.path.as_posix():
            item.add_marker(pytest.mark.browser)
            if BINARY is None:
                item.add_marker(pytest.mark.skip(reason="there is no Chromium; .ci/chromium installs it"))


@pytest.fixture
async def tab() -> AsyncIterator[Tab]:
    async with chromium() as opened:
        yield opened


@pytest.fixture
async def site(serve: Any, shelf: Shelf) -> str:
    """The page's address."""
    browser = await serve(Settings(hf_hub_offline="1"), asks=replace(shelf.asks(), size_arguments=size_arguments, size_words=size_words))
    return str(browser.make_url("")).rstrip("/")
