"""Pools that an engine and its connectors take of the machine's own memory, held against what the machine or its container has."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from bot.diagnosis.stated import stated
from bot.domain.evidence import Evidence, Fact
from bot.domain.size import GB, GIB, gib

LMCACHE, MOONCAKE = "LMCACHE_MAX_LOCAL_CPU_SIZE", "MOONCAKE_GLOBAL_SEGMENT_SIZE"
POOLS: Mapping[str, tuple[int, bool]] = {
    LMCACHE: (GIB, True),
    MOONCAKE: (1, True),
    "hicache_size": (GB, True),
    "swap_space": (GIB, True),
    "cpu_offload_gb": (GIB, True),
    "kv_offloading_size": (GIB, False),
}
"""By argument or variable: bytes of its unit, and whether every rank takes as much."""
LARGE = 0.25
"""The share of the machine's memory from which a pool may be what filled it."""
LARGE_ALONE = 16 * GIB
"""The same where no line says how much memory there is."""
SHARE = 0.5
"""Of the machine's memory for all ranks' pools: the rest holds the processes themselves, and a checkpoint while it is read."""
_BY_ITSELF = {LMCACHE: 5.0, MOONCAKE: 3.125 * GIB}
"""What a connector takes where nothing is set, in its unit."""


class Pool(NamedTuple):
    """`name` of the setting, its figure in its own unit, the bytes that all ranks take together, and the line that says so."""

    name: str
    figure: float
    ranks: int
    bytes: int
    source: int = 0
    line: int = 0


def pools_of(evidence: Evidence) -> list[Pool]:
    """The pools that are set, the largest first; of one tried at several sizes the largest."""
    found = []
    for name, (unit, each_rank) in POOLS.items():
        known = evidence.deployment.environment.get(name) or evidence.deployment.arguments.get(name)
        values = evidence.deployment.tried.get(name, ()) if known is None else (known.value,)
        figure = max((float(v) for v in values if isinstance(v, int | float) and not isinstance(v, bool)), default=0.0)
        ranks = _ranks(evidence) if each_rank else 1
        if figure > 0:
            source, line = (0, 0) if known is None else (known.source or 0, known.line or 0)
            found.append(Pool(name, figure, ranks, round(figure * unit * ranks), source, line))
    return sorted(found, key=lambda pool: -pool.bytes)


def _ranks(evidence: Evidence) -> int:
    deployment, grid = evidence.deployment, evidence.grid
    tp = deployment.number("tensor_parallel_size") or grid.tp or 1
    return int(tp * (deployment.number("pipeline_parallel_size") or grid.pp or 1))


def host_has(evidence: Evidence) -> int | None:
    """The machine's memory or its container's limit, whichever is less, in bytes."""
    host = evidence.deployment.host
    return min((host[name].value for name in ("memory_bytes", "limit_bytes") if name in host), default=None)


def of_host_pools(evidence: Evidence) -> Iterator[Fact]:
    """The largest pool where it may be what filled the machine, and whether all pools together are more than there is."""
    pools, has = pools_of(evidence), host_has(evidence)
    if not pools:
        return
    largest, together = pools[0], sum(pool.bytes for pool in pools)
    if largest.bytes >= (LARGE_ALONE if has is None else LARGE * has):
        each = gib(largest.bytes // largest.ranks) + (f" for each of {largest.ranks} ranks" if largest.ranks > 1 else "")
        yield _at(largest, stated("host-pool-large", None, name=largest.name, each=each))
    if has is not None and together > has:
        yield _at(largest, stated("host-pools-exceed", None, bytes=together, of=gib(has)))


def _at(pool: Pool, fact: Fact) -> Fact:
    return replace(fact, source=pool.source, line=pool.line)


def cut_to_fit(evidence: Evidence, free: int | None = None) -> tuple[str | None, int | None]:
    """(the largest pool's setting cut to each rank's part of its share of the machine's memory, the bytes that this frees); cut in half
    where nobody says how much memory there is, or it is below that share already. `free`: what a rank that asked for it found free.
    """
    pool = next(iter(pools_of(evidence)), None)
    if pool is None:
        return None, None
    share = _share(evidence, pool)
    value = max(1, int(share if share is not None and share < pool.figure else pool.figure / 2))
    if free is not None:
        value = max(1, min(value, int(free / POOLS[pool.name][0])))
    return str(value), max(0, round((pool.figure - value) * POOLS[pool.name][0] * pool.ranks))


def enlarged(evidence: Evidence, name: str) -> str | None:
    """Twice what the connector's pool has, no less than it takes by itself, and no more than its share; None where that is no more."""
    pool = next((pool for pool in pools_of(evidence) if pool.name == name), Pool(name, _BY_ITSELF[name], 1, 0))
    share = _share(evidence, pool)
    figure = max(2 * pool.figure, _BY_ITSELF[name])
    figure = figure if share is None else min(figure, share)
    return str(int(figure)) if figure > pool.figure else None


def _share(evidence: Evidence, pool: Pool) -> float | None:
    has = host_has(evidence)
    return None if has is None else has * SHARE / pool.ranks / POOLS[pool.name][0]
