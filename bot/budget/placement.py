"""Which rank holds which layer and which part of a head count."""

from bot.domain.budget import Grid


def stage_layers(layers: int, stages: int) -> tuple[range, ...]:
    """The layers of each pipeline stage. What does not divide goes to the stages before the last, from the back.

    Source: vllm/distributed/utils.py get_pp_indices. Needs at least as many layers as stages.
    """
    sizes = [layers // stages] * stages
    for extra in range(layers % stages):
        sizes[-2 - extra] += 1
    starts = [sum(sizes[:stage]) for stage in range(stages)]
    return tuple(range(start, start + size) for start, size in zip(starts, sizes, strict=True))


def stage_of(rank: int, grid: Grid) -> int:
    """The pipeline stage of a rank of one replica: ranks count tensor parallel first."""
    return rank // grid.tp


def heads_per_rank(heads: int, tp: int) -> int:
    """KV heads on one rank: split while they last, replicated when there are more ranks than heads."""
    return max(1, heads // tp)
