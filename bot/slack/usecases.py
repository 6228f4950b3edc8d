"""The use cases as this door asks for them."""

from bot.slack.asks import Asks
from bot.usecases.diagnose import diagnose
from bot.usecases.explain import explain
from bot.usecases.forget import forget
from bot.usecases.recall import history, show
from bot.usecases.settle import settle, undo
from bot.usecases.size_ask import size_words
from bot.usecases.stats import stats


def all_asks() -> Asks:
    """Every use case."""
    return Asks(
        diagnose=diagnose,
        settle=settle,
        undo=undo,
        history=history,
        show=show,
        stats=stats,
        forget=forget,
        size_words=size_words,
        explain=explain,
    )
