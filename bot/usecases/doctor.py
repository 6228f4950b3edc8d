"""Is this installation able to work? Each room supplies its own checks."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.rulebook.load import RulebookError, load_rulebook
from bot.settings import Settings
from bot.store.errors import StoreError
from bot.usecases.reply import Reply
from bot.usecases.wording import incidents

if TYPE_CHECKING:
    from bot.store.store import Store


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that must hold. `ok` None: it could not be asked. `mend`: the command or click that mends it."""

    name: str
    ok: bool | None
    says: str
    mend: str | None = None


def checkup(checks: Iterable[Check]) -> Reply:
    """All checks as one answer; `ok` only when none failed."""
    rows = list(checks)
    document = {
        "schema": "oombot.checks/1",
        "ok": all(check.ok is not False for check in rows),
        "checks": [{"name": c.name, "ok": c.ok, "says": c.says, "mend": c.mend} for c in rows],
    }
    return Reply("checks", document)


def check_rulebook() -> Check:
    """Can the rules be read, and how many are there?"""
    try:
        book = load_rulebook()
    except RulebookError as error:
        return Check("rulebook", False, str(error), "mend the files it names (oombot rules check), or install oombot again")
    return Check(
        "rulebook", True, f"{len(book.facts)} messages, {len(book.formats)} signatures, {len(book.remedies)} changes ({book.digest[:19]}…)"
    )


async def check_store(store: "Store") -> Check:
    """Does the database answer, and could something be kept in it?"""
    try:
        state = await store.state()
        await store.writable()
    except StoreError as error:
        return unusable_store(error)
    return Check("database", True, f"{store.place}, {incidents(state.get('incidents', 0))}")


def unusable_store(error: StoreError) -> Check:
    """The sentence says what is wrong and what to do; where to look stands below it."""
    return Check(
        "database", False, str(error), "it is the one that OOMBOT_DATABASE_URL names, by default a file in this user's data folder"
    )


def check_hub(settings: Settings) -> Check:
    """Can models be sized by their hub id? Not being able to is no fault: names of the rulebook and config files work without."""
    from bot.usecases.sizing.ask import hub_of

    hub = hub_of(settings)
    if hub.offline:
        return Check(
            "model hub", None, "HF_HUB_OFFLINE is set: sizing by hub id works from the cache only", "unset it, or give --config FILE"
        )
    if hub.answers():
        return Check("model hub", True, "answers: sizing by hub id works")
    return Check(
        "model hub", None, "does not answer: sizing by hub id does not work here", "check the network or HF_ENDPOINT, or give --config FILE"
    )
