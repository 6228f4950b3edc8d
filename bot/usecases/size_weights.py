"""Weights per rank: what the question gives, else what config.json implies."""

from collections.abc import Mapping, Sequence

from bot.budget.weights import Weights
from bot.domain.tensors import StoredTensor, TensorGrid, Unplaceable
from bot.reading.quantization_config import UnknownQuantization
from bot.reading.tensor_fields import MissingField
from bot.rulebook.weights import UnknownWeights
from bot.usecases.size_question import Asked
from bot.usecases.size_values import Refused, flag, integer, per_rank
from bot.usecases.weigh import weigh


def weights_of(asked: Asked) -> tuple[Sequence[int] | None, list[str]]:
    """(bytes of parameters and buffers per rank, or None; what was assumed). Raises Refused when the engine could not deal them out."""
    ranks = asked.grid.ranks
    given = per_rank(asked.arguments, "weights_bytes", ranks)
    if given is not None:
        return given, []
    whole = integer(asked.arguments, "checkpoint_bytes")
    if whole is not None:
        return [whole // ranks] * ranks, [f"weights split evenly over {ranks} ranks"]
    try:
        weights = _from_config(asked)
    except Unplaceable as error:
        raise Refused(str(error), by="engine") from error
    except (UnknownWeights, MissingField, UnknownQuantization) as error:
        return None, [f"weights are not known: {error}"]
    return [rank.resident for rank in weights.ranks], list(weights.assumptions)


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
    )


def _headers(told: object) -> Mapping[str, StoredTensor] | None:
    """The checkpoint's headers where a door found them; a batch line may hold anything under that name."""
    return told if isinstance(told, Mapping) and all(isinstance(one, StoredTensor) for one in told.values()) else None
