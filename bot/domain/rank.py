"""Which worker of a replica: its place in the grid, and the device that it sees."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

RankBasis = Literal["prefix", "tag", "pid", "rank_line", "message", "gpu_index", "only_worker", "driver", "answer"]


def named(number: int | None, label: str) -> str:
    """`rank 7 (Worker_TP7)`; a label that only repeats the number is left out. Empty without a number."""
    if number is None:
        return ""
    return f"rank {number}" + ("" if label in ("", f"rank {number}", f"GPU {number}") else f" ({label})")


def runs(numbers: Sequence[int], to: str, least: int = 3) -> Iterator[str]:
    """Ascending numbers, so many and more in a row as one: 0 1 3 5 6 7 -> 0, 1, 3, 5 to 7."""
    start = 0
    for end in range(1, len(numbers) + 1):
        if end < len(numbers) and numbers[end] == numbers[end - 1] + 1:
            continue
        run = numbers[start:end]
        yield from [f"{run[0]}{to}{run[-1]}"] if len(run) >= least else map(str, run)
        start = end


@dataclass(frozen=True, slots=True)
class Rank:
    """One worker. `number` is the global rank, dp × (PP × TP) + pp × TP + tp; None while only the device is known.

    `gpu_index` is the device index visible to that process; it is not the rank.
    """

    number: int | None
    label: str
    dp: int | None = None
    pp: int | None = None
    tp: int | None = None
    ep: int | None = None
    gpu_index: int | None = None
    node: str | None = None
    pid: int | None = None
    basis: RankBasis = "prefix"


@dataclass(frozen=True, slots=True)
class Grid:
    """Sizes of the worker grid; None where nothing says it. `ray`, `several`, `nodes`: a device index does not give a rank then.

    `at_least`: `tp` was only inferred from the highest tag that was seen, so it may be larger; `counted`: the cards
    that are named are as many as this grid has. `least`: so many ranks there must be by the tags that were seen.
    """

    dp: int | None = None
    pp: int | None = None
    tp: int | None = None
    world: int | None = None
    ray: bool = False
    several: bool = False
    nodes: bool = False
    devices_set: bool = False
    at_least: bool = False
    counted: bool = False
    least: int = 1

    @property
    def single(self) -> bool:
        """Everything that was said agrees with one worker."""
        return self.world == 1 or (self.world is None and all(size in (None, 1) for size in (self.dp, self.pp, self.tp)))
