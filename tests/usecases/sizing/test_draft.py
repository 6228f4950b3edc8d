"""Speculative decoding: what drafts takes weights, layers of the cache, and recurrent states; refusals are the engine's."""

from typing import Any

import pytest

from bot.rulebook.model_names import load_model_names
from bot.usecases.sizing.command import command
from bot.usecases.sizing.question import load_sizing
from bot.usecases.sizing.size import answer
from bot.usecases.sizing.values import Refused
from bot.usecases.sizing.verdict import Answer

LLAMA: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"], "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "vocab_size": 128256,
    "num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 131072, "torch_dtype": "bfloat16",
}  # fmt: skip
SMALL = LLAMA | {
    "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "head_dim": 64, "tie_word_embeddings": True,
}  # fmt: skip
EAGLE3 = LLAMA | {"architectures": ["LlamaForCausalLMEagle3"], "num_hidden_layers": 1, "draft_vocab_size": 32000}
DEEPSEEK: dict[str, Any] = {
    "architectures": ["DeepseekV3ForCausalLM"], "hidden_size": 7168, "intermediate_size": 18432, "num_hidden_layers": 61, "vocab_size": 129280,
    "num_attention_heads": 128, "num_key_value_heads": 128, "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64, "v_head_dim": 128, "n_routed_experts": 256, "n_shared_experts": 1, "moe_intermediate_size": 2048,
    "first_k_dense_replace": 3, "num_experts_per_tok": 8, "num_nextn_predict_layers": 1, "max_position_embeddings": 163840,
    "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128], "activation_scheme": "dynamic"},
}  # fmt: skip
NEXT: dict[str, Any] = {
    "architectures": ["Qwen3NextForCausalLM"], "hidden_size": 2048, "num_hidden_layers": 48, "num_attention_heads": 16, "vocab_size": 151936,
    "num_key_value_heads": 2, "head_dim": 256, "num_experts": 512, "num_experts_per_tok": 10, "moe_intermediate_size": 512,
    "shared_expert_intermediate_size": 512, "intermediate_size": 5120, "full_attention_interval": 4, "max_position_embeddings": 262144,
}  # fmt: skip


def asked(config: dict[str, Any], **question: Any) -> Answer:
    whole = {"config": config, "gpu": "H200-141GB", "engine_version": "0.33.0", "kv_cache_memory_bytes": 40 * 10**9, "max_model_len": 8192}
    return answer(load_sizing(), {**whole, **question})


def added(config: dict[str, Any], draft: dict[str, Any], **question: Any) -> list[int]:
    """Bytes of weights that drafting adds on every rank."""
    pairs = zip(asked(config, **question).ranks, asked(config, speculative_config=draft, **question).ranks, strict=True)
    return [(more.weights or 0) - (less.weights or 0) for less, more in pairs]


def refusal(config: dict[str, Any], draft: Any, **question: Any) -> tuple[str, str]:
    with pytest.raises(Refused) as refused:
        asked(config, speculative_config=draft, **question)
    return str(refused.value), refused.value.by


def test_gemma_4_s_assistant_reads_the_model_s_cache_and_keeps_none() -> None:
    text = {
        "model_type": "gemma4_text", "hidden_size": 256, "intermediate_size": 2048, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 1, "head_dim": 256, "global_head_dim": 512, "vocab_size": 262144, "max_position_embeddings": 131072,
        "layer_types": ["sliding_attention", "full_attention"],
    }  # fmt: skip
    model = {"architectures": ["Gemma4ForCausalLM"], **text, "hidden_size": 1536, "sliding_window": 512}
    assistant = {"architectures": ["Gemma4AssistantForCausalLM"], "model_type": "gemma4_assistant", "backbone_hidden_size": 1536}
    draft = {"model": "google/gemma-4-E2B-it-assistant", "config": assistant | {"text_config": text}, "num_speculative_tokens": 4}
    attention, feed, norms = 2 * 256 * 4 * (256 + 512), 2 * 3 * 256 * 2048, 2 * 4 * 256 + 256 + 512 + 256
    ends = 262144 * 256 + 2 * 1536 * 256 + 256 * 1536
    assert added(model, draft) == [2 * (attention + feed + norms + ends)]
    assert asked(model, speculative_config=draft).plan.request_bytes == asked(model).plan.request_bytes


def test_what_the_engine_refuses_is_refused_in_its_name() -> None:
    assert refusal(DEEPSEEK | {"num_nextn_predict_layers": 0}, {"method": "mtp"}) == (
        "method mtp needs layers for further tokens, and config.json of the model has none",
        "engine",
    )
    assert refusal(LLAMA, {"method": "eagle3", "config": EAGLE3})[1] == "engine"
    said, by = refusal(LLAMA, {"config": SMALL | {"vocab_size": 128000}, "num_speculative_tokens": 3})
    assert (said, by) == ("the draft has 128,000 tokens in its vocabulary and the model 128,256; they must be the same", "engine")
    said, by = refusal(LLAMA, {"config": SMALL, "num_speculative_tokens": 3, "draft_tensor_parallel_size": 2}, tensor_parallel_size=4)
    assert (said, by) == ("draft_tensor_parallel_size is 2; it must be 1 or the tensor parallel size 4", "engine")


