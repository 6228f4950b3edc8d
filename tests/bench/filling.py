"""Synthetic incidents in any number: 2 KB of evidence each, values spread as teams have them, a few rare ones to look for.

Nine of ten are the team `local`'s.
"""

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from bot.domain.incident import Contribution, Origin
from bot.store.rows import Batch
from bot.store.store import open_store

ROWS = int(os.environ.get("OOMBOT_BENCH_ROWS", "0"))
PAGE = 2_000
START = 1_700_000_000_000_000  # µs
STEP = 60_000_000  # one incident a minute
RESULTS = ("fixed", "same", "moved", "wrong")

_PHASES = [
    "profiling",
    "kv_cache_sizing",
    "graph_capture",
    "serving",
    "weight_loading",
    "kv_cache_allocation",
    "startup_check",
    "warmup",
    "host_memory",
    "unknown",
]
_PHASE_WEIGHTS = [22, 20, 14, 14, 12, 6, 5, 3, 3, 1]
_MODELS = [
    f"{owner}/{name}-{size}"
    for owner, name in (
        ("Qwen", "Qwen2.5"),
        ("Qwen", "Qwen3"),
        ("meta-llama", "Llama-3.3"),
        ("mistralai", "Mixtral"),
        ("deepseek-ai", "DeepSeek-V3"),
        ("google", "gemma-3"),
    )
    for size in ("7B", "14B", "32B", "70B", "72B-Instruct", "235B-A22B")
]
_GPUS = [
    "H100-80GB",
    "A100-80GB",
    "H200-141GB",
    "A100-40GB",
    "L40S-48GB",
    "A10-24GB",
    "RTX4090-24GB",
    "L4-24GB",
    "B200-180GB",
    "MI300X-192GB",
]
_FLAGS = [
    ("lower-gpu-memory-utilization", "--gpu-memory-utilization", "lower"),
    ("lower-max-num-seqs", "--max-num-seqs", "lower"),
    ("lower-max-model-len", "--max-model-len", "lower"),
    ("lower-max-num-batched-tokens", "--max-num-batched-tokens", "lower"),
    ("raise-gpu-memory-utilization", "--gpu-memory-utilization", "raise"),
    ("raise-tensor-parallel-size", "--tensor-parallel-size", "raise"),
]
_RULES = [f"{phase}.rule-{n}" for phase in ("profiling", "graph-capture", "serving", "weights") for n in range(6)]
_LINES = [
    "INFO {t} [gpu_model_runner.py:2602] Starting to load model {m}...",
    "INFO {t} [gpu_worker.py:298] Available KV cache memory: {n}.{k} GiB",
    "INFO {t} [kv_cache_utils.py:1087] GPU KV cache size: {n}{k},{n}4 tokens",
    "(Worker_TP{r} pid={p}) ERROR {t} [multiproc_executor.py:671] Traceback (most recent call last):",
    '(Worker_TP{r} pid={p}) ERROR   File "/usr/local/lib/python3.12/dist-packages/vllm/v1/worker/gpu_model_runner.py", line {k}{n}, in capture_model',
    '(Worker_TP{r} pid={p}) ERROR   File "/usr/local/lib/python3.12/dist-packages/vllm/v1/worker/gpu_worker.py", line {n}{r}, in compile_or_warm_up_model',
    "(Worker_TP{r} pid={p}) ERROR torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {n}.00 MiB. GPU {r} has a total capacity of 79.{k} GiB",
    "WARNING {t} [topk_topp_sampler.py:66] FlashInfer is not available. Falling back to the native sampler for request {p}{n}",
    "INFO {t} [loader.py:447] Loading weights took {n}.{k} seconds",
    "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {p}",
]  # fmt: skip


