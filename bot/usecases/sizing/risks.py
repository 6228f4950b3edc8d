"""What may go wrong beside the budget: a release without the model's class, the start-up check, graphs on top, shared memory."""

from collections.abc import Iterator

from bot.domain.budget import RankBudget
from bot.domain.size import gib
from bot.rulebook.architectures import load_architectures
from bot.usecases.sizing.question import Asked
from bot.usecases.sizing.terms import Other, Term


def risks(asked: Asked, rank: RankBudget, other: Other) -> Iterator[str]:
    """Sentences, each for what the estimates' lower ends already reach: what is merely possible is not said."""
    if doubt := load_architectures().doubt(asked.shape.architecture, asked.version):
        yield doubt
    if rank.total is not None and rank.budget is not None:
        yield from _of_budget(asked, rank, other, rank.total, rank.total - rank.budget)
    if asked.gpu is not None and asked.gpu.unified:
        yield "the device shares its memory with the host: page cache and other processes lower what is free at start"


def _of_budget(asked: Asked, rank: RankBudget, other: Other, total: int, spare: int) -> Iterator[str]:
    """`total` bytes of the device, `spare` of them outside the budget."""
    before = _low(other, "CUDA context and communicators")
    if before > spare:
        yield (
            f"the start-up check will refuse utilization {asked.utilization:g}: at least {gib(before)} of the device is taken "
            f"before anything is loaded, and the budget leaves {gib(max(0, spare))}"
        )
    if rank.outside is not None and rank.outside < 0 and other.estimated:
        yield f"the pool that was asked for leaves {gib(-rank.outside)} too little for what else is estimated to be needed"
    loading = _low(other, "weights while loading")
    if loading and rank.weights is not None and rank.weights + loading <= total < rank.weights + loading + before:
        yield (
            f"loading may fail: weights need up to {gib(rank.weights + loading)} while they are converted, "
            f"and at least {gib(before)} of {gib(total)} is taken before"
        )
    graphs = next((term for term in other.terms if term.name == "CUDA graphs" and not term.inside), None)
    if graphs is not None and before <= spare < before + (graphs.low or 0):
        least, left = gib(graphs.low or 0), gib(spare - before)
        yield f"CUDA graphs come on top of this version's budget: at least {least}, and {left} is left for them"


def _low(other: Other, name: str) -> int:
    return next((_floor(term) for term in other.terms if term.name == name), 0)


def _floor(term: Term) -> int:
    return term.bytes if term.low is None else term.low
