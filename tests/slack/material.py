"""Documents in the contract's shape and a judge that stands in for reading: what the door draws from, without the rulebook."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from bot.domain.incident import Contribution
from bot.usecases.desk import Desk, Viewer
from bot.usecases.reply import Reply

CRASH = """(EngineCore_DP0 pid=4100) INFO 11-30 04:10:02 [gpu_worker.py:298] Available KV cache memory: 47.11 GiB
(Worker_TP3 pid=4213) ERROR 11-30 04:10:31 [multiproc_executor.py:671] File "vllm/v1/worker/gpu_model_runner.py", line 3391, in capture_model
(Worker_TP3 pid=4213) ERROR 11-30 04:10:31 [multiproc_executor.py:671] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 64.00 MiB. GPU 3 has a total capacity of 79.25 GiB of which 12.50 MiB is free.
"""
NO_RANK = "RuntimeError: Engine core initialization failed. CUDA out of memory."
SECRETS = "HF_TOKEN=hf_QWERTYuiopASDFghjklZXCVbnm123456 \nAuthorization: Bearer abcdef0123456789abcdef0123456789\n"
PLANTED = ("hf_QWERTYuiopASDFghjklZXCVbnm123456", "abcdef0123456789abcdef0123456789")

LOWER = {
    "id": "lower-gpu-memory-utilization", "flag": "--gpu-memory-utilization", "direction": "lower", "value": "0.85",
    "because": "Graph capture needs memory outside the budget, and rank 3 had 12.50 MiB left there.",
    "frees_bytes": 4_254_701_978, "costs": "A smaller KV cache: fewer requests at once.",
    "disproved_by": "The same allocation fails at the same frame with 4 GiB more free.",
    "keep_fixed": ["model revision", "engine image", "GPU topology", "workload"],
    "command": "vllm serve Qwen/Qwen3-32B --tensor-parallel-size 4 --gpu-memory-utilization 0.85",
}  # fmt: skip
SMALLER = {
    **LOWER,
    "id": "lower-max-num-seqs",
    "flag": "--max-num-seqs",
    "value": "128",
    "because": "Fewer captured shapes need less.",
    "command": None,
    "frees_bytes": None,
}


def budget(rank: int, **figures: Any) -> dict[str, Any]:
    names = (
        "total_bytes", "free_at_start_bytes", "utilization", "requested_bytes", "weights_bytes", "activation_peak_bytes", "non_torch_bytes",
        "consumed_bytes", "graph_bytes", "graph_estimate_bytes", "graphs_inside_budget", "other_reserved_bytes", "kv_cache_bytes", "needed_bytes",
        "kv_tokens", "num_gpu_blocks", "state_blocks", "max_concurrency", "estimated_max_model_len", "free_before_profile_bytes",
        "free_after_profile_bytes", "outside_budget_bytes", "closes", "residual_bytes",
    )  # fmt: skip
    return {
        "rank": rank,
        "label": f"Worker_TP{rank}",
        "engine_label": None,
        **dict.fromkeys(names),
        "reported_by_rank": rank,
        "lines": {},
        **figures,
    }


def certain(text: str = CRASH) -> dict[str, Any]:
    line = next((n for n, said in enumerate(text.split("\n"), 1) if "out of memory" in said), 1)
    error = text.split("\n")[line - 1].strip()[:400] or "CUDA out of memory."
    sizes = dict.fromkeys(("process_bytes", "allocated_bytes", "allowed_bytes", "reserved_unallocated_bytes", "private_pool_bytes"))
    return {
        "schema": "oombot.diagnosis/1", "id": None, "verdict": "certain", "engine": "vllm", "engine_version": "0.11.0", "engine_version_range": None,
        "phase": "graph_capture", "also_possible": [],
        "rank": {"number": 3, "label": "Worker_TP3", "dp": None, "pp": 0, "tp": 3, "ep": None, "gpu_index": 3, "node": None, "pid": 4213, "basis": "prefix"},
        "first_error": {"source": 1, "line": line, "text": error, "kind": "torch_oom", "tried_bytes": 67_108_864, "free_bytes": 13_107_200, "total_bytes": 85_094_039_552, **sizes},
        "budgets": [budget(3, total_bytes=85_094_039_552, requested_bytes=76_584_635_596, weights_bytes=17_500_000_000, activation_peak_bytes=6_549_000_000,
                           non_torch_bytes=1_950_000_000, kv_cache_bytes=50_583_977_329, kv_tokens=771_850, max_concurrency=7.72, closes=True,
                           residual_bytes=1_658_267, lines={"kv_cache_bytes": 1})],
        "deployment": {"model": "Qwen/Qwen3-32B", "gpu": "H100-80GB", "gpu_count": 4, "tensor_parallel_size": 4, "pipeline_parallel_size": 1, "tried": {}, "host": {}},
        "recommendation": dict(LOWER), "alternatives": [dict(SMALLER)],
        "avoid": [{"flag": "--max-model-len", "direction": "lower", "because": "the pool is already allocated and does not shrink with it."}],
        "questions": [], "proof": [{"source": 1, "line": line - 1 or 1, "rule": "frame.warm-up.inside", "text": "in capture_model"}],
        "redactions": 0, "rulebook": "sha256:0", "summary": "Rank 3 of 4 ran out of memory while CUDA graphs were captured.", "similar": [], "also_failed": [], "notes": [],
    }  # fmt: skip


def unsure() -> dict[str, Any]:
    question = {
        "id": "failing_rank", "text": "Which rank raised the first error? The log starts after it.",
        "how": "grep -n -m1 -E 'OutOfMemoryError|CUDA out of memory' worker_*.log", "would_change": "rank",
    }  # fmt: skip
    bare = certain(NO_RANK)
    return bare | {
        "first_error": {**bare["first_error"], **dict.fromkeys(("tried_bytes", "free_bytes", "total_bytes"))},
        "verdict": "open", "phase": "unknown", "rank": None, "recommendation": None, "alternatives": [], "avoid": [], "budgets": [], "proof": [],
        "questions": [question, {"id": "first_error", "text": "What stands above the first error?", "how": "head -n 200 server.log", "would_change": "phase"}],
        "summary": "Memory ran out, but this excerpt does not show on which rank or in which phase.",
    }  # fmt: skip


def nothing() -> dict[str, Any]:
    return unsure() | {
        "engine": "unknown", "engine_version": None, "first_error": None, "deployment": {"model": None, "gpu": None, "tried": {}, "host": {}},
        "summary": "There is no memory error in this evidence, so no phase can be named.",
    }  # fmt: skip


def judged(contributions: Sequence[Contribution]) -> dict[str, Any]:
    said = [c for c in contributions if c.text is not None]
    texts = "\n".join(c.text or "" for c in said if c.kind in ("paste", "file"))
    rank = next((m[1] for c in said if c.kind == "answer" and (m := re.match(r"rank=(\d+)", c.text or ""))), None)
    document = certain(texts) if "capture_model" in texts or rank is not None else unsure() if "memory" in texts else nothing()
    if rank is not None and "capture_model" not in texts:
        document["rank"] = {**document["rank"], "number": int(rank), "label": f"rank {rank}", "basis": "answer"}
        document["summary"] = f"Rank {rank} ran out of memory while CUDA graphs were captured."
    document["redactions"] = sum(c.redactions for c in said)
    return document


async def judge(contributions: Sequence[Contribution], precedents: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    return judged(contributions)


SIZING = {
    "schema": "oombot.sizing/1", "fits": True, "why": "The pool holds 4 requests of 131,072 tokens on every rank.", "limiting_rank": 0,
    "model": "llama-70b-fp8", "gpu": "H100-80GB",
    "ranks": [{"rank": n, "total_bytes": 80_000_000_000, "budget_bytes": 73_600_000_000, "weights_bytes": 17_500_000_000, "other_bytes": 10_000_000_000,
               "kv_pool_bytes": 46_100_000_000, "outside_budget_bytes": 6_400_000_000} for n in range(4)],
    "kv": {"bytes_per_token": 81_920, "fixed_bytes_per_request": 0, "request_bytes": 10_737_418_240, "block_size": 16, "num_blocks": 35_171, "tokens": 562_736,
           "max_concurrency": 4.293, "full_requests": 4, "estimated_max_model_len": 131_072, "longest_context": 562_736},
    "demand": {"requests": 256, "bytes_per_rank": 2_748_779_069_440, "bytes_all_ranks": 10_995_116_277_760, "reserved_at_startup": False},
    "terms": [], "assumptions": ["weights split evenly over 4 ranks"], "engine_version": "0.28.0",
    "command": "vllm serve llama-70b-fp8 --tensor-parallel-size 4 --max-model-len 131072 --gpu-memory-utilization 0.92",
}  # fmt: skip


async def size_words(desk: Desk, words: str, viewer: Viewer | None = None) -> Reply:
    return Reply("sizing", {**SIZING, "corrections": [] if "gpu=" in words else ["I read the model but not the GPU."]})


async def explain(desk: Desk, viewer: Any, topic: str, incident_id: str | None = None) -> Reply:
    numbers = [{"label": f"Weights of rank 3 in {incident_id}", "value": "16.30 GiB"}] if incident_id else []
    paragraphs = ["It can roughly halve the KV payload; weights and other state stay."]
    return Reply(
        "explanation",
        {
            "schema": "oombot.explanation/1",
            "topic": topic,
            "title": "FP8 KV cache",
            "paragraphs": paragraphs,
            "numbers": numbers,
            "topics": [],
        },
    )
