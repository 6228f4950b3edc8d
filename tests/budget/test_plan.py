"""The plan of every rank, and what must hold for any model."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.budget.placement import heads_per_rank, stage_layers, stage_of
from bot.budget.plan import plan
from bot.domain.accounting import KvDtype, PlannerRules
from bot.domain.budget import CacheSettings, Grid, KvPlan
from bot.domain.shape import Cache, ConvolutionWindow, GatedDelta, Heads, KimiDelta, Latent, Mamba2, ModelShape, Ring

NEW = PlannerRules(
    in_flight="batches", holds_null_block=True, printed_tokens="concurrency", override_limits=True, states="aligned",
    state_prefix_caching=True, delta_multiple=64, checkpoint_states=("Mamba2", "GatedDelta"), every_states=("Mamba2",),
    states_follow_block=True, latent_state_multiple=128, shares_kv=True, pads_pages=True, pads_values=False, async_scheduling=True, synchronous_drafts=(), not_float16=(), scheme_sets_kv=True, block_strides=True,
    utilization=0.92, block_size=16,
)  # fmt: skip
OLD = replace(NEW, holds_null_block=False, printed_tokens="groups", override_limits=False, shares_kv=False)
CUT = CacheSettings(max_model_len=131_072, in_flight=16_384, kv=KvDtype("auto"))
FULL, WINDOW = Heads(8, 128, 128), Heads(8, 128, 128, window=1_024)


def shape(*layers: Cache | tuple[Cache, ...]) -> ModelShape:
    made = tuple(layer if isinstance(layer, tuple) else (layer,) for layer in layers)
    return ModelShape("test", "Test", made, heads=32, hidden=4_096, vocab=32_000, max_positions=131_072, dtype="bfloat16")


def planned(model: ModelShape, grid: Grid, pools: list[int], cut: CacheSettings = CUT, rules: PlannerRules = NEW) -> KvPlan:
    return plan(model, grid, cut, rules, pools)


def test_layers_that_do_not_divide_go_to_the_stages_before_the_last() -> None:
    assert [len(stage) for stage in stage_layers(61, 4)] == [15, 15, 16, 15]
    assert [len(stage) for stage in stage_layers(6, 4)] == [1, 2, 2, 1]
    assert [stage_of(rank, Grid(tp=4, pp=2)) for rank in (0, 3, 4, 7)] == [0, 0, 1, 1]


def test_kv_heads_are_copied_when_ranks_outnumber_them() -> None:
    assert [heads_per_rank(2, tp) for tp in (1, 2, 8)] == [2, 1, 1]


def test_a_pool_of_exactly_one_request_fits_until_a_block_is_held_back() -> None:
    request = 8_192 * 32 * 65_536
    assert planned(shape(*[FULL] * 32), Grid(), [request], rules=OLD).fits is True
    assert planned(shape(*[FULL] * 32), Grid(), [request]).fits is False
    assert planned(shape(*[FULL] * 32), Grid(), [request + 32 * 65_536]).fits is True


def test_a_version_prints_blocks_by_groups_or_concurrency_by_length() -> None:
    model = shape(*([WINDOW] * 5 + [FULL]) * 8)
    old, new = (planned(model, Grid(), [40 * 10**9], rules=rules) for rules in (OLD, NEW))
    assert old.num_blocks == new.num_blocks
    assert old.tokens == (old.num_blocks or 0) // 6 * 16
    assert new.tokens == int((new.concurrency or 0) * 131_072)


def test_an_override_of_blocks_bounds_the_check_only_in_newer_versions() -> None:
    cut = replace(CUT, blocks_override=1_000)
    old, new = (planned(shape(*[FULL] * 32), Grid(), [20 * 10**9], cut, rules) for rules in (OLD, NEW))
    assert (old.num_blocks, old.fits) == (1_000, True)
    assert (new.num_blocks, new.fits, new.estimated_max_model_len) == (1_000, False, 15_984)


def test_the_stage_with_the_larger_block_limits_the_whole_replica() -> None:
    uneven = planned(shape(*[FULL] * 5), Grid(pp=2), [10**9, 10**9])
    assert uneven.bytes_per_block == (3 * 65_536, 2 * 65_536)
    assert (uneven.limiting_rank, uneven.num_blocks) == (0, 10**9 // (3 * 65_536))


def test_layers_that_read_an_earlier_cache_have_none_in_newer_versions() -> None:
    model = replace(shape(*[FULL] * 10), shared_layers=4)
    assert planned(model, Grid(), [10**10]).bytes_per_block == (6 * 65_536,)
    assert planned(model, Grid(), [10**10], rules=OLD).bytes_per_block == (10 * 65_536,)


def test_the_first_and_last_layers_may_keep_the_models_own_type() -> None:
    kv = KvDtype("turboquant_k8v4", 8, 4, 0, 4, skip_edges=2, block=32)
    told = planned(shape(*[FULL] * 32), Grid(), [10**10], replace(CUT, kv=kv, block=32))
    assert told.bytes_per_block == (4 * 131_072 + 28 * 50_176,)


def test_state_fills_an_attention_page() -> None:
    model = shape(*([GatedDelta(16, 48, 128, 128, 4)] * 3 + [Heads(4, 256, 256)]) * 16)
    told = planned(model, Grid(), [60 * 10**9], replace(CUT, block=784, state_bytes=4, states="aligned", checkpoint_states=("GatedDelta",)))
    assert told.bytes_per_block == (16 * 784 * 4_096,)
    assert told.request_blocks == 3 * 3 + 168
    assert told.fixed_bytes == (9 * 16 * 784 * 4_096,)


def test_a_block_of_glm_5_3_flash_is_as_wide_as_its_start_printed() -> None:
    kept = (Latent(132, "uint8", tokens_per_entry=4), Ring(4, 256), Latent(512))
    delta = KimiDelta(64, 128, 4, bounded=-5.0)
    model = replace(shape(*([delta] * 3 + [kept]) * 11, delta), packed=True)  # type: ignore[arg-type]
    told = planned(model, Grid(tp=8), [int(81.79 * 2**30)] * 8, replace(CUT, block=640, state_bytes=4, states="aligned"))
    assert set(told.bytes_per_block) == {7_441_280}  # as printed by eight H200 of a public log, with 55.15 requests of this length
    assert (told.request_blocks, round(told.concurrency or 0, 1)) == (205 + 4 * 2 + 1, 55.1)


@pytest.mark.parametrize(("length", "tokens", "gain"), [
    (8_192, 16_384, 5.9), (131_072, 16_384, 8.6), (131_072, 2_048, 28.1), (1_048_576, 16_384, 27.9), (1_048_576, 2_048, 73.1),
])  # fmt: skip
def test_windows_of_a_convolution_stay_as_they_are_when_an_fp8_cache_halves_the_rest(length: int, tokens: int, gain: float) -> None:
    window = (Heads(8, 128, 128, window=512), ConvolutionWindow(8, 128, 4_096, 4))
    model = shape(*([window] * 5 + [(FULL, ConvolutionWindow(8, 128, 4_096, 4))]) * 7)
    needs = [
        planned(model, Grid(tp=4), [10**10] * 4, replace(CUT, max_model_len=length, in_flight=2 * tokens, kv=kv)).request_bytes[0]
        for kv in (CUT.kv, KvDtype("fp8", 8, 8))
    ]
    assert needs[0] / needs[1] - 1 == pytest.approx(gain / 100, abs=6e-4)  # Inkling-Small at TP 4, vLLM issue 54704


CACHES = st.sampled_from([FULL, WINDOW, Heads(2, 64, 64), Heads(8, 128, 128, chunk=8_192), Heads(8, 128, 128, window=4_096)])
MODELS = st.one_of(
    st.lists(CACHES, min_size=1, max_size=24).map(lambda layers: shape(*layers)),
    st.integers(1, 30).map(lambda n: shape(*[(Latent(132, "uint8"), Latent(576))] * n)),
    st.integers(1, 12).map(lambda n: replace(shape(*([Mamba2(8_192, 8, 128, 64, 128, 4)] * 3 + [FULL]) * n))),
    st.integers(1, 8).map(lambda n: replace(shape(*([KimiDelta(64, 128, 4)] * 3 + [(Latent(512), Ring(4, 256))]) * n), packed=True)),
)


def cut_for(model: ModelShape) -> CacheSettings:
    return replace(CUT, block=544, states="aligned") if model.hybrid else CUT


@settings(max_examples=60, deadline=None)
@given(MODELS, st.integers(0, 2 * 10**10), st.integers(0, 2 * 10**10))
def test_more_memory_never_fits_less(model: ModelShape, pool: int, more: int) -> None:
    less, much = (planned(model, Grid(), [size], cut_for(model)) for size in (pool, pool + more))
    assert not (less.fits and not much.fits)
    assert (less.num_blocks or 0) <= (much.num_blocks or 0)
    assert (less.estimated_max_model_len or 0) <= (much.estimated_max_model_len or 0)
    assert (less.longest_context or 0) <= (much.longest_context or 0)


@settings(max_examples=60, deadline=None)
@given(MODELS, st.integers(1, 200_000), st.integers(0, 200_000))
def test_a_longer_context_never_needs_less(model: ModelShape, length: int, longer: int) -> None:
    short, long = (plan(model, Grid(), replace(cut_for(model), max_model_len=n), NEW, None) for n in (length, length + longer))
    assert short.request_bytes[0] <= long.request_bytes[0]


@settings(max_examples=60, deadline=None)
@given(st.lists(CACHES, min_size=1, max_size=24).map(lambda layers: shape(*layers)), st.sampled_from([1, 2, 4, 8]))
def test_more_tensor_ranks_never_raise_the_bytes_of_one(model: ModelShape, tp: int) -> None:
    few, many = (plan(model, Grid(tp=n), CUT, NEW, None) for n in (tp, tp * 2))
    assert many.request_bytes[0] <= few.request_bytes[0]


@settings(max_examples=60, deadline=None)
@given(MODELS, st.integers(10**8, 2 * 10**10))
def test_the_estimated_length_fits_and_the_next_token_does_not(model: ModelShape, pool: int) -> None:
    told = planned(model, Grid(), [pool], cut_for(model))
    length = told.estimated_max_model_len or 0
    if length:
        assert planned(model, Grid(), [pool], replace(cut_for(model), max_model_len=length)).fits
    if 0 < length < 131_072:
        assert not planned(model, Grid(), [pool], replace(cut_for(model), max_model_len=length + 1)).fits


@pytest.mark.parametrize("stages", [1, 2, 3, 5])
def test_stages_add_up_to_the_model(stages: int) -> None:
    told = plan(shape(*[FULL] * 61), Grid(pp=stages), CUT, NEW, None)
    assert sum(told.bytes_per_block) == 61 * 65_536
