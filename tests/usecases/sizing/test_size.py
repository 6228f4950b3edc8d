"""Sizing: the article's worked example, refusals, batches, and what the answer says about itself."""

import json
import re
from typing import Any

import pytest

from bot.rulebook.model_names import load_model_names
from bot.usecases.reply import Unusable
from bot.usecases.sizing.question import SizingRules, load_sizing
from bot.usecases.sizing.size import answer, size, size_batch
from bot.usecases.sizing.values import Refused

GB, GIB = 10**9, 2**30
EIGHTY_LAYERS = {
    "architectures": ["LlamaForCausalLM"],
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "hidden_size": 8192,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "torch_dtype": "bfloat16",
}
ARTICLE = {
    "config": EIGHTY_LAYERS,
    "tensor_parallel_size": 4,
    "max_model_len": 131072,
    "max_num_seqs": 256,
    "gpu_memory_utilization": 0.92,
    "gpu_memory_bytes": 80 * GB,
    "checkpoint_bytes": 70 * GB,
    "other_bytes": 10 * GB,
}


@pytest.fixture(scope="module")
def rules() -> SizingRules:
    return load_sizing()


def document(rules: SizingRules, **changes: Any) -> dict[str, Any]:
    return dict(size(rules, {**ARTICLE, **changes}).document)


def test_the_articles_worker_has_a_budget_of_73_6_gb_of_which_46_1_are_cache(rules: SizingRules) -> None:
    told = document(rules)
    assert len(told["ranks"]) == 4
    for rank in told["ranks"]:
        assert rank["total_bytes"] == 80_000_000_000  # per-device capacity
        assert rank["budget_bytes"] == 73_600_000_000  # executor budget at utilization 0.92
        assert rank["weights_bytes"] == 17_500_000_000  # resident weights: 70 / 4
        assert rank["other_bytes"] == 10_000_000_000  # other consumption included in budget
        assert rank["kv_pool_bytes"] == 46_100_000_000  # available KV pool: 73.6 - 17.5 - 10
        assert rank["outside_budget_bytes"] == 6_400_000_000  # capacity outside that budget
    assert "weights split evenly over 4 ranks" in told["assumptions"]


def test_the_articles_pool_holds_four_full_length_requests(rules: SizingRules) -> None:
    kv = document(rules)["kv"]
    assert kv["bytes_per_token"] == 81_920  # 327,680 B for the whole model / 4
    assert kv["request_bytes"] == 10_737_418_240  # one 131,072-position request per rank
    assert (kv["block_size"], kv["num_blocks"], kv["tokens"]) == (16, 35_171, 562_736)
    assert kv["max_concurrency"] == 4.293  # 46.1 GB / 10.7374 GB
    assert kv["full_requests"] == 4
    assert kv["estimated_max_model_len"] == 131_072
    assert kv["longest_context"] == 562_736


def test_256_permitted_requests_are_a_demand_of_11_tb_and_no_reservation(rules: SizingRules) -> None:
    told = document(rules)
    assert told["demand"] == {
        "requests": 256,
        "bytes_per_rank": 2_748_779_069_440,
        "bytes_all_ranks": 10_995_116_277_760,
        "reserved_at_startup": False,
    }
    assert told["fits"] is True
    assert document(rules, max_num_seqs=4)["kv"] == told["kv"]


def test_a_fraction_does_not_resize_an_explicit_pool(rules: SizingRules) -> None:
    low, high = (document(rules, kv_cache_memory_bytes=20 * GB, gpu_memory_utilization=share) for share in (0.5, 0.95))
    assert low["kv"] == high["kv"]
    assert low["ranks"][0]["kv_pool_bytes"] == 20 * GB
    assert low["ranks"][0]["budget_bytes"] == 40 * GB
    assert any("utilization 0.5 does not size it; the start-up check still uses it" in said for said in low["assumptions"])


def test_a_pool_below_zero_is_an_answer(rules: SizingRules) -> None:
    told = document(rules, other_bytes=60 * GB)
    assert told["fits"] is False
    assert told["ranks"][0]["kv_pool_bytes"] == -3_900_000_000
    assert told["kv"]["num_blocks"] == 0


