"""How layers share block tables."""

from collections.abc import Sequence

import pytest

from bot.budget.kv import Page
from bot.budget.kv_groups import Group, Member, Unplannable, group

FULL = Page("full", 16, 1_000)
WINDOW = Page("sliding", 16, 1_000, window=1_024)


def grouped(pages: Sequence[Page], *, hybrid: bool = True, packed: bool = False, pads: bool = True) -> tuple[Group, ...]:
    return group([Member(i, page) for i, page in enumerate(pages)], hybrid_manager=hybrid, packed=packed, pads=pads)


def sizes(groups: Sequence[Group]) -> list[tuple[str, int]]:
    return [(one.page.kind, len(one.members)) for one in groups]


def test_a_model_that_keeps_nothing_has_no_group() -> None:
    assert grouped([]) == ()


def test_layers_alike_are_one_group() -> None:
    assert sizes(grouped([FULL] * 32)) == [("full", 32)]


def test_full_attention_of_several_sizes_is_one_group() -> None:
    assert sizes(grouped([FULL, Page("latent", 16, 70)] * 61)) == [("full", 122)]


def test_five_windows_to_one_full_layer_are_cut_to_the_rarest_kind() -> None:
    assert sizes(grouped(([WINDOW] * 5 + [FULL]) * 8)) == [("sliding", 8)] * 5 + [("full", 8)]


def test_what_is_left_over_makes_a_shorter_group() -> None:
    pages = ([WINDOW] * 5 + [FULL]) * 10 + [WINDOW] * 2  # 52 with a window, 10 without
    groups = grouped(pages)
    assert len(groups) == 7
    assert sorted(len(one.members) for one in groups if one.page.kind == "sliding") == [8, 8, 9, 9, 9, 9]


def test_kinds_of_nearly_equal_number_are_padded_to_the_commoner_one() -> None:
    assert sizes(grouped([FULL] * 13 + [WINDOW] * 12)) == [("full", 13), ("sliding", 12)]
    assert len(grouped([FULL] * 18 + [WINDOW] * 12)) == 3


def test_every_group_takes_every_nth_layer_so_that_each_stage_gets_its_share() -> None:
    groups = grouped([WINDOW, WINDOW, FULL] * 4)
    assert [member.layer for member in groups[0].members] == [0, 3, 6, 9]
    assert [member.layer for member in groups[1].members] == [1, 4, 7, 10]


def test_a_smaller_page_gets_a_longer_block() -> None:
    groups = grouped([Page("full", 16, 500), WINDOW] * 4)
    assert (groups[0].page.block, groups[0].page.size) == (32, 1_000)


def test_a_page_that_does_not_divide_is_padded_or_refused_by_version() -> None:
    pages = [Page("full", 16, 300), WINDOW] * 4
    assert grouped(pages)[0].page.size == 1_000
    with pytest.raises(Unplannable, match="a page of 300 B does not divide the largest page of 1000 B"):
        grouped(pages, pads=False)


def test_latent_pages_are_never_padded() -> None:
    with pytest.raises(Unplannable):
        grouped([Page("latent", 16, 300), WINDOW] * 4)


def test_without_the_hybrid_manager_windows_are_planned_as_full_attention() -> None:
    assert sizes(grouped(([WINDOW] * 5 + [FULL]) * 8, hybrid=False)) == [("full", 48)]
    assert sizes(grouped([WINDOW] * 4, hybrid=False)) == [("sliding", 4)]


def test_without_the_hybrid_manager_recurrent_state_cannot_be_planned() -> None:
    with pytest.raises(Unplannable, match="the hybrid KV cache manager is disabled"):
        grouped([Page("state", 16, 1_000), FULL], hybrid=False)


def test_uneven_pages_may_lie_side_by_side() -> None:
    window, tail = Page("sliding_latent", 64, 400, window=128), Page("sliding_latent", 4, 300, window=8)
    wide, narrow = Page("latent", 256, 400), Page("latent", 256, 90)
    pages = [page for _ in range(30) for page in (window, tail, narrow, wide)] + [window] * 31
    groups = grouped(pages, packed=True)
    assert [(one.page.kind, one.page.block, len(one.members)) for one in groups] == [
        ("sliding_latent", 64, 31), ("sliding_latent", 64, 30), ("sliding_latent", 4, 30), ("latent", 256, 60),
    ]  # fmt: skip


def test_a_state_that_every_rank_keeps_whole_has_a_table_of_its_own() -> None:
    dealt, whole = Page("state", 640, 1_000, ("GatedDelta",)), Page("state", 640, 200, ("ShortConvolution whole",), padded=1_000)
    attention = Page("latent", 640, 900)
    assert sizes(grouped([dealt, whole, attention] * 2, packed=True)) == [
        ("state", 1),
        ("state", 1),
        ("state", 1),
        ("state", 1),
        ("latent", 2),
    ]


def test_packed_states_are_cut_until_a_group_is_no_wider_than_the_attention_beside_it() -> None:
    state, attention = Page("state", 640, 1_000), Page("latent", 640, 900)
    groups = grouped(([state] * 3 + [attention]) * 4, packed=True)
    assert sizes(groups) == [("state", 3)] * 4 + [("latent", 4)]
