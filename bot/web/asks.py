"""The things a page may ask: one field for each use case, so that a test can stand in for one."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from bot.usecases.reply import Reply

Ask = Callable[..., Awaitable[Reply]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asks:
    """Signatures as in bot/usecases; every one gives a Reply or raises Unusable."""

    diagnose: Ask
    settle: Ask
    undo: Ask
    history: Ask
    show: Ask
    stats: Ask
    forget: Ask
    size: Ask
    explain: Ask