async def full_database(kind: str, folder: Path) -> str:
    """The URL of an SQLite file (OOMBOT_BENCH_FILE, else in `folder`) or of OOMBOT_TEST_POSTGRES, with at least ROWS incidents."""
    if kind == "postgres":
        url = os.environ.get("OOMBOT_TEST_POSTGRES") or pytest.skip("OOMBOT_TEST_POSTGRES is not set")
    else:
        url = f"sqlite+aiosqlite:///{os.environ.get('OOMBOT_BENCH_FILE') or folder / 'bench.db'}"
    store = await open_store(url)
    have, began = (await store.state())["incidents"], time.perf_counter()
    for start in range(have, ROWS, PAGE):
        await store._write(_page, start, min(PAGE, ROWS - start))
    if have < ROWS:
        print(f"\n{kind}: {ROWS - have:,} incidents written in {time.perf_counter() - began:.0f} s")
    await store.close()
    return url


def _page(connection: Connection, start: int, size: int) -> None:
    batch = Batch()
    for number, key, origin, given, document, result in _incidents(start, size):
        row = batch.add(key, number, origin, given, document, key + 1)
        if result:
            settled = key + 3_600_000_000
            row |= {"outcome": result, "settled": settled}
            if batch.trials and batch.trials[-1]["incident"] == key:
                batch.trials[-1] |= {"result": result, "note": None, "by": "U1", "at": settled}
    for trial in batch.trials:
        for name in ("result", "note", "by", "at"):
            trial.setdefault(name, None)
    batch.write(connection)


def _incidents(start: int, size: int) -> Iterator[tuple[int, int, Origin, list[Contribution], dict[str, Any], str | None]]:
    for number in range(start + 1, start + size + 1):
        dice = random.Random(number)
        team = "T0000002" if number % 10 == 0 else "local"
        phase = dice.choices(_PHASES, _PHASE_WEIGHTS)[0]
        model = dice.choice(_MODELS)
        origin = Origin(team, channel=f"C{dice.randrange(20):03d}", private=dice.random() < 0.1)
        result = dice.choice(RESULTS) if dice.random() < 0.45 else None
        yield (
            number,
            START + number * STEP,
            origin,
            [Contribution("paste", _log(dice, number, model))],
            _document(dice, phase, model),
            result,
        )


def _log(dice: random.Random, number: int, model: str) -> str:
    kept = [line for line in _LINES if dice.random() < 0.8] * 2
    lines = [
        line.format(t=f"11-{dice.randrange(28) + 1:02d} {dice.randrange(24):02d}:{dice.randrange(60):02d}", m=model, n=dice.randrange(9999), k=dice.randrange(99), r=dice.randrange(8), p=dice.randrange(99999))
        for line in kept
    ]  # fmt: skip
    if number % 5_000 == 1:
        lines.insert(3, "ERROR NCCL error: unhandled cuda error, rarebird watchdog")
    return "\n".join(lines)[:2_048]


def _document(dice: random.Random, phase: str, model: str) -> dict[str, Any]:
    remedy, flag, direction = dice.choice(_FLAGS)
    rank = dice.randrange(8)
    budget = {"rank": rank, "label": f"Worker_TP{rank}", "weights_bytes": dice.randrange(10**10, 7 * 10**10), "activation_peak_bytes": dice.randrange(10**8, 10**10), "kv_cache_bytes": dice.randrange(10**9, 5 * 10**10)}  # fmt: skip
    return {
        "schema": "oombot.diagnosis/1", "id": None, "verdict": "open" if phase == "unknown" else dice.choice(("certain", "likely")), "engine": "vllm",
        "engine_version": f"0.{dice.randrange(8, 34)}.{dice.randrange(3)}", "phase": phase, "rank": {"number": rank, "label": f"Worker_TP{rank}"},
        "first_error": {"source": 1, "line": 7, "text": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB.", "kind": "torch_oom"},
        "budgets": [budget], "deployment": {"model": model, "gpu": dice.choice(_GPUS), "gpu_count": 8, "tensor_parallel_size": dice.choice((1, 2, 4, 8)), "max_num_batched_tokens": 8192},
        "recommendation": None if phase == "unknown" else {"id": remedy, "flag": flag, "direction": direction, "value": str(dice.randrange(1, 9) * 64)},
        "alternatives": [], "avoid": [], "questions": [], "proof": [{"source": 1, "line": 7, "rule": dice.choice(_RULES), "text": "…"}], "redactions": 0, "rulebook": "sha256:0",
    }  # fmt: skip
