"""What the values of changes are counted from."""

from collections.abc import Callable

from bot.diagnosis.scene import Scene
from bot.domain.diagnosis import ReportedBudget

Value = tuple[str | None, int | None]
"""(the value as it stands in a command, bytes that it frees where they can be counted)."""
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
