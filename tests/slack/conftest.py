from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fakeslack import FakeSlack
from tests.slack.world import World


@pytest.fixture(params=["http", "socket"])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    """Everything is tried over both transports; whatever the double refused and the test did not expect is a failure."""
    slack = FakeSlack(request.param)
    async with slack.running():
        made = World(slack, tmp_path)
        yield made
        unexpected = [
            (c.method, c.error, c.messages, c.args) for c in slack.refusals if c.error not in made.expected_refusals | made.harmless
        ]
        assert not unexpected, unexpected


@pytest.fixture
async def http_world(tmp_path: Path) -> AsyncIterator[World]:
    slack = FakeSlack("http")
    async with slack.running():
        made = World(slack, tmp_path)
        yield made
        unexpected = [
            (c.method, c.error, c.messages, c.args) for c in slack.refusals if c.error not in made.expected_refusals | made.harmless
        ]
        assert not unexpected, unexpected
