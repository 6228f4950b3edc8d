"""Shape, grid and pools -> the plan of every rank: blocks, bytes, tokens, and whether one full request fits."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import lcm

from bot.budget.kv import FULL, Page, ceil_div, page_of
from bot.budget.kv_groups import Group, Member, group
from bot.budget.placement import stage_layers, stage_of
from bot.budget.search import largest
from bot.domain.accounting import PlannerRules
from bot.domain.budget import CacheSettings, Grid, KvPlan
from bot.domain.shape import Cache, Heads, Latent, ModelShape, Paged


@dataclass(frozen=True, slots=True)
class Layout:
    """The groups of a model, and what one block of the pool takes on each pipeline stage (bytes)."""

    groups: tuple[Group, ...]
    block_bytes: tuple[int, ...]
    settings: CacheSettings
    dcp: int

    def blocks(self, length: int) -> int:
        """Blocks that one request of `length` tokens needs; every group takes its own from the one pool."""
        return sum(one.blocks(length, self.settings, self.dcp) for one in self.groups)


def lay_out(shape: ModelShape, grid: Grid, settings: CacheSettings, rules: PlannerRules) -> Layout:
    """Pages of all layers, grouped, and the bytes of one block per stage. Raises Unplannable when the engine would refuse."""
    members = _members(shape, grid, settings, rules)
    groups = group(members, hybrid_manager=settings.hybrid_manager, packed=shape.packed, pads=rules.pads_pages)
    stages = list(stage_layers(len(shape.layers), grid.pp))
    stages[-1] = range(stages[-1].start, stages[-1].stop + len(shape.draft_layers))
    return Layout(groups, tuple(_block_bytes(groups, stage, strides=rules.block_strides) for stage in stages), settings, grid.dcp)


def _members(shape: ModelShape, grid: Grid, settings: CacheSettings, rules: PlannerRules) -> list[Member]:
    pages: dict[tuple[int, bool], list[Page]] = {}  # by identity: the layers of one kind are one object
    edge, last = settings.kv.skip_edges, len(shape.layers) - 1
    members = []
    owned = len(shape.layers) - (shape.shared_layers if rules.shares_kv else 0)
    for layer, caches in enumerate(shape.layers[:owned]):
        key = (id(caches), layer < edge or layer > last - edge)
        if key not in pages:
            pages[key] = [page_of(cache, grid.tp, settings, plain=key[1]) for cache in caches]
        members += [Member(layer, page) for page in pages[key]]
    own = _padded_states(members) if shape.hybrid else members
    return [*own, *_draft_members(shape, grid, settings)]


def _draft_members(shape: ModelShape, grid: Grid, settings: CacheSettings) -> list[Member]:
    """Caches of the draft model's layers, counted on behind the model's own. Source: vllm/v1/worker/gpu_model_runner.py, the drafter."""
    first = len(shape.layers)
    pages = {cache: page_of(cache, grid.tp, settings) for layer in shape.draft_layers for cache in layer}
    return [Member(first + number, pages[cache]) for number, layer in enumerate(shape.draft_layers) for cache in layer]


def _padded_states(members: list[Member]) -> list[Member]:
    """Recurrent state fills a whole attention page, so that one pool serves both."""
    page = max((member.page.size for member in members if member.page.kind not in {"state", "ring"}), default=0)
    return [
        Member(member.layer, replace(member.page, padded=page)) if member.page.kind == "state" and member.page.payload < page else member
        for member in members
    ]


def _block_bytes(groups: Sequence[Group], stage: range, *, strides: bool) -> int:
    """Bytes of one block on a stage: the group that needs most there, rounded up to the strides that its kernels ask for."""
    widest = max((sum(member.page.size for member in one.members if member.layer in stage) for one in groups), default=0)
    whole = lcm(*(member.page.stride for one in groups for member in one.members if member.layer in stage)) if strides else 1
    return ceil_div(widest, whole) * whole


def plan(shape: ModelShape, grid: Grid, settings: CacheSettings, rules: PlannerRules, pools: Sequence[int] | None) -> KvPlan:
    """The engine's plan. `pools`: bytes of the KV cache pool per rank (pipeline × tensor), None when they are not known."""
    layout = lay_out(shape, grid, settings, rules)
    block_bytes = tuple(layout.block_bytes[stage_of(rank, grid)] for rank in range(grid.ranks))
    blank = _needs(layout, block_bytes, settings.max_model_len)
    if pools is None:
        return blank
    return _with_pools(blank, layout, rules, pools)


