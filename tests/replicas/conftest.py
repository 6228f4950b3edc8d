"""A PostgreSQL database of its own for every test, where OOMBOT_TEST_POSTGRES names a server."""

from collections.abc import AsyncIterator

import pytest

from tests.store.conftest import postgres_database


@pytest.fixture
async def postgres_url() -> AsyncIterator[str]:
    async with postgres_database() as url:
        yield url
