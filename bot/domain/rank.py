"""Which worker of a replica: its place in the grid, and the device that it sees."""

from dataclasses import dataclass
from typing import Literal

RankBasis = Literal["prefix", "tag", "pid", "rank_line", "message", "gpu_index", "only_worker", "driver", "answer"]


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
