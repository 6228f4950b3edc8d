"""Whether a model's weights go onto the cards at all, as sizing says: what is advised must agree with it."""

from collections.abc import Iterator, Mapping

from bot.diagnosis.named_size import at_two_bytes
from bot.diagnosis.scene import Scene
from bot.diagnosis.stated import stated
from bot.domain.evidence import Fact
from bot.domain.size import GIB, gib

ROOM = GIB
"""What a process takes of a card beside weights before it has loaded them: context and libraries."""
MOSTLY = 0.8


def fits(share: tuple[int, int]) -> bool:
    """Do weights of so many bytes go onto a card of so many?"""
    weights, card = share
    return weights + ROOM < card


def by_name(scene: Scene) -> float | None:
    """Bytes of the weights by the billions that the model's name says, two for each; None where it says none, or they are quantized."""
    quantized = scene.has("prequantized-checkpoint") or scene.has("quantization-set")
    return None if quantized else at_two_bytes(scene.evidence)


def of_weights(scene: Scene) -> Iterator[Fact]:
    """Whether they fit on the ranks that are known, or not even on all cards that are; nothing where PyTorch held most of one."""
    evidence = scene.evidence
    count = evidence.deployment.gpu_count
    given = evidence.deployment.number("tensor_parallel_size") or (None if evidence.grid.at_least else evidence.grid.tp)
    stages = int(evidence.deployment.number("pipeline_parallel_size") or evidence.grid.pp or 1)
    figures = scene.error.figures if scene.error is not None else {}
    held, card = figures.get("allocated_bytes"), figures.get("total_bytes")
    if given and not (held and card and held > MOSTLY * card) and (share := scene.share(int(given))) is not None and fits(share):
        yield stated("weights-should-fit", scene.error_fact, **_figures(int(given) * stages, share))
    elif count is not None:
        ranks = max(int(given or 1), 1 << (max(1, count.value // stages).bit_length() - 1))
        share = scene.share(ranks)
        if share is not None and not fits(share):
            yield stated("weights-cannot-fit", scene.error_fact, **_figures(ranks * stages, share))


def of_free_memory(scene: Scene) -> Iterator[Fact]:
    """Whether weights of the size that the name says are larger than what was free at the start: no fraction makes room for them."""
    free, weights, grid = scene.error.figures.get("free_bytes") if scene.error is not None else None, by_name(scene), scene.evidence.grid
    ranks = max((grid.tp or 1) * (grid.pp or 1), grid.least, grid.world or 1)
    if free and weights and weights > free * ranks:
        yield stated("weights-exceed-free", scene.error_fact, share=gib(int(weights / ranks)))


def _figures(ranks: int, share: tuple[int, int]) -> Mapping[str, object]:
    return {"ranks": ranks, "share": gib(share[0]), "card": gib(share[1])}
