"""What is asked of the planner, and what it answers: bytes per rank, blocks, tokens."""

from dataclasses import dataclass
from typing import Literal

from bot.domain.accounting import KvDtype


@dataclass(frozen=True, slots=True)
class Grid:
    """How one model is spread: tensor, pipeline, data and decode-context parallel sizes."""

    tp: int = 1
    pp: int = 1
    dp: int = 1
    dcp: int = 1

    @property
    def ranks(self) -> int:
        """Workers of one replica."""
        return self.tp * self.pp


@dataclass(frozen=True, slots=True)
class CacheSettings:
    """How the pool is cut, after defaults. `in_flight`: tokens scheduled but not yet settled; `block`: tokens per block.

    `states`: which recurrent states a request keeps: the running one, that and the newest aligned one, or one per block.
    `checkpoint_states`: kinds of state of which aligned caching keeps one more. `draft_tokens`: tokens that are drafted at once; a request
    keeps a recurrent state for each of them. `packed_latents`: MLA entries are kept as FP8 with
    their scales inside. `pads_values`: values are kept as wide as keys. Element sizes are in bytes.
    """

    max_model_len: int
    in_flight: int
    kv: KvDtype
    block: int = 16
    model_bytes: int = 2
    conv_bytes: int = 2
    state_bytes: int = 2
    states: Literal["running", "aligned", "every"] = "running"
    packed_latents: bool = False
    hybrid_manager: bool = True
    blocks_override: int | None = None
    encoder_tokens: int = 0
    draft_tokens: int = 0
    pads_values: bool = False
    checkpoint_states: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KvPlan:
    """The pool of every rank, as the engine would cut it. Bytes per rank in grid order; None where the pool is not known.

    `request_bytes`: one request of max_model_len. `num_blocks` counts the null block. `longest_context` ignores the model's own limit;
    None when a request's need does not grow with its length.
    """

    block_size: int
    groups: int
    bytes_per_block: tuple[int, ...]
    request_blocks: int
    request_bytes: tuple[int, ...]
    bytes_per_token: tuple[float, ...]
    fixed_bytes: tuple[int, ...]
    max_model_len: int
    fits: bool | None = None
    num_blocks: int | None = None
    tokens: int | None = None
    concurrency: float | None = None
    estimated_max_model_len: int | None = None
    longest_context: int | None = None
    limiting_rank: int | None = None


@dataclass(frozen=True, slots=True)
class RankBudget:
    """One rank's memory in bytes. What is not known is None."""

    rank: int
    total: int | None
    budget: int | None
    weights: int | None
    other: int | None
    kv_pool: int | None

    @property
    def outside(self) -> int | None:
        """Bytes of the device that no term of this budget claims: total − weights − other − pool."""
        if self.total is None or self.weights is None or self.other is None or self.kv_pool is None:
            return None
        return self.total - self.weights - self.other - self.kv_pool
