"""Weights per rank: what the question gives, else what config.json implies."""

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import NamedTuple

from bot.budget.weights import Weights
from bot.domain.size import gib
from bot.domain.tensors import StoredTensor, TensorGrid, Unplaceable
from bot.reading.model.numbers import MissingField
from bot.reading.model.quantization_config import UnknownQuantization
from bot.usecases.sizing.adapters import Change, adapters, offloaded
from bot.usecases.sizing.draft import Draft
from bot.usecases.sizing.question import Asked
from bot.usecases.sizing.values import Refused, flag, held_bytes, per_rank
from bot.usecases.sizing.weigh import weigh, weigh_draft

UNKNOWN = "weights are not known: "
"""How the assumption begins that says why there are no weights."""


class Held(NamedTuple):
    """Bytes of parameters and buffers per rank once the engine runs (None: not known), what was assumed, and what loading needs at most."""

    bytes: Sequence[int] | None
    assumed: tuple[str, ...] = ()
    loading: Sequence[int] | None = None


def weights_of(asked: Asked) -> Held:
    """The weights of every rank. Raises Refused when the engine could not deal them out."""
    ranks = asked.grid.ranks
    given = per_rank(asked.arguments, "weights_bytes", ranks)
    if given is not None:
        if min(given) < 1:
            raise Refused(f"weights_bytes is {min(given)}; it must be at least 1")
        return Held(given, _with_given(asked))
    whole = held_bytes(asked.arguments, "checkpoint_bytes", least=1)
    if whole is not None:
        return Held([whole // ranks] * ranks, (f"weights split evenly over {ranks} ranks", *_with_given(asked)))
    try:
        weights = _from_config(asked)
    except Unplaceable as error:
        raise Refused(str(error), by="engine") from error
    except (MissingField, UnknownQuantization) as error:
        return Held(None, (f"{UNKNOWN}{error}",))
    held = Held([rank.resident for rank in weights.ranks], weights.assumptions, [rank.peak for rank in weights.ranks])
    changes = (adapters(asked, _grid(asked)), offloaded(asked, tuple(rank.layers for rank in weights.ranks)))
    return _with_draft(asked, reduce(_changed, changes, held))


def _changed(held: Held, change: Change) -> Held:
    parts = (held.bytes or (), held.loading or ())
    resident, loading = ([a + b for a, b in zip(one, change.bytes, strict=True)] for one in parts)
    return Held(resident, (*held.assumed, *change.said), loading)


def _with_given(asked: Asked) -> tuple[str, ...]:
    if asked.draft is None or not asked.draft.loads:
        return ()
    return ("the weights given are taken to hold those of what drafts too",)


def _with_draft(asked: Asked, held: Held) -> Held:
    """The same and what drafts tokens, on the ranks of the last pipeline stage. Source: vllm/v1/worker/gpu_model_runner.py, the drafter."""
    draft = asked.draft
    if draft is None or not draft.loads or held.bytes is None:
        return held
    try:
        weights = _of_draft(asked, draft)
    except Unplaceable as error:
        raise Refused(f"the draft: {error}", by="engine") from error
    except (MissingField, UnknownQuantization) as error:
        return Held(held.bytes, (*held.assumed, f"the weights of what drafts are not counted: {error}"), held.loading)
    added = [0] * (asked.grid.ranks - asked.grid.tp) + [rank.resident for rank in weights.ranks]
    return Held(
        [a + b for a, b in zip(held.bytes, added, strict=True)],
        (*held.assumed, _said_of_draft(asked, draft, max(added))),
        [a + b for a, b in zip(held.loading or held.bytes, added, strict=True)],
    )


def _of_draft(asked: Asked, draft: Draft) -> Weights:
    given, own = asked.arguments, draft.config is None
    return weigh_draft(
        draft.config or given["config"],
        asked.models,
        _grid(asked),
        layers=len(draft.layers),
        own=draft.method if own else "",
        engine_version=asked.version,
        gpu=_gpu(asked),
        dtype=str(given.get("dtype") or "auto"),
        quantization=given.get("quantization") if own else draft.quantization,
        hf_quant_config=given.get("hf_quant_config") if own else None,
    )


def _said_of_draft(asked: Asked, draft: Draft, added: int) -> str:
    caching = sum(map(bool, draft.layers))
    kept = f"{caching} layer{'' if caching == 1 else 's'} of KV cache" if caching else "no KV cache of its own"
    where = " on the last pipeline stage" if asked.grid.pp > 1 else " on every rank"
    shared = "" if draft.method == "draft_model" else "; embedding and output table are taken as shared where the engine shares them"
    return f"what drafts ({draft.method}, {draft.tokens} at once) adds {gib(added)} of weights and {kept}{where}{shared}"


def _from_config(asked: Asked) -> Weights:
    given = asked.arguments
    return weigh(
        given["config"],
        asked.models,
        _grid(asked),
        engine_version=asked.version,
        gpu=_gpu(asked),
        dtype=str(given.get("dtype") or "auto"),
        quantization=given.get("quantization"),
        hf_quant_config=given.get("hf_quant_config"),
        tensors=_headers(given.get("tensors")),
        text_only=flag(given, "language_model_only", False),
    )


def _gpu(asked: Asked) -> str:
    return asked.gpu.id if asked.gpu else str(asked.arguments.get("gpu") or "")


def _grid(asked: Asked) -> TensorGrid:
    given, grid = asked.arguments, asked.grid
    return TensorGrid(grid.tp, grid.pp, grid.dp, flag(given, "enable_expert_parallel", False), given.get("mm_encoder_tp_mode") == "data")


def _headers(told: object) -> Mapping[str, StoredTensor] | None:
    """The checkpoint's headers where a door found them; a batch line may hold anything under that name."""
    return told if isinstance(told, Mapping) and all(isinstance(one, StoredTensor) for one in told.values()) else None
