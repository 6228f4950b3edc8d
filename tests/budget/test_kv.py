"""Pages and the blocks that one request needs of them."""

from dataclasses import replace

import pytest

from bot.budget.kv import Page, page_of
from bot.budget.kv_state import state_elements
from bot.domain.accounting import KvDtype
from bot.domain.budget import CacheSettings
from bot.domain.shape import Cache, GatedDelta, Heads, KimiDelta, Latent, Lightning, Mamba1, Mamba2, Ring, ShortConvolution, State

BF16 = KvDtype("auto")
SETTINGS = CacheSettings(max_model_len=32_768, in_flight=16_384, kv=BF16)
LLAMA = Heads(8, 128, 128)


def size(cache: Cache, tp: int = 1, settings: CacheSettings = SETTINGS) -> int:
    return page_of(cache, tp, settings).size


def test_more_ranks_than_kv_heads_do_not_make_a_page_smaller() -> None:
    assert [size(LLAMA, tp) for tp in (1, 2, 4, 8, 16, 32)] == [65_536, 32_768, 16_384, 8_192, 8_192, 8_192]


@pytest.mark.parametrize(("kv", "block", "payload"), [
    (KvDtype("fp8", 8, 8), 16, 32_768),
    (KvDtype("int8_per_token_head", 8, 8, 4, 4), 16, 33_792),
    (KvDtype("int4_per_token_head", 4, 4, 4, 4), 16, 17_408),
    (KvDtype("nvfp4", 4.5, 4.5), 16, 18_432),
    (KvDtype("turboquant_k8v4", 8, 4, 0, 4), 32, 50_176),
    (KvDtype("turboquant_4bit_nc", 4, 4, 2, 4), 32, 34_304),
])  # fmt: skip
def test_each_kv_cache_type_has_its_bytes_of_elements_and_scales(kv: KvDtype, block: int, payload: int) -> None:
    assert size(LLAMA, settings=replace(SETTINGS, kv=kv, block=block)) == payload


def test_keys_and_values_may_differ_in_width() -> None:
    assert size(Heads(4, 192, 128)) == 16 * 4 * 320 * 2
    assert size(Heads(4, 192, 128), settings=replace(SETTINGS, pads_values=True)) == 16 * 4 * 384 * 2


def test_latents_are_the_same_on_every_rank() -> None:
    assert {size(Latent(576), tp) for tp in (1, 8, 16)} == {18_432}


def test_a_sparse_latent_in_fp8_keeps_its_scales_inside() -> None:
    packed = replace(SETTINGS, block=64, packed_latents=True, kv=KvDtype("fp8", 8, 8))
    assert size(Latent(576, packed_bytes=656), settings=packed) == 64 * 656
    assert size(Latent(132, element="uint8"), settings=packed) == 8_448


def test_compressed_latents_hold_fewer_entries_and_round_up_to_their_alignment() -> None:
    packed = replace(SETTINGS, block=256, packed_latents=True, kv=KvDtype("fp8_ds_mla", 8, 8))
    assert size(Latent(512, tokens_per_entry=128, packed_bytes=584, block=256, alignment=576), settings=packed) == 1_728
    assert size(Latent(512, tokens_per_entry=4, packed_bytes=584, block=256, alignment=576), settings=packed) == 37_440
    assert size(Latent(2_048, element="float32", window=8, block=4, alignment=576), settings=packed) == 32_832


def test_full_attention_needs_a_block_for_every_sixteen_tokens_begun() -> None:
    page = page_of(LLAMA, 1, SETTINGS)
    assert [page.blocks(length, SETTINGS) for length in (1, 16, 17, 32_768)] == [1, 1, 2, 2_048]
    assert page.blocks(32_768, SETTINGS, dcp=4) == 512


def test_a_window_reserves_the_tokens_in_flight_and_one_block_more() -> None:
    page = page_of(replace(LLAMA, window=4_096), 1, SETTINGS)
    assert page.blocks(32_768, SETTINGS) == 1_281
    assert page.blocks(32_768, replace(SETTINGS, in_flight=8_192)) == 769
    assert page.blocks(100, SETTINGS) == 8


def test_a_chunk_reserves_the_tokens_in_flight_and_no_block_more() -> None:
    page = page_of(replace(LLAMA, chunk=8_192), 1, SETTINGS)
    assert page.blocks(131_072, SETTINGS) == 1_536


