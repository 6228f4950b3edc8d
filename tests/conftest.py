"""What every suite shares: the bench suite runs only when asked for, and what was not run is named at the end."""

import asyncio
import gc
import os
from pathlib import Path

import huggingface_hub.constants  # noqa: F401  # reads HF_HUB_OFFLINE once, at import: before any test sets it
import pytest

gc.set_threshold(100_000, 50, 100)  # most objects of a test end with it: looking for circles among them all the time costs one in fifteen
EVERYTHING = bool(os.environ.get("OOMBOT_TEST_EVERYTHING"))


async def migrate(url: str) -> None:
    """Brings a database to today's schema."""
    from bot.store.store import open_store

    store = await open_store(url)
    await store.close()


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An SQLite file with today's schema, made once; a copy of it is ready in no time."""
    path = tmp_path_factory.mktemp("store") / "migrated.db"
    asyncio.run(migrate(f"sqlite+aiosqlite:///{path}"))
    return path


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Figures are no gate: tests marked bench are left out unless -m names them."""
    if "bench" in config.getoption("markexpr", ""):
        return
    bench = [item for item in items if item.get_closest_marker("bench")]
    if bench:
        config.hook.pytest_deselected(items=bench)
        items[:] = [item for item in items if not item.get_closest_marker("bench")]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name each suite that was not run, with its reason."""
    reasons: dict[str, int] = {}
    for report in terminalreporter.stats.get("skipped", ()):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        reasons[reason] = reasons.get(reason, 0) + 1
    for reason, count in reasons.items():
        terminalreporter.write_line(f"NOT RUN: {count} tests: {reason.removeprefix('Skipped: ')}")
    if not reasons:
        terminalreporter.write_line("Every suite was run.")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """In CI a skipped suite is a failure."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if EVERYTHING and exitstatus == 0 and reporter is not None and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
