"""LoRA adapters and offloading: what they add to and take from a rank's weights, and what the engine refuses."""

from itertools import pairwise
from typing import Any

import pytest

from bot.usecases.sizing.command import command
from bot.usecases.sizing.question import load_sizing
from bot.usecases.sizing.size import answer
from bot.usecases.sizing.values import Refused
from bot.usecases.sizing.verdict import Answer

LLAMA: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"], "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "vocab_size": 128256,
    "num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 131072, "torch_dtype": "bfloat16",
}  # fmt: skip
QWEN = LLAMA | {"architectures": ["Qwen2ForCausalLM"]}
MIXTURE: dict[str, Any] = {
    "architectures": ["Qwen3MoeForCausalLM"], "hidden_size": 2048, "num_hidden_layers": 48, "num_attention_heads": 32, "vocab_size": 151936,
    "num_key_value_heads": 4, "head_dim": 128, "num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768,
    "intermediate_size": 6144, "max_position_embeddings": 40960,
}  # fmt: skip
COLUMNS = (3 * 4096 + 4096 + 2 * 1024) + (4096 + 4096) + (2 * 4096 + 2 * 14336) + (14336 + 4096)
"""Inputs and outputs of one layer's matrices: q, k, v; output; gate and up; down."""


def asked(config: dict[str, Any], **question: Any) -> Answer:
    whole = {"config": config, "gpu": "H200-141GB", "engine_version": "0.33.0", "kv_cache_memory_bytes": 10**9, "max_model_len": 1024}
    return answer(load_sizing(), {**whole, **question})


def held(config: dict[str, Any], **question: Any) -> int:
    return asked(config, **question).ranks[0].weights or 0


def added(config: dict[str, Any], *, rank: int = 16, slots: int = 1, fully: bool = False, **question: Any) -> int:
    lora = {"enable_lora": True, "max_lora_rank": rank, "max_loras": slots, "fully_sharded_loras": fully}
    return held(config, **lora, **question) - held(config, **question)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"max_lora_rank": 24}, "max_lora_rank is 24; vLLM takes 1, 8, 16, 32, 64, 128, 256, 320, 512"),
        ({"max_loras": 4, "max_cpu_loras": 2}, "max_cpu_loras 2 is smaller than max_loras 4"),
        ({"max_loras": 0}, "max_loras is 0; it must be at least 1"),
        ({"cpu_offload_gb": -1}, "cpu_offload_gb is -1; it must be at least 0"),
    ],
)
def test_what_the_engine_refuses_is_refused_in_its_name(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(Refused) as refused:
        asked(LLAMA, enable_lora=True, **arguments)
    assert (str(refused.value), refused.value.by) == (said, "engine")


def test_two_thin_matrices_stand_beside_every_matrix_for_every_slot() -> None:
    assert added(QWEN, rank=16, slots=4) == 4 * 16 * 2 * 32 * COLUMNS


def test_a_llama_takes_adapters_on_its_tables_too() -> None:
    assert added(LLAMA, rank=16) - added(QWEN, rank=16) == 16 * 2 * 2 * (128256 + 4096)


def test_tensor_parallelism_deals_one_of_the_two_matrices_and_fully_sharded_both() -> None:
    inputs = 3 * 4096 + 2 * 4096 + 4096 + 4096  # what stays whole: down from the hidden size, and up to it
    dealt = COLUMNS - inputs
    assert added(QWEN, tensor_parallel_size=4) == 16 * 2 * 32 * (inputs + dealt // 4)
    assert added(QWEN, tensor_parallel_size=4, fully=True) == 16 * 2 * 32 * COLUMNS // 4


def test_experts_take_adapters_since_they_can() -> None:
    experts = 48 * 128 * (2 * (2048 + 768) + 768 + 2048) * 16 * 2
    new, old = added(MIXTURE), added(MIXTURE, engine_version="0.11.0")
    assert new - old == experts


def test_offloading_takes_from_the_layers_alone() -> None:
    whole = held(LLAMA)
    assert held(LLAMA, cpu_offload_gb=4) == whole - 4 * 2**30
    tables = 2 * 128256 * 4096 * 2
    assert held(LLAMA, cpu_offload_gb=100) == pytest.approx(tables, rel=0.05)
    said = asked(LLAMA, cpu_offload_gb=4, tensor_parallel_size=2, kv_offloading_size=64).assumptions
    assert any("4.00 GiB of the weights leave a rank for the host's memory, which needs 8.00 GiB for them" in one for one in said)
    assert any("KV cache that leaves the cards takes 64.00 GiB of the host's memory" in one for one in said)


def test_nothing_is_added_where_nothing_is_asked() -> None:
    assert held(LLAMA, enable_lora=False, max_lora_rank=64, cpu_offload_gb=0) == held(LLAMA)


def test_the_command_repeats_what_was_asked() -> None:
    said = command(asked(LLAMA, enable_lora=True, max_lora_rank=64, cpu_offload_gb=4).asked)
    assert said.startswith("vllm serve MODEL --max-model-len 1024 --enable-lora --max-lora-rank 64 --cpu-offload-gb 4")


@pytest.mark.parametrize("config", [LLAMA, MIXTURE], ids=["dense", "mixture"])
@pytest.mark.parametrize("tp", [1, 2, 4])
def test_more_slots_a_higher_rank_or_less_offloading_never_hold_less(config: dict[str, Any], tp: int) -> None:
    for low, high in pairwise([1, 8, 16, 64, 256]):
        assert added(config, rank=low, tensor_parallel_size=tp) < added(config, rank=high, tensor_parallel_size=tp)
    for few, many in pairwise([1, 2, 5]):
        assert added(config, slots=few, tensor_parallel_size=tp) < added(config, slots=many, tensor_parallel_size=tp)
    for little, much in pairwise([0, 1, 7, 300]):
        assert held(config, cpu_offload_gb=much, tensor_parallel_size=tp) <= held(config, cpu_offload_gb=little, tensor_parallel_size=tp)
    assert added(config, tensor_parallel_size=2 * tp) <= added(config, tensor_parallel_size=tp)


def test_more_memory_never_fits_less_with_a_draft_adapters_and_offloading_together() -> None:
    draft = {"config": LLAMA | {"num_hidden_layers": 4}, "num_speculative_tokens": 3}
    fits = [
        asked(LLAMA, gpu_memory_bytes=gib * 2**30, kv_cache_memory_bytes=None, other_bytes=2 * 2**30, max_model_len=32768, enable_lora=True,
              max_lora_rank=64, cpu_offload_gb=2, speculative_config=draft).plan.fits
        for gib in range(18, 40, 2)
    ]  # fmt: skip
    assert fits == sorted(fits, key=bool)
    assert fits[0] is False
    assert fits[-1] is True