def test_a_request_larger_than_the_pool_does_not_fit_and_the_longest_that_would_is_said(rules: SizingRules) -> None:
    told = document(rules, kv_cache_memory_bytes=10 * GB)
    assert told["fits"] is False
    assert told["kv"]["estimated_max_model_len"] == 122_048  # 7,629 blocks, one of them held back
    assert told["why"] == (
        "the pool of rank 0 has 9.31 GiB (10 GB), too little for one request of 131,072 tokens, which needs 10.00 GiB (10.74 GB) a rank"
    )


def test_weights_and_pool_beyond_the_device_do_not_fit_although_the_request_would(rules: SizingRules) -> None:
    told = document(rules, kv_cache_memory_bytes=75 * GB)
    assert (told["fits"], told["command"]) == (False, None)
    assert told["why"] == (
        "weights (16.30 GiB (17.5 GB)), other consumption (9.31 GiB (10 GB)) and the pool (69.85 GiB (75 GB)) come to "
        "95.46 GiB (102.5 GB) on rank 0, more than the 74.51 GiB (80 GB) of its device"
    )


def test_weights_larger_than_the_device_are_named_as_the_weights_alone(rules: SizingRules) -> None:
    told = document(rules, weights_bytes=96 * GIB)
    assert (told["fits"], told["headline"]) == (False, "It does not fit")
    assert told["why"].startswith("the weights alone take 96.00 GiB (103.08 GB) on rank 0, more than the 74.51 GiB (80 GB) of its device")


def test_weights_larger_than_the_budget_leave_no_pool(rules: SizingRules) -> None:
    given = {"gpu_memory_bytes": 80 * GIB, "weights_bytes": 60 * GIB, "checkpoint_bytes": None, "other_bytes": 0}
    why = document(rules, gpu_memory_utilization=0.5, **given)["why"]
    assert why == "the weights alone take 60.00 GiB on rank 0 and leave no pool in its budget of 40.00 GiB (utilization 0.5)"


def test_weights_and_other_consumption_that_leave_no_pool_are_both_named(rules: SizingRules) -> None:
    given = {"gpu_memory_bytes": 80 * GIB, "weights_bytes": 30 * GIB, "checkpoint_bytes": None, "other_bytes": 15 * GIB}
    why = document(rules, gpu_memory_utilization=0.5, **given)["why"]
    assert why == (
        "weights (30.00 GiB) and other consumption (15.00 GiB) come to 45.00 GiB on rank 0 "
        "and leave no pool in its budget of 40.00 GiB (utilization 0.5)"
    )


def test_gigabytes_stand_only_beside_what_was_given_in_them(rules: SizingRules) -> None:
    article = document(rules)
    assert (article["decimal"], "42.93 GiB (46.1 GB)" in article["why"]) == (True, True)
    binary = document(rules, gpu_memory_bytes=80 * GIB, checkpoint_bytes=64 * GIB, other_bytes=8 * GIB)
    assert (binary["decimal"], "GB" in binary["why"]) == (False, False)


def test_what_is_not_known_leaves_the_answer_open(rules: SizingRules) -> None:
    question = {name: value for name, value in ARTICLE.items() if name not in {"gpu_memory_bytes", "other_bytes"}}
    told = size(rules, question).document
    assert told["fits"] is None
    assert told["why"].endswith("the device's memory is not known; give --gpu, or the pool itself by --kv-cache-memory-bytes")
    assert told["kv"]["request_bytes"] == 10_737_418_240


def test_the_longest_context_that_fits_can_be_asked_for(rules: SizingRules) -> None:
    told = document(rules, kv_cache_memory_bytes=10 * GB, max_model_len=-1)
    assert told["fits"] is True
    assert told["kv"]["estimated_max_model_len"] == 122_048


def test_one_pool_per_rank_may_be_given_and_the_smallest_limits(rules: SizingRules) -> None:
    told = document(rules, kv_cache_memory_bytes=[46 * GB, 45 * GB, 44 * GB, 46 * GB])
    assert told["limiting_rank"] == 2
    assert told["kv"]["num_blocks"] == 44 * GB // 1_310_720


