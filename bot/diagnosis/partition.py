"""Layers moved off the pipeline stage that failed, as VLLM_PP_LAYER_PARTITION takes them: `31,30` for two stages."""

import math
import re

from bot.budget.placement import stage_layers
from bot.diagnosis.scene import Scene
from bot.rulebook.model_names import load_model_names

_HUB_CACHE = re.compile(r"(?:^|/)models--[^/]+?--([^/]+)")


def partition(scene: Scene) -> str | None:
    """So many layers fewer on the failing stage as the failed allocation takes, at least one; each goes to the stage that has fewest,
    the ends last, since they also hold the embedding and the head. None where stages, layers or the failing stage are not known.
    """
    held, stage = _held(scene), _stage(scene)
    if stage is None or len(held) < 2 or stage >= len(held) or held[stage] < 2:
        return None
    for _ in range(min(_too_many(scene, held[stage]), held[stage] - 1)):
        held[stage] -= 1
        others = [other for other in range(len(held)) if other != stage]
        held[min(others, key=lambda other: (held[other], other in (0, len(held) - 1)))] += 1
    return ",".join(map(str, held))


def _stage(scene: Scene) -> int | None:
    rank = None if scene.failing is None else scene.evidence.ranks.get(scene.failing.key)
    return None if rank is None else rank.pp


def _held(scene: Scene) -> list[int]:
    """How many layers each stage had: as the variable said, else as vLLM shares them out; none where that is not known."""
    given = scene.evidence.deployment.environment.get("VLLM_PP_LAYER_PARTITION")
    if given is not None:
        shares = [share.strip() for share in str(given.value).strip("'\"").split(",")]
        return [int(share) for share in shares] if all(share.isdecimal() for share in shares) else []
    stages, layers = _stages(scene), _layers(scene)
    return [len(part) for part in stage_layers(layers, stages)] if stages and layers and layers >= stages else []


def _stages(scene: Scene) -> int | None:
    """How many there are: as set, else as the tags show, where the stages that they show use every card that the machine has."""
    given, grid, cards = (
        scene.evidence.deployment.number("pipeline_parallel_size"),
        scene.evidence.grid,
        scene.evidence.deployment.gpu_count,
    )
    if given:
        return int(given)
    return grid.pp if grid.pp and cards is not None and (grid.tp or 1) * grid.pp == cards.value else None


def _layers(scene: Scene) -> int | None:
    """As a config.json or an answer says, where one number is said; else those of a model that is known by its name, whoever stored it."""
    said = {fact.fields["layers"] for fact in scene.named("config.layers")}
    if said:
        return int(said.pop()) if len(said) == 1 else None
    answered = scene.evidence.answers.get("model_config", "")
    if answered.isdecimal():
        return int(answered)
    model = scene.evidence.deployment.model
    if model is None:
        return None
    cached = _HUB_CACHE.search(model.value)
    names = (model.value, cached[1] if cached else model.value.rstrip("/").rpartition("/")[2])
    named = next((found for name in names if (found := load_model_names().find(name)) is not None), None)
    return None if named is None else named.layers


def layers_wanted(scene: Scene) -> bool:
    """Would the number of layers tell how to share them out, and is it all that is missing?"""
    stages = _stages(scene)
    given = "VLLM_PP_LAYER_PARTITION" in scene.evidence.deployment.environment
    return bool(stages and stages > 1) and not given and _stage(scene) is not None and _layers(scene) is None


def _too_many(scene: Scene, held: int) -> int:
    """How many layers' bytes were missing; one where that was not printed."""
    figures = scene.error.figures if scene.error is not None else {}
    tried, allocated = figures.get("tried_bytes"), figures.get("allocated_bytes")
    if tried is None or not allocated:
        return 1
    return max(1, math.ceil((tried - (figures.get("free_bytes") or 0)) / (allocated / held)))
