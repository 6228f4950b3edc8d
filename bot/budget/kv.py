"""The page of one cache: how many bytes a block of tokens takes in one layer, and how many blocks a request needs."""

from dataclasses import dataclass, replace
from math import ceil
from typing import Literal

from bot.budget.kv_state import state_bytes
from bot.budget.placement import heads_per_rank
from bot.domain.budget import CacheSettings
from bot.domain.shape import Cache, ConvolutionWindow, Heads, KimiDelta, Latent, Ring, ShortConvolution, State

Kind = Literal["full", "latent", "sliding", "sliding_latent", "chunked", "cross", "state", "ring"]
FULL: frozenset[Kind] = frozenset({"full", "latent"})
SLIDING: frozenset[Kind] = frozenset({"sliding", "sliding_latent"})


@dataclass(frozen=True, slots=True)
class Page:
    """One layer's part of a block. `payload` bytes for `block` tokens, `padded` when pages of other layers are larger.

    `window`: the sliding window, or the chunk of chunked attention. `layout` keeps pages apart that merely have the same size.
    `stride`: bytes that a whole block must be a multiple of.
    """

    kind: Kind
    block: int
    payload: int
    layout: tuple[float | str, ...] = ()
    window: int | None = None
    padded: int | None = None
    stride: int = 1

    @property
    def size(self) -> int:
        """Bytes of the pool."""
        return self.payload if self.padded is None else self.padded

    def with_block(self, block: int) -> "Page":
        """The same cache cut into blocks of another length."""
        return replace(self, block=block, payload=self.payload * block // self.block)

    def grows(self, length: int, settings: CacheSettings) -> bool:
        """Whether a request of `length` tokens needs more with every further one; a sliding window does until it is full."""
        return self.kind in FULL or (self.kind in SLIDING and (self.window or 1) - 1 + settings.in_flight > length)

    def blocks(self, length: int, settings: CacheSettings, dcp: int = 1) -> int:
        """Blocks that one request of `length` tokens may hold at once. Source: vllm/v1/kv_cache_interface.py, the *Spec classes.

        A sliding window may start inside a block, hence one more. Recurrent state is not split over decode-context ranks.
        """
        match self.kind:
            case "full" | "latent":
                return ceil_div(ceil_div(length, dcp), self.block)
            case "sliding" | "sliding_latent":
                return ceil_div(min((self.window or 1) - 1 + settings.in_flight, length), self.block) + 1
            case "chunked":
                return ceil_div(min((self.window or 0) + settings.in_flight, length), self.block)
            case "ring":
                return 1
            case "cross":
                return ceil_div(settings.encoder_tokens, self.block)
            case "state":
                checkpoint = 1 if self.layout[0] in settings.checkpoint_states else 0
                if settings.states == "every":
                    return ceil_div(length, self.block)
                return {"running": 1, "aligned": 2 + checkpoint}[settings.states] + settings.draft_tokens


def ceil_div(value: int, by: int) -> int:
    """`value` ÷ `by`, rounded up."""
    return -(-value // by)


def entry_bytes(heads: Heads, settings: CacheSettings, *, plain: bool = False) -> int:
    """Bytes of one token's key and value for one head; `plain`: in the model's own type, whatever --kv-cache-dtype says."""
    value_dim = max(heads.key_dim, heads.value_dim) if settings.pads_values else heads.value_dim
    if plain:
        return (heads.key_dim + value_dim) * settings.model_bytes
    kv = settings.kv
    key = ceil(heads.key_dim * kv.key_bits / 8) + kv.key_extra
    return key + ceil(value_dim * kv.value_bits / 8) + kv.value_extra


def page_of(cache: Cache, tp: int, settings: CacheSettings, *, plain: bool = False) -> Page:
    """The page of `cache` on one of `tp` ranks."""
    if isinstance(cache, Heads):
        return _heads_page(cache, tp, settings, plain)
    if isinstance(cache, Latent):
        return _latent_page(cache, settings)
    if isinstance(cache, Ring):
        return _ring_page(cache, settings)
    if isinstance(cache, ConvolutionWindow):
        return _convolution_page(cache, tp)
    block = settings.max_model_len if settings.states == "running" else settings.block
    return Page("state", block, state_bytes(cache, tp, settings), (state_kind(cache),))


def _ring_page(cache: Ring, settings: CacheSettings) -> Page:
    """A ring holds its group and what is drafted, in whole groups, a power of two of them. Source: vllm/models/glm5next attention.py."""
    groups = ceil_div(cache.entries + settings.draft_tokens, cache.entries)
    entries = cache.entries * 2 ** (groups - 1).bit_length()
    return Page("ring", entries, 2 * cache.width * entries, (cache.width,))


def _convolution_page(cache: ConvolutionWindow, tp: int) -> Page:
    """Source: vllm/models/inkling sconv_swa_attn.py InklingConvState."""
    on_rank = heads_per_rank(cache.heads, tp)
    entry = 2 * (1 << (2 * cache.head_dim + 2 * (cache.hidden // cache.heads) - 1).bit_length())
    return Page("sliding", cache.kernel, cache.kernel * on_rank * entry, (on_rank, entry), cache.kernel)


def state_kind(state: State) -> str:
    """The name by which rules/accounting/planner.toml speaks of a kind of recurrent state."""
    bounded = isinstance(state, KimiDelta) and state.bounded is not None
    whole = isinstance(state, ShortConvolution) and state.whole
    return type(state).__name__ + " bounded" * bounded + " whole" * whole


def _heads_page(cache: Heads, tp: int, settings: CacheSettings, plain: bool) -> Page:
    kind: Kind = "cross" if cache.cross else "sliding" if cache.window else "chunked" if cache.chunk else "full"
    on_rank, entry = heads_per_rank(cache.kv_heads, tp), entry_bytes(cache, settings, plain=plain)
    payload = int(settings.block / cache.tokens_per_entry) * on_rank * entry
    layout = (on_rank, cache.key_dim, cache.value_dim, entry)
    return Page(kind, settings.block, payload, layout, cache.window or cache.chunk)


def _latent_page(cache: Latent, settings: CacheSettings) -> Page:
    block = cache.block or settings.block
    if cache.packed_bytes is not None and settings.packed_latents:
        entry: float = cache.packed_bytes
    else:
        entry = cache.width * {"kv": settings.kv.key_bits / 8, "uint8": 1, "float32": 4, "model": settings.model_bytes}[cache.element]
    payload = int(block // cache.tokens_per_entry * entry)
    kind: Kind = "sliding_latent" if cache.window else "latent"
    padded = ceil_div(payload, cache.alignment) * cache.alignment if cache.alignment else None
    layout = (cache.width, entry, cache.tokens_per_entry)
    return Page(kind, block, payload, layout, cache.window, padded if padded != payload else None, cache.stride)
