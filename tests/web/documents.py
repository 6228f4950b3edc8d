"""Contract documents as the use cases give them, written out for pages to draw from."""

from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[2] / "bot/web/examples"

COMMAND = "vllm serve acme/palmyra-70b-fp8 --max-model-len 65536 --tensor-parallel-size 8 --max-num-seqs 512 --gpu-memory-utilization 0.92"

BUDGET_NAMES = (
    "total_bytes", "free_at_start_bytes", "utilization", "requested_bytes", "weights_bytes", "activation_peak_bytes", "non_torch_bytes",
    "consumed_bytes", "graph_bytes", "graph_estimate_bytes", "graphs_inside_budget", "other_reserved_bytes", "kv_cache_bytes", "needed_bytes",
    "kv_tokens", "num_gpu_blocks", "state_blocks", "max_concurrency", "estimated_max_model_len", "free_before_profile_bytes",
    "free_after_profile_bytes", "outside_budget_bytes", "closes", "residual_bytes",
)  # fmt: skip


def budget(rank: int | None, label: str, reported_by: int | None, lines: dict[str, int], **figures: Any) -> dict[str, Any]:
    known = dict.fromkeys(BUDGET_NAMES) | figures
    return {"rank": rank, "label": label, "engine_label": None, **known, "reported_by_rank": reported_by, "lines": lines}


def remedy(**changed: Any) -> dict[str, Any]:
    return {
        "id": "lower-gpu-memory-utilization",
        "flag": "--gpu-memory-utilization",
        "direction": "lower",
        "value": "0.92",
        "because": "Graph capture allocates outside the budget, and 39.88 MiB were left there. A smaller budget leaves 2.37 GiB more.",
        "frees_bytes": 2548321157,
        "costs": "2.37 GiB less KV cache on every rank: about 62,000 tokens.",
        "disproved_by": "The same rank runs out in capture again although more than 2 GiB were free when it began.",
        "keep_fixed": ["model revision", "engine image", "GPU topology", "workload"],
        "command": COMMAND,
    } | changed


def diagnosis(**changed: Any) -> dict[str, Any]:
    lines = (EXAMPLES / "capture-on-one-of-eight.log").read_text().split("\n")
    error = next(number for number, line in enumerate(lines, 1) if "Worker_TP5" in line and "torch.OutOfMemoryError" in line)
    frame = next(number for number, line in enumerate(lines, 1) if "Worker_TP5" in line and "in capture_model" in line)
    cache = next(number for number, line in enumerate(lines, 1) if "Available KV cache memory" in line)
    loaded = next(number for number, line in enumerate(lines, 1) if "Model loading took" in line)
    rank5 = budget(
        5,
        "Worker_TP5",
        None,
        {"graph_estimate_bytes": error - 30, "total_bytes": error},
        total_bytes=84943716188,
        graph_estimate_bytes=1202590843,
    )
    rank0 = budget(
        0, "Worker_TP0", 0, {"kv_cache_bytes": cache, "weights_bytes": loaded}, utilization=0.95, weights_bytes=9137542922,
        graph_estimate_bytes=1202590843, kv_cache_bytes=67624260075, kv_tokens=1650976, max_concurrency=25.19,
    )  # fmt: skip
    return {
        "schema": "oombot.diagnosis/1",
        "id": "D-0187",
        "verdict": "certain",
        "engine": "vllm",
        "engine_version": "0.22.1",
        "engine_version_range": None,
        "phase": "graph_capture",
        "also_possible": [],
        "rank": {
            "number": 5, "label": "Worker_TP5", "dp": None, "pp": None, "tp": 5, "ep": None, "gpu_index": 5, "node": None, "pid": 4526, "basis": "prefix",
        },
        "first_error": {
            "source": 1, "line": error, "text": lines[error - 1], "kind": "torch_oom", "tried_bytes": 67108864, "free_bytes": 41817210,
            "total_bytes": 84943716188, "process_bytes": 82409685811, "allocated_bytes": 78404628808, "allowed_bytes": None,
            "reserved_unallocated_bytes": 221815767, "private_pool_bytes": 736100352,
        },
        "budgets": [rank0, rank5],
        "deployment": {
            "model": "acme/palmyra-70b-fp8", "gpu": "H100-80GB", "gpu_count": 8, "tensor_parallel_size": 8, "pipeline_parallel_size": 1,
            "max_model_len": 65536, "gpu_memory_utilization": 0.95, "max_num_seqs": 512, "max_num_batched_tokens": 8192, "tried": {},
            "host": {"memory_bytes": None, "limit_bytes": None, "rss_bytes": None, "shm_bytes": None},
        },
        "recommendation": remedy(),
        "alternatives": [
            remedy(
                id="lower-capture-size", flag="--max-cudagraph-capture-size", direction="lower", value="256", frees_bytes=None,
                because="Fewer graphs take less memory outside the budget.", costs="Batches above 256 run without a graph.", command=None,
            )
        ],
        "avoid": [{"flag": "--max-model-len", "direction": "lower", "because": "The cache holds 25 full-length requests; a shorter context frees nothing that graph capture could use."}],
        "questions": [
            {"id": "gpu_inventory", "text": "What else was using GPU 5?", "how": "nvidia-smi --query-compute-apps=gpu_uuid,pid,name,used_memory --format=csv", "would_change": "recommendation", "choices": ["nothing", "I don't know"]}
        ],
        "proof": [
            {"source": 1, "line": frame, "rule": "frame.warm-up.capture", "text": lines[frame - 1]},
            {"source": 1, "line": error, "rule": "torch.oom", "text": lines[error - 1]},
        ],
        "redactions": 0,
        "rulebook": "sha256:5e2f6a9b0c",
        "summary": "Rank 5 of 8 ran out of GPU memory while it captured CUDA graphs, after the KV cache was allocated.",
        "similar": [],
        "also_failed": [],
        "notes": ["GPU 5 holds 2.31 GiB of another process."],
    } | changed  # fmt: skip


