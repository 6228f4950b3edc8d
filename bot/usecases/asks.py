"""What a door may ask: one field for each use case, so that a test can stand in for one."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from bot.usecases.audit import audit
from bot.usecases.diagnose import diagnose
from bot.usecases.explain import explain
from bot.usecases.forget import forget
from bot.usecases.judge_left import judge_left
from bot.usecases.recall import history, show
from bot.usecases.reply import Reply
from bot.usecases.settle import settle, undo
from bot.usecases.show_anew import show_anew
from bot.usecases.sizing.ask import size_arguments, size_words
from bot.usecases.stats import stats

Ask = Callable[..., Awaitable[Reply]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asks:
    """The use cases themselves where nothing else is given; every one gives a Reply or raises Unusable."""

    diagnose: Ask = diagnose
    settle: Ask = settle
    undo: Ask = undo
    history: Ask = history
    show: Ask = show
    stats: Ask = stats
    forget: Ask = forget
    size_words: Ask = size_words
    size_arguments: Ask = size_arguments
    explain: Ask = explain
    audit: Ask = audit
    show_anew: Callable[..., Awaitable[None]] = show_anew
    judge_left: Callable[..., Awaitable[None]] = judge_left
