"""The phases in which memory runs out, in words: the same in a verdict and at every door."""

from collections.abc import Mapping
from itertools import takewhile
from typing import NamedTuple


class Words(NamedTuple):
    """`few` for a cell of a table; `inside` stands behind “Stopped in” in a sentence."""

    few: str
    inside: str = ""


PHASES: Mapping[str, Words] = {
    "startup_check": Words("start-up check", "the start-up check, before anything was loaded"),
    "weight_loading": Words("weight loading", "weight loading"),
    "profiling": Words("profiling", "the profiling run, before the cache was sized"),
    "kv_cache_sizing": Words("KV cache sizing", "cache sizing: a check, not a failed allocation"),
    "kv_cache_allocation": Words("KV cache allocation", "allocating the KV cache pool"),
    "graph_capture": Words("graph capture", "CUDA graph capture"),
    "warmup": Words("warm-up", "warm-up"),
    "serving": Words("serving", "serving"),
    "wake_up": Words("sleep and wake-up", "sleep or wake-up"),
    "host_memory": Words("host memory", "the machine's own memory, not the card's"),
    "not_oom": Words("not out of memory"),
    "unknown": Words("not decided"),
}
"""Each Phase of bot/domain/diagnosis.py, in the order of an engine's life."""
STEPS = tuple(takewhile(lambda phase: phase != "wake_up", PHASES))
"""What each worker of an engine goes through, from its start to its requests."""
ELSEWHERE: Mapping[tuple[str, str], Words] = {
    ("llama.cpp", "profiling"): Words("compute buffers", "allocating the compute buffers, after the cache"),
    ("llama.cpp", "warmup"): Words("warm-up", "the warm-up run"),
    ("sglang", "profiling"): Words("profiling", "measuring memory at the start"),
    ("sglang", "kv_cache_sizing"): Words("token pool sizing", "sizing the token pool: a check, not a failed allocation"),
    ("tgi", "profiling"): Words("warm-up batch", "the warm-up batch, before the cache was sized"),
}
"""(engine, phase) -> what that engine does in a phase that bears vLLM's name."""


def phase_words(phase: str, engine: str = "") -> Words:
    """A phase as that engine goes through it; one that is not known here by its own name."""
    return ELSEWHERE.get((engine, phase)) or PHASES.get(phase) or Words(phase, phase)
