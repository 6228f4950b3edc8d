"""Rank 0 where no process signs itself and the evidence speaks of one process: one card, or a start that asks for no second one."""

import re

from bot.diagnosis.first_error import raised_here
from bot.diagnosis.scene import Scene, as_given
from bot.domain.diagnosis import Phase
from bot.domain.known import Known
from bot.domain.phases import STEPS
from bot.domain.rank import Rank
from bot.rulebook.gpus import load_gpus

_LEFT_OPEN = re.compile(r"--config\b|--nnodes\b|\$|\*\*|\.\.\.|…|parallel_size\s*=\s*(?!1\b)")
"""What stands for arguments that are not shown, or for sizes that a program works out."""
_ONE_WORKER = re.compile(r"(?<![a-z_])gpu_executor\.py:")
"""V0's executor without processes; `distributed_gpu_executor.py` is another."""
LONGEST_CALL = 40
"""Lines."""
_OF_CORE = ("vllm.context-exceeds-cache", "vllm.available-kv", "vllm.kv-size")
"""What only V1 says."""


def one_process(scene: Scene, phase: Phase) -> tuple[Rank, str] | None:
    """(rank 0, why in one sentence), or None where anything speaks of more workers, or nothing of one."""
    if phase not in STEPS or not _may_be_alone(scene) or (phase == "kv_cache_sizing" and _by_the_core(scene)):
        return None
    why = _why(scene, phase)
    return (
        None if why is None else (Rank(number=0, label="the only worker", basis="only_worker"), f"Rank 0, for there is one process: {why}.")
    )


def _may_be_alone(scene: Scene) -> bool:
    evidence, grid, count = scene.evidence, scene.evidence.grid, scene.evidence.deployment.gpu_count
    if evidence.engine not in ("vllm", "sglang", "unknown") or scene.has("foreign-engine") or scene.has("several-cards"):
        return False
    visible = evidence.deployment.environment.get("CUDA_VISIBLE_DEVICES")
    if visible is not None and "," in str(visible.value).strip(","):
        return False
    tried = evidence.deployment.tried.keys() & {"tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size"}
    if not grid.single or grid.ray or grid.several or grid.devices_set or tried or (count is not None and count.value > 1):
        return False
    return all(line.speaker.role in ("unknown", "api-server") for line in evidence.speakers)  # who signs says itself who it is


def _by_the_core(scene: Scene) -> bool:
    """Was it a check of V1's engine core, which is no worker?"""
    return scene.first(*_OF_CORE) is not None or any((line.file or "").endswith("core.py") for line in scene.evidence.errors)


def _why(scene: Scene, phase: Phase) -> str | None:
    size = scene.evidence.deployment.arguments.get("tensor_parallel_size")
    if scene.evidence.engine == "sglang":  # its scheduler is the worker
        return f"line {size.line} asks for one rank" if size is not None and size.value == 1 else None
    if (named := scene.first("one-card")) is not None:
        return f"line {named.line} speaks of one card"
    if (counted := scene.first("vllm.blocks")) is not None and _ONE_WORKER.search(as_given(counted, scene.evidence.lines)):
        return f"the executor that counted the blocks in line {counted.line} runs one worker"
    if phase == "kv_cache_sizing" and (terms := scene.first("vllm.v0-terms", "vllm.v0-profiling-results")) is not None:
        return f"V0 printed line {terms.line} without a worker's signature"
    if phase == "kv_cache_sizing" and scene.has("vllm.blocks") and size is not None and size.value == 1:
        return f"V0 counted its blocks with the tensor_parallel_size=1 of line {size.line}"
    if scene.error_fact is None or not raised_here(scene.error_fact):
        return None
    if (starts := scene.first("one-process")) is not None:
        return f"what starts it in line {starts.line} runs one for each model"
    deployment = scene.evidence.deployment
    start = next((one for one in deployment.commands if _whole(scene, one)), None)
    if start is not None:
        return f"the start in line {start.line} asks for no second card"
    card = deployment.gpu if phase != "kv_cache_sizing" else None
    alone = card is not None and card.origin == "log" and len(_cards(scene)) == 1
    return f"one {card.value} is named, and nothing asks for a second card" if card is not None and alone else None


def _cards(scene: Scene) -> set[str]:
    """The cards that the text names."""
    mentions = load_gpus().mentions("\n".join(scene.evidence.lines.values()))
    return {mention.specs[0].id for mention in mentions}


def _whole(scene: Scene, start: Known[tuple[str, ...]]) -> bool:
    """Is it a start of vLLM with all its arguments? Python's are looked at where they stand, for a start keeps only what has a name."""
    words = " ".join(start.value)
    if not words.startswith("LLM("):
        return "vllm" in words and not _LEFT_OPEN.search(words)
    lines = (scene.evidence.lines.get((start.source or 1, (start.line or 1) + more), "") for more in range(LONGEST_CALL))
    return not _LEFT_OPEN.search("\n".join(lines).partition("LLM(")[2].partition(")")[0])
