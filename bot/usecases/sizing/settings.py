"""How the engine would cut its pool: what the question says, completed by the version's defaults and the model's needs."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import lcm
from typing import Any, Literal

from bot.budget.activations import CHUNKED_FROM
from bot.budget.plan import block_for_states
from bot.domain.accounting import KvDtype, PlannerRules
from bot.domain.budget import CacheSettings, Grid
from bot.domain.shape import GatedDelta, ModelShape
from bot.rulebook.planning import Planning
from bot.usecases.sizing.draft import Draft
from bot.usecases.sizing.values import Refused, counted, flag, named, positive

AUTO_LENGTH = (-1, "-1", "auto")
"""Values of max_model_len that ask for the longest context that fits."""
UNSTATED_LENGTH = 2048
"""Tokens of context that the engine takes when neither the command nor config.json says any."""
ELEMENTS = {"float32": 4, "float": 4, "float16": 2, "bfloat16": 2, "half": 2}
NAMES = {
    "dtype": ("auto", *ELEMENTS),
    "mamba_cache_dtype": ("auto", *ELEMENTS),
    "mamba_ssm_cache_dtype": ("auto", *ELEMENTS),
    "mm_encoder_tp_mode": ("weights", "data"),
}
"""Arguments that take one of a few names. Source: vllm/config/model.py, cache.py, multimodal.py."""


@dataclass(frozen=True, slots=True)
class Engine:
    """One engine version on one kind of device. `compute`: CUDA capability, empty when it is not known."""

    version: str
    planning: Planning
    rules: PlannerRules
    compute: str
    device: str
    total: int | None

    @property
    def packs_sparse(self) -> bool:
        """Whether sparse latents in FP8 are kept with their scales inside."""
        return self.planning.packs_sparse(self.compute, self.version)


def model_length(question: Mapping[str, Any], shape: ModelShape) -> int:
    """The context that one request may have; what the model allows when it is not given or to be fitted."""
    value = question.get("max_model_len")
    if value is None or value in AUTO_LENGTH:
        return shape.max_positions or UNSTATED_LENGTH
    return positive(question, "max_model_len")


def batch(question: Mapping[str, Any], engine: Engine, length: int) -> tuple[int, int]:
    """(tokens of one batch, requests at once). Source of the defaults: vllm/engine/arg_utils.py.

    A whole prompt must fit when prompts are not read in chunks; a batch is never larger than all requests together, and there are by
    default no more requests than tokens of a batch.
    """
    usual = engine.planning.batch(engine.version, engine.device, engine.total)
    given, requests = counted(question, "max_num_seqs"), counted(question, "max_num_seqs") or usual.seqs
    tokens = counted(question, "max_num_batched_tokens")
    if tokens is None:
        chunks = flag(question, "enable_chunked_prefill", not usual.whole or (usual.chunk > 0 and length > CHUNKED_FROM))
        tokens = (usual.chunk or usual.tokens) if chunks else max(usual.tokens, length)
        tokens = min(tokens, requests * length)
    return tokens, requests if given else min(requests, tokens)


def cache_settings(
    question: Mapping[str, Any], shape: ModelShape, grid: Grid, engine: Engine, tokens: int, prefix_caching: bool, draft: Draft | None
) -> CacheSettings:
    """Every setting that decides blocks and bytes. Raises Refused for what this version does not take."""
    for name, choices in NAMES.items():
        named(question, name, choices)
    width = ELEMENTS.get(str(question.get("dtype")), 2)
    width = 4 if width == 4 else 2
    kv = kv_dtype(question, shape, engine, width)
    rules = engine.rules
    settings = CacheSettings(
        max_model_len=model_length(question, shape),
        in_flight=tokens * (_batches(rules, grid, draft) if rules.in_flight == "batches" else 1),
        kv=kv,
        block=_block(question, shape, kv, engine),
        model_bytes=width,
        conv_bytes=ELEMENTS.get(str(question.get("mamba_cache_dtype")), width),
        state_bytes=ELEMENTS.get(_state_dtype(question, shape), width),
        states=_states(shape, rules, prefix_caching),
        checkpoint_states=rules.checkpoint_states,
        packed_latents=shape.packed or (shape.sparse and kv.name.startswith("fp8") and engine.packs_sparse),
        hybrid_manager=not flag(question, "disable_hybrid_kv_cache_manager", False),
        blocks_override=counted(question, "num_gpu_blocks_override"),
        encoder_tokens=max(shape.encoder_tokens, tokens),
        pads_values=rules.pads_values,
        draft_tokens=draft.tokens if draft else 0,
    )
    if not shape.hybrid:
        return settings
    return replace(settings, block=block_for_states(shape, grid, settings, _multiple(shape, settings, rules)))


def kv_dtype(question: Mapping[str, Any], shape: ModelShape, engine: Engine, width: int) -> KvDtype:
    """How keys and values are kept: as asked, else as the checkpoint asks, else `width` bytes an element like the model."""
    name = str(question.get("kv_cache_dtype") or "auto")
    name = (kv_asked(shape, engine.rules) or "auto") if name == "auto" else name
    kv = engine.planning.kv_dtype(name, engine.version)
    if kv is None:
        takes = ", ".join(engine.planning.kv_dtypes(engine.version))
        raise Refused(f"vLLM {engine.version} has no KV cache type {name!r}; it takes {takes}", by="engine")
    return replace(kv, key_bits=width * 8, value_bits=width * 8) if name == "auto" else kv


def kv_asked(shape: ModelShape, rules: PlannerRules) -> str | None:
    """The KV cache type that the checkpoint gets where none is asked for; None for the model's own."""
    return shape.kv_dtype or (shape.kv_scheme if rules.scheme_sets_kv and not shape.latent else None)


