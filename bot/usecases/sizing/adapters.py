"""What LoRA adapters and offloading do to a rank's weights, and what they want of the host's memory."""

from functools import partial
from typing import NamedTuple

from bot.domain.size import GIB, gib
from bot.domain.tensors import TensorGrid, Unplaceable
from bot.reading.model.numbers import MissingField
from bot.usecases.sizing.question import Asked
from bot.usecases.sizing.values import Refused, amount, counted, flag
from bot.usecases.sizing.weigh import weigh_adapters

RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""Ranks that the engine takes. Source: vllm/config/lora.py MaxLoRARanks."""
TWICE = 1.9
"""Host memory used for each GiB that was asked to be offloaded (vLLM issue 56410)."""


class Change(NamedTuple):
    """Bytes that a rank holds more (or less) of, and what is said of it."""

    bytes: tuple[int, ...]
    said: tuple[str, ...]


def adapters(asked: Asked, grid: TensorGrid) -> Change:
    """The slots of every rank; nothing where adapters are not enabled. Raises Refused for what the engine refuses."""
    given, none = asked.arguments, (0,) * asked.grid.ranks
    if not flag(given, "enable_lora", False):
        return Change(none, ())
    slots, rank = counted(given, "max_loras") or 1, counted(given, "max_lora_rank") or 16
    if rank not in RANKS:
        raise Refused(f"max_lora_rank is {rank}; vLLM takes {', '.join(map(str, RANKS))}", by="engine")
    kept = counted(given, "max_cpu_loras") or slots
    if kept < slots:
        raise Refused(f"max_cpu_loras {kept} is smaller than max_loras {slots}", by="engine")
    weigh = partial(
        weigh_adapters, given["config"], asked.models, engine_version=asked.version, gpu=asked.gpu.id if asked.gpu else "",
        rank=rank, fully=flag(given, "fully_sharded_loras", False),
    )  # fmt: skip
    try:
        added, whole = weigh(grid, slots=slots), sum(weigh(TensorGrid(pp=grid.pp), slots=1))
    except Unplaceable as error:
        raise Refused(str(error), by="engine") from error
    except MissingField as error:
        return Change(none, (f"slots for LoRA adapters are not counted: {error}",))
    said = (
        f"{slots} slot{'s' if slots > 1 else ''} for LoRA adapters of rank {rank} add {gib(max(added))} of weights on a rank, "
        "beside every matrix of the language model",
        f"each tensor rank keeps up to {kept} adapters in the host's memory, {gib(whole)} each at that rank",
    )
    return Change(added, said)


def offloaded(asked: Asked, layers: tuple[int, ...]) -> Change:
    """What leaves each rank for the host's memory: of the layers alone, until as much as asked for has left.

    Source: vllm/model_executor/offloader/uva.py (before 0.17 vllm/model_executor/models/utils.py maybe_offload_to_cpu).
    """
    gibs = amount(asked.arguments, "cpu_offload_gb") or 0.0
    moved = tuple(-min(int(gibs * GIB), held) for held in layers)
    said = [*_kept_on_host(asked)]
    if gibs:
        host = -sum(moved)
        said.insert(
            0,
            f"{gib(-min(moved))} of the weights leave a rank for the host's memory, which needs {gib(host)} for them "
            f"({TWICE} times as much was seen); each step reads them over the bus",
        )
    return Change(moved, tuple(said))


def _kept_on_host(asked: Asked) -> list[str]:
    said, given = [], asked.arguments
    if cache := amount(given, "kv_offloading_size"):
        said.append(
            f"KV cache that leaves the cards takes {gib(int(cache * GIB))} of the host's memory over all ranks, and nothing of a card"
        )
    if swap := amount(given, "swap_space"):
        said.append(
            f"swapped blocks take {gib(int(swap * GIB * asked.grid.ranks))} of the host's memory over all ranks, and nothing of a card"
        )
    return said
