"""Free text into a sizing question, with corrections instead of errors."""

from typing import Any

import pytest

from bot.rulebook.load import RulebookError
from bot.rulebook.model_names import load_model_names
from bot.usecases.sizing.arguments import ARGUMENTS, argument_of, value_of
from bot.usecases.sizing.question import load_sizing
from bot.usecases.sizing.words import read_words

LLAMA = "meta-llama/Llama-3.3-70B-Instruct"


def ask(text: str) -> dict[str, Any]:
    return read_words(load_sizing(), text).question


def corrections(text: str) -> list[str]:
    return list(read_words(load_sizing(), text).corrections)


def test_no_words_are_no_question_and_no_error() -> None:
    assert read_words(load_sizing(), "  ") == ({}, ())


def test_a_word_that_nobody_knows_is_said_and_left_out() -> None:
    assert corrections("llama-3.1-8b on H100 xyzzy") == ["'xyzzy' was not understood and is left out"]
    assert ask("llama-3.1-8b on H100 xyzzy") == {"model": "meta-llama/Llama-3.1-8B-Instruct", "gpu": "H100-80GB"}


def test_what_is_asked_about_is_no_word_that_nobody_knows() -> None:
    assert corrections("how many concurrent requests of 32k fit on two A100 80GB with qwen3-32b?") == []
    assert ask("how many users at 32k on 4xH100 with llama-3.3-70b?")["max_model_len"] == 32768
    assert corrections("how many users at 32k on 4xH100 with llama-3.3-70b?") == []
    assert ask("64 concurrent requests of qwen3-32b on H100")["max_num_seqs"] == 64


def test_a_mistyped_model_is_read_as_the_nearest_of_the_same_size() -> None:
    assert ask("lama-3.3-70b 4xH100")["model"] == LLAMA
    assert corrections("lama-3.3-70b 4xH100") == ["'lama-3.3-70b' is no model we know; read as llama-3.3-70b"]
    assert "model" not in ask("lama-3.3-71b 4xH100")


def test_a_mistyped_flag_is_read_as_the_nearest_argument() -> None:
    assert ask("--max-modle-len 8k")["max_model_len"] == 8192
    assert corrections("--max-modle-len 8k") == ["'--max-modle-len' read as max_model_len"]


def test_a_value_in_the_wrong_form_is_said_with_the_right_one() -> None:
    assert corrections("--max-model-len much") == [
        "max_model_len is 'much'; it takes a number of tokens, for example 131072 or 128k, or auto; left out"
    ]


def test_a_shared_card_name_is_asked_back() -> None:
    assert ask("qwen3-8b on A100")["gpu"] == "A100"
    assert corrections("qwen3-8b on A100") == ["'A100' can be A100-40GB or A100-80GB; write which"]


def test_the_same_thing_said_twice_is_said_back() -> None:
    assert corrections("tp 2 tp 4") == ["tensor_parallel_size is said twice: 2 is used, 4 is not"]


