"""People's words alone: what they say of the phase, and never more than likely."""

import pytest

from bot.domain.incident import Contribution
from bot.rulebook.load import load_rulebook
from bot.usecases.judge import judge

BOOK = load_rulebook()
SAID = {
    "unknown": [
        "vllm OOM",
        "CUDA out of memory with vllm on a small card",
        "vLLM keeps giving me out of memory whatever I set",
        "loading the model works, then vllm runs out of memory",
    ],
    "weight_loading": [
        "It runs out of GPU memory before the weights are even fully loaded, shard 31/37. (vllm)",
        "Loading the checkpoint fails with CUDA OOM after 14/30 shards (vllm 0.10.1).",
        "[Bug]: OOM in process_weights_after_loading for a four-bit MoE, vllm",
        "When converting the weights to fp8 vLLM needs twice the memory and OOMs.",
        "vllm 加载权重的时候显存爆了",
        "We get OOM before any cache stands, right when shard 5/9 is being read. vLLM 0.12.",
    ],
    "profiling": [
        "determine_available_memory raises torch.OutOfMemoryError on the last card (vllm 0.12)",
        "OOM happens in the dummy run, before the KV cache is created (vllm 0.13).",
        "vLLM goes OOM if I raise batched tokens to 40k",
    ],
    "kv_cache_sizing": [
        "vllm refuses to start because 16.0 GiB KV cache is needed but only 9.1 GiB is available",
        "available KV cache memory is negative after upgrading vllm",
        "no memory left for KV cache blocks after the weights (vllm 0.9)",
        "vllm 启动报错 KV cache 不足",
    ],
    "kv_cache_allocation": ["CUDA out of memory when the KV cache is allocated (vllm 0.15, 2 engines on one GPU)"],
    "graph_capture": [
        "With enforce_eager=True it starts fine, without it I get CUDA OOM. vllm 0.10.2",
        "capture_model -> torch.OutOfMemoryError on the last worker (vLLM 0.18)",
    ],
    "warmup": [
        "vLLM OOM in kernel_warmup after the upgrade",
        "Capture finishes, then OOM in the warm-up with dummy requests. vLLM 0.10",
    ],
    "serving": [
        "Server starts fine, but when I send 50 concurrent requests it dies with torch.OutOfMemoryError (vllm)",
        "Every time a user uploads a 4K image vLLM runs out of memory",
        "GPU memory of the vllm server grows until it OOMs after days",
        "CUDA OOM mid-generation with drafts (vllm 0.12)",
        "The first long request kills vLLM with CUDA out of memory, short ones are fine",
        "vllm 服务跑了一天之后 OOM 崩溃",
    ],
    "startup_check": ["vllm refuses to start: free memory on device is less than desired gpu memory utilization"],
    "wake_up": [
        "rollout 唤醒 vllm 时 OOM",
        "calling llm.wake_up(tags=['kv_cache']) raises torch.OutOfMemoryError",
        "When vLLM wakes from sleep mode it OOMs because another model was loaded meanwhile",
    ],
    "host_memory": [
        "The container exits with code 137 during model load (vllm)",
        "While loading a 405B the host runs out of RAM and the process is gone (vllm)",
        "CPU memory keeps growing until vllm is Killed, GPU memory is fine",
    ],
}


@pytest.mark.parametrize(("phase", "said"), [(phase, said) for phase, sentences in SAID.items() for said in sentences])
def test_a_sentence_names_its_phase_at_most_as_likely(phase: str, said: str) -> None:
    document = judge(BOOK, [Contribution("paste", said)])
    assert document["phase"] == phase
    assert document["verdict"] == ("open" if phase == "unknown" else "likely")
