"""A sizing question as JSON or flags give it, typed and completed by the engine version's defaults."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from bot.domain.accounting import PlannerRules
from bot.domain.budget import CacheSettings, Grid
from bot.domain.shape import ModelShape
from bot.reading.model.config import differs_by_device, read_shape
from bot.rulebook.gpus import Gpus, GpuSpec, load_gpus
from bot.rulebook.models import Models, load_models
from bot.rulebook.planning import Planning, load_planning
from bot.usecases.sizing.arguments import ARGUMENTS
from bot.usecases.sizing.card import refuse_old_card, settle_dtype
from bot.usecases.sizing.draft import Draft, read_draft
from bot.usecases.sizing.settings import AUTO_LENGTH, Engine, batch, cache_settings, kv_asked, model_length
from bot.usecases.sizing.values import Refused, flag, integer, positive, share, shown, table, text

SIZES = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size", "decode_context_parallel_size")
MOST_RANKS = 4096
"""More than any deployment has; a larger number is a slip, and a plan for each of its ranks would fill the memory."""

NOT_COUNTED: Mapping[str, str] = {
    "offload_group_size": "layers that are fetched from the host's memory in turn",
}
"""Engine arguments that change what fits, and that the plan does not know."""
SWITCHES = tuple(argument.name for argument in ARGUMENTS if argument.kind == "switch")
WORDS = tuple(argument.name for argument in ARGUMENTS if argument.kind == "text")
SWITCHED_OFF: tuple[Any, ...] = (None, False, "false", 0, "0", {}, "")


@dataclass(frozen=True, slots=True, eq=False)
class SizingRules:
    """What sizing needs of the rulebook."""

    models: Models
    planning: Planning
    gpus: Gpus


@lru_cache(maxsize=1)
def load_sizing() -> SizingRules:
    """The sizing rules, read once; RulebookError with every problem when a file is broken."""
    return SizingRules(load_models(), load_planning(), load_gpus())


@dataclass(frozen=True, slots=True)
class Asked:
    """One question, typed. `arguments` are the engine arguments as given; `total` bytes of the device as torch reports them."""

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
    fit_length: bool
    arguments: Mapping[str, Any]
    models: Models
    draft: Draft | None = None
    assumptions: tuple[str, ...] = ()


def read_question(rules: SizingRules, question: Mapping[str, Any]) -> Asked:
    """The typed question. Raises Refused, or an error of reading that names what is missing."""
    for name in SWITCHES:
        flag(question, name, default=False)
    for name in WORDS:
        text(question, name)
    grid = _grid(question)
    gpu, total = _device(rules, question)
    engine = _engine(rules, question, gpu, total)
    refuse_old_card(question, engine)
    question = settle_dtype(question, engine)
    shape = _shape(rules, question, gpu.compute if gpu else "")
    draft = read_draft(question, rules.models, shape, grid.tp)
    if draft is not None:
        shape = replace(shape, draft_layers=draft.layers)
    tokens, requests = batch(question, engine, model_length(question, shape))
    prefix = flag(question, "enable_prefix_caching", engine.rules.state_prefix_caching or not shape.recurrent)
    return Asked(
        shape=shape,
        grid=grid,
        version=engine.version,
        rules=engine.rules,
        settings=cache_settings(question, shape, grid, engine, tokens, prefix, draft),
        gpu=gpu,
        total=total,
        utilization=share(question, "gpu_memory_utilization", engine.rules.utilization),
        max_num_seqs=requests,
        max_num_batched_tokens=tokens,
        fit_length=question.get("max_model_len") in AUTO_LENGTH,
        arguments=question,
        models=rules.models,
        draft=draft,
        assumptions=(*_assumptions(question, shape, draft, engine.rules), *_engine_assumed(rules, shape, engine)),
    )


def _grid(question: Mapping[str, Any]) -> Grid:
    grid = Grid(*(positive(question, name) for name in SIZES))
    if max(grid.ranks, grid.dp, grid.dcp) > MOST_RANKS:
        raise Refused(f"{grid.tp} tensor x {grid.pp} pipeline ranks, {grid.dp} replicas: at most {MOST_RANKS:,} of each can be planned")
    return grid


def _shape(rules: SizingRules, question: Mapping[str, Any], compute: str) -> ModelShape:
    config = question.get("config")
    if not isinstance(config, Mapping):
        raise Refused("there is no config.json in the question; give `config`, a folder, or a model id")
    for name in ("quantization_config", "compression_config"):
        table(config, name)
    return read_shape(config, rules.models, table(question, "hf_quant_config"), compute)


def _engine(rules: SizingRules, question: Mapping[str, Any], gpu: GpuSpec | None, total: int | None) -> Engine:
    version = str(question.get("engine_version") or rules.planning.newest)
    device = gpu.id if gpu else str(question.get("gpu") or "")
    return Engine(version, rules.planning, rules.planning.rules(version), gpu.compute if gpu else "", device, total)


def _device(rules: SizingRules, question: Mapping[str, Any]) -> tuple[GpuSpec | None, int | None]:
    total, name = integer(question, "gpu_memory_bytes"), question.get("gpu")
    if total is not None and total < 1:
        raise Refused(f"gpu_memory_bytes is {total}; it must be at least 1")
    if not name:
        return None, total
    spec = rules.gpus.decide(str(name), total)
    if spec is None and total is None:
        near = ", ".join(rules.gpus.nearest(str(name))) or "its name as nvidia-smi prints it"
        raise Refused(f"the GPU {shown(name)} is not one card we know; say which: {near}, or give its memory by --gpu-memory-bytes")
    return spec, total or (spec.total if spec else None)


def _engine_assumed(rules: SizingRules, shape: ModelShape, engine: Engine) -> Iterator[str]:
    """What is taken for granted of the engine's version and of the device."""
    if beyond := engine.planning.beyond(engine.version):
        yield beyond
    if differs_by_device(shape.architecture, rules.models, engine.compute):
        yield f"the cache of {shape.architecture} differs by generation of device, and is planned as on Hopper"


def _assumptions(question: Mapping[str, Any], shape: ModelShape, draft: Draft | None, rules: PlannerRules) -> tuple[str, ...]:
    left_out = [f"{name} is not counted: {what}" for name, what in NOT_COUNTED.items() if question.get(name) not in SWITCHED_OFF]
    left_out += [f"what drafts is not counted: {draft.unknown}"] if draft and draft.unknown else []
    asked, assumed = str(question.get("kv_cache_dtype") or "auto"), (*(question.get("assumed") or ()), *left_out)
    if asked == "auto" and (own := kv_asked(shape, rules)):
        return (*assumed, f"the checkpoint asks for a KV cache in {own}, so `auto` means that")
    return assumed