@pytest.mark.parametrize(("text", "question"), [
    ("llama-3.3-70b on 4xH100 128k fp8 kv", {"model": LLAMA, "gpu": "H100-80GB", "tensor_parallel_size": 4, "max_model_len": 131072, "kv_cache_dtype": "fp8"}),
    ("Qwen/Qwen3-32B tp4 h200 ctx 32k", {"model": "Qwen/Qwen3-32B", "gpu": "H200-141GB", "tensor_parallel_size": 4, "max_model_len": 32768}),
    ("deepseek v3 8x h200 kv cache fp8", {"model": "deepseek-ai/DeepSeek-V3", "gpu": "H200-141GB", "tensor_parallel_size": 8, "kv_cache_dtype": "fp8"}),
    ("gpt-oss-120b on one H100 util 0.95 seqs 256 batched 8k", {
        "model": "openai/gpt-oss-120b", "gpu": "H100-80GB", "tensor_parallel_size": 1, "gpu_memory_utilization": 0.95, "max_num_seqs": 256,
        "max_num_batched_tokens": 8192}),
    ("does qwen3 32b fit on 2 4090s with 32k?", {"model": "Qwen/Qwen3-32B", "gpu": "RTX4090-24GB", "tensor_parallel_size": 2, "max_model_len": 32768}),
    ("llama 3.3 70b, H100 x4, context 131,072", {"model": LLAMA, "gpu": "H100-80GB", "tensor_parallel_size": 4, "max_model_len": 131072}),
    ("gemma-3-27b L40S 95% eager", {"model": "google/gemma-3-27b-it", "gpu": "L40S-48GB", "gpu_memory_utilization": 0.95, "enforce_eager": True}),
    ("p4d.24xlarge llama-3.3-70b", {"model": LLAMA, "gpu": "A100-40GB", "tensor_parallel_size": 8}),
    ("kimi-k2 16xH100 pp2 64 requests", {
        "model": "moonshotai/Kimi-K2-Instruct", "gpu": "H100-80GB", "tensor_parallel_size": 8, "pipeline_parallel_size": 2, "max_num_seqs": 64}),
    ("70GB checkpoint 4xH100 llama-3.3-70b 10GB other", {
        "model": LLAMA, "gpu": "H100-80GB", "tensor_parallel_size": 4, "checkpoint_bytes": 70 * 10**9, "other_bytes": 10**10}),
    ("someone/their-model tp=2 gpu=L4", {"model": "someone/their-model", "tensor_parallel_size": 2, "gpu": "L4"}),
    ("llama-3.3-70b --enforce-eager --tp 4 -- H100", {"model": LLAMA, "enforce_eager": True, "tensor_parallel_size": 4, "gpu": "H100-80GB"}),
    ("llama-3.3-70b H100,H200 tp4", {"model": LLAMA, "gpu": "H100-80GB,H200-141GB", "tensor_parallel_size": 4}),
    ("llama-3.3-70b 0.25.0 0.26.0 H100", {"model": LLAMA, "engine_version": ["0.25.0", "0.26.0"], "gpu": "H100-80GB"}),
])  # fmt: skip
def test_words_ask_what_flags_would(text: str, question: dict[str, Any]) -> None:
    assert ask(text) == question
    assert corrections(text) == []


def test_a_pasted_command_is_read_like_words() -> None:
    text = "vllm serve Qwen/Qwen3-8B --max-model-len 8k --trust-remote-code --tensor-parallel-size=2"
    assert ask(text) == {"model": "Qwen/Qwen3-8B", "max_model_len": 8192, "tensor_parallel_size": 2}
    assert corrections(text) == ["'--trust-remote-code' left out: sizing has no such argument"]
    assert ask("python -m vllm.entrypoints.openai.api_server --model Qwen/Qwen3-8B H100") == {"model": "Qwen/Qwen3-8B", "gpu": "H100-80GB"}


def test_several_words_may_be_one_mistyped_model() -> None:
    assert ask("oss 120b h100") == {"model": "openai/gpt-oss-120b", "gpu": "H100-80GB"}
    assert corrections("oss 120b h100") == ["'oss 120b' is no model we know; read as gpt-oss-120b"]


def test_a_size_alone_names_no_card() -> None:
    assert corrections("qwen3-8b 94GB") == [
        "'94GB' was not understood and is left out: a size names no card, write which (H100NVL-94GB, …)"
    ]


@pytest.mark.parametrize(
    ("text", "card"), [("2x 3080 Ti 12gb", "3080 Ti"), ("rtx 4070 ti super", "4070 ti super"), ("a 4090 laptop", "4090 laptop")]
)
def test_a_card_that_is_not_known_is_said_and_none_of_like_name_is_taken(text: str, card: str) -> None:
    assert ask(f"qwen3-8b on {text}") == {"model": "Qwen/Qwen3-8B"}
    assert corrections(f"qwen3-8b on {text}") == [
        f"{card!r} is no card that is known here: give its memory by --gpu-memory-bytes, such as 12GiB"
    ]


