"""What a sizing answer adds to the plan: estimates with a range, ways to make it fit, versions and cards side by side."""

import json
from time import process_time
from typing import Any

import pytest

from bot.budget.search import first, largest
from bot.domain.overheads import Estimate
from bot.domain.size import GIB
from bot.domain.tensors import StoredTensor
from bot.rulebook.gpus import load_gpus
from bot.rulebook.model_names import load_model_names
from bot.usecases.reply import Unusable
from bot.usecases.sizing.at_once import at_once
from bot.usecases.sizing.question import load_sizing, read_question
from bot.usecases.sizing.room import surely_held
from bot.usecases.sizing.size import size, size_batch


def question(model: str, **more: Any) -> dict[str, Any]:
    named = load_model_names().find(model)
    assert named is not None
    return {"model": named.id, "config": named.config, **more}


def ask(model: str, **more: Any) -> dict[str, Any]:
    return dict(size(load_sizing(), question(model, **more)).document)


def test_a_shared_card_name_is_asked_back_not_guessed() -> None:
    with pytest.raises(Unusable, match=r"'A100' is not one card we know; say which: A100-40GB"):
        ask("llama-3.1-8b", gpu="A100")


def test_without_a_card_nothing_is_estimated() -> None:
    document = ask("llama-3.1-8b", tensor_parallel_size=1)
    assert document["fits"] is None
    assert (document["terms"], document["range"], document["ways"]) == ([], None, [])


def test_other_bytes_override_every_estimate() -> None:
    document = ask("llama-3.1-8b", gpu="H100", other_bytes=10 * 10**9)
    assert document["terms"] == [{"name": "other", "says": "as given", "bytes": 10 * 10**9, "basis": "given"}]
    assert document["range"] is None
    assert document["ranks"][0]["other_bytes"] == 10 * 10**9


def test_the_command_repeats_every_argument_of_the_engine_and_none_of_ours() -> None:
    given = {"max_model_len": 4096, "enforce_eager": True, "enable_prefix_caching": "off", "language_model_only": True}
    document = ask("llama-3.1-8b", gpu="H100", engine_version="0.33.0", weights_bytes=10**10, **given)
    assert document["command"] == (
        "vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 4096 --enforce-eager --no-enable-prefix-caching --language-model-only"
    )


def test_a_given_pool_has_no_range() -> None:
    assert ask("llama-3.1-8b", gpu="H100", kv_cache_memory_bytes=20 * 10**9)["range"] is None


def test_estimated_terms_carry_range_formula_and_side_of_the_budget() -> None:
    document = ask("llama-3.1-8b", gpu="H100", max_model_len=32768, engine_version="0.33.0", max_num_batched_tokens=8192)
    terms = {term["name"]: term for term in document["terms"]}
    assert list(terms) == ["activations", "non-torch", "CUDA graphs", "repacked weights", "CUDA context and communicators"]
    assert all(term["range"][0] <= term["bytes"] <= term["range"][1] for term in terms.values())
    assert all(term["basis"].startswith("estimated (") for term in terms.values())
    assert [term["inside_budget"] for term in terms.values()] == [True, True, True, True, False]
    inside = sum(term["bytes"] for term in terms.values() if term["inside_budget"])
    rank, (low, high) = document["ranks"][0], document["range"]["kv_pool_bytes"]
    assert rank["other_bytes"] == inside
    assert rank["kv_pool_bytes"] == rank["budget_bytes"] - rank["weights_bytes"] - inside
    assert low < rank["kv_pool_bytes"] < high
    assert high - low <= 3 * GIB + 2


def test_a_measured_start_stands_in_for_the_estimate_of_that_term() -> None:
    seen = Estimate("activations", 2 * GIB, 2 * GIB, 2 * GIB, "measured D-0187")
    document = size(load_sizing(), question("llama-3.1-8b", gpu="H100", max_model_len=8192), measured=lambda asked: [seen]).document
    term = document["terms"][0]
    assert (term["name"], term["bytes"], term["basis"], term["range"]) == ("activations", 2 * GIB, "measured D-0187", [2 * GIB, 2 * GIB])