def test_a_text_that_is_no_table_is_refused_by_us() -> None:
    assert refusal(LLAMA, "{method")[1] == "oombot"
    assert refusal(LLAMA, [1]) == ("speculative_config is [1]; it must be a JSON object", "oombot")


def test_tokens_looked_up_in_the_text_take_no_weights_and_no_cache() -> None:
    plain, looked = asked(LLAMA), asked(LLAMA, speculative_config={"method": "ngram", "num_speculative_tokens": 4})
    assert looked.ranks == plain.ranks
    assert looked.plan == plain.plan


def test_a_draft_model_is_held_whole_with_its_own_embedding_and_its_layers_join_the_cache() -> None:
    draft = {"config": SMALL, "num_speculative_tokens": 5}
    assert added(LLAMA, draft)[0] == pytest.approx(asked(SMALL).ranks[0].weights, rel=1e-6)
    together = asked(LLAMA, speculative_config=draft).plan.bytes_per_token[0]
    assert together == asked(LLAMA).plan.bytes_per_token[0] + asked(SMALL).plan.bytes_per_token[0]


def test_eagle_3_adds_a_layer_that_reads_twice_the_width_and_a_small_output_table() -> None:
    draft = {"method": "eagle3", "config": EAGLE3, "num_speculative_tokens": 3}
    query, key, hidden = 32 * 128, 8 * 128, 4096
    attention = 2 * hidden * (query + 2 * key) + query * hidden
    elements = attention + 3 * hidden * 14336 + 3 * hidden * hidden + 32000 * hidden + 4 * hidden
    assert added(LLAMA, draft) == [2 * elements + 8 * 32000]
    assert asked(LLAMA, speculative_config=draft).plan.bytes_per_token == (33 * 2 * 8 * 128 * 2,)