def test_requests_and_a_pool_are_understood() -> None:
    found = ask("mistral-small-24b on rtx pro 6000, kv cache 20GB, 32 concurrent requests")
    assert (found["kv_cache_memory_bytes"], found["max_num_seqs"]) == (20 * 10**9, 32)


@pytest.mark.parametrize("said", ["20 users", "20 concurrent", "20 at once", "20 in parallel", "20 streams", "concurrency 20"])
def test_how_many_at_once_is_said_in_many_ways(said: str) -> None:
    assert ask(f"qwen3-8b on H100 32k {said}")["max_num_seqs"] == 20


def test_cards_beyond_the_named_ranks_are_replicas() -> None:
    assert ask("llama-3.3-70b 16xH100 tp8") == {"model": LLAMA, "gpu": "H100-80GB", "tensor_parallel_size": 8, "data_parallel_size": 2}
    assert corrections("llama-3.3-70b 16xH100 tp8") == ["16 cards hold 2 replicas of 8"]
    assert corrections("llama-3.3-70b 6xH100 tp4") == ["6 cards do not divide by the 4 ranks that the words name; 4 ranks are used"]


@pytest.mark.parametrize("said", ["0xH100", "0 H100", "-2 H100", "zero H100"])
def test_no_card_stays_in_the_question_to_be_refused(said: str) -> None:
    found = ask(f"qwen3-32b on {said}")
    assert (found["cards"], found.get("tensor_parallel_size")) == (0, None)


@pytest.mark.parametrize("said", [
    "on 2 nodes of 8 H100", "two nodes with 8xH100 each", "2x8 H100", "2x 8xH100", "16 H100 on 2 nodes", "8 H100 per node, 2 nodes", "2台8卡H100",
    "16 H100 (2 nodes of 8)", "2 Knoten mit 8 H100",
])  # fmt: skip
def test_the_cards_of_all_nodes_are_counted(said: str) -> None:
    found = ask(f"llama-3.1-405b {said}")
    assert (found["gpu"], found["tensor_parallel_size"], found["pipeline_parallel_size"]) == ("H100-80GB", 8, 2)
    assert corrections(f"llama-3.1-405b {said}") == [
        "16 cards on 2 nodes: tensor parallel 8 inside a node, pipeline parallel 2 across them"
    ]


def test_nodes_without_a_number_of_cards_are_said_and_named_ranks_win() -> None:
    assert corrections("llama-3.1-405b 4 nodes H100") == ["4 nodes, and how many cards in each is not said: nodes are left out"]
    assert corrections("llama-3.1-405b on 9 H100 on 2 nodes") == ["9 cards do not divide by 2 nodes; nodes are left out"]
    assert ask("llama-3.1-405b on 2 nodes of 8 H100 tp16") == {
        "model": "meta-llama/Llama-3.1-405B-Instruct", "gpu": "H100-80GB", "tensor_parallel_size": 16}  # fmt: skip
    assert ask("llama-3.3-70b on 1 node of 8 H100") == {"model": LLAMA, "gpu": "H100-80GB", "tensor_parallel_size": 8}


@pytest.mark.parametrize("said", ["8张A100 80G", "在8张A100 80G上", "8卡A100 80G", "A100 80G x8", "8 块 A100-80GB"])
def test_cards_are_counted_in_chinese_too(said: str) -> None:
    assert ask(f"qwen3-32b {said}") == {"model": "Qwen/Qwen3-32B", "gpu": "A100-80GB", "tensor_parallel_size": 8}
    assert corrections(f"qwen3-32b {said}") == []


def test_two_models_are_both_kept_to_be_asked_back() -> None:
    assert ask("llama-3.3-70b and qwen3-32b on 4xH100")["model"] == [LLAMA, "Qwen/Qwen3-32B"]
    assert ask("Qwen/Qwen3-8B vs meta-llama/Llama-3.1-8B-Instruct")["model"] == ["Qwen/Qwen3-8B", "meta-llama/Llama-3.1-8B-Instruct"]
    assert ask("Qwen/Qwen3-8B qwen3-8b on L4")["model"] == "Qwen/Qwen3-8B"


