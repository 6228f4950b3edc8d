"""A desk over a real SQLite file, with a judge whose diagnoses are written by hand."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from bot.domain.incident import Contribution
from bot.settings import Settings
from bot.store.store import Store, open_store
from bot.usecases.desk import Desk, Viewer
from bot.usecases.judge import refuted_changes
from tests.store.material import EAGER, LOWER_SEQS, NOW, change, document

LOCAL = Viewer("local")

Answer = Callable[[Sequence[Contribution], Sequence[Mapping[str, Any]]], Mapping[str, Any]]


def next_in_line(contributions: Sequence[Contribution], _: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The hand-written diagnosis, without the changes that were refuted."""
    gone = {refuted["id"] for refuted in refuted_changes(contributions)}
    left = [offer for offer in (change(), LOWER_SEQS, EAGER) if offer["id"] not in gone]
    return document(recommendation=left[0] if left else None, alternatives=left[1:])


def _no_rulebook() -> Any:
    raise AssertionError("no rulebook is needed here")


@asynccontextmanager
async def desk_in(folder: Path, judge: Answer = next_in_line) -> AsyncIterator[tuple[Desk, Store]]:
    url = f"sqlite+aiosqlite:///{folder}/oombot.db"

    async def judged(contributions: Sequence[Contribution], precedents: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        return judge(contributions, precedents)

    store = await open_store(url)
    try:
        yield Desk(Settings(database_url=url), _no_rulebook, judged, lambda: NOW, store), store
    finally:
        await store.close()