def test_cross_attention_is_as_long_as_the_encoders_input() -> None:
    page = page_of(replace(LLAMA, cross=True), 1, replace(SETTINGS, encoder_tokens=8_192))
    assert page.blocks(448, replace(SETTINGS, encoder_tokens=8_192)) == 512


@pytest.mark.parametrize(("drafts", "entries"), [(0, 4), (1, 8), (4, 8), (5, 16)])
def test_a_ring_is_one_block_a_request_and_grows_by_whole_groups_with_what_is_drafted(drafts: int, entries: int) -> None:
    settings = replace(SETTINGS, draft_tokens=drafts)
    page = page_of(Ring(4, 256), 1, settings)
    assert (page.size, page.blocks(131_072, settings)) == (entries * 512, 1)


@pytest.mark.parametrize(("states", "blocks"), [("running", 1), ("aligned", 2), ("every", 32)])
def test_recurrent_state_is_kept_once_twice_or_per_block(states: str, blocks: int) -> None:
    settings = replace(SETTINGS, states=states, block=1_024)  # type: ignore[arg-type]
    assert page_of(Mamba1(8_192, 16, 4), 1, settings).blocks(32_768, settings) == blocks


def test_some_kinds_keep_one_state_more_taken_while_a_prompt_is_read() -> None:
    settings = replace(SETTINGS, states="aligned", checkpoint_states=("Mamba2", "KimiDelta bounded"))
    blocks = {
        type(cache).__name__ + str(getattr(cache, "bounded", "")): page_of(cache, 1, settings).blocks(4_096, settings)
        for cache in (Mamba2(8_192, 8, 128, 64, 128, 4), GatedDelta(16, 48, 128, 128, 4), KimiDelta(96, 128, 4), KimiDelta(96, 128, 4, -5))
    }
    assert blocks == {"Mamba2": 3, "GatedDelta": 2, "KimiDeltaNone": 2, "KimiDelta-5": 3}


@pytest.mark.parametrize(("state", "tp", "elements"), [
    (Mamba1(8_192, 16, 4), 4, (2_048 * 3, 2_048 * 16)),
    (Mamba2(16_384, 8, 256, 64, 256, 4), 2, (3 * 10_240, 128 * 64 * 256)),
    (Mamba2(8_192, 1, 128, 64, 128, 4), 4, (3 * (8_192 + 2 * 4 * 128) // 4, 32 * 64 * 128)),
    (GatedDelta(16, 48, 128, 128, 4), 2, (3 * 5_120, 24 * 128 * 128)),
    (KimiDelta(96, 128, 4), 8, (9 * 1_536, 12 * 128 * 128)),
    (Lightning(64, 128), 8, (0, 8 * 128 * 128)),
    (ShortConvolution(2_048, 3), 2, (2 * 1_024, 0)),
])  # fmt: skip
def test_the_elements_of_one_state_on_one_rank(state: State, tp: int, elements: tuple[int, int]) -> None:
    assert state_elements(state, tp) == elements


def test_drafted_tokens_lengthen_the_convolution_window() -> None:
    assert state_elements(GatedDelta(16, 48, 128, 128, 4), 1, draft=2)[0] == 5 * 10_240
    assert state_elements(KimiDelta(96, 128, 4), 8, draft=2)[0] == 3 * 5 * 1_536
    assert state_elements(Mamba2(16_384, 8, 256, 64, 256, 4), 2, draft=2)[0] == 5 * 10_240


def test_a_convolution_that_every_rank_keeps_whole_is_dilated_and_grows_with_what_is_drafted() -> None:
    assert [state_elements(ShortConvolution(10_240, 4, 3, whole=True), tp, 2) for tp in (1, 8)] == [(11 * 10_240, 0)] * 2


def test_the_recurrent_matrix_may_be_wider_than_the_window() -> None:
    settings = replace(SETTINGS, state_bytes=4, states="aligned", block=784)
    page = page_of(GatedDelta(16, 48, 128, 128, 4), 1, settings)
    assert page.payload == 3 * 10_240 * 2 + 48 * 128 * 128 * 4
    assert page.block == 784


def test_the_matrix_of_kimi_delta_attention_is_kept_in_float32_whatever_is_asked() -> None:
    page = page_of(KimiDelta(96, 128, 4), 8, replace(SETTINGS, state_bytes=2, conv_bytes=2))
    assert page.payload == 9 * 1_536 * 2 + 12 * 128 * 128 * 4


def test_a_longer_block_holds_as_many_times_the_bytes() -> None:
    assert Page("full", 16, 65_536).with_block(64) == Page("full", 64, 262_144)