def test_a_fraction_above_one_is_a_fraction_and_no_card() -> None:
    assert ask("llama-3.3-70b utilization 1.5")["gpu_memory_utilization"] == 1.5
    assert corrections("llama-3.3-70b H100 1.5") == ["'1.5' was not understood and is left out"]


@pytest.mark.parametrize(("name", "text", "value"), [
    ("max_model_len", "128k", 131072), ("max_model_len", "auto", -1), ("max_model_len", "1m", 1048576), ("gpu_memory_utilization", "92%", 0.92),
    ("kv_cache_memory_bytes", "46.1GB", 46_100_000_000), ("kv_cache_memory_bytes", "2GiB", 2 * 2**30), ("tensor_parallel_size", "8", 8),
    ("enforce_eager", "off", False), ("kv_cache_dtype", "fp8_e5m2", "fp8_e5m2"),
])  # fmt: skip
def test_values_are_read_as_people_write_them(name: str, text: str, value: Any) -> None:
    argument = argument_of(name)
    assert argument is not None
    assert value_of(argument, text) == value


def test_every_argument_answers_to_its_flag_and_its_short_names() -> None:
    for argument in ARGUMENTS:
        for name in (argument.name, *argument.short):
            assert argument_of("--" + name.replace("_", "-")) is argument


def test_models_are_found_with_and_without_owner_and_ending() -> None:
    names = load_model_names()
    found = {names.find(name).id for name in ("Llama-3.3-70B", "llama 3.3 70b", LLAMA, "llama-3.3-70b-instruct")}  # type: ignore[union-attr]
    assert found == {LLAMA}
    for name, model in (
        ("llama-3.1-70b", "meta-llama/Llama-3.1-70B-Instruct"),
        ("llama-3-8b", "meta-llama/Meta-Llama-3-8B-Instruct"),
        ("r1-distill-llama-8b", "deepseek-ai/DeepSeek-R1-Distill-Llama-8B"),
    ):
        assert names.find(name).id == model  # type: ignore[union-attr]  # of one shape, and still not each other
    assert names.find("llama-9") is None


def test_every_named_model_can_be_read_by_its_family() -> None:
    from bot.reading.model.config import read_shape

    names, rules = load_model_names(), load_sizing()
    models = {names.find(spelling) for spelling in names.spellings.values()}
    assert len(models) >= 70
    for model in models:
        assert model is not None
        assert read_shape(model.config, rules.models, None).layers, model.id


def test_a_names_file_with_a_clash_or_a_broken_config_is_refused(tmp_path) -> None:  # type: ignore[no-untyped-def]
    rows = [("a/one", "small", '{"architectures":["X"]}'), ("b/two", "Small", "{"), ("c/three", "c", "{}")]
    text = "".join(f"[[model]]\nid = \"{i}\"\nnames = [\"{n}\"]\nsource = \"s\"\nconfig = '''{c}'''\n" for i, n, c in rows)
    (tmp_path / "model-names.toml").write_text(text)
    with pytest.raises(RulebookError) as broken:
        load_model_names(tmp_path)
    assert len(broken.value.problems) == 3
    assert "the name 'Small' is taken by a/one" in str(broken.value)


def test_an_ending_that_nobody_uses_makes_no_checkpoint() -> None:
    assert load_model_names().find("qwen2.5-72b-instruct-zip") is None
    assert load_model_names().find("nobody-awq") is None
    quantized = load_model_names().find("qwen3-32b-fp8")
    assert quantized is not None
    assert load_model_names().stored_as(quantized, "awq") is None  # what is quantized already is not quantized again


@pytest.mark.parametrize(("name", "method"), [
    ("qwen2.5-72b-instruct-awq", "awq"), ("Qwen/Qwen2.5-32B-Instruct-GPTQ-Int4", "gptq"), ("llama-3.1-405b-fp8", "compressed-tensors"),
    ("qwen3-14b.w4a16", "compressed-tensors"),
])  # fmt: skip
def test_a_known_name_with_the_ending_of_a_quantized_checkpoint_is_that_checkpoint(name: str, method: str) -> None:
    found = load_model_names().find(name)
    assert found is not None
    assert (found.id, found.config["quantization_config"]["quant_method"]) == (name, method)
    assert "its weights as usual for" in found.source
    assert ask(f"{name} on H100")["model"] == name