@pytest.mark.parametrize(("changes", "sentence", "by"), [
    ({"tensor_parallel_size": 5}, "64 attention heads are not divisible by tensor parallel size 5", "engine"),
    ({"kv_cache_dtype": "fp9"}, "no KV cache type 'fp9'; it takes auto", "engine"),
    ({"max_model_len": 200_000}, "max_model_len 200000 is greater than the 131072 tokens that config.json allows; a rope scaling in it", "engine"),
    ({"gpu_memory_utilization": 1.5}, "gpu_memory_utilization is 1.5; it must lie above 0 and be at most 1", "engine"),
    ({"tensor_parallel_size": 0}, "tensor_parallel_size is 0; it must be at least 1", "engine"),
    ({"pipeline_parallel_size": 81}, "80 layers cannot be spread over 81 pipeline stages", "engine"),
    ({"decode_context_parallel_size": 2}, "8 KV heads have 0 copies on 4 ranks", "engine"),
    ({"kv_cache_memory_bytes": [1, 2]}, "kv_cache_memory_bytes lists 2 figures, but there are 4 ranks", "oombot"),
    ({"max_num_seqs": "many"}, "max_num_seqs is 'many'; it must be a number", "oombot"),
    ({"block_size": 16.5}, "block_size is 16.5; it must be a whole number", "oombot"),
    ({"engine_version": "latest"}, "'latest' is not a vLLM version; write it as 0.33.0", "oombot"),
    ({"config": None}, "there is no config.json in the question", "oombot"),
    ({"config": {"architectures": ["BespokeForCausalLM"]}}, "BespokeForCausalLM is not in rules/models", "oombot"),
    ({"gpu": "H1000", "gpu_memory_bytes": None}, "the GPU 'H1000' is not one card we know; say which: H100-80GB", "oombot"),
])  # fmt: skip
def test_a_question_without_an_answer_is_refused_by_the_one_who_refuses(
    rules: SizingRules, changes: dict[str, Any], sentence: str, by: str
) -> None:
    with pytest.raises(Refused, match=re.escape(sentence)) as refused:
        answer(rules, {**ARTICLE, **changes})
    assert refused.value.by == by


def test_ten_kv_heads_over_four_ranks_are_refused_and_over_twenty_are_copied(rules: SizingRules) -> None:
    phi = {**EIGHTY_LAYERS, "architectures": ["Phi3ForCausalLM"], "num_attention_heads": 40, "num_key_value_heads": 10}
    with pytest.raises(Refused, match="10 KV heads and tensor parallel size 4: one must divide the other"):
        answer(rules, {**ARTICLE, "config": phi})
    five, twenty = (answer(rules, {**ARTICLE, "config": {**phi, "vocab_size": 96000}, "tensor_parallel_size": tp}).plan for tp in (5, 20))
    assert (five.bytes_per_block[0], twenty.bytes_per_block[0]) == (2 * 655_360, 655_360)


def test_a_vocabulary_that_does_not_divide_is_refused(rules: SizingRules) -> None:
    config = {**EIGHTY_LAYERS, "num_attention_heads": 40, "num_key_value_heads": 10, "vocab_size": 100352}
    with pytest.raises(Refused, match="100352 rows of the vocabulary are not divisible by tensor parallel size 5"):
        answer(rules, {**ARTICLE, "config": config, "tensor_parallel_size": 5})


def test_state_groups_that_cannot_be_copied_are_refused(rules: SizingRules) -> None:
    falcon = {
        "architectures": ["FalconH1ForCausalLM"], "hidden_size": 5120, "num_hidden_layers": 72, "num_attention_heads": 20,
        "num_key_value_heads": 4, "head_dim": 128, "mamba_d_ssm": 4096, "mamba_n_heads": 32, "mamba_d_head": 128, "mamba_d_state": 256,
        "mamba_n_groups": 2, "vocab_size": 261120, "max_position_embeddings": 262144,
    }  # fmt: skip
    with pytest.raises(Refused, match="2 state groups are not divisible by tensor parallel size 4") as refused:
        answer(rules, {**ARTICLE, "config": falcon})
    assert refused.value.by == "engine"


def test_a_model_without_pipeline_support_is_refused_on_two_stages(rules: SizingRules) -> None:
    mamba = {"architectures": ["Mamba2ForCausalLM"], "hidden_size": 4096, "num_hidden_layers": 64, "expand": 2, "vocab_size": 32768}
    with pytest.raises(Refused, match="does not support pipeline parallelism; pipeline parallel size 2 must be 1"):
        answer(rules, {**ARTICLE, "config": mamba, "pipeline_parallel_size": 2})