def _batches(rules: PlannerRules, grid: Grid, draft: Draft | None) -> int:
    """Batches that may be under way at once: one per pipeline stage, and the one being prepared."""
    waits = draft is not None and draft.method in rules.synchronous_drafts
    return grid.pp + 1 if rules.async_scheduling and not waits else grid.pp


def _state_dtype(question: Mapping[str, Any], shape: ModelShape) -> str:
    asked = str(question.get("mamba_ssm_cache_dtype") or "auto")
    if asked == "auto":
        return str(shape.state_dtype or question.get("mamba_cache_dtype"))
    return asked


def _states(shape: ModelShape, rules: PlannerRules, prefix_caching: bool) -> Literal["running", "aligned", "every"]:
    if not prefix_caching or not shape.recurrent:
        return "running"
    kinds = {type(cache).__name__ for cache in shape.states}
    return "every" if rules.states == "every" and kinds <= set(rules.every_states) else "aligned"


def _block(question: Mapping[str, Any], shape: ModelShape, kv: KvDtype, engine: Engine) -> int:
    """Tokens per block before recurrent state asks for more."""
    given = counted(question, "block_size")
    if given or shape.fixed_block:
        return given or shape.fixed_block
    caches = "sparse latent" if shape.sparse else "latent" if shape.latent else "heads"
    asked = engine.planning.block(caches, kv.name, engine.compute, engine.version)
    return max(asked or engine.rules.block_size, kv.block)


def _multiple(shape: ModelShape, settings: CacheSettings, rules: PlannerRules) -> int:
    """Tokens that the block of a model with recurrent state is a multiple of."""
    block = settings.block if rules.states_follow_block else rules.block_size
    if shape.latent:
        block = max(block, rules.latent_state_multiple)
    if settings.states == "aligned" and any(isinstance(cache, GatedDelta) for cache in shape.states):
        return lcm(block, rules.delta_multiple)
    return lcm(block, shape.state_chunk or 1) if settings.states == "every" else block