@pytest.mark.parametrize(
    ("own", "problem"),
    [
        ('endings = ["y"]\nsays = "s"\nconfig = "{}"', "own: the endings y are of no"),
        ('endings = ["x"]\nsays = "s"\nconfig = "["', "own: config is not JSON"),
        ('endings = ["x"]\nsays = "s"\nconfig = "[]"', "own: config is no object"),
    ],
)
def test_a_checkpoint_of_a_models_own_that_is_broken_is_reported(tmp_path, own: str, problem: str) -> None:  # type: ignore[no-untyped-def]
    row = '[[model]]\nid = "a/b"\nnames = []\nsource = "s"\nconfig = \'{"architectures": ["A"]}\'\n'
    stored = '[[stored]]\nendings = ["x"]\nsays = "X"\nconfig = \'{"quant_method": "awq"}\'\n'
    (tmp_path / "model-names.toml").write_text(f"{stored}{row}[model.own]\n{own}\n")
    with pytest.raises(RulebookError, match=rf"model-names.toml: \[\[model\]\] a/b: {problem}"):
        load_model_names(tmp_path)


def test_a_broken_ending_is_reported_with_the_file(tmp_path) -> None:  # type: ignore[no-untyped-def]
    row = '[[model]]\nid = "a/b"\nnames = []\nsource = "s"\nconfig = \'{"architectures": ["A"]}\'\n'
    (tmp_path / "model-names.toml").write_text(row + '[[stored]]\nendings = ["x"]\nsays = "X"\nconfig = \'{}\'\n')
    with pytest.raises(RulebookError, match=r"model-names.toml: \[\[stored\]\] \['x'\]: config names no quant_method"):
        load_model_names(tmp_path)


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ("lora rank 64", {"enable_lora": True, "max_lora_rank": 64}),
        ("4 loras rank 32", {"enable_lora": True, "max_loras": 4, "max_lora_rank": 32}),
        ("mtp 2", {"speculative_config": {"method": "mtp", "num_speculative_tokens": 2}}),
        ("mtp", {"speculative_config": {"method": "mtp", "num_speculative_tokens": 1}}),
        ("ngram 4", {"speculative_config": {"method": "ngram", "num_speculative_tokens": 4}}),
        ("draft llama-3.2-1b 5", {"speculative_config": {"method": "draft_model", "model": "llama-3.2-1b", "num_speculative_tokens": 5}}),
        ("cpu offload 40GB", {"cpu_offload_gb": 40.0}),
    ],
)
def test_drafts_adapters_and_offloading_are_read_from_words(words: str, asked: dict[str, object]) -> None:
    question, corrections = read_words(load_sizing(), f"llama-3.3-70b on 4xH100 {words}")
    assert corrections == ()
    assert asked.items() <= question.items()
    assert question["gpu"] == "H100-80GB"


def test_a_speculative_config_may_be_spread_over_dotted_flags() -> None:
    words = "vllm serve llama-3.3-70b --speculative-config.method eagle3 --speculative-config.model=a/b --speculative_config.num_speculative_tokens 3"
    question = read_words(load_sizing(), words).question
    assert question["speculative_config"] == {"method": "eagle3", "model": "a/b", "num_speculative_tokens": 3}


def test_a_pasted_command_keeps_its_speculative_config_and_its_adapters() -> None:
    line = (
        'vllm serve meta-llama/Llama-3.3-70B-Instruct --speculative-config \'{"method": "eagle3", "model": "a/b", '
        '"num_speculative_tokens": 3}\' --enable-lora --max-lora-rank 32 --cpu-offload-gb 10'
    )
    question, corrections = read_words(load_sizing(), line)
    assert question["speculative_config"] == {"method": "eagle3", "model": "a/b", "num_speculative_tokens": 3}
    assert (question["enable_lora"], question["max_lora_rank"], question["cpu_offload_gb"]) == (True, 32, 10.0)
    assert corrections == ()


