"""Changes that somebody says did not help: they are offered last."""

from collections.abc import Sequence, Set

from bot.diagnosis.scene import Scene
from bot.diagnosis.spelled import argument_of
from bot.domain.diagnosis import Remedy
from bot.rulebook.book import Rulebook

_WAYS = {"lower": "lower", "reduc": "lower", "decreas": "lower", "shrink": "lower", "rais": "raise", "increas": "raise"}
_SWITCHES = frozenset({"enforce_eager", "PYTORCH_CUDA_ALLOC_CONF", "kv_cache_dtype", "cpu_offload_gb", "enable_chunked_prefill"})
_SHORT = {"util": "gpu_memory_utilization", "expandable_segments": "PYTORCH_CUDA_ALLOC_CONF", "context": "max_model_len"}


def helpless_last(book: Rulebook, scene: Scene, changes: Sequence[Remedy]) -> list[Remedy]:
    """The changes with those last that were tried in vain, in the same direction; where no direction is said, only what is switched on."""
    vain = _in_vain(scene)
    return sorted(changes, key=lambda change: (argument_of(book, change.flag or ""), change.direction) in vain) if vain else list(changes)


def _in_vain(scene: Scene) -> Set[tuple[str, str]]:
    found: set[tuple[str, str]] = set()
    for fact in scene.named("prose.in-vain"):
        said, way = str(fact.fields["argument"]), str(fact.fields.get("way") or "").lower()
        name = _name(said.removeprefix("the ").lower().replace("-", "_").replace(" ", "_"))
        if way:
            found.add((name, _WAYS[way]))
        elif name in _SWITCHES:
            found |= {(name, "set"), (name, "raise")}
    return found


def _name(said: str) -> str:
    return next((name for begins, name in _SHORT.items() if said.startswith(begins)), said)