@pytest.mark.parametrize("length", [22528, 29696])
def test_an_estimate_on_both_sides_of_the_limit_decides_nothing(length: int) -> None:
    told = ask("llama-3.3-70b", gpu="H100", tensor_parallel_size=2, max_model_len=length)
    low, high = told["range"]["kv_pool_bytes"]
    assert low < told["kv"]["request_bytes"] < high
    assert (told["fits"], told["headline"]) == (None, "It may fit")
    assert f"at best enough and at worst too little for one request of {length:,} tokens" in told["why"]
    way = told["ways"][0]
    assert told["command"] == way["command"]
    assert ask("llama-3.3-70b", gpu="H100", tensor_parallel_size=2, **{"max_model_len": length, **way["change"]})["fits"] is True


@pytest.mark.parametrize(("length", "fits"), [(2048, True), (131072, False)])
def test_an_estimate_on_one_side_of_the_limit_decides(length: int, fits: bool) -> None:
    told = ask("llama-3.3-70b", gpu="H100", tensor_parallel_size=2, max_model_len=length)
    low, high = told["range"]["kv_pool_bytes"]
    assert (low > told["kv"]["request_bytes"]) is fits
    assert (high < told["kv"]["request_bytes"]) is not fits
    assert told["fits"] is fits


def test_a_given_pool_is_no_estimate_and_decides_alone() -> None:
    asked: dict[str, Any] = {"gpu": "H100", "tensor_parallel_size": 2, "max_model_len": 22528}
    need = ask("llama-3.3-70b", **asked)["kv"]["request_bytes"]
    answers = [ask("llama-3.3-70b", kv_cache_memory_bytes=need + more, **asked)["fits"] for more in (-1, 64 * 2**20)]
    assert answers == [False, True]


def test_a_length_that_is_fitted_to_the_pool_is_sure_where_any_pool_is_left() -> None:
    told = ask("llama-3.3-70b", gpu="H100", tensor_parallel_size=2, max_model_len=-1)
    assert (told["fits"], told["range"]["kv_pool_bytes"][0] > 0) == (True, True)


def test_estimated_answers_of_a_batch_may_be_open_too() -> None:
    line = json.dumps({"id": 1, **question("gpt-oss-120b", gpu="H100")})
    (told,) = size_batch(load_sizing(), [line])
    assert (told["fits"], told["headline"], told["command"]) == (None, "It may fit", None)


def test_what_fits_has_no_ways_but_says_what_more_would_fit() -> None:
    document = ask("llama-3.1-8b", gpu="H100", tensor_parallel_size=4, max_model_len=8192)
    assert document["ways"] == []
    assert document["room"] == [
        "up to 131,072 tokens of context would fit even at the worst of the estimates",
        "tensor parallel size 1 would be enough",
    ]


def test_ways_to_make_it_fit_are_found_and_ranked_by_cost() -> None:
    document = ask("llama-3.3-70b", gpu="H100", tensor_parallel_size=2, max_model_len=131072)
    assert document["fits"] is False
    changes = [way["change"] for way in document["ways"]]
    assert [next(iter(change)) for change in changes] == [
        "max_model_len", "checkpoint", "checkpoint", "tensor_parallel_size",
    ]  # fmt: skip
    length = changes[0]["max_model_len"]
    assert ask("llama-3.3-70b", gpu="H100", tensor_parallel_size=2, max_model_len=length)["fits"] is True
    assert ask("llama-3.3-70b", gpu="H100", tensor_parallel_size=2, max_model_len=length + 256)["fits"] is None
    assert changes[1:3] == [{"checkpoint": "FP8"}, {"checkpoint": "4-bit AWQ"}]
    assert changes[3] == {"tensor_parallel_size": 4}
    assert all(way["says"] and way["costs"] for way in document["ways"])


def test_every_way_that_is_offered_does_fit() -> None:
    asked: dict[str, Any] = {"gpu": "RTX 4090", "tensor_parallel_size": 2, "max_model_len": 32768}
    ways = ask("qwen3-32b", **asked)["ways"]
    assert ways[0]["says"].startswith("a 4-bit AWQ checkpoint fits")
    for way in ways[1:]:
        assert ask("qwen3-32b", **(asked | way["change"]))["fits"] is True, way


