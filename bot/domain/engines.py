"""The engines whose logs are read."""

from collections.abc import Mapping
from typing import NamedTuple


class Engine(NamedTuple):
    """`name` as people write it; `folders` of its source, as a traceback prints them, where those tell it.

    `fraction`: another engine's argument for what vLLM calls its utilization, where a change counts from it. `usual`: about what it takes
    where nothing is set, of a card for SGLang, and of what is free for TensorRT-LLM and LMDeploy. `careful`: a step below that.
    """

    name: str
    folders: tuple[str, ...] = ()
    fraction: str = ""
    usual: float | None = None
    careful: str | None = None


ENGINES: Mapping[str, Engine] = {
    "vllm": Engine("vLLM"),
    "sglang": Engine("SGLang", ("/sglang/", "/srt/"), "mem_fraction_static", 0.88, "0.8"),
    "tensorrt-llm": Engine("TensorRT-LLM", ("/tensorrt_llm/",), "free_gpu_memory_fraction", 0.9, "0.8"),
    "tgi": Engine("TGI", ("/text_generation_server/",)),
    "lmdeploy": Engine("LMDeploy", ("/lmdeploy/",), "cache_max_entry_count", 0.8, "0.7"),
    "llama.cpp": Engine("llama.cpp"),
}
"""By the contract's ids; beside them there is `unknown`. vLLM's own folders count for less: the others import its code."""
HIGHEST_FRACTION = 0.95
"""Of a card. Above it, what comes beside the budget (graphs, communicators, the allocator's own) has no room on any card."""
