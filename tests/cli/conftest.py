"""The command line against a database of its own."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bot.main import run

CAPTURE = """\
$ vllm serve Qwen/Qwen3-32B --tensor-parallel-size 2 --gpu-memory-utilization 0.95
(EngineCore_DP0 pid=7317) INFO 10-23 09:36:20 [core.py:77] Initializing a V1 LLM engine (v0.11.0) with config: model='Qwen/Qwen3-32B', max_seq_len=40960
(Worker_TP0 pid=7500) INFO 10-23 09:36:43 [gpu_worker.py:298] Available KV cache memory: 41.87 GiB
(Worker_TP1 pid=7501) INFO 10-23 09:36:43 [gpu_worker.py:298] Available KV cache memory: 41.87 GiB
(EngineCore_DP0 pid=7317) INFO 10-23 09:36:44 [kv_cache_utils.py:1087] GPU KV cache size: 343,008 tokens
(Worker_TP1 pid=7501) ERROR 10-23 09:37:55 [multiproc_executor.py:671] Traceback (most recent call last):
(Worker_TP1 pid=7501) ERROR 10-23 09:37:55 [multiproc_executor.py:671]   File "/opt/venv/lib/python3.12/site-packages/vllm/v1/worker/gpu_worker.py", line 352, in compile_or_warm_up_model
(Worker_TP1 pid=7501) ERROR 10-23 09:37:55 [multiproc_executor.py:671]   File "/opt/venv/lib/python3.12/site-packages/vllm/v1/worker/gpu_model_runner.py", line 3453, in capture_model
(Worker_TP1 pid=7501) ERROR 10-23 09:37:55 [multiproc_executor.py:671] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 136.00 MiB. GPU 1 has a total capacity of 79.18 GiB of which 20.88 MiB is free. Including non-PyTorch memory, this process has 79.15 GiB memory in use. Of the allocated memory 76.00 GiB is allocated by PyTorch, with 300.00 MiB allocated in private pools (e.g., CUDA Graphs), and 40.00 MiB is reserved by PyTorch but unallocated.
"""


@pytest.fixture(autouse=True)
def usual_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that run side by side are given 80 columns; what is tested here is written for a terminal that says nothing."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A capture failure of rank 1 in a file."""
    path = tmp_path / "vllm.log"
    path.write_text(CAPTURE)
    return path


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where this test's history lies."""
    path = tmp_path / "data" / "oombot.db"
    monkeypatch.setenv("OOMBOT_DATABASE_URL", f"sqlite+aiosqlite:///{path}")
    monkeypatch.chdir(tmp_path)
    return path


@pytest.fixture
def oombot(database: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run a command: (exit status, standard output, standard error)."""

    def command(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        try:
            status = run(arguments)
        except SystemExit as end:
            status = int(end.code or 0) if not isinstance(end.code, str) else 1
        out, err = capsys.readouterr()
        return status, out, err

    return command
