"""The use cases as this door asks for them."""

from bot.slack.asks import Asks
from bot.usecases.desk import Desk
from bot.usecases.diagnose import diagnose
from bot.usecases.explain import explain
from bot.usecases.forget import forget
from bot.usecases.recall import history, show
from bot.usecases.reply import Reply
from bot.usecases.settle import settle, undo
from bot.usecases.size import size
from bot.usecases.size_words import read_words
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


async def size_words(desk: Desk, words: str) -> Reply:
    """A sizing question in words; how it was read is said with the answer."""
    book = desk.rulebook()
    question, corrections = read_words(book, words)
    reply = size(book, question)
    return Reply(reply.kind, {**reply.document, "corrections": list(corrections)}, reply.warning)
