"""What the door may ask the rest of the house: one field for each use case."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from bot.usecases.reply import Reply

Ask = Callable[..., Awaitable[Reply]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asks:
    """Signatures as in bot/usecases; every one gives a Reply or raises Unusable. `size_words` takes free text to a sizing Reply."""

    diagnose: Ask
    settle: Ask
    undo: Ask
    history: Ask
    show: Ask
    stats: Ask
    forget: Ask
    size_words: Ask
    explain: Ask