def test_an_encoder_keeps_nothing_and_always_fits(rules: SizingRules) -> None:
    bert = {"architectures": ["BertModel"], "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "vocab_size": 30522,
            "max_position_embeddings": 512}  # fmt: skip
    told = document(rules, config=bert, max_model_len=512, tensor_parallel_size=1)
    assert (told["fits"], told["kv"]["request_bytes"], told["kv"]["max_concurrency"]) == (True, 0, None)


def test_a_batch_answers_every_line_and_goes_on_after_a_bad_one(rules: SizingRules) -> None:
    lines = [
        json.dumps({**ARTICLE, "id": "fits"}),
        "{broken",
        "",
        "[1]",
        json.dumps({**ARTICLE, "id": "five", "tensor_parallel_size": 5}),
        json.dumps({**ARTICLE, "id": "strange", "config": {"architectures": ["BespokeForCausalLM"]}}),
    ]
    told = list(size_batch(rules, lines))
    assert [one["id"] for one in told] == ["fits", None, None, "five", "strange"]
    assert told[0]["kv"]["num_blocks"] == 35_171
    assert [one.get("refused_by") for one in told] == [None, "oombot", "oombot", "engine", "oombot"]
    assert told[1]["error"].startswith("line 2 is not JSON")


SLIPS: dict[str, Any] = {
    "a length in words": {"max_model_len": {"tokens": 8}},
    "no memory": {"gpu_memory_bytes": -1},
    "endless memory": {"gpu_memory_bytes": float("inf")},
    "a billion ranks": {"tensor_parallel_size": 10**9},
    "a billion stages": {"pipeline_parallel_size": 10**9},
    "layers without number": {"config": {**EIGHTY_LAYERS, "num_hidden_layers": 10**12}},
    "layers that are no list": {"config": {**EIGHTY_LAYERS, "architectures": ["Gemma3ForCausalLM"], "layer_types": 7}},
    "rope in words": {"config": {**EIGHTY_LAYERS, "rope_scaling": {"type": ["yarn"], "factor": 2}}},
    "quantization as a number": {"config": {**EIGHTY_LAYERS, "quantization_config": 1.5}},
}


@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_anywhere_costs_that_line_only(rules: SizingRules, slip: str) -> None:
    told = list(size_batch(rules, [json.dumps({**ARTICLE, "id": slip, **SLIPS[slip]}), json.dumps({**ARTICLE, "id": "next"})]))
    assert told[0]["id"] == slip
    assert told[0]["refused_by"] in {"oombot", "engine"}
    assert told[1]["kv"]["num_blocks"] == 35_171


def test_a_bare_infinity_in_a_config_is_read(rules: SizingRules) -> None:
    line = json.dumps({**ARTICLE, "id": 1, "config": {**EIGHTY_LAYERS, "time_step_limit": [0.0, float("inf")]}})
    assert "Infinity" in line
    assert next(iter(size_batch(rules, [line])))["kv"]["num_blocks"] == 35_171


def test_one_question_without_an_answer_is_unusable(rules: SizingRules) -> None:
    with pytest.raises(Unusable, match="not divisible"):
        document(rules, tensor_parallel_size=5)


@pytest.mark.parametrize(("own", "said"), [
    ("meta-llama/Llama-3.1-70B", "meta-llama/Llama-3.1-70B"), ("/mnt/train/out", "MODEL"), ("", "MODEL"), (None, "MODEL"), (7, "MODEL"),
])  # fmt: skip
def test_a_config_without_a_model_is_called_by_its_own_name_or_by_none(rules: SizingRules, own: object, said: str) -> None:
    told = document(rules, config={**EIGHTY_LAYERS, "_name_or_path": own})
    assert told["command"].startswith(f"vllm serve {said} --tensor-parallel-size 4")


def test_what_does_not_fit_is_run_as_the_cheapest_change_that_does(rules: SizingRules) -> None:
    told = document(rules, model="acme/heron", other_bytes=50 * GB)
    assert told["fits"] is False
    assert told["command_with"] == "--max-model-len 74432"
    assert told["command"] == told["ways"][0]["command"]
    assert told["command"] == (
        "vllm serve acme/heron --tensor-parallel-size 4 --max-model-len 74432 --max-num-seqs 256 --gpu-memory-utilization 0.92"
    )


