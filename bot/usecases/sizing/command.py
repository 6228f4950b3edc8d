"""The command line that a sizing question stands for."""

import json
import shlex
from collections.abc import Mapping
from typing import Any

from bot.usecases.sizing.draft import told_of_draft
from bot.usecases.sizing.question import Asked

SAID = (
    "tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size", "decode_context_parallel_size", "enable_expert_parallel",
    "max_model_len", "max_num_seqs", "max_num_batched_tokens", "gpu_memory_utilization", "kv_cache_dtype", "kv_cache_memory_bytes",
    "block_size", "quantization", "dtype", "num_gpu_blocks_override", "mamba_ssm_cache_dtype", "mm_encoder_tp_mode",
    "enable_prefix_caching", "enable_chunked_prefill", "disable_hybrid_kv_cache_manager", "enable_lora", "max_loras", "max_lora_rank",
    "max_cpu_loras", "lora_dtype", "fully_sharded_loras", "cpu_offload_gb", "kv_offloading_size", "swap_space",
)  # fmt: skip
"""Engine arguments that a command repeats, in this order."""


OURS = frozenset({"config", "unknown"})
"""What we keep in a speculative config beside what the engine takes."""


def model_name(given: Mapping[str, Any]) -> str | None:
    """The model as it was named, else as its config.json names it; None when neither does. A path of another machine is no name."""
    config = given.get("config")
    own = config.get("_name_or_path") if isinstance(config, Mapping) else None
    usable = isinstance(own, str) and own.strip() and not own.startswith(("/", ".", "~", "-")) and "\\" not in own
    return str(given.get("model") or "") or (str(own) if usable else None)


def model_shown(given: Mapping[str, Any]) -> str | None:
    """The model as an answer names it: with how it is `stored` where the question asked for that and named no such checkpoint."""
    name, stored = model_name(given), given.get("stored")
    return f"{stored} checkpoint of {name}" if name and stored else name


def command(asked: Asked) -> str:
    """`vllm serve MODEL` with every engine argument that the question gave. `serves`: a checkpoint that is to be found first."""
    parts = ["vllm", "serve", str(asked.arguments.get("serves") or model_name(asked.arguments) or "MODEL")]
    for name in SAID:
        parts += _flag(name, asked.arguments.get(name))
    drafts = {key: value for key, value in told_of_draft(asked.arguments).items() if key not in OURS}
    if drafts:
        parts += ["--speculative-config", json.dumps(drafts)]
    return shlex.join(parts)


def _flag(name: str, value: object) -> list[str]:
    flag = "--" + name.replace("_", "-")
    if value is None or isinstance(value, list | dict):
        return []
    if isinstance(value, bool):
        return [flag if value else flag.replace("--", "--no-", 1)]
    return [flag, str(value)]
