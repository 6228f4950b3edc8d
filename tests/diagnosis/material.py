"""Short pastes in the real formats, and one call that judges them."""

from typing import Any

from bot.domain.incident import Contribution
from bot.rulebook.load import load_rulebook
from bot.usecases.judge import judge


def judged(text: str, *more: Contribution) -> dict[str, Any]:
    """The diagnosis document of one paste and what was said after it."""
    return judge(load_rulebook(), [Contribution("paste", text), *more])


def oom(
    tried: str,
    free: str,
    total: str = "79.18 GiB",
    gpu: int = 0,
    allocated: str = "70.00 GiB",
    private: str = "",
    spare: str = "100.00 MiB",
) -> str:
    """torch's sentence, 2.4 and later."""
    pools = f", with {private} allocated in private pools (e.g., CUDA Graphs)," if private else ","
    return (
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {tried}. GPU {gpu} has a total capacity of {total} of which {free} is free. "
        f"Including non-PyTorch memory, this process has 78.00 GiB memory in use. Of the allocated memory {allocated} is allocated by PyTorch{pools} "
        f"and {spare} is reserved by PyTorch but unallocated."
    )


def frame(path: str, function: str, line: int = 100) -> str:
    """One CPython frame in a vLLM installation."""
    return f'  File "/opt/venv/lib/python3.12/site-packages/vllm/{path}", line {line}, in {function}'


def worker(tag: str, *lines: str, pid: int = 7501, at: str = "ERROR 10-23 09:37:55 [multiproc_executor.py:671]") -> str:
    """Lines as a V1 worker signs them."""
    return "\n".join(f"({tag} pid={pid}) {at} {line}" for line in lines)
