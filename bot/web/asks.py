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
    size_words: Ask
    size_arguments: Ask
    explain: Ask


def all_asks() -> Asks:
    """The use cases themselves."""
    from bot.usecases.diagnose import diagnose
    from bot.usecases.explain import explain
    from bot.usecases.forget import forget
    from bot.usecases.recall import history, show
    from bot.usecases.settle import settle, undo
    from bot.usecases.size_ask import size_arguments, size_words
    from bot.usecases.stats import stats

    return Asks(
        diagnose=diagnose,
        settle=settle,
        undo=undo,
        history=history,
        show=show,
        stats=stats,
        forget=forget,
        size_words=size_words,
        size_arguments=size_arguments,
        explain=explain,
    )
