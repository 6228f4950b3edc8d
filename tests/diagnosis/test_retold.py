"""An engine's messages as people retell them: named as the first error, their figures read, their phase likely at most."""

import pytest

from bot.domain.size import GIB, MIB
from tests.diagnosis.material import judged, oom

CHECK = "Free memory on device cuda:0 (31.44/47.38 GiB) on startup is less than desired GPU memory utilization (0.95, 45.01 GiB)."
RETOLD = [
    ("`Free memory on cuda:0 (31.44/47.38 GiB) < desired utilization (0.95, 45.01 GiB)`", "startup_check", "free_memory_check"),
    ("[Bug]: ValueError: Free memory on device is less than desired GPU memory utilization", "startup_check", "free_memory_check"),
    ("[Bug]: no available memory for cache blocks on 2x3090", "kv_cache_sizing", "no_cache_blocks"),
    ("need 16.0 GiB KV, have 9.8 GiB", "kv_cache_sizing", "context_exceeds_cache"),
    ("The model's max seq len (32768) > max tokens in KV cache (7344)", "kv_cache_sizing", "context_exceeds_cache"),
    ("max_num_seqs 1024 > 856 available Mamba cache blocks", "kv_cache_sizing", "too_few_state_blocks"),
    ("[Bug]: OOM warming up sampler with 1024 dummy requests", "warmup", "sampler_warmup"),
]


@pytest.mark.parametrize(("text", "phase", "kind"), RETOLD)
def test_a_message_retold_is_the_first_error_and_its_phase_is_never_certain(text: str, phase: str, kind: str) -> None:
    document = judged(text)
    assert (document["phase"], document["verdict"], document["first_error"]["kind"]) == (phase, "likely", kind)


def test_the_message_itself_stays_certain() -> None:
    assert judged(f"ValueError: {CHECK}")["verdict"] == "certain"


def test_the_message_as_the_engine_prints_it_goes_before_what_somebody_says_above_it() -> None:
    document = judged(f"need 16.0 GiB KV, have 9.8 GiB\n\nValueError: {CHECK}")
    assert (document["phase"], document["verdict"], document["first_error"]["line"]) == ("startup_check", "certain", 3)


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ("free memory is 21.3 GiB, less than the desired 22.8 GiB", None),
        ("RTX 3060: free memory is 21.3 GiB, less than the desired 22.8 GiB", None),  # more free than that card has
        ("RTX 4090: free memory is 21.3 GiB, less than the desired 22.8 GiB", "0.90"),
        ("RTX 4090: free memory is 21.3 of 24.9 GiB, less than the desired 22.8 GiB", "0.85"),
    ],
)
def test_where_no_total_is_told_the_fraction_that_passes_is_that_of_the_named_card(words: str, value: str | None) -> None:
    change = judged(f"vLLM at start-up: {words}")["recommendation"]
    assert (change["id"], change["value"]) == ("lower-gpu-memory-utilization", value)


def test_pytorchs_sentence_retold_gives_its_figures_in_any_order() -> None:
    error = judged("CUDA OOM: tried to allocate 1.5 GiB, GPU 0 free 310 MiB, total 39.5 GiB")["first_error"]
    assert (error["tried_bytes"], error["free_bytes"], error["total_bytes"]) == (1.5 * GIB, 310 * MIB, 39.5 * GIB)


def test_what_the_sentence_itself_leaves_out_is_taken_from_the_words_beside_it() -> None:
    error = judged("CUDA out of memory. Tried to allocate 5.5 GiB (free 4.5 GiB)")["first_error"]
    assert (error["tried_bytes"], error["free_bytes"]) == (5.5 * GIB, 4.5 * GIB)


def test_a_printed_sentence_is_not_read_a_second_time_as_retold() -> None:
    error = judged(oom("64.00 MiB", "32.00 MiB", private="120.00 MiB"))["first_error"]
    assert (error["tried_bytes"], error["private_pool_bytes"]) == (64 * MIB, 120 * MIB)


def test_a_figure_in_bold_is_a_figure() -> None:
    error = judged("CUDA out of memory. Tried to allocate **9.50 GiB**. GPU 0 has a total capacity of **94.50 GiB**")["first_error"]
    assert (error["tried_bytes"], error["total_bytes"]) == (9.5 * GIB, 94.5 * GIB)


@pytest.mark.parametrize("text", ["KV cache: -1.35 GiB available", "GPU blocks: 0, CPU blocks: 2048 and then it raises ValueError"])
def test_a_pool_of_nothing_is_sizing_in_whatever_words(text: str) -> None:
    document = judged(text)
    assert (document["phase"], document["verdict"]) == ("kv_cache_sizing", "likely")


@pytest.mark.parametrize("seen", ['never see "', "no longer get `", "don't see the "])
def test_a_message_that_somebody_says_does_not_come_is_none(seen: str) -> None:
    document = judged(f"we {seen}No available memory for the cache blocks. It dies with CUDA out of memory while loading the weights.")
    assert (document["phase"], document["first_error"]["kind"]) == ("weight_loading", "torch_oom")


def test_what_stands_above_the_words_that_it_is_fixed_is_an_earlier_run() -> None:
    old, new = oom("1.00 GiB", "512.00 MiB"), f"ValueError: {CHECK}"
    document = judged(f"{old}\n\nfixed, now:\n\n{new}")
    assert (document["phase"], document["first_error"]["line"]) == ("startup_check", 5)
    assert judged(f"{old}\n\nfixed, now:\n")["first_error"]["line"] == 1
    assert judged(f"{old}\n\n{new}")["first_error"]["line"] == 1
