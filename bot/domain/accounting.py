"""What `budget` is handed about one engine version: the rules that differ between versions, never the version itself."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class KvDtype:
    """How one key and one value are kept: bits per element, and bytes beside them per token, head and side (scales, norms).

    `skip_edges`: so many layers at either end keep the model's own type. `block`: the least tokens per block its kernel takes.
    """

    name: str
    key_bits: float = 16
    value_bits: float = 16
    key_extra: int = 0
    value_extra: int = 0
    skip_edges: int = 0
    block: int = 0


@dataclass(frozen=True, slots=True)
class PlannerRules:
    """How one engine version plans its KV cache pool.

    `in_flight`: what a sliding window reserves beside the window: one batch of tokens, or one per concurrent batch. `holds_null_block`:
    the check for one full request leaves a block out. `printed_tokens`: blocks ÷ groups, or concurrency × length. `override_limits`:
    num_gpu_blocks_override bounds the check too. `states`: which recurrent states prefix caching keeps, aligned ones or one per block.
    `state_prefix_caching`: models with recurrent state cache prefixes unless told not to. `every_states`: kinds that can be kept once per
    block. `checkpoint_states`: kinds of which aligned caching keeps one more, taken while a prompt is read. `delta_multiple`: aligned
    states of delta-rule layers stand at multiples of so many tokens. `states_follow_block`: a block that holds a state is a multiple of
    --block-size, not of the kernel's least block. `latent_state_multiple`: the least multiple where attention keeps latents. `shares_kv`:
    layers that read another layer's cache have none of their own. `scheme_sets_kv`: a KV cache scheme in compressed tensors makes the
    cache FP8. `block_strides`: a block is rounded up to the strides that its kernels ask for. `pads_pages`: attention pages that do not
    divide the largest are padded to it. `async_scheduling`: a second batch is prepared while one runs, but not with `synchronous_drafts`,
    methods that propose tokens. `pads_values`: values narrower than keys are kept as wide as keys. `not_float16`: model types that are
    never run in float16.
    """

    in_flight: Literal["batch", "batches"]
    holds_null_block: bool
    printed_tokens: Literal["groups", "concurrency"]
    override_limits: bool
    states: Literal["aligned", "every"]
    state_prefix_caching: bool
    delta_multiple: int
    checkpoint_states: tuple[str, ...]
    every_states: tuple[str, ...]
    states_follow_block: bool
    latent_state_multiple: int
    shares_kv: bool
    pads_pages: bool
    pads_values: bool
    scheme_sets_kv: bool
    block_strides: bool
    async_scheduling: bool
    synchronous_drafts: tuple[str, ...]
    not_float16: tuple[str, ...]
    utilization: float
    block_size: int
