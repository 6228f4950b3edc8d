"""The contract's words as a person reads them: phases, verdicts, outcomes, figures."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

PHASES = {
    "startup_check": ("start-up check", "while the device was prepared, before anything was loaded"),
    "weight_loading": ("weight loading", "while the weights were loaded"),
    "profiling": ("profiling", "while a dummy batch measured the activation peak"),
    "kv_cache_sizing": ("KV cache sizing", "when the KV cache was sized: a check, not a failed allocation"),
    "kv_cache_allocation": ("KV cache allocation", "while the KV cache pool was allocated"),
    "graph_capture": ("graph capture", "while CUDA graphs were captured"),
    "warmup": ("warm-up", "while kernels or the sampler were warmed up"),
    "serving": ("serving", "while serving requests"),
    "wake_up": ("sleep and wake-up", "while the engine went to sleep or took its memory back"),
    "host_memory": ("host memory", "when the machine's own memory ran out"),
    "not_oom": ("not out of memory", "for another reason than memory"),
    "unknown": ("not known yet", "in a phase that the evidence does not decide"),
}

STEPS = ("startup_check", "weight_loading", "profiling", "kv_cache_sizing", "kv_cache_allocation", "graph_capture", "warmup", "serving")

VERDICTS = {
    "certain": "a telling line of the failing process says so",
    "likely": "the evidence points there, but no single line says it",
    "open": "the evidence cannot decide yet",
}

OUTCOMES = {
    "fixed": "It worked",
    "moved": "Error moved",
    "same": "Same error",
    "wrong": "Diagnosis was wrong",
    "other": "Something else",
}

OUTCOME_SAID = {"fixed": "worked", "moved": "error moved", "same": "same error", "wrong": "diagnosis wrong", "other": "other"}

# (name, label, unit, always shown): what is always shown says so when the log does not hold it.
FIGURES = (
    ("total_bytes", "Device in total", "bytes", True),
    ("free_at_start_bytes", "Free at start", "bytes", True),
    ("utilization", "Utilization", "fraction", True),
    ("requested_bytes", "Requested budget", "bytes", True),
    ("weights_bytes", "Weights", "bytes", True),
    ("consumed_bytes", "Weights and non-torch together", "bytes", False),
    ("activation_peak_bytes", "Activation peak", "bytes", True),
    ("non_torch_bytes", "Non-torch", "bytes", True),
    ("other_reserved_bytes", "Other, set aside", "bytes", False),
    ("graph_estimate_bytes", "Graphs, estimated", "bytes", False),
    ("graph_bytes", "Graphs, as captured", "bytes", False),
    ("kv_cache_bytes", "KV cache", "bytes", True),
    ("needed_bytes", "One request of max_model_len needs", "bytes", False),
    ("kv_tokens", "KV cache in tokens", "count", False),
    ("num_gpu_blocks", "KV cache blocks", "count", False),
    ("state_blocks", "State blocks", "count", False),
    ("max_concurrency", "Full-length requests at once", "ratio", False),
    ("estimated_max_model_len", "Longest context, as the engine estimates", "count", False),
    ("free_before_profile_bytes", "Free before profiling", "bytes", False),
    ("free_after_profile_bytes", "Free after profiling", "bytes", False),
    ("outside_budget_bytes", "Outside the budget", "bytes", False),
    ("residual_bytes", "Not accounted for", "bytes", False),
)

BASES = {
    "prefix": "the prefix of its log lines",
    "tag": "the tag of its log lines",
    "pid": "its process id",
    "rank_line": "a line that maps ranks",
    "message": "the message itself",
    "gpu_index": "the GPU index of the error",
    "only_worker": "being the only worker",
    "driver": "being the driver process",
    "answer": "your answer",
}


def phase(name: str) -> str:
    """A phase in two words."""
    return PHASES.get(name, (name, ""))[0]


def phase_during(name: str) -> str:
    """A phase as the end of “It failed …”."""
    return PHASES.get(name, (name, f"in {name}"))[1]


def gib(size: int | float | None) -> str:
    """Bytes for a person, in the binary units that engines print."""
    if size is None:
        return ""
    amount, sign = abs(size), "−" if size < 0 else ""
    for unit, scale, digits in (("GiB", 2**30, 2), ("MiB", 2**20, 2), ("KiB", 2**10, 2)):
        if amount >= scale:
            return f"{sign}{amount / scale:,.{digits}f} {unit}"
    return f"{sign}{amount:,} B"


def gigabytes(size: int | float | None) -> str:
    """Bytes in decimal gigabytes, as vendors count."""
    return "" if size is None else f"{size / 1e9:,.2f} GB".replace("-", "−")


def figure(value: object, unit: str) -> str:
    """One figure of a budget, or nothing when it is missing."""
    if value is None or not isinstance(value, int | float):
        return ""
    if unit == "bytes":
        return gib(value)
    if unit == "count":
        return f"{value:,}"
    return f"{value:.2f}×" if unit == "ratio" else f"{value:g}"


def exactly(value: object) -> str:
    """The exact bytes behind a rounded figure."""
    return f"{value:,} bytes" if isinstance(value, int) else ""


def day(at: object) -> str:
    """An ISO instant as a person reads it, in UTC."""
    text = str(at or "")
    return text[:16].replace("T", " ")


def lines(count: int) -> str:
    """So many lines."""
    return f"{count:,} line{'' if count == 1 else 's'}"


PLACE = {"rank", "label", "lines", "reported_by_rank"}


def alike(ranks: Sequence[Mapping[str, Any]]) -> list[tuple[str, Mapping[str, Any]]]:
    """Ranks whose figures are equal, as one column each: its heading, and the first of them. Where a figure was read does not count."""
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for rank in ranks:
        groups.setdefault(tuple(repr(value) for name, value in rank.items() if name not in PLACE), []).append(rank)
    if len(groups) == 1 and len(ranks) > 1:
        return [(f"each of {len(ranks)} ranks", ranks[0])]
    return [(_heading(group), group[0]) for group in groups.values()]


def _heading(group: Sequence[Mapping[str, Any]]) -> str:
    numbers = [rank["rank"] for rank in group if rank["rank"] is not None]
    if len(numbers) < len(group):
        return str(group[0].get("label") or "the engine") if len(group) == 1 else f"{len(group)} unnamed ranks"
    return f"rank {numbers[0]}" if len(numbers) == 1 else f"ranks {', '.join(_runs(sorted(numbers)))}"


def _runs(numbers: Sequence[int]) -> Iterator[str]:
    """1 2 3 4 6 7 -> 1–4, 6, 7: three or more in a row make a run."""
    start = 0
    for end in range(1, len(numbers) + 1):
        if end < len(numbers) and numbers[end] == numbers[end - 1] + 1:
            continue
        run = numbers[start:end]
        yield from [f"{run[0]}–{run[-1]}"] if len(run) > 2 else map(str, run)
        start = end


def span(seconds: object) -> str:
    """A duration in the one unit that fits it, or nothing."""
    if not isinstance(seconds, int | float):
        return ""
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} seconds"


def change(of: object) -> str:
    """One change in a few words: the flag, where it goes, and to what."""
    if not isinstance(of, dict):
        return ""
    flag, direction, value = of.get("flag"), of.get("direction"), of.get("value")
    if not flag:
        return str(of.get("id", "")).replace("-", " ")
    to = f" {'to' if direction != 'remove' else ''} {value}".rstrip() if value not in (None, "") and direction != "remove" else ""
    return f"{direction} {flag}{to}".strip()
