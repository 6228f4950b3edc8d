"""A sizing question as JSON or flags give it, checked and typed; what it leaves open is filled by the engine version's defaults."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import lcm
from pathlib import Path
from typing import Any

from bot.budget.plan import block_for_states
from bot.domain.accounting import PlannerRules
from bot.domain.budget import CacheSettings, Grid
from bot.domain.shape import GatedDelta, ModelShape
from bot.reading.model_config import read_shape
from bot.rulebook.gpus import Gpus, GpuSpec, load_gpus
from bot.rulebook.load import rules_folder
from bot.rulebook.models import Models, load_models
from bot.rulebook.planning import Planning, load_planning
from bot.rulebook.weights import WeightRules, load_weights

UNSTATED_LENGTH = 2048
"""Tokens of context that the engine takes when neither the command nor config.json says any."""
AUTO_LENGTH = (-1, "-1", "auto")


class Refused(ValueError):
    """The question has no answer. `by`: `engine` when vLLM itself refuses these arguments, `oombot` when we do not know enough."""

    def __init__(self, message: str, by: str = "oombot") -> None:
        super().__init__(message)
        self.by = by


@dataclass(frozen=True, slots=True, eq=False)
class SizingRules:
    """What sizing needs of the rulebook."""

    models: Models
    planning: Planning
    gpus: Gpus
    weights: WeightRules


@lru_cache(maxsize=2)
def load_sizing(folder: Path | None = None) -> SizingRules:
    """The sizing rules of a rules folder; RulebookError with every problem when a file is broken."""
    rules = folder or rules_folder()
    return SizingRules(load_models(rules / "models"), load_planning(rules), load_gpus(), load_weights(rules / "models"))


@dataclass(frozen=True, slots=True)
class Asked:
    """One question, typed. `arguments` are the engine arguments as given; bytes overrides are per rank unless they say otherwise."""

    shape: ModelShape
    grid: Grid
    version: str
    rules: PlannerRules
    settings: CacheSettings
    gpu: GpuSpec | None
    total: int | None
    utilization: float
    max_num_seqs: int
    max_num_batched_tokens: int
    prefix_caching: bool
    fit_length: bool
    arguments: Mapping[str, Any]
    weight_rules: WeightRules
    assumptions: tuple[str, ...] = ()


def read_question(rules: SizingRules, question: Mapping[str, Any]) -> Asked:
    """The typed question. Raises Refused, or an error of reading that names what is missing."""
    version = str(question.get("engine_version") or rules.planning.newest)
    planner = rules.planning.rules(version)
    config = question.get("config")
    if not isinstance(config, Mapping):
        raise Refused("there is no config.json in the question; give `config`, a folder, or a model id")
    shape = read_shape(config, rules.models, question.get("hf_quant_config"))
    gpu, total = _device(rules, question)
    grid = _grid(question)
    batch = rules.planning.batch(version, gpu.id if gpu else str(question.get("gpu") or ""), total)
    tokens = integer(question, "max_num_batched_tokens") or batch.tokens
    prefix = flag(question, "enable_prefix_caching", planner.state_prefix_caching or not shape.recurrent)
    settings, said = _settings(rules, question, shape, grid, version, planner, tokens, prefix, gpu)
    return Asked(
        shape=shape,
        grid=grid,
        version=version,
        rules=planner,
        settings=settings,
        gpu=gpu,
        total=total,
        utilization=float(question.get("gpu_memory_utilization") or planner.utilization),
        max_num_seqs=integer(question, "max_num_seqs") or batch.seqs,
        max_num_batched_tokens=tokens,
        prefix_caching=prefix,
        fit_length=question.get("max_model_len") in AUTO_LENGTH,
        arguments=question,
        weight_rules=rules.weights,
        assumptions=tuple(said),
    )


def integer(question: Mapping[str, Any], name: str) -> int | None:
    """A whole number of the question, None when it is not given. Raises Refused when it is none."""
    value = question.get(name)
    if value is None:
        return None
    try:
        number = int(value)
    except (TypeError, ValueError):
        raise Refused(f"{name} is {value!r}; it must be a whole number") from None
    if isinstance(value, bool) or number != float(value):
        raise Refused(f"{name} is {value!r}; it must be a whole number")
    return number


def _positive(question: Mapping[str, Any], name: str) -> int:
    value = integer(question, name)
    if value is not None and value < 1:
        raise Refused(f"{name} is {value}; it must be at least 1", by="engine")
    return value or 1


def flag(question: Mapping[str, Any], name: str, default: bool) -> bool:
    """A switch of the question, `default` when it is not given."""
    value = question.get(name)
    return default if value is None else str(value).lower() not in {"false", "0", "no"}


def _grid(question: Mapping[str, Any]) -> Grid:
    names = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size", "decode_context_parallel_size")
    return Grid(*(_positive(question, name) for name in names))


def _device(rules: SizingRules, question: Mapping[str, Any]) -> tuple[GpuSpec | None, int | None]:
    total, name = integer(question, "gpu_memory_bytes"), question.get("gpu")
    if not name:
        return None, total
    spec = rules.gpus.decide(str(name), total)
    if spec is None and total is None:
        near = ", ".join(rules.gpus.nearest(str(name))) or "see rules/gpus.toml"
        raise Refused(f"the GPU {name!r} is not one card we know; say which: {near}, or give gpu_memory_bytes")
    return spec, total or (spec.total if spec else None)


def _settings(
    rules: SizingRules, question: Mapping[str, Any], shape: ModelShape, grid: Grid, version: str, planner: PlannerRules,
    tokens: int, prefix: bool, gpu: GpuSpec | None,
) -> tuple[CacheSettings, list[str]]:  # fmt: skip
    said: list[str] = []
    name = str(question.get("kv_cache_dtype") or "auto")
    resolved = (shape.kv_dtype or "auto") if name == "auto" else name
    if resolved != name:
        said.append(f"the checkpoint asks for a KV cache in {resolved}, so `auto` means that")
    kv = rules.planning.kv_dtype(resolved, version)
    if kv is None:
        takes = ", ".join(rules.planning.kv_dtypes(version))
        raise Refused(f"vLLM {version} has no KV cache type {resolved!r}; it takes {takes}", by="engine")
    model_bytes = 4 if str(question.get("dtype") or "auto") in {"float32", "float"} else 2
    base = CacheSettings(
        max_model_len=_length(question, shape),
        in_flight=tokens * (_batches(planner, grid) if planner.in_flight == "batches" else 1),
        kv=kv if resolved != "auto" else replace(kv, key_bits=model_bytes * 8, value_bits=model_bytes * 8),
        model_bytes=model_bytes,
        conv_bytes=_element(question.get("mamba_cache_dtype"), model_bytes),
        state_bytes=_element(question.get("mamba_ssm_cache_dtype") or shape.state_dtype, model_bytes),
        states=_states(shape, planner, prefix),
        checkpoint_states=planner.checkpoint_states,
        packed_latents=shape.packed or (shape.sparse and resolved.startswith("fp8")),
        hybrid_manager=not flag(question, "disable_hybrid_kv_cache_manager", False),
        blocks_override=integer(question, "num_gpu_blocks_override"),
        encoder_tokens=max(shape.encoder_tokens, tokens),
    )
    block = _block(rules, question, shape, resolved, kv.block, version, planner, gpu)
    settings = replace(base, block=block)
    if shape.hybrid:
        settings = replace(settings, block=block_for_states(shape, grid, settings, _multiple(shape, settings, planner)))
    return settings, said


def _length(question: Mapping[str, Any], shape: ModelShape) -> int:
    value = question.get("max_model_len")
    if value is None or value in AUTO_LENGTH:
        return shape.max_positions or UNSTATED_LENGTH
    return _positive(question, "max_model_len")


def _batches(planner: PlannerRules, grid: Grid) -> int:
    """Batches that may be under way at once: one per pipeline stage, and the one being prepared."""
    return grid.pp + 1 if planner.async_scheduling else grid.pp


def _states(shape: ModelShape, planner: PlannerRules, prefix: bool) -> Any:
    if not prefix or not shape.recurrent:
        return "running"
    kinds = {type(cache).__name__ for cache in shape.states}
    return "every" if planner.states == "every" and kinds <= set(planner.every_states) else "aligned"


def _block(
    rules: SizingRules, question: Mapping[str, Any], shape: ModelShape, kv: str, least: int, version: str, planner: PlannerRules,
    gpu: GpuSpec | None,
) -> int:  # fmt: skip
    given = integer(question, "block_size")
    if given:
        return given
    if shape.fixed_block:
        return shape.fixed_block
    caches = "sparse latent" if shape.sparse else "latent" if shape.latent else "heads"
    asked = rules.planning.block(caches, kv, gpu.compute if gpu else "", version)
    return max(asked or planner.block_size, least)


def _multiple(shape: ModelShape, settings: CacheSettings, planner: PlannerRules) -> int:
    """Tokens that the block of a model with recurrent state is a multiple of."""
    block = settings.block if planner.states_follow_block else planner.block_size
    if shape.latent:
        block = max(block, planner.latent_state_multiple)
    if settings.states == "aligned" and any(isinstance(cache, GatedDelta) for cache in shape.states):
        return lcm(block, planner.delta_multiple)
    return lcm(block, shape.state_chunk or 1) if settings.states == "every" else block


def _element(name: object, model_bytes: int) -> int:
    return {"float32": 4, "float16": 2, "bfloat16": 2, "float": 4, "half": 2}.get(str(name or "auto"), model_bytes)


def per_rank(question: Mapping[str, Any], name: str, ranks: int) -> Sequence[int] | None:
    """One figure for every rank, or a list with one per rank (pipeline × tensor); None when it is not given."""
    value = question.get(name)
    if value is None:
        return None
    if isinstance(value, Sequence) and not isinstance(value, str):
        if len(value) != ranks:
            raise Refused(f"{name} lists {len(value)} figures, but there are {ranks} ranks")
        return [int(figure) for figure in value]
    number = integer(question, name)
    return None if number is None else [number] * ranks
