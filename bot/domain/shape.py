"""What a model keeps per request: its layers, and the caches that each of them has."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Heads:
    """Keys and values, one pair per token and KV head; split over tensor parallel ranks, replicated when there are more ranks.

    `window`: only the last so many tokens are attended (sliding window). `chunk`: attention stays inside chunks of so many tokens.
    `cross`: filled once from the encoder, not from the tokens.
    """

    kv_heads: int
    key_dim: int
    value_dim: int
    window: int | None = None
    chunk: int | None = None
    cross: bool = False
    tokens_per_entry: float = 1


@dataclass(frozen=True, slots=True)
class Latent:
    """One vector of `width` elements per `tokens_per_entry` tokens, the same on every tensor parallel rank (MLA, indexers, compressors).

    `element`: `kv` as --kv-cache-dtype says, or `uint8`, `float32`, `model` whatever it says.
    `packed_bytes`: bytes of one entry when the cache is kept as FP8 with its scales inside; None where that kernel has no such form.
    `block`: tokens per block when the kernel fixes it. `alignment`: a page is rounded up to a multiple of so many bytes.
    """

    width: int
    element: str = "kv"
    tokens_per_entry: int = 1
    window: int | None = None
    packed_bytes: int | None = None
    block: int | None = None
    alignment: int | None = None
    stride: int = 1


@dataclass(frozen=True, slots=True)
class Ring:
    """Tokens of a group that is still being pooled: one block a request, for its whole life. `entries` tokens make a group; `width`
    elements of 16 bits are kept of each.
    """

    entries: int
    width: int


@dataclass(frozen=True, slots=True)
class ConvolutionWindow:
    """A convolution's last tokens, paged as attention with a window of `kernel` tokens is (Inkling): for each of `heads` a head's key and
    value of `head_dim` and its share of two hidden states, rounded up to a power of two, in 16 bits.
    """

    heads: int
    head_dim: int
    hidden: int
    kernel: int


@dataclass(frozen=True, slots=True)
class Mamba1:
    """Selective state space, first kind: a convolution window and `inner` × `state`."""

    inner: int
    state: int
    kernel: int


@dataclass(frozen=True, slots=True)
class Mamba2:
    """Selective state space, second kind: `heads` of `head_dim` × `state`; `groups` share B and C."""

    inner: int
    groups: int
    heads: int
    head_dim: int
    state: int
    kernel: int


@dataclass(frozen=True, slots=True)
class GatedDelta:
    """Gated delta network (Qwen3-Next, Qwen3.5): one matrix per value head and a convolution over keys and values."""

    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    kernel: int


@dataclass(frozen=True, slots=True)
class KimiDelta:
    """Kimi delta attention: one matrix per head and a convolution over queries, keys and values.

    `bounded`: the bound of its gate, where it has one; the engine reads prompts with another kernel then.
    """

    heads: int
    head_dim: int
    kernel: int
    bounded: int | None = None


@dataclass(frozen=True, slots=True)
class Lightning:
    """Linear attention with one `head_dim` × `head_dim` matrix per head (MiniMax-Text-01, Bailing)."""

    heads: int
    head_dim: int


@dataclass(frozen=True, slots=True)
class ShortConvolution:
    """A convolution window of `kernel` − 1 tokens over `width` channels (LFM2), `dilation` apart. `whole`: every rank keeps all of it,
    drafted tokens too (n-gram embeddings of Qwen 4).
    """

    width: int
    kernel: int
    dilation: int = 1
    whole: bool = False


State = Mamba1 | Mamba2 | GatedDelta | KimiDelta | Lightning | ShortConvolution
Paged = Heads | Latent | Ring | ConvolutionWindow
Cache = Paged | State
CACHES: Mapping[str, type[Cache]] = {
    "heads": Heads,
    "latent": Latent,
    "ring": Ring,
    "convolution-window": ConvolutionWindow,
    "mamba1": Mamba1,
    "mamba2": Mamba2,
    "gated-delta": GatedDelta,
    "kimi-delta": KimiDelta,
    "lightning": Lightning,
    "short-convolution": ShortConvolution,
}
"""What a family's file calls each kind of cache; what it may say about one are that one's fields."""


@dataclass(frozen=True, slots=True)
class ModelShape:
    """A model as its config.json describes it, whole (not per rank).

    `layers`: the caches of each layer that has a place in the pipeline, in order; a layer without any is ().
    `kv_dtype`: how the checkpoint wants its KV cache kept, None when it does not say; `kv_scheme`: what it was
    calibrated for, which some versions take as that. `state_dtype`: the same for recurrent state.
    `packed`: pages of different sizes lie side by side in one pool. `fixed_block`: tokens per block when its kernel fixes them.
    `state_chunk`: tokens that a kernel of recurrent state works on at once. `sparse`: an indexer picks the tokens that are attended.
    `shared_layers`: the last so many layers read the cache of earlier ones. `max_positions`: None when nothing limits the context.
    `draft_layers`: the caches of what drafts tokens for this model; they stand on the last pipeline stage, and are neither in `layers`
    nor in `caches`.
    """

    family: str
    architecture: str
    layers: tuple[tuple[Cache, ...], ...]
    heads: int
    hidden: int
    vocab: int
    max_positions: int | None
    dtype: str
    intermediate: int = 0
    experts: int = 0
    experts_per_token: int = 0
    expert_intermediate: int = 0
    kv_dtype: str | None = None
    kv_scheme: str | None = None
    state_dtype: str | None = None
    packed: bool = False
    pipeline: bool = True
    encoder_tokens: int = 0
    state_chunk: int = 0
    fixed_block: int = 0
    sparse: bool = False
    shared_layers: int = 0
    draft_layers: tuple[tuple[Cache, ...], ...] = ()

    @property
    def caches(self) -> frozenset[Cache]:
        """Every different cache of the model, once."""
        layers = {id(layer): layer for layer in self.layers}.values()  # most layers are one object, which need not be hashed again
        return frozenset(cache for layer in layers for cache in layer)

    @property
    def states(self) -> frozenset[Cache]:
        """Every different recurrent state of the model, once."""
        return frozenset(cache for cache in self.caches if not isinstance(cache, Paged))

    @property
    def hybrid(self) -> bool:
        """Whether recurrent state and attention share one pool."""
        return self.recurrent and any(isinstance(cache, Heads | Latent) for cache in self.caches)

    @property
    def recurrent(self) -> bool:
        """Whether any layer keeps recurrent state."""
        return bool(self.states)

    @property
    def latent(self) -> bool:
        """Whether attention keeps latents instead of heads (MLA). An indexer's keys beside heads are latents too, and do not count."""
        kinds = {type(cache) for cache in self.caches}
        return Latent in kinds and Heads not in kinds
