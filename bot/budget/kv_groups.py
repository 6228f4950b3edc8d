"""How layers share block tables: pages of one size in groups of one length, as the engine's planner forms them.

Source of every rule here: vllm/v1/core/kv_cache_utils.py (0.19 to 0.32) and kv_cache_planning.py (0.33).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bot.budget.kv import FULL, SLIDING, Page, ceil_div
from bot.domain.budget import CacheSettings


@dataclass(frozen=True, slots=True)
class Member:
    """One cache of one layer."""

    layer: int
    page: Page


@dataclass(frozen=True, slots=True)
class Group:
    """Caches that share one block table; a block holds a page of each."""

    members: tuple[Member, ...]
    pages: frozenset[Page]

    def blocks(self, length: int, settings: CacheSettings, dcp: int = 1) -> int:
        """Blocks of this group that one request of `length` tokens needs."""
        return max(page.blocks(length, settings, dcp) for page in self.pages)

    @property
    def page(self) -> Page:
        """Any page of the group; they have one block size."""
        return self.members[0].page


class Unplannable(ValueError):
    """The engine refuses this combination of caches; the message is a sentence."""


def group(members: Sequence[Member], *, hybrid_manager: bool, packed: bool, pads: bool) -> tuple[Group, ...]:
    """The groups of a whole model. Empty for a model that keeps nothing.

    `pads`: attention pages that do not divide the largest page may be padded to it. `packed`: pages of several sizes lie side by side.
    """
    if not members:
        return ()
    if not hybrid_manager:
        members = promoted(members)
    pages = {member.page: None for member in members}
    if same_cache(list(pages)) or same_need(list(pages)):
        return (_group(members),)
    if packed and len({page.size for page in pages}) > 1:
        return _packed(members)
    return _even_groups(_one_page_size(members, pads))


def _group(members: Sequence[Member]) -> Group:
    return Group(tuple(members), frozenset(member.page for member in members))


def same_cache(pages: Sequence[Page]) -> bool:
    """Whether one page describes all: equal, or full attention that differs in a remembered window only."""
    first = pages[0]
    if first.kind != "full":
        return len(set(pages)) == 1
    windows = {page.window for page in pages} - {None}
    return len({replace(page, window=None) for page in pages}) == 1 and len(windows) <= 1


def same_need(pages: Sequence[Page]) -> bool:
    """Whether all need the same number of blocks for every request, so that one group can hold them."""
    first = pages[0]
    if len({page.block for page in pages}) > 1:
        return False
    if first.kind in FULL:
        return all(page.kind in FULL for page in pages)
    if first.kind in SLIDING:
        kinds = {first.kind} if first.kind == "sliding_latent" else SLIDING
        return all(page.kind in kinds and page.window == first.window for page in pages)
    if first.kind == "ring":
        return all(page.kind == "ring" for page in pages)
    if first.kind == "state":
        return all(page.kind == "state" and page.size == first.size and _is_whole(page) == _is_whole(first) for page in pages)
    return all(page.kind == first.kind and page.window == first.window for page in pages)


def promoted(members: Sequence[Member]) -> list[Member]:
    """Local attention planned as full attention, as without the hybrid KV cache manager.

    A model whose layers are alike is left as it is; so is one without any full attention layer.
    """
    pages = list({member.page for member in members})
    if same_cache(pages) or same_need(pages):
        return list(members)
    if any(page.kind in FULL for page in pages):
        members = [Member(member.layer, _full(member.page)) for member in members]
    after = list({member.page for member in members})
    if not (same_cache(after) or same_need(after)):
        raise Unplannable("the hybrid KV cache manager is disabled, and the caches of this model cannot be planned as one kind")
    return list(members)


def _full(page: Page) -> Page:
    if page.kind in {"sliding", "chunked"}:
        return replace(page, kind="full")
    return replace(page, kind="latent") if page.kind == "sliding_latent" else page


def _one_page_size(members: Sequence[Member], pads: bool) -> list[Member]:
    """Smaller pages get longer blocks when they divide the largest page, else padding. Latent pages cannot be padded."""
    largest = max(member.page.size for member in members)
    return [Member(member.layer, _grown(member.page, largest, pads)) for member in members]


def _grown(page: Page, size: int, pads: bool) -> Page:
    if page.size == size:
        return page
    if page.kind == "state":
        return replace(page, padded=size)
    if size % page.size == 0:
        return page.with_block(page.block * (size // page.size))
    if pads and page.kind != "latent":
        return replace(page, padded=size)
    raise Unplannable(f"a page of {page.size} B does not divide the largest page of {size} B, and this engine version cannot pad it")


def _even_groups(members: Sequence[Member]) -> tuple[Group, ...]:
    """Groups of as many layers as the rarest kind has, or as the commonest when it has less than half as many again."""
    kinds: dict[Page, list[Member]] = {}
    for member in members:
        kinds.setdefault(member.page, []).append(member)
    buckets = _merged(kinds)
    fewest, most = min(map(len, buckets)), max(map(len, buckets))
    size = most if most < fewest * 1.5 else fewest
    groups: list[Group] = []
    for bucket in buckets:
        count = ceil_div(len(bucket), size)
        # Every count-th layer, so that each pipeline stage gets its share of every group.
        groups += [_group(bucket[start::count]) for start in range(count)]
    return tuple(groups)


def _merged(kinds: dict[Page, list[Member]]) -> list[list[Member]]:
    buckets: list[tuple[list[Page], list[Member]]] = []
    for page, members in kinds.items():
        for pages, bucket in buckets:
            if same_cache([*pages, page]):
                pages.append(page)
                bucket.extend(members)
                break
        else:
            buckets.append(([page], list(members)))
    return [bucket for _, bucket in buckets]


def _packed(members: Sequence[Member]) -> tuple[Group, ...]:
    """Groups of uneven pages that a block holds side by side.

    Buckets of equal need; one that repeats a pattern (as many layers of every page size) is cut into groups of equally many repeats,
    the number that pads least and is at least that of the largest bucket with several page sizes.
    """
    buckets: list[list[Member]] = []
    for member in members:
        for bucket in buckets:
            if same_need([bucket[0].page, member.page]):
                bucket.append(member)
                break
        else:
            buckets.append([member])
    patterns = [_by_size(bucket) for bucket in buckets]
    balanced = [len({len(layers) for layers in pattern}) == 1 for pattern in patterns]
    floor = max((len(pattern[0]) for pattern, even in zip(patterns, balanced, strict=True) if even and len(pattern) > 1), default=0)
    repeats = _least_padding([len(pattern[0]) for pattern, even in zip(patterns, balanced, strict=True) if even], floor) if floor else 0
    counts = [ceil_div(len(pattern[0]), repeats) if even and repeats else 1 for pattern, even in zip(patterns, balanced, strict=True)]
    widest = max(
        sum(ceil_div(len(layers), len(bucket) if _is_state(bucket, repeats) else count) * layers[0].page.size for layers in pattern)
        for bucket, pattern, count in zip(buckets, patterns, counts, strict=True)
    )
    groups: list[Group] = []
    for bucket, pattern, count in zip(buckets, patterns, counts, strict=True):
        if _is_state(bucket, repeats):  # no more states than the block holds anyway
            count = max(count, ceil_div(len(bucket), max(widest // bucket[0].page.size, 1)))
        groups += _split(bucket, pattern, count)
    return tuple(groups)


def _is_whole(page: Page) -> bool:
    return any(str(item).endswith(" whole") for item in page.layout)


def _is_state(bucket: Sequence[Member], repeats: int) -> bool:
    """Whether it may be cut down to one layer a group; windows may where no pattern is repeated."""
    kind = bucket[0].page.kind
    return kind in {"state", "ring"} or (not repeats and kind in SLIDING)


def _by_size(bucket: Sequence[Member]) -> list[list[Member]]:
    sizes: dict[int, list[Member]] = {}
    for member in bucket:
        sizes.setdefault(member.page.size, []).append(member)
    return list(sizes.values())


def _split(bucket: Sequence[Member], pattern: Sequence[Sequence[Member]], count: int) -> list[Group]:
    if count == 1:
        return [_group(bucket)]
    rows = list(zip(*pattern, strict=True))
    return [_group([member for row in rows[start::count] for member in row]) for start in range(count)]


def _least_padding(counts: Sequence[int], floor: int) -> int:
    """The size, at least `floor`, to which all counts round up with least waste; the larger one when two waste the same."""
    return min(range(max(1, floor), max(counts) + 1), key=lambda size: (sum(-count % size for count in counts), -size))
