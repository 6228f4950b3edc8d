"""The terms of the budget beside weights and pool: what the question gives, and what is estimated where it gives nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bot.domain.overheads import Estimate
from bot.usecases.sizing.estimates import Measured, estimates, span
from bot.usecases.sizing.question import Asked
from bot.usecases.sizing.values import held_bytes
from bot.usecases.sizing.weights import Held

SAYS: Mapping[str, str] = {
    "activations": "working memory of one batch",
    "non-torch": "libraries beside PyTorch",
    "CUDA graphs": "steps recorded for replay",
    "repacked weights": "copies that kernels lay out",
    "CUDA context and communicators": "the driver's own",
    "weights while loading": "gone before the pool is sized",
    "other": "as given",
}
"""What a term is, for people who do not know its name."""


@dataclass(frozen=True, slots=True)
class Term:
    """Bytes per rank, and how they are known. `low` and `high` when it is an estimate; `inside`: the budget pays for it."""

    name: str
    bytes: int
    basis: str
    low: int | None = None
    high: int | None = None
    inside: bool = True


@dataclass(frozen=True, slots=True)
class Other:
    """All consumption beside weights and pool: its terms, and low, typical, high of those inside the budget (None: not known)."""

    terms: tuple[Term, ...]
    span: tuple[int, int, int] | None
    estimated: bool

    @property
    def bytes(self) -> int | None:
        """What the budget is charged with, the typical figure where it is estimated."""
        return None if self.span is None else self.span[1]


def other_terms(asked: Asked, weights: Sequence[int] | None, measured: Measured | None = None) -> Other:
    """What the question gives (--other-bytes overrides every estimate), else estimates; nothing on a device whose memory is not known."""
    given = held_bytes(asked.arguments, "other_bytes")
    if given is not None:
        return Other((Term("other", given, "given"),), (given, given, given), estimated=False)
    if asked.total is None:
        return Other((), None, estimated=False)
    as_loaded = 0 if asked.arguments.get("weights_bytes") is not None else max(weights or (0,))
    found = estimates(asked, as_loaded, measured)
    return Other(tuple(_term(one) for one in found), span(asked, found), estimated=True)


def with_loading(other: Other, held: Held) -> Other:
    """The same terms, and what the weights need beyond themselves while they are loaded, where they are converted then."""
    beyond = max((most - rest for most, rest in zip(held.loading or (), held.bytes or (), strict=False)), default=0)
    if beyond <= 0:
        return other
    basis = "estimated (the weights as the checkpoint has them stand beside converted ones; gone before the pool is sized)"
    return replace(other, terms=(*other.terms, Term("weights while loading", beyond, basis, inside=False)))


def _term(one: Estimate) -> Term:
    basis = one.basis if one.basis.startswith("measured") else f"estimated ({one.basis})"
    return Term(one.name, one.typical, basis, one.low, one.high, one.inside)
