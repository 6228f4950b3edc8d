"""Weights per rank: what the question gives, else what config.json implies."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bot.budget.weights import Weights
from bot.domain.tensors import StoredTensor, TensorGrid, Unplaceable
from bot.reading.quantization_config import UnknownQuantization
from bot.reading.tensor_fields import MissingField
from bot.rulebook.weights import UnknownWeights
from bot.usecases.size_question import Asked
from bot.usecases.size_values import Refused, flag, held_bytes, per_rank
from bot.usecases.weigh import weigh

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
        return Held(given)
    whole = held_bytes(asked.arguments, "checkpoint_bytes", least=1)
    if whole is not None:
        return Held([whole // ranks] * ranks, (f"weights split evenly over {ranks} ranks",))
    try:
        weights = _from_config(asked)
    except Unplaceable as error:
        raise Refused(str(error), by="engine") from error
    except (UnknownWeights, MissingField, UnknownQuantization) as error:
        return Held(None, (f"{UNKNOWN}{error}",))
    return Held([rank.resident for rank in weights.ranks], weights.assumptions, [rank.peak for rank in weights.ranks])


def _from_config(asked: Asked) -> Weights:
    given, grid = asked.arguments, asked.grid
    return weigh(
        given["config"],
        asked.weight_rules,
        TensorGrid(grid.tp, grid.pp, grid.dp, flag(given, "enable_expert_parallel", False), given.get("mm_encoder_tp_mode") == "data"),
        engine_version=asked.version,
        gpu=asked.gpu.id if asked.gpu else str(given.get("gpu") or ""),
        dtype=str(given.get("dtype") or "auto"),
        quantization=given.get("quantization"),
        hf_quant_config=given.get("hf_quant_config"),
        tensors=_headers(given.get("tensors")),
        text_only=flag(given, "language_model_only", False),
    )


def _headers(told: object) -> Mapping[str, StoredTensor] | None:
    """The checkpoint's headers where a door found them; a batch line may hold anything under that name."""
    return told if isinstance(told, Mapping) and all(isinstance(one, StoredTensor) for one in told.values()) else None
