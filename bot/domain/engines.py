"""The engines whose logs are read."""

from collections.abc import Mapping

ENGINES: Mapping[str, str] = {
    "vllm": "vLLM",
    "sglang": "SGLang",
    "tensorrt-llm": "TensorRT-LLM",
    "tgi": "TGI",
    "lmdeploy": "LMDeploy",
    "llama.cpp": "llama.cpp",
}
"""The contract's ids (beside them `unknown`), and the names as people write them."""
