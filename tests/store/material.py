"""Diagnosis documents and contributions as the rooms above hand them over, written by hand in the contract's shape."""

from datetime import UTC, datetime
from typing import Any

from bot.domain.incident import Contribution

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)

LOG = """INFO 11-30 09:58:01 [gpu_worker.py:298] Available KV cache memory: 35.68 GiB
(Worker_TP3_EP3 pid=7501) ERROR 11-30 09:58:44 [multiproc_executor.py:671] Traceback (most recent call last):
(Worker_TP3_EP3 pid=7501) ERROR   File "/vllm/v1/worker/gpu_model_runner.py", line 3271, in capture_model
(Worker_TP3_EP3 pid=7501) ERROR torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB. GPU 3 has a total capacity of 79.25 GiB
"""


def change(**other: Any) -> dict[str, Any]:
    """A recommendation object."""
    return {
        "id": "lower-gpu-memory-utilization",
        "flag": "--gpu-memory-utilization",
        "direction": "lower",
        "value": "0.85",
        "because": "graph capture needs room outside the pool",
        "frees_bytes": 4_000_000_000,
        "costs": "a smaller pool",
        "disproved_by": "the same error at the same line",
        "keep_fixed": ["model revision", "engine image", "GPU topology", "workload"],
        "command": "vllm serve Qwen/Qwen3-235B-A22B --gpu-memory-utilization 0.85",
    } | other


LOWER_SEQS = change(
    id="lower-max-num-seqs", flag="--max-num-seqs", direction="lower", value="256", command="vllm serve … --max-num-seqs 256"
)
EAGER = change(id="eager", flag="--enforce-eager", direction="set", value=None, command="vllm serve … --enforce-eager")


def document(**other: Any) -> dict[str, Any]:
    """A certain diagnosis of a failed graph capture on rank 3 of 8."""
    deployment = {
        "model": "Qwen/Qwen3-235B-A22B",
        "gpu": "H100-80GB",
        "gpu_count": 8,
        "tensor_parallel_size": 8,
        "max_num_batched_tokens": 8192,
        "max_model_len": 100_000,
        "host": {"memory_bytes": None},
    }
    return {
        "schema": "oombot.diagnosis/1",
        "id": None,
        "verdict": "certain",
        "engine": "vllm",
        "engine_version": "0.20.1",
        "phase": "graph_capture",
        "also_possible": [],
        "rank": {"number": 3, "label": "Worker_TP3_EP3", "tp": 3, "pid": 7501, "node": "gpu-node-17", "basis": "prefix"},
        "first_error": {
            "source": 1,
            "line": 4,
            "text": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB.",
            "kind": "torch_oom",
        },
        "budgets": [
            {
                "rank": 3,
                "label": "Worker_TP3_EP3",
                "weights_bytes": 30_000_000_000,
                "activation_peak_bytes": 3_200_000_000,
                "non_torch_bytes": 900_000_000,
                "graph_bytes": None,
                "kv_cache_bytes": 38_311_008_993,
                "lines": {"kv_cache_bytes": 1},
            }
        ],
        "deployment": deployment,
        "recommendation": change(),
        "alternatives": [LOWER_SEQS, EAGER],
        "avoid": [{"flag": "--max-model-len", "direction": "lower", "because": "the pool is not what failed"}],
        "questions": [],
        "proof": [
            {
                "source": 1,
                "line": 3,
                "rule": "graph-capture.inside-capture-model",
                "text": "gpu_model_runner.py line 3271, in capture_model",
            }
        ],
        "redactions": 0,
        "rulebook": "sha256:abc",
        "summary": "CUDA graph capture ran out of memory on rank 3.",
    } | other


def on(model: str | None = None, gpu: str | None = None, tp: int = 8, **other: Any) -> dict[str, Any]:
    """The same diagnosis of another deployment."""
    base = document(**other)
    deployment = base["deployment"] | {"tensor_parallel_size": tp}
    deployment |= {"model": model} if model else {}
    deployment |= {"gpu": gpu} if gpu else {}
    return base | {"deployment": deployment}


def paste(text: str = LOG, **other: Any) -> Contribution:
    return Contribution("paste", text, **{"author": "U1", "at": NOW, **other})
