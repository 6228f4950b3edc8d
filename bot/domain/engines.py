"""The engines whose logs are read."""

from collections.abc import Mapping
from typing import NamedTuple


class Engine(NamedTuple):
    """`name` as people write it; `folders` of its source, as a traceback prints them, where those tell it."""

    name: str
    folders: tuple[str, ...] = ()


ENGINES: Mapping[str, Engine] = {
    "vllm": Engine("vLLM"),
    "sglang": Engine("SGLang", ("/sglang/", "/srt/")),
    "tensorrt-llm": Engine("TensorRT-LLM", ("/tensorrt_llm/",)),
    "tgi": Engine("TGI", ("/text_generation_server/",)),
    "lmdeploy": Engine("LMDeploy", ("/lmdeploy/",)),
    "llama.cpp": Engine("llama.cpp"),
}
"""By the contract's ids; beside them there is `unknown`. vLLM's own folders count for less: the others import its code."""
HIGHEST_FRACTION = 0.95
"""Of a card. Above it, what comes beside the budget (graphs, communicators, the allocator's own) has no room on any card."""