def open_diagnosis(**changed: Any) -> dict[str, Any]:
    return diagnosis(
        verdict="open", phase="unknown", rank=None, first_error=None, budgets=[], recommendation=None, alternatives=[], avoid=[], proof=[], notes=[],
        engine="unknown", engine_version=None, deployment={"model": None, "gpu": None, "gpu_count": None, "tried": {}, "host": {}},
        also_possible=[{"phase": "profiling", "because": "The wrapper names no phase."}],
        summary="This is only the wrapper of a failure: the log does not hold the first error.",
        questions=[{"id": "first_error", "text": "What is the first error in the log?", "how": "grep -n -m1 -i 'out of memory' server.log", "would_change": "phase"}],
    ) | changed  # fmt: skip


def incident(**changed: Any) -> dict[str, Any]:
    text = (EXAMPLES / "capture-on-one-of-eight.log").read_text()
    return {
        "schema": "oombot.incident/1",
        "id": "D-0187",
        "at": "2026-11-18T09:20:11Z",
        "team": "local",
        "channel": None,
        "thread": None,
        "erased": False,
        "diagnosis": diagnosis(),
        "contributions": [{"number": 1, "kind": "paste", "name": None, "author": None, "at": "2026-11-18T09:20:11Z", "text": text, "truncated": False, "redactions": 0}],
        "trials": [
            {"number": 1, "change": remedy(flag="--enforce-eager", direction="set", value=None, id="eager"), "outcome": "same", "note": "no change at all", "by": "U1", "at": "2026-11-18T10:02:00Z"},
            {"number": 2, "change": remedy(), "outcome": None, "note": None, "by": None, "at": None},
        ],
        "similar": [
            {"id": "D-0102", "outcome": "fixed", "remedy": "lower-gpu-memory-utilization", "flag": "--gpu-memory-utilization", "direction": "lower", "value": "0.9", "model": "acme/palmyra-70b-fp8", "gpu": "H100-80GB", "engine_version": "0.22.0", "at": "2026-10-02T08:00:00Z"},
        ],
    } | changed  # fmt: skip