def test_the_draft_stands_on_the_last_pipeline_stage_with_an_embedding_of_its_own() -> None:
    draft = {"method": "eagle", "config": LLAMA | {"num_hidden_layers": 1}, "num_speculative_tokens": 3}
    first, last = added(LLAMA, draft, pipeline_parallel_size=2)
    assert first == 0
    assert last == added(LLAMA, draft)[0] + 128256 * 4096 * 2
    plain, more = asked(LLAMA, pipeline_parallel_size=2).plan, asked(LLAMA, pipeline_parallel_size=2, speculative_config=draft).plan
    assert more.bytes_per_block == (plain.bytes_per_block[0], plain.bytes_per_block[1] * 17 // 16)


def test_deepseeks_own_layer_is_one_more_of_its_kind() -> None:
    draft = {"method": "deepseek_mtp", "num_speculative_tokens": 1}
    plain, more = asked(DEEPSEEK, tensor_parallel_size=8), asked(DEEPSEEK, tensor_parallel_size=8, speculative_config=draft)
    assert more.plan.request_bytes[0] * 61 == plain.plan.request_bytes[0] * 62
    experts = 256 * 3 * 7168 * 2048 // 8
    assert experts < added(DEEPSEEK, draft, tensor_parallel_size=8)[0] < 1.3 * experts


def test_a_model_with_recurrent_state_keeps_one_more_state_for_each_token_drafted() -> None:
    one, three = (
        asked(NEXT, tensor_parallel_size=4, speculative_config={"method": "qwen3_next_mtp", "num_speculative_tokens": tokens}).plan
        for tokens in (1, 3)
    )
    states = one.groups - 1
    assert three.fixed_bytes[0] // three.bytes_per_block[0] - one.fixed_bytes[0] // one.bytes_per_block[0] == 2 * states


@pytest.mark.parametrize(("name", "said", "layers"), [
    ("minimax-m3", {"num_mtp_modules": 7}, 7), ("minimax-m3", {"num_mtp_modules": None}, 1), ("kimi-k3", {"num_nextn_predict_layers": 1}, 1),
])  # fmt: skip
def test_a_model_drafts_with_as_many_layers_as_its_file_counts(name: str, said: dict[str, Any], layers: int) -> None:
    found = load_model_names().find(name)
    assert found is not None
    inner = found.config.get("text_config")
    config = {**found.config, "text_config": {**inner, **said}} if inner else {**found.config, **said}
    draft = {"method": "mtp", "num_speculative_tokens": layers}
    told = asked(config, tensor_parallel_size=8, speculative_config=draft)
    assert told.asked.draft is not None
    assert len(told.asked.draft.layers) == layers
    assert all(more > 2**28 * layers for more in added(config, draft, tensor_parallel_size=8))


def test_dspark_drafts_a_block_with_three_layers_out_of_the_models_own_checkpoint() -> None:
    found = load_model_names().find("deepseek-v4-flash")
    assert found is not None
    config = {**found.config, "dspark_target_layer_ids": [1, 21, 40], "dspark_markov_rank": 256, "dspark_block_size": 5}
    told = asked(config, gpu="B300", speculative_config={"method": "dspark"})
    assert told.asked.draft is not None
    assert (told.asked.draft.tokens, len(told.asked.draft.layers)) == (5, 3)
    assert (told.ranks[0].weights or 0) / 2**30 == pytest.approx(156.32, rel=0.01)  # what a start of 0.27 on B300 said it loaded
    assert added(config, {"method": "mtp", "num_speculative_tokens": 1})[0] * 3 == pytest.approx(
        added(config, {"method": "dspark"})[0], rel=0.02
    )


def test_deepseek_v4_1_and_its_draft_fill_its_checkpoint_with_the_tables_that_stay_in_host_memory() -> None:
    found = load_model_names().find("deepseek-v4.1-flash")
    assert found is not None
    told = asked(found.config, gpu="B300", speculative_config={"method": "dspark"})
    tables = sum(found.config["text_config"]["engram_num_embeddings"]) * (256 + 256 // 32)
    assert ((told.ranks[0].weights or 0) + tables) / 2**30 == pytest.approx(478, rel=0.01)  # what its files take together
    assert told.asked.draft is not None
    assert (told.asked.draft.tokens, len(told.asked.draft.layers)) == (5, 3)


def test_a_dspark_draft_of_its_own_has_two_narrow_tables_more_than_dflash() -> None:
    draft = LLAMA | {
        "architectures": ["Qwen3DSparkModel"],
        "num_hidden_layers": 5,
        "markov_rank": 256,
        "block_size": 7,
        "target_layer_ids": [1, 9],
    }
    dflash = draft | {"architectures": ["DFlashDraftModel"]}
    more = added(LLAMA, {"method": "dspark", "model": "a/b", "config": draft})[0]
    assert more - added(LLAMA, {"method": "dflash", "num_speculative_tokens": 7, "config": dflash})[0] == 2 * 256 * 128256 * 2


@pytest.mark.parametrize(("kv", "tokens", "block", "blocks"), [("auto", 1_077_542, 1600, 744), ("fp8", 1_853_358, 3184, 707)])
def test_a_request_of_qwen_3_8_flash_next_with_two_drafts_is_as_large_as_public_starts_printed(
    kv: str, tokens: int, block: int, blocks: int
) -> None:
    found = load_model_names().find("qwen3.8-flash-next")  # vLLM issues 54426 and 54458: GB10, 262,144 tokens, MTP with two drafts
    assert found is not None
    draft = {"method": "mtp", "num_speculative_tokens": 2}
    told = asked(found.config, kv_cache_dtype=kv, max_model_len=262144, engine_version="0.28.1", speculative_config=draft).plan
    assert told.block_size == block
    assert blocks / told.request_blocks == pytest.approx(tokens / 262144, abs=1e-5)


def test_the_file_of_a_speculators_checkpoint_is_read_flat() -> None:
    nested = {"speculators_model_type": "eagle3", "draft_vocab_size": 32000, "transformer_layer_config": LLAMA | {"num_hidden_layers": 1}}
    flat = {"method": "eagle3", "config": EAGLE3, "num_speculative_tokens": 3}
    assert added(LLAMA, {"config": nested, "num_speculative_tokens": 3}) == added(LLAMA, flat)


def test_an_unknown_draft_is_named_and_the_rest_is_answered() -> None:
    told = asked(LLAMA, speculative_config={"method": "eagle3", "model": "a/b", "num_speculative_tokens": 3})
    assert any("what drafts is not counted" in said for said in told.assumptions)
    odd = {"method": "mlp_speculator", "config": LLAMA | {"architectures": ["Odd"]}, "num_speculative_tokens": 3}
    assert any("Odd is not in rules/models" in said for said in asked(LLAMA, speculative_config=odd).assumptions)


def test_older_flags_say_the_same() -> None:
    told = asked(LLAMA, speculative_model="[ngram]", num_speculative_tokens=4)
    assert told.asked.draft is not None
    assert (told.asked.draft.method, told.asked.draft.tokens) == ("ngram", 4)


def test_the_command_repeats_the_draft_without_what_only_we_know() -> None:
    draft = {"method": "eagle3", "model": "a/b", "num_speculative_tokens": 3, "config": EAGLE3}
    said = command(asked(LLAMA, speculative_config=draft).asked)
    assert said.endswith("""--speculative-config '{"method": "eagle3", "model": "a/b", "num_speculative_tokens": 3}'""")


@pytest.mark.parametrize("tp", [1, 2, 4, 8])
@pytest.mark.parametrize("tokens", [1, 2, 5])
def test_more_tokens_drafted_never_need_less(tp: int, tokens: int) -> None:
    for config in (NEXT, DEEPSEEK):
        plain = asked(config, tensor_parallel_size=tp, weights_bytes=1)
        few = asked(
            config, tensor_parallel_size=tp, weights_bytes=1, speculative_config={"method": "mtp", "num_speculative_tokens": tokens}
        )
        many = asked(
            config, tensor_parallel_size=tp, weights_bytes=1, speculative_config={"method": "mtp", "num_speculative_tokens": tokens + 1}
        )
        assert plain.plan.request_bytes < few.plan.request_bytes <= many.plan.request_bytes