def _needs(layout: Layout, block_bytes: tuple[int, ...], length: int) -> KvPlan:
    settings, dcp = layout.settings, layout.dcp
    blocks = layout.blocks(length)
    growing = [one for one in layout.groups if one.page.grows(length, settings)]
    per_token = sum(1 / (one.page.block * dcp) for one in growing)
    fixed = blocks - sum(one.blocks(length, settings, dcp) for one in growing)
    return KvPlan(
        block_size=min((one.page.block for one in growing), default=min((one.page.block for one in layout.groups), default=settings.block)),
        groups=len(layout.groups),
        bytes_per_block=block_bytes,
        request_blocks=blocks,
        request_bytes=tuple(blocks * size for size in block_bytes),
        bytes_per_token=tuple(size * per_token for size in block_bytes),
        fixed_bytes=tuple(fixed * size for size in block_bytes),
        max_model_len=length,
    )


def _with_pools(needs: KvPlan, layout: Layout, rules: PlannerRules, pools: Sequence[int]) -> KvPlan:
    if not layout.groups:
        return replace(needs, fits=True, num_blocks=1)
    sizes, override = needs.bytes_per_block, layout.settings.blocks_override
    if override is not None and rules.override_limits:
        pools = [override * size for size in sizes]
    held = 1 if rules.holds_null_block else 0
    checked = [pool - held * size for pool, size in zip(pools, sizes, strict=True)]
    short = [rank for rank, (room, need) in enumerate(zip(checked, needs.request_bytes, strict=True)) if room <= 0 or need > room]
    blocks = override if override is not None else min(_blocks(pool, size) for pool, size in zip(pools, sizes, strict=True))
    usable = min(_blocks(room, size) for room, size in zip(checked, sizes, strict=True))
    concurrency = blocks / needs.request_blocks
    tightest = min(range(len(pools)), key=lambda rank: (_blocks(pools[rank], sizes[rank]), checked[rank] - needs.request_bytes[rank]))
    return replace(
        needs,
        fits=not short,
        num_blocks=blocks,
        tokens=_printed(layout, rules, blocks, concurrency, needs.max_model_len),
        concurrency=concurrency,
        estimated_max_model_len=_longest(layout, usable, needs.max_model_len),
        longest_context=_longest_of_all(layout, blocks),
        limiting_rank=tightest,
    )


def _blocks(pool: int, size: int) -> int:
    return max(0, pool // size) if size else 0


def _printed(layout: Layout, rules: PlannerRules, blocks: int, concurrency: float, length: int) -> int:
    """What that version prints as "GPU KV cache size", in tokens."""
    if rules.printed_tokens == "concurrency":
        return int(concurrency * length)
    return blocks // len(layout.groups) * min(one.page.block for one in layout.groups) * layout.dcp


def _longest(layout: Layout, blocks: int, limit: int) -> int:
    """The longest request, up to `limit` tokens, that `blocks` can hold; 0 when not even one token."""
    return largest(lambda length: layout.blocks(length) <= blocks, 0, limit) or 0


def _longest_of_all(layout: Layout, blocks: int) -> int | None:
    growing = [one for one in layout.groups if one.page.kind in FULL]
    if not growing and not any(one.page.kind == "state" and layout.settings.states == "every" for one in layout.groups):
        return None
    widest = max(one.page.block for one in layout.groups) * layout.dcp
    return _longest(layout, blocks, max(1, blocks) * widest)


def block_for_states(shape: ModelShape, grid: Grid, settings: CacheSettings, multiple: int) -> int:
    """Tokens per block so that an attention page holds a recurrent state: a multiple of `multiple`, at least the block asked for.

    Source: vllm/platforms/interface.py _align_hybrid_block_size.
    """
    states = max(page_of(cache, grid.tp, settings).payload for cache in shape.caches if _is_state(cache))
    one_token = _token_bytes(shape, grid, settings)
    return max(settings.block, multiple * ceil_div(states, multiple * one_token))


def _token_bytes(shape: ModelShape, grid: Grid, settings: CacheSettings) -> int:
    single = replace(settings, block=1)
    attention = [cache for cache in shape.caches if isinstance(cache, Latent) or (isinstance(cache, Heads) and not cache.cross)]
    return max(page_of(cache, grid.tp, single).payload for cache in attention)


def _is_state(cache: Cache) -> bool:
    return not isinstance(cache, Paged)