@pytest.mark.parametrize(("version", "total", "enough"), [("0.19.1", 1000, 0.91), ("0.20.2", 978, 0.93)])
def test_a_higher_utilization_is_looked_for_above_the_version_s_own(version: str, total: int, enough: float) -> None:
    given = {"gpu_memory_bytes": total * GIB // 10, "weights_bytes": 88 * GIB, "other_bytes": 3 * GIB // 2, "max_model_len": 8192}
    ways = ask("llama-3.1-8b", engine_version=version, **given)["ways"]
    assert {"gpu_memory_utilization": enough} in [way["change"] for way in ways]


def test_a_quantized_checkpoint_is_offered_before_larger_or_more_cards() -> None:
    ways = ask("llama-3.3-70b", gpu="RTX 4090", max_model_len=8192)["ways"]
    assert [way["change"] for way in ways] == [
        {"checkpoint": "4-bit AWQ", "tensor_parallel_size": 4},
        {"checkpoint": "FP8", "tensor_parallel_size": 8},
        {"checkpoint": "FP8", "gpu": "H100NVL-94GB"},
        {"gpu": "B200-180GB"},
    ]
    assert all("quality needs a check of its own" in way["costs"] for way in ways[:3])
    assert ways[0]["command"] == "vllm serve 4-BIT-CHECKPOINT --tensor-parallel-size 4 --max-model-len 8192"


def test_a_context_too_short_for_a_prompt_is_no_way_out() -> None:
    ways = ask("gemma-3-27b", gpu="L4")["ways"]
    assert ways[0]["change"] == {"checkpoint": "4-bit AWQ", "tensor_parallel_size": 2}
    assert not any(way["change"].get("max_model_len", 1024) < 1024 for way in ways)


def test_a_checkpoint_that_is_enough_alone_is_offered_alone() -> None:
    ways = ask("qwen3-32b", gpu="RTX 4090", tensor_parallel_size=2, max_model_len=8192)["ways"]
    assert [way["change"] for way in ways if "checkpoint" in way["change"]] == [{"checkpoint": "4-bit AWQ"}]


def test_headers_of_the_unquantized_checkpoint_do_not_weigh_the_quantized_one() -> None:
    matrices = {"self_attn.q_proj": 8192, "self_attn.k_proj": 1024, "self_attn.v_proj": 1024, "self_attn.o_proj": 8192,
                "mlp.gate_proj": 28672, "mlp.up_proj": 28672, "mlp.down_proj": 28672}  # fmt: skip
    stored = {
        f"model.layers.{layer}.{name}.weight": StoredTensor("BF16", 8192 * width, 2 * 8192 * width)
        for layer in range(80)
        for name, width in matrices.items()
    }
    ways = ask("llama-3.3-70b", gpu="RTX 4090", max_model_len=8192, tensors=stored)["ways"]
    assert ways[0]["change"] == {"checkpoint": "4-bit AWQ", "tensor_parallel_size": 4}


@pytest.mark.parametrize("more", [{"checkpoint_bytes": 140 * 10**9}, {"gpu": "V100 32GB"}])
def test_no_other_checkpoint_is_offered_where_its_weights_are_given_or_the_card_has_no_kernels(more: dict[str, Any]) -> None:
    ways = ask("llama-3.3-70b", **{"gpu": "RTX 4090", "max_model_len": 8192, "tensor_parallel_size": 2, **more})["ways"]
    assert ways
    assert not any("checkpoint" in way["change"] for way in ways)


def test_where_no_single_change_is_enough_two_together_are_tried() -> None:
    document = ask("llama-3.1-405b", gpu="RTX 4090", max_model_len=8192)
    changes = [way["change"] for way in document["ways"]]
    assert changes[-1] == {"tensor_parallel_size": 16, "pipeline_parallel_size": 4}
    assert all(len(change) == 2 for change in changes)


def test_a_quantized_checkpoint_is_not_told_to_quantize() -> None:
    document = ask("gpt-oss-120b", gpu="A100-80GB", max_model_len=131072, other_bytes=12 * 10**9)
    assert document["fits"] is False
    assert not any("quantization" in way["change"] for way in document["ways"])


def test_the_longest_context_and_eight_bit_cache_come_before_more_cards() -> None:
    asked: dict[str, Any] = {"gpu": "A100-40GB", "max_model_len": 131072, "checkpoint_bytes": 16 * 10**9, "other_bytes": 8 * 10**9}
    names = [next(iter(way["change"])) for way in ask("llama-3.1-8b", **asked)["ways"]]
    assert names.index("max_model_len") < names.index("kv_cache_dtype") < names.index("tensor_parallel_size")
    assert "max_num_seqs" not in names  # other consumption is given, so fewer sequences cannot shrink it


def test_two_versions_are_answered_and_their_difference_explained() -> None:
    document = ask("gemma-3-27b", gpu="H100", max_model_len=131072, engine_version=["0.25.0", "0.26.0"])
    beside = document["side_by_side"]
    assert [answer["engine_version"] for answer in beside["answers"]] == ["0.25.0", "0.26.0"]
    assert document["engine_version"] == "0.25.0"
    assert any("a window is charged with the tokens in flight" in reason for reason in beside["reasons"])
    assert any("one full request takes" in reason for reason in beside["reasons"])


def test_rules_that_do_not_touch_a_model_are_no_reason() -> None:
    reasons = ask("llama-3.1-8b", gpu="H100", max_model_len=8192, engine_version=["0.25.0", "0.26.0"])["side_by_side"]["reasons"]
    assert not any("window" in reason or "recurrent" in reason for reason in reasons)


def test_a_version_that_starts_to_charge_graphs_is_named() -> None:
    reasons = ask("llama-3.1-8b", gpu="H100", max_model_len=8192, engine_version=["0.19.1", "0.20.0"])["side_by_side"]["reasons"]
    assert "the budget leaves CUDA graphs on top in 0.19.1 and pays for CUDA graphs in 0.20.0" in reasons
    assert "the default utilization is 0.9 in 0.19.1 and 0.92 in 0.20.0" in reasons


def test_several_cards_stand_side_by_side() -> None:
    beside = ask("llama-3.3-70b", gpu="H100-80GB, H200,B200", tensor_parallel_size=1, max_model_len=32768)["side_by_side"]
    assert [(answer["of"], answer["fits"]) for answer in beside["answers"]] == [("H100-80GB", False), ("H200", False), ("B200", True)]
    assert beside["says"].startswith("H100-80GB does not fit")
    assert any(reason.startswith("B200-180GB reports 178.35 GiB") for reason in beside["reasons"])


def test_what_the_engine_refuses_is_left_out_of_several_and_named() -> None:
    beside = ask("gpt-oss-20b", gpu="T4,A100-80GB")["side_by_side"]
    assert [one["of"] for one in beside["answers"]] == ["A100-80GB"]
    assert beside["says"].startswith("T4 is refused by the engine; A100-80GB fits")
    assert beside["reasons"][0].startswith("T4 is left out: the quantization method mxfp4 needs a compute capability of 8.0")
    with pytest.raises(Unusable, match=r"mxfp4 needs a compute capability of 8\.0, and T4-16GB has 7\.5"):
        ask("gpt-oss-20b", gpu="T4,V100-32GB")


def test_an_unknown_card_among_several_is_refused_by_name() -> None:
    with pytest.raises(Unusable, match="H1000"):
        ask("llama-3.1-8b", gpu="H100,H1000")


def test_a_batch_keeps_to_the_answer_alone() -> None:
    import json

    (answer,) = size_batch(load_sizing(), [json.dumps(question("llama-3.3-70b", gpu="H100", id="a"))])
    assert answer["id"] == "a"
    assert "ways" not in answer


def test_searching_finds_the_largest_that_holds() -> None:
    assert largest(lambda n: n <= 1000, 256, 131072, 256) == 768
    assert largest(lambda n: n <= 100, 256, 131072, 256) is None
    assert largest(lambda n: True, 256, 100, 256) is None
    assert first([1, 2, 4], lambda n: n > 1) == 2
    assert first([1, 2, 4], lambda n: n > 4) is None


# model, card, version (None: not printed), what the start said, and "Available KV cache memory" in GiB, from logs in public threads and repositories.
STARTS: list[tuple[str, str, str | None, dict[str, Any], float]] = [
    ("llama-3.1-8b", "H100", "0.6.5", {"gpu_memory_utilization": 0.9, "gpu_memory_bytes": round(79.22 * GIB), "max_model_len": 8192}, 53.29),
    ("llama-3.1-8b", "H100", "0.6.6", {"gpu_memory_utilization": 0.9, "gpu_memory_bytes": round(79.14 * GIB), "max_model_len": 8192}, 54.93),
    ("llama-3.1-8b", "L4", "0.7.0", {"gpu_memory_utilization": 0.9, "gpu_memory_bytes": round(22.07 * GIB)}, 4.60),
    ("qwen2.5-1.5b", "T4", "0.8.5", {"gpu_memory_utilization": 0.5, "max_model_len": 32768}, 2.36),
    ("qwen2.5-0.5b", "T4", "0.6.6", {"gpu_memory_utilization": 0.9, "max_model_len": 32768}, 10.63),
    ("qwen2.5-1.5b", "L4", "0.7.0", {"gpu_memory_utilization": 0.9, "gpu_memory_bytes": round(22.06 * GIB), "max_model_len": 4096}, 15.52),
    ("qwen2.5-7b", "V100 32GB", "0.7.3", {"gpu_memory_utilization": 0.9, "max_model_len": 2048}, 12.80),
    ("qwen2.5-14b", "RTX 4090", "0.7.0", {"gpu_memory_utilization": 0.98, "tensor_parallel_size": 2, "max_model_len": 32768}, 8.69),
    ("qwen3-8b", "RTX 2080 Ti 22GB", "0.8.5", {
        "gpu_memory_utilization": 0.93, "tensor_parallel_size": 4, "max_num_batched_tokens": 8192, "max_model_len": 40960, "enforce_eager": True}, 14.49),
    ("llama-3.1-8b", "H100", "0.11.0", {
        "gpu_memory_utilization": 0.9, "gpu_memory_bytes": round(79.11 * GIB), "max_num_batched_tokens": 8192, "max_num_seqs": 256,
        "max_model_len": 8192}, 54.68),
    ("gpt-oss-120b", "H100", "0.11.0", {
        "gpu_memory_utilization": 0.95, "gpu_memory_bytes": round(79.11 * GIB), "max_num_batched_tokens": 1024}, 1.71),
    ("llama-3.1-8b", "A5000", None, {"gpu_memory_utilization": 0.9, "max_model_len": 2048, "enforce_eager": True}, 5.29),
    ("llama-3.1-8b", "RTX 3090", None, {"gpu_memory_utilization": 0.7, "max_model_len": 8192}, 0.95),
    ("qwen3-0.6b", "Ascend910B", "0.20.0", {"gpu_memory_utilization": 0.92, "gpu_memory_bytes": round(61.27 * GIB)}, 54.98),
    ("qwen3-0.6b", "GB10", "0.27.1", {"gpu_memory_utilization": 0.6}, 69.40),
    ("gpt-oss-120b", "RTX PRO 4500", "0.28.0", {"gpu_memory_utilization": 0.95, "tensor_parallel_size": 8, "max_num_seqs": 256}, 19.00),
    ("deepseek-v4-flash", "GB10", "0.27.0", {"gpu_memory_utilization": 0.7, "gpu_memory_bytes": round(121.63 * GIB), "tensor_parallel_size": 4}, 42.43),
    ("deepseek-v4-flash", "B300", "0.27.0", {"gpu_memory_utilization": 0.92}, 86.74),
    ("kimi-k2.5", "GB200", "0.23.1", {"gpu_memory_utilization": 0.85, "tensor_parallel_size": 8, "max_num_seqs": 256, "max_model_len": 131072}, 82.52),
    ("llama-3.1-8b", "A100-40GB", "0.6.6", {"gpu_memory_utilization": 0.9, "max_model_len": 8192}, 11.12),  # a batch that nobody wrote down
]  # fmt: skip


def test_the_pools_of_twenty_measured_starts_lie_in_the_printed_range_but_one() -> None:
    missed, wide = [], []
    for model, gpu, version, more, gib in STARTS:
        low, high = ask(model, gpu=gpu, **({"engine_version": version} if version else {}), **more)["range"]["kv_pool_bytes"]
        if not low - 0.01 * GIB <= gib * GIB <= high + 0.01 * GIB:
            missed.append((model, gpu, gib))
        if version and "max_num_batched_tokens" in more:
            wide.append(high - low)
    assert missed == [("llama-3.1-8b", "A100-40GB", 11.12)]
    assert len(wide) == 3
    assert max(wide) <= 3 * GIB + 2


def test_kernels_that_repack_a_quantized_checkpoint_are_counted() -> None:
    terms = {term["name"]: term for term in ask("gpt-oss-120b", gpu="H100", engine_version="0.11.0")["terms"]}
    assert terms["repacked weights"]["range"][0] > 3 * GIB
    assert "repacked weights" not in {term["name"] for term in ask("gpt-oss-120b", gpu="H100", weights_bytes=66 * GIB)["terms"]}


def test_blocks_that_were_asked_for_decide_whatever_the_pool_has() -> None:
    told = ask("llama-3.1-8b", gpu="H100", num_gpu_blocks_override=1000, max_model_len=131072)
    assert (told["fits"], told["why"]) == (
        False,
        "the 1,000 blocks asked for hold 0.12 requests of 131,072 tokens; one such request needs 16.00 GiB a rank",
    )
    assert ask("llama-3.1-8b", gpu="H100", num_gpu_blocks_override=1000, max_model_len=8192)["fits"] is True


def test_a_pool_that_leaves_nothing_for_the_rest_is_a_risk() -> None:
    told = ask("llama-3.3-70b", gpu="H100", tensor_parallel_size=4, kv_cache_memory_bytes=48_000_000_000)
    assert told["fits"] is True
    assert told["ranks"][0]["outside_budget_bytes"] < 0
    assert any("too little for what else is estimated" in risk for risk in told["risks"])


@pytest.mark.parametrize(("asked", "by", "said"), [
    ({"max_num_seqs": 0}, "engine", "max_num_seqs is 0; it must be at least 1"),
    ({"max_num_batched_tokens": 0}, "engine", "max_num_batched_tokens is 0; it must be at least 1"),
    ({"max_num_seqs": 512, "max_num_batched_tokens": 256}, "engine", "max_num_batched_tokens 256 is smaller than max_num_seqs 512"),
    ({"enable_chunked_prefill": False, "max_num_batched_tokens": 4096}, "engine",
     "max_num_batched_tokens 4096 is smaller than max_model_len 8192, and prompts are not read in chunks"),
    ({"block_size": 7}, "engine", "block_size 7 is not a multiple of 16"),
    ({"other_bytes": -1}, "oombot", "other_bytes is -1; it must be at least 0"),
    ({"weights_bytes": -1}, "oombot", "weights_bytes is -1; it must be at least 1"),
    ({"weights_bytes": 0}, "oombot", "weights_bytes is 0; it must be at least 1"),
    ({"checkpoint_bytes": 0}, "oombot", "checkpoint_bytes is 0; it must be at least 1"),
    ({"block_size": 0}, "engine", "block_size is 0; it must be at least 1"),
    ({"block_size": -16}, "engine", "block_size is -16; it must be at least 1"),
    ({"num_gpu_blocks_override": 0}, "engine", "num_gpu_blocks_override is 0; it must be at least 1"),
    ({"gpu_memory_utilization": 0}, "engine", "gpu_memory_utilization is 0; it must lie above 0 and be at most 1"),
    ({"gpu_memory_utilization": 2}, "engine", "gpu_memory_utilization is 2; it must lie above 0 and be at most 1"),
    ({"tensor_parallel_size": 0}, "engine", "tensor_parallel_size is 0; it must be at least 1"),
    ({"dtype": "banana"}, "engine", "dtype is 'banana'; vLLM takes auto, float32, float, float16, bfloat16, half"),
    ({"enforce_eager": "banana"}, "oombot", "enforce_eager is 'banana'; it must be true or false"),
    ({"mm_encoder_tp_mode": "banana"}, "engine", "mm_encoder_tp_mode is 'banana'; vLLM takes weights, data"),
])  # fmt: skip
def test_a_number_that_cannot_be_is_refused_by_whom_it_would_be(asked: dict[str, Any], by: str, said: str) -> None:
    line = json.dumps({"id": 1, **question("llama-3.1-8b", gpu="H100", max_model_len=8192), **asked})
    assert list(size_batch(load_sizing(), [line])) == [{"id": 1, "error": said, "refused_by": by}]


def test_no_more_requests_than_tokens_of_a_batch_by_default() -> None:
    assert ask("llama-3.1-8b", gpu="H100", max_num_batched_tokens=512)["demand"]["requests"] == 512
    assert ask("llama-3.1-8b", gpu="H100")["demand"]["requests"] == 1024


@pytest.mark.parametrize(("version", "length", "more", "tokens"), [
    ("0.7.3", 16384, {}, 16384), ("0.7.3", 1024, {}, 2048), ("0.7.3", 16384, {"enable_chunked_prefill": True}, 2048),
    ("0.7.3", 65536, {}, 2048), ("0.6.4", 65536, {}, 512), ("0.5.2", 65536, {}, 65536), ("0.8.0", 65536, {}, 8192),
    ("0.33.0", 65536, {"enable_chunked_prefill": False}, 65536),
])  # fmt: skip
def test_a_batch_is_as_long_as_the_version_makes_it(version: str, length: int, more: dict[str, Any], tokens: int) -> None:
    asked = question("llama-3.1-8b", gpu="H100", engine_version=version, max_model_len=length, **more)
    assert read_question(load_sizing(), asked).max_num_batched_tokens == tokens


def test_an_open_answer_says_why_the_weights_are_not_known() -> None:
    told = ask("llama-3.1-8b", gpu="H100", max_model_len=8192, quantization="banana")
    assert (told["fits"], told["command"]) == (None, None)
    assert "the size of the weights is not known (--quantization banana: the checkpoint says nothing of it" in told["why"]


@pytest.mark.bench
def test_a_thousand_questions_take_less_than_three_seconds_of_processor_time() -> None:
    models = ("llama-3.3-70b", "qwen3-30b-a3b", "gpt-oss-120b", "gemma-3-27b", "deepseek-v3")
    lines = [json.dumps({"id": at, **question(models[at % 5], gpu="H200", tensor_parallel_size=8)}) for at in range(1000)]
    next(size_batch(load_sizing(), lines))
    before = process_time()
    answers = list(size_batch(load_sizing(), lines))
    assert process_time() - before < 3
    assert [answer["fits"] for answer in answers[:5]] == [True] * 5


def test_what_the_plan_does_not_know_is_said() -> None:
    told = ask("llama-3.1-8b", gpu="H100", speculative_config={"model": "a/draft", "num_speculative_tokens": 3}, offload_group_size=8)
    assert told["assumptions"][:2] == [
        "offload_group_size is not counted: layers that are fetched from the host's memory in turn",
        "what drafts is not counted: speculative_config: config.json of the draft is not in the question (give `config` in it)",
    ]
    assert not any("is not counted" in said for said in ask("llama-3.1-8b", gpu="H100", offload_group_size=0)["assumptions"])


def test_a_scheme_for_the_cache_in_compressed_tensors_counts_from_0_15_on() -> None:
    config = load_model_names().find("llama-3.1-8b").config | {  # type: ignore[union-attr] # it is there
        "quantization_config": {
            "quant_method": "compressed-tensors",
            "format": "dense",
            "kv_cache_scheme": {"num_bits": 8, "type": "float"},
        }
    }
    tokens = {
        version: size(load_sizing(), {"config": config, "gpu": "H100", "engine_version": version, "max_model_len": 8192}).document["kv"][
            "bytes_per_token"
        ]
        for version in ("0.14.1", "0.15.0", "0.33.0")
    }
    assert tokens == {"0.14.1": 131072, "0.15.0": 65536, "0.33.0": 65536}


def test_nobody_who_names_no_number_of_requests_is_told_how_many_fit_at_once() -> None:
    assert ask("llama-3.1-8b", gpu="H100")["at_once"] is None


@pytest.mark.parametrize(
    ("requests", "fitting", "tokens", "says"),
    [
        (1, 0.9, 900, "the one request at full length that is asked for does not fit into the pool"),
        (
            4,
            0.9,
            4096,
            "of the 4 requests at full length that are asked for, none fits into the pool at once; the others wait, and nothing is reserved for them; of about 1,024 tokens each all of them would",
        ),
        (
            4,
            1.0,
            1023,
            "of the 4 requests at full length that are asked for, 1 fits into the pool at once; the others wait, and nothing is reserved for them",
        ),
        (
            4,
            2.0,
            1024,
            "of the 4 requests at full length that are asked for, 2 fit into the pool at once; the others wait, and nothing is reserved for them; of about 256 tokens each all of them would",
        ),
        (4, 4.0, 4096, "the pool holds the 4 requests at full length at once"),
    ],
)
def test_how_many_fit_at_once_is_said_in_figures(requests: int, fitting: float, tokens: int, says: str) -> None:
    kv = {"max_concurrency": fitting, "tokens": tokens}
    document = {"kv": kv, "ranks": [{"kv_pool_bytes": GIB}], "limiting_rank": 0, "fits": True}
    told = at_once(lambda _: None, {"max_num_seqs": requests}, document, load_gpus())
    assert told is not None
    assert told["says"] == says


@pytest.mark.parametrize(
    ("requests", "held", "says"),
    [
        (1, True, "the pool holds the one request at full length at once"),
        (111, True, "the pool holds the 111 requests at full length at once"),
        (112, None, "the pool is likely to hold the 112 requests at full length at once, at the worst of the estimates 111 of them"),
    ],
)
def test_the_requests_that_are_asked_for_are_held_for_certain_or_likely(requests: int, held: bool | None, says: str) -> None:
    told = ask("llama-3.1-8b", gpu="H100", max_model_len=4_096, max_num_seqs=requests)
    assert requests == 1 or 111 < surely_held(told) < 112 < told["kv"]["max_concurrency"] < 113
    assert (told["at_once"]["held"], told["at_once"]["says"]) == (held, says)


def test_requests_that_the_pool_cannot_hold_wait_and_what_would_hold_them_is_offered() -> None:
    asked: dict[str, Any] = {"gpu": "H100", "max_model_len": 65_536, "max_num_seqs": 20}
    told = ask("llama-3.1-8b", **asked)
    assert told["fits"] is True
    assert told["demand"]["reserved_at_startup"] is False
    assert told["at_once"]["held"] is False
    assert told["at_once"]["says"].startswith(
        "of the 20 requests at full length that are asked for, 7 fit into the pool at once; the others wait, and nothing is reserved"
    )
    ways = told["at_once"]["ways"]
    assert 1 <= len(ways) <= 3
    for way in ways:
        assert surely_held(ask("llama-3.1-8b", **(asked | way["change"]))) >= 20, way


def test_where_not_one_fits_no_shorter_length_is_promised() -> None:
    says = ask("llama-3.3-70b-fp8", gpu="H100", max_model_len=32_768, max_num_seqs=20)["at_once"]["says"]
    assert says == (
        "of the 20 requests at full length that are asked for, none fits into the pool at once; the others wait, and nothing is "
        "reserved for them"
    )


@pytest.mark.parametrize(("model", "gpu"), [("llama-3.1-8b", "RTX3060-12GB"), ("qwen3-32b", "RTX5090-32GB"), ("deepseek-r1", "H100")])
def test_ways_are_a_choice_of_four_at_most_and_one_of_them_asks_for_nothing_but_cards(model: str, gpu: str) -> None:
    changes = [way["change"] for way in ask(model, gpu=gpu)["ways"]]
    assert 1 <= len(changes) <= 4
    assert any("checkpoint" not in change for change in changes)
