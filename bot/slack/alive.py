"""Names for workers by which a later process on the same machine can tell that they are dead."""

import os
import uuid
from functools import cache
from pathlib import Path

PROC = Path("/proc")


def worker_name() -> str:
    """Machine and process namespace, process id, its birth, and something unique: `home:pid:birth:…`; no home where none can be told."""
    return f"{_home()}:{os.getpid()}:{_birth(os.getpid())}:{uuid.uuid4().hex[:8]}"


def is_dead(worker: str) -> bool:
    """A worker of this machine and namespace whose process has ended. False for all others: their leases decide."""
    home, _, rest = worker.partition(":")
    pid, _, rest = rest.partition(":")
    return bool(home) and home == _home() and pid.isdigit() and _birth(int(pid)) != rest.partition(":")[0]


@cache
def _home() -> str:
    """Process ids mean nothing on another machine, after a reboot, or in another container."""
    try:
        boot = (PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}-{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return ""


def _birth(pid: int) -> str:
    """When a process was started, in ticks of the machine's clock, so that a used-again id is told apart; empty when it has ended."""
    try:
        state, *fields = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if state in "ZX" else fields[18]