def test_a_draft_without_a_number_is_said() -> None:
    _, corrections = read_words(load_sizing(), "llama-3.1-8b on H100 eagle3")
    assert corrections == ("'eagle3' without a number: 3 tokens drafted at once are taken",)


def test_cards_in_different_numbers_are_asked_about_with_one_and_it_says_so() -> None:
    _, corrections = read_words(load_sizing(), "qwen3-32b on 2xH100 or 4xL40S")
    assert any("4xL40S" in sentence and "one number of them, 2" in sentence for sentence in corrections)


@pytest.mark.parametrize(
    ("words", "gpu", "quantization", "said"),
    [
        ("mixtral 8x7b on 2x3090 4bit", "RTX3090-24GB", "awq", "'4bit' names no format: AWQ is taken, the commonest of 4 bits"),
        ("qwen3 30b a3b 4-bit on 24gb 3090", "RTX3090-24GB", "awq", "'4-bit' names no format: AWQ is taken, the commonest of 4 bits"),
        ("mistral small 24b 4090 q4_k_m", "RTX4090-24GB", "awq", "'q4_k_m' names no format: AWQ is taken, the commonest of 4 bits"),
        ("llama 3.1 8b on 16 GB 4080 8 bit", "RTX4080-16GB", "fp8", "'8 bit' names no format: FP8 is taken, the commonest of 8 bits"),
        ("llama 3.1 8b 40gb a100 int4", "A100-40GB", "int4", None),
        ("llama 3.1 8b 24GB RTX 3090 gptq 8-bit", "RTX3090-24GB", "gptq-int8", None),
        ("llama 3.1 8b 4090 bnb 4bit", "RTX4090-24GB", "bitsandbytes", None),
        ("gpt-oss-120b 4bit h100", "H100-80GB", None, None),
        ("qwen3-32b-awq 4bit h100", "H100-80GB", None, None),
        ("qwen3-32b-awq 8bit h100", "H100-80GB", None, "'8bit' is left out: awq has not 8 bits"),
        ("llama 3.1 8b 4090 awq 8bit", "RTX4090-24GB", "awq", "'8bit' is left out: awq has not 8 bits"),
        ("llama 3.1 8b a100 40 fp8", "A100-40GB", "fp8", None),
        ("llama 3.1 8b 4080 24gb", "RTX4080-16GB", None, "'4080 24gb': RTX4080-16GB is the card of that name, and has no 24gb"),
    ],
)
def test_bits_and_sizes_are_read_as_people_type_them(words: str, gpu: str, quantization: str | None, said: str | None) -> None:
    question = ask(words)
    assert (question["gpu"], question.get("quantization")) == (gpu, quantization)
    assert corrections(words) == ([said] if said else [])


def test_a_size_before_several_cards_keeps_their_number_and_a_figure_of_something_else_is_no_size() -> None:
    assert ask("llama-3.1-8b 2x 24gb 3090") == {
        "model": "meta-llama/Llama-3.1-8B-Instruct", "gpu": "RTX3090-24GB", "tensor_parallel_size": 2,
    }  # fmt: skip
    assert ask("llama-3.1-8b a100 40 users")["max_num_seqs"] == 40
    assert ask("llama-3.1-8b a100 40k")["max_model_len"] == 40_960
    assert ask("llama-3.1-8b on h100 70GB checkpoint")["gpu"] == "H100-80GB"
    assert ask("llama-3.1-8b on a100 80gb 46GB pool") == {
        "model": "meta-llama/Llama-3.1-8B-Instruct", "gpu": "A100-80GB", "kv_cache_memory_bytes": 46_000_000_000,
    }  # fmt: skip
    assert ask("llama-3.1-8b on 4090 10GB kv cache")["kv_cache_memory_bytes"] == 10_000_000_000
    for words in ("llama-3.1-8b on h100 70GB checkpoint", "llama-3.1-8b on 4090 10GB kv cache"):
        assert corrections(words) == []


