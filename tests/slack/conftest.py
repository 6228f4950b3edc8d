import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.fakeslack import FakeSlack
from tests.slack.world import World


@asynccontextmanager
async def _world(transport: str, folder: Path, migrated: Path) -> AsyncIterator[World]:
    """Whatever the double refused and the test did not expect is a failure."""
    shutil.copy(migrated, folder / World.DATABASE)
    slack = FakeSlack(transport)
    async with slack.running():
        made = World(slack, folder)
        yield made
        unexpected = [
            (c.method, c.error, c.messages, c.args) for c in slack.refusals if c.error not in made.expected_refusals | made.harmless
        ]
        assert not unexpected, unexpected


@pytest.fixture(params=["http", "socket"])
async def world(request: pytest.FixtureRequest, tmp_path: Path, migrated_file: Path) -> AsyncIterator[World]:
    """Everything is tried over both transports."""
    async with _world(request.param, tmp_path, migrated_file) as made:
        yield made


@pytest.fixture
async def http_world(tmp_path: Path, migrated_file: Path) -> AsyncIterator[World]:
    async with _world("http", tmp_path, migrated_file) as made:
        yield made