def test_no_command_where_nothing_fits_or_the_answer_is_open(rules: SizingRules) -> None:
    hopeless = document(rules, config=EIGHTY_LAYERS, weights_bytes=100 * GB)
    assert (hopeless["fits"], hopeless["ways"], hopeless["command"], hopeless["command_with"]) == (False, [], None, None)
    open_ = document(rules, gpu_memory_bytes=None)
    assert (open_["fits"], open_["headline"], open_["command"]) == (None, "Open", None)


def test_a_batch_gives_no_command_for_what_does_not_fit(rules: SizingRules) -> None:
    lines = [json.dumps({**ARTICLE, "id": one, "kv_cache_memory_bytes": one * GB}) for one in (5, 40)]
    assert [(told["fits"], told["command"] is None) for told in size_batch(rules, lines)] == [(False, True), (True, False)]


def test_the_command_line_repeats_what_was_asked(rules: SizingRules) -> None:
    told = document(rules, model="meta-llama/Llama-3.1-70B", enable_prefix_caching=False)
    assert told["command"] == (
        "vllm serve meta-llama/Llama-3.1-70B --tensor-parallel-size 4 --max-model-len 131072 --max-num-seqs 256"
        " --gpu-memory-utilization 0.92 --no-enable-prefix-caching"
    )


def test_the_checkpoints_own_kv_cache_type_is_what_auto_means(rules: SizingRules) -> None:
    beside = {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}}
    told = document(rules, hf_quant_config=beside)
    assert told["kv"]["bytes_per_token"] == 40_960
    assert "the checkpoint asks for a KV cache in fp8_e4m3, so `auto` means that" in told["assumptions"]
    assert document(rules, hf_quant_config=beside, kv_cache_dtype="bfloat16")["kv"]["bytes_per_token"] == 81_920


def test_the_same_model_on_two_versions(rules: SizingRules) -> None:
    mistral = {**EIGHTY_LAYERS, "architectures": ["MistralForCausalLM"], "num_hidden_layers": 32, "num_attention_heads": 32,
               "hidden_size": 4096, "sliding_window": 4096, "max_position_embeddings": 32768}  # fmt: skip
    asked = {"config": mistral, "tensor_parallel_size": 1, "max_model_len": 32768, "max_num_batched_tokens": 8192}
    old, new = (document(rules, engine_version=version, **asked)["kv"] for version in ("0.19.1", "0.32.0"))
    assert (old["request_bytes"], new["request_bytes"]) == (1_612_709_888, 2_686_451_712)
    assert (old["bytes_per_token"], old["fixed_bytes_per_request"]) == (0, 1_612_709_888)
    assert old["longest_context"] is None


def v41() -> dict[str, Any]:
    found = load_model_names().find("deepseek-v4.1-flash")
    assert found is not None
    return dict(found.config)


@pytest.mark.parametrize(("gpu", "version", "width", "tokens"), [
    ("H200", "0.33.0", (3 * (33 + 8) + 65 + 15) * 576, 64),
    ("B200", "0.32.0", 3 * (64 * 288 + 64 * 132 + 256) + 128 * 288 + 128 * 132, 128),
    ("B200", "0.33.0", 43 * 3168, 128),
])  # fmt: skip
def test_a_block_of_deepseek_v4_1_is_what_its_four_sources_compress_in_the_records_of_the_device(
    rules: SizingRules, gpu: str, version: str, width: int, tokens: int
) -> None:
    told = answer(rules, {"config": v41(), "gpu": gpu, "engine_version": version, "tensor_parallel_size": 8}).plan
    assert (told.bytes_per_block[0], told.block_size) == (width, tokens)


@pytest.mark.parametrize(("gpu", "said"), [("H200", False), ("B200", False), ("MI300X", True), (None, True)])
def test_a_cache_that_differs_by_device_is_said_to_be_assumed_where_the_device_is_not_one_of_them(
    rules: SizingRules, gpu: str | None, said: bool
) -> None:
    told = answer(rules, {"config": v41(), "gpu": gpu, "tensor_parallel_size": 8})
    assert any("differs by generation of device" in line for line in told.assumptions) is said