def test_eight_bits_of_a_gptq_checkpoint_are_another_checkpoint() -> None:
    assert ask("qwen3 32b gptq 8-bit 2x4090") == {"model": "qwen3 32b gptq-int8", "gpu": "RTX4090-24GB", "tensor_parallel_size": 2}
    assert corrections("qwen3 32b gptq 8-bit 2x4090") == []


@pytest.mark.parametrize(
    ("words", "fewest"),
    [
        ("how many H200 for deepseek v3 at 64k", True),
        ("how many cards for llama 70b on H100", True),
        ("how many users fit llama 70b on H100", None),
        ("how many H100 for llama 70b with tp 4", None),
        ("how many H100 or H200 for llama 70b", None),
        ("llama 70b on H100", None),
    ],
)
def test_how_many_of_one_card_asks_for_the_fewest(words: str, fewest: bool | None) -> None:
    assert ask(words).get("fewest") == fewest


@pytest.mark.parametrize(("name", "model"), [
    ("phi 4 mini", "microsoft/Phi-4-mini-instruct"),
    ("qwen2.5 vl 72b", "Qwen/Qwen2.5-VL-72B-Instruct"),
    ("qwen3-coder-30b-a3b", "Qwen/Qwen3-Coder-30B-A3B-Instruct"),
    ("Qwen3-30B-A3B-Thinking-2507", "Qwen/Qwen3-30B-A3B-Instruct-2507"),
    ("mistral small 3.2 24b", "mistralai/Mistral-Small-3.2-24B-Instruct-2506"),
    ("glm-4.7-flash", "zai-org/GLM-4.7-Flash"),
])  # fmt: skip
def test_a_relative_of_a_known_model_is_not_taken_for_it(name: str, model: str) -> None:
    assert read_words(load_sizing(), f"{name} on H100") == ({"model": model, "gpu": "H100-80GB"}, ())


@pytest.mark.parametrize(("text", "said"), [
    ("without fp8", {}),
    ("no fp8, no lora and w/o mtp", {}),
    ("ohne fp8", {}),
    ("do not use fp8", {}),
    ("sin fp8", {}),
    ("without fp8 kv cache", {"kv_cache_dtype": "auto"}),
    ("not eager", {"enforce_eager": False}),
    ("no cuda graphs", {"enforce_eager": True}),
    ("no expert parallel", {"enable_expert_parallel": False}),
    ("no ep", {"enable_expert_parallel": False}),
    ("without prefix caching", {"enable_prefix_caching": False}),
])  # fmt: skip
def test_what_is_said_no_to_is_not_read_as_asked_for(text: str, said: dict[str, Any]) -> None:
    assert read_words(load_sizing(), f"qwen3-8b on H100 {text}") == ({"model": "Qwen/Qwen3-8B", "gpu": "H100-80GB", **said}, ())


@pytest.mark.parametrize("text", ["not on H100, A100-80GB", "A100-80GB instead of H100", "A100-80GB statt H100"])
def test_a_card_that_is_said_not_to_be_the_one_is_left_out_and_that_is_said(text: str) -> None:
    assert read_words(load_sizing(), f"qwen3-8b {text}") == (
        {"model": "Qwen/Qwen3-8B", "gpu": "A100-80GB"},
        ("'H100' is left out, as it is said not to be the card",),
    )


@pytest.mark.parametrize("rate", ["30 tok/s per user", "2 requests per second", "5 rps", "1k tokens/min"])
def test_how_fast_it_answers_is_no_question_of_memory_and_no_model(rate: str) -> None:
    assert read_words(load_sizing(), f"qwen3-8b on H100 {rate}") == (
        {"model": "Qwen/Qwen3-8B", "gpu": "H100-80GB"},
        (f"{rate!r} is left out: how fast it answers is no question of memory",),
    )


def test_half_a_card_is_no_model() -> None:
    assert ask("qwen3-8b on 1/2 H100") == {"model": "Qwen/Qwen3-8B", "gpu": "H100-80GB"}
    assert corrections("qwen3-8b on 1/2 H100") == ["'1/2' was not understood and is left out"]
