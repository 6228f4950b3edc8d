"""Pastes of 200 KB of each kind that people send, in the real formats."""

import csv
import io
import json
from collections.abc import Callable, Iterator
from itertools import cycle

from tests.bench import talking

SIZE = 200_000
STATS = (
    "(APIServer pid=1) INFO 11-18 09:{m:02d}:{s:02d} [loggers.py:123] Engine 000: Avg prompt throughput: {t}.5 tokens/s, Avg generation "
    "throughput: {t}.1 tokens/s, Running: {r} reqs, Waiting: 0 reqs, GPU KV cache usage: {r}.0%, Prefix cache hit rate: 12.3%\n"
)
ACCESS = '(APIServer pid=1) INFO:     10.0.0.{r}:{t} - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'
FAILURE = "".join(
    f"(Worker_TP1 pid=7501) ERROR 11-18 10:00:00 [multiproc_executor.py:671] {line}\n"
    for line in (
        "Traceback (most recent call last):",
        '  File "/opt/venv/lib/python3.12/site-packages/vllm/v1/worker/gpu_worker.py", line 500, in execute_model',
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 64.00 MiB. GPU 1 has a total capacity of 79.18 GiB of which 20.88 MiB is free.",
    )
)
_START = (
    ("INFO", "gpu_model_runner.py:2602", "Starting to load model meta-llama/Llama-3.1-70B-Instruct..."),
    ("INFO", "default_loader.py:267", "Loading weights took 21.08 seconds"),
    ("INFO", "gpu_model_runner.py:2653", "Model loading took 16.4606 GiB and 22.181033 seconds"),
    ("INFO", "backends.py:548", "Using cache directory: /root/.cache/vllm/torch_compile_cache/d1e2/rank_{rank}_0/backbone for vLLM's torch.compile"),
    ("INFO", "gpu_worker.py:298", "Available KV cache memory: 47.18 GiB"),
    ("ERROR", "multiproc_executor.py:671", "WorkerProc hit an exception."),
    ("ERROR", "multiproc_executor.py:671", "Traceback (most recent call last):"),
    *(
        ("ERROR", "multiproc_executor.py:671", text)
        for name, number, function, source in (
            ("vllm/v1/executor/multiproc_executor.py", 666, "worker_busy_loop", "output = func(*args, **kwargs)"),
            ("vllm/v1/worker/gpu_worker.py", 352, "compile_or_warm_up_model", "self.model_runner.capture_model()"),
            ("vllm/v1/worker/gpu_model_runner.py", 3453, "capture_model", "self._capture_cudagraphs("),
            ("vllm/v1/worker/gpu_model_runner.py", 3537, "_capture_cudagraphs", "self._dummy_run(num_tokens,"),
            ("torch/nn/modules/module.py", 1773, "_wrapped_call_impl", "return self._call_impl(*args, **kwargs)"),
        )
        for text in (f'  File "/opt/venv/lib/python3.12/site-packages/{name}", line {number}, in {function}', f"    {source}")
    ),
    (
        "ERROR", "multiproc_executor.py:671",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 136.00 MiB. GPU {rank} has a total capacity of 79.18 GiB of which 20.88 MiB "
        "is free. Including non-PyTorch memory, this process has 79.15 GiB memory in use. Of the allocated memory 76.00 GiB is allocated by "
        "PyTorch, with 300.00 MiB allocated in private pools (e.g., CUDA Graphs), and 40.00 MiB is reserved by PyTorch but unallocated.",
    ),
)  # fmt: skip
_SENTENCES = (
    "We run the model on two cards and it works for short prompts.", "After an hour the server gets slow and somebody restarts the container.",
    "I lowered the context to 16k and nothing changed.", "The other node has the same image and is fine.",
    "It crashes with an out of memory error while it captures the graphs.", "What should we set, and does the batch size matter here?",
)  # fmt: skip


def _throughput() -> Iterator[str]:
    texts = cycle([*(STATS.format(m=i // 60 % 60, s=i % 60, t=i, r=i % 200) for i in range(700)), *FAILURE.splitlines(keepends=True)])
    return (text.rstrip("\n") for text in texts)


def _start() -> Iterator[str]:
    for n, (level, place, said) in enumerate(cycle(_START)):
        for rank in range(8):
            yield f"(Worker_TP{rank} pid={7500 + rank}) {level} 11-18 09:{n // 60 % 60:02d}:{n % 60:02d} [{place}] {said.format(rank=rank)}"


def _loki() -> Iterator[str]:
    return (
        json.dumps({"timestamp": str(10**18 + n), "labels": {"pod": "vllm-0", "stream": "stderr"}, "line": line})
        for n, line in enumerate(_start())
    )


def _datadog() -> Iterator[str]:
    yield "Date,Host,Service,Message"
    for n, line in enumerate(_start()):
        row = io.StringIO()
        csv.writer(row, lineterminator="").writerow([f"2026-11-18T09:{n // 60 % 60:02d}:{n % 60:02d}.000Z", "gpu-7", "vllm", line])
        yield row.getvalue()


def _access() -> Iterator[str]:
    form = '10.0.{a}.{b} - - [18/Nov/2026:09:{m:02d}:{s:02d} +0000] "GET /v1/things/{n}?page={b} HTTP/1.1" 200 {n} "-" "Mozilla/5.0 (X11)"'
    return (form.format(a=n % 250, b=n % 99, m=n // 60 % 60, s=n % 60, n=n) for n, _ in enumerate(cycle("x")))


def _service() -> Iterator[str]:
    form = "2026-11-18T09:{m:02d}:{s:02d}.123Z INFO  [worker-{a}] com.example.orders.OrderService - order {n} handled in {a} ms"
    return (form.format(a=n % 250, m=n // 60 % 60, s=n % 60, n=n) for n, _ in enumerate(cycle("x")))


def _prose() -> Iterator[str]:
    return (f"{one} {other}" for one, other in zip(cycle(_SENTENCES), cycle(_SENTENCES[1:]), strict=False))


_KINDS: dict[str, Callable[[], Iterator[str]]] = {
    "throughput": _throughput, "eight ranks' start with tracebacks": _start, "Loki's JSON lines": _loki, "Datadog's CSV": _datadog,
    "an access log": _access, "another program's log": _service, "prose": _prose, "a thread with quoted lines": talking.thread,
    "a chat's export": talking.chat, "a document": talking.document, "Chinese": talking.chinese, "Python": talking.code,
    "YAML": talking.manifest, "JSON, one a line": talking.records,
}  # fmt: skip
KINDS = (*_KINDS, "Loki's array", "one line of a chat")


def paste(kind: str, size: int = SIZE) -> str:
    """So many characters of a kind, whole records only."""
    if kind == "Loki's array":
        return "[" + ",".join(paste("Loki's JSON lines", size).splitlines()) + "]"
    if kind == "one line of a chat":
        return paste("a chat's export", size).replace("\n", " ")
    lines: list[str] = []
    for line in _KINDS[kind]():
        size -= len(line) + 1
        if size < 0:
            break
        lines.append(line)
    return "\n".join(lines) + "\n"
