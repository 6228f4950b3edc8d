"""A model's config.json and a grid -> the bytes of its weights on every rank."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from bot.budget.adapters import Adapters, adapter_bytes
from bot.budget.weights import Weights, weights_per_rank
from bot.domain.tensors import StoredTensor, TensorGrid, Unplaceable
from bot.reading.model.checkpoint import stored_modules
from bot.reading.model.draft_tensors import draft_tensors, own_tensors
from bot.reading.model.numbers import MissingField
from bot.reading.model.quantization_config import UnknownQuantization, read_quantization
from bot.reading.model.tensor_fields import fields_of
from bot.reading.model.tensors import read_tensors
from bot.rulebook.models import Models, UnknownArchitecture

MOST_RANKS = 65_536
"""More than any replica has; a larger number is a slip, and a figure for each would fill the memory."""


def weigh(
    config: Mapping[str, Any],
    models: Models,
    grid: TensorGrid,
    *,
    engine_version: str,
    gpu: str = "",
    dtype: str = "auto",
    quantization: str | None = None,
    hf_quant_config: Mapping[str, Any] | None = None,
    tensors: Mapping[str, StoredTensor] | None = None,
    text_only: bool = False,
) -> Weights:
    """Bytes of every rank of one replica, in order pp × TP + tp, by what the engine's model classes create.

    `gpu` as the engine or a log names it: it decides which kernels pad.
    `tensors`: the checkpoint's headers where they are at hand; they win.
    `text_only`: towers are not made, as with --language-model-only (vLLM models/interfaces.py _mark_tower_model).
    Every error is a ValueError whose message can be shown: UnknownArchitecture, MissingField (the config lacks what
    decides), UnknownQuantization; Unplaceable where the engine itself refuses the grid.
    """
    if grid.tp * grid.pp > MOST_RANKS or min(grid.tp, grid.pp, grid.dp) < 1:
        raise Unplaceable(f"{grid.tp} × {grid.pp} ranks: a replica has between 1 and {MOST_RANKS:,}")
    with _read("config.json", "; give --weights-bytes"):
        f = fields_of(config, models, engine_version, gpu)
        if "draft" in f.rules:
            raise MissingField("this model only drafts for another: name that one, and this in --speculative-config")
        model = read_tensors(f.without_towers() if text_only else f, dtype)
        stored = stored_modules(tensors, model.dtype_bytes) if tensors else None
        return weights_per_rank(model, read_quantization(config, f.rules, hf_quant_config, quantization), grid, stored)


def weigh_draft(
    config: Mapping[str, Any],
    models: Models,
    grid: TensorGrid,
    *,
    layers: int,
    own: str,
    engine_version: str,
    gpu: str = "",
    dtype: str = "auto",
    quantization: str | None = None,
    hf_quant_config: Mapping[str, Any] | None = None,
) -> Weights:
    """Bytes of what drafts tokens on every tensor rank of the last pipeline stage, which holds all of it.

    `own`: the method by which `layers` of the model's own config draft; empty where `config` is the draft's. Embeddings and output tables
    that the draft shares with the model are not counted again. Errors as for `weigh`.
    """
    f = fields_of(config, models, engine_version, gpu)
    stage = replace(grid, pp=1)
    if not own and "draft" not in f.rules:
        return weigh(config, models, stage, engine_version=engine_version, gpu=gpu, dtype=dtype, quantization=quantization)
    apart = grid.pp > 1
    with _read("config.json of the draft"):
        model = own_tensors(f, own, layers, dtype, own_embedding=apart) if own else draft_tensors(f, dtype, own_embedding=apart)
        return weights_per_rank(model, read_quantization(config, f.rules, hf_quant_config, quantization), stage)


def weigh_adapters(
    config: Mapping[str, Any], models: Models, grid: TensorGrid, *, engine_version: str, gpu: str, slots: int, rank: int, fully: bool
) -> tuple[int, ...]:
    """Bytes of the slots for LoRA adapters on every rank. Errors as for `weigh`."""
    f = fields_of(config, models, engine_version, gpu)
    tables, experts = f.rules.get("adapters_on_tables", "none"), bool(f.rules.get("adapters_on_experts", True))
    return adapter_bytes(read_tensors(f), grid, Adapters(slots, rank, fully=fully, tables=tables, experts=experts))


@contextmanager
def _read(what: str, then: str = "") -> Iterator[None]:
    """A person's config.json may hold anything anywhere: what breaks on it is told as a MissingField, and what to do `then`."""
    try:
        yield
    except (UnknownArchitecture, MissingField, UnknownQuantization, Unplaceable):
        raise
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
        raise MissingField(f"{what} has a field of the wrong kind ({type(error).__name__}: {error}){then}") from error
