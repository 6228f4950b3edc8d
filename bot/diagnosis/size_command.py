"""The question for `oombot size` that an evidence asks."""

import shlex

from bot.diagnosis.scene import Scene
from bot.rulebook.model_names import load_model_names


def size_command(scene: Scene) -> str:
    """With what the evidence names; capitals stand for what it does not, or by no name that sizing knows."""
    deployment, grid = scene.evidence.deployment, scene.evidence.grid
    model = deployment.model.value if deployment.model is not None and _has_config(deployment.model.value) else "MODEL"
    gpu = deployment.gpu.value if deployment.gpu is not None else "NAME"
    tp = int(deployment.number("tensor_parallel_size") or grid.tp or (deployment.gpu_count.value if deployment.gpu_count else 0))
    pp = int(deployment.number("pipeline_parallel_size") or grid.pp or 1)
    length = int(deployment.number("max_model_len") or 0)
    given = ((tp, f" --tp {tp}"), (pp > 1, f" --pp {pp}"), (length, f" --max-model-len {length}"))
    return f"oombot size {shlex.quote(model)} --gpu {gpu}" + "".join(text for known, text in given if known)


def _has_config(model: str) -> bool:
    """Can sizing look it up: an id of the hub, or a name that the rulebook has figures for? A path is known to its machine only."""
    return model[:1] not in "/.~$" and ("/" in model or load_model_names().find(model) is not None)