def row(number: int, **changed: Any) -> dict[str, Any]:
    return {
        "id": f"D-{number:04d}", "at": "2026-11-18T09:20:11Z", "verdict": "certain", "phase": "graph_capture", "rank": 5, "engine": "vllm",
        "engine_version": "0.22.1", "model": "acme/palmyra-70b-fp8", "gpu": "H100-80GB", "gpu_count": 8, "tp": 8, "remedy": "lower-gpu-memory-utilization", "flag": "--gpu-memory-utilization",
        "direction": "lower", "value": "0.92", "outcome": "fixed", "excerpt": None, "channel": None, "thread": None, "erased": False,
    } | changed  # fmt: skip


def found(**changed: Any) -> dict[str, Any]:
    rows = [
        row(187),
        row(186, phase="kv_cache_sizing", rank=None, engine_version="0.11.0", model="acme/heron-14b-awq", gpu="RTX4090-24GB", gpu_count=1, tp=1, flag="--max-model-len", value="53888", outcome="same"),
        row(185, phase="startup_check", rank=0, model=None, gpu=None, gpu_count=None, remedy="stop-other-process", flag=None, direction=None, value=None, outcome=None, verdict="likely", excerpt="Free memory on device cuda:0 (21.63/39.49 GiB) on startup is less than desired"),
    ]  # fmt: skip
    counts = {
        "phase": {"graph_capture": 14, "kv_cache_sizing": 9, "startup_check": 3},
        "model": {"acme/palmyra-70b-fp8": 16, "acme/heron-14b-awq": 10},
        "gpu": {"H100-80GB": 16, "RTX4090-24GB": 10},
        "outcome": {"fixed": 12, "same": 5, "moved": 2},
    }
    return {
        "schema": "oombot.history/1",
        "query": "",
        "count": 26,
        "count_text": "26",
        "rows": rows,
        "counts": counts,
        "ignored": [],
    } | changed


def review(**changed: Any) -> dict[str, Any]:
    return {
        "schema": "oombot.stats/1", "since": None, "incidents": 26, "mean_seconds_to_outcome": 5400.0,
        "outcomes": {"fixed": 12, "open": 7, "same": 5, "moved": 1, "wrong": 1},
        "phases": [
            {"phase": "graph_capture", "count": 14, "fixed": 9, "mean_seconds_to_outcome": 3900.0},
            {"phase": "kv_cache_sizing", "count": 9, "fixed": 3, "mean_seconds_to_outcome": 8100.5},
            {"phase": "startup_check", "count": 3, "fixed": 0, "mean_seconds_to_outcome": None},
        ],
        "changes": [
            {"phase": "graph_capture", "remedy": "lower-gpu-memory-utilization", "flag": "--gpu-memory-utilization", "direction": "lower", "tried": 9, "fixed": 7, "moved": 1, "same": 1, "wrong": 0, "other": 0},
            {"phase": "startup_check", "remedy": "stop-other-process", "flag": None, "direction": None, "tried": 2, "fixed": 0, "moved": 0, "same": 2, "wrong": 0, "other": 0},
        ],
        "wrong_rules": [{"rule": "torch.oom", "count": 1}],
        "models": [{"name": "acme/palmyra-70b-fp8", "count": 16, "fixed": 9}, {"name": "acme/heron-14b-awq", "count": 10, "fixed": 3}],
        "gpus": [{"name": "H100-80GB", "count": 16, "fixed": 9}],
    } | changed  # fmt: skip


def explanation(**changed: Any) -> dict[str, Any]:
    return {
        "schema": "oombot.explanation/1", "topic": "budget", "title": "The memory budget of one rank",
        "paragraphs": ["An engine takes a fraction of the device and calls it its budget.", "What lies outside belongs to graphs, to the driver and to everybody else."],
        "numbers": [{"label": "Budget", "value": "73.6 GB"}], "near": [],
        "topics": [{"id": "budget", "title": "The memory budget of one rank"}, {"id": "graph-capture", "title": "Graph capture"}],
    } | changed  # fmt: skip
