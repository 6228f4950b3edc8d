"""What the values of changes are counted from."""

from collections.abc import Callable

from bot.diagnosis.scene import Scene
from bot.domain.diagnosis import ReportedBudget
from bot.domain.size import GIB

USUAL_PEAK = 3 * GIB
"""Activations and what is outside torch, where no line says how much."""
Value = tuple[str | None, int | None]
"""(the value as it stands in a command, bytes that it frees where they can be counted)."""
NONE_HELPS: Value = ("", None)
"""By the figures in the paste no value of this setting gives what is missing, or none that the engine takes: it is not offered."""
Compute = Callable[[Scene, ReportedBudget | None], Value]


def figure(budget: ReportedBudget | None, name: str) -> float | None:
    """A figure that the rank reported."""
    value = None if budget is None else budget.figures.get(name)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def by_default(scene: Scene, name: str) -> float | None:
    """What was in force where nobody set that argument, as a number."""
    value = scene.defaults.get(name)
    return float(value) if isinstance(value, int | float) else None


def missing(scene: Scene) -> int:
    """The bytes that the failed allocation lacked, as printed; 0 where that is not said."""
    figures = scene.error.figures if scene.error is not None else {}
    return max(0, (figures.get("tried_bytes") or 0) - (figures.get("free_bytes") or 0))


def implied_total(weights: float, pool: float, share: float) -> float | None:
    """The bytes of a card that weights, pool and a usual peak make up at this share of it; None where it would not even hold the weights:
    then something else took part of it.
    """
    total = (weights + pool + USUAL_PEAK) / share
    return total if total > weights else None
