"""What a sizing question may say: each engine argument with the short names that people write for it."""

import re
from dataclasses import dataclass
from typing import Any, Literal

from bot.domain.foreign import foreign_json

Kind = Literal["count", "tokens", "fraction", "bytes", "text", "switch", "json", "gib"]


@dataclass(frozen=True, slots=True)
class Argument:
    """`name` as the engine calls it; `short`: other names that people write, the first one shown in help.

    `ours`: no argument of the engine, but what sizing is told of the card, the model or the release.
    """

    name: str
    kind: Kind
    short: tuple[str, ...]
    help: str
    ours: bool = False


ARGUMENTS = (
    Argument("gpu", "text", (), "card, by any name: H100, A100-80GB, p5.48xlarge; several with commas are held side by side", ours=True),
    Argument("tensor_parallel_size", "count", ("tp",), "tensor parallel size"),
    Argument("pipeline_parallel_size", "count", ("pp",), "pipeline parallel size"),
    Argument("data_parallel_size", "count", ("dp",), "data parallel size (replicas)"),
    Argument("decode_context_parallel_size", "count", ("dcp",), "decode context parallel size"),
    Argument("enable_expert_parallel", "switch", ("ep",), "spread experts over the ranks"),
    Argument("max_model_len", "tokens", ("len", "ctx", "context"), "longest request in tokens (128k and auto are understood)"),
    Argument("max_num_seqs", "count", ("seqs", "requests", "concurrency"), "requests that may run at once"),
    Argument("max_num_batched_tokens", "tokens", ("batched",), "tokens of one batch"),
    Argument("gpu_memory_utilization", "fraction", ("utilization", "util"), "fraction of the card that the engine may use"),
    Argument("kv_cache_dtype", "text", ("kv",), "type of the KV cache: auto, fp8, …, whatever that version takes"),
    Argument("block_size", "count", ("block",), "tokens of one cache block"),
    Argument("quantization", "text", ("quant",), "quantization of the weights"),
    Argument("dtype", "text", (), "type of weights and activations"),
    Argument("engine_version", "text", ("version", "vllm"), "vLLM version; given twice, both are answered and compared", ours=True),
    Argument("enforce_eager", "switch", ("eager",), "no CUDA graphs"),
    Argument("enable_prefix_caching", "switch", ("prefix_caching",), "keep prefixes of earlier requests"),
    Argument("enable_chunked_prefill", "switch", ("chunked_prefill",), "cut long prompts into batches"),
    Argument("disable_hybrid_kv_cache_manager", "switch", (), "one kind of cache group for all layers"),
    Argument("language_model_only", "switch", (), "leave the vision tower out"),
    Argument("mm_encoder_tp_mode", "text", (), "weights | data: whether the vision tower is split"),
    Argument("mamba_cache_dtype", "text", (), "type of convolution state"),
    Argument("mamba_ssm_cache_dtype", "text", (), "type of recurrent state"),
    Argument("speculative_config", "json", (), "what drafts tokens, as JSON: method, model, num_speculative_tokens"),
    Argument("speculative_model", "text", (), "what drafts tokens, in versions before 0.9"),
    Argument("num_speculative_tokens", "count", (), "tokens drafted at once, in versions before 0.9"),
    Argument("speculative_draft_tensor_parallel_size", "count", (), "tensor parallel size of what drafts, in versions before 0.9"),
    Argument("enable_lora", "switch", ("lora",), "slots for LoRA adapters"),
    Argument("max_loras", "count", ("loras",), "adapters in one batch (1)"),
    Argument("max_lora_rank", "count", ("lora_rank",), "highest rank of an adapter (16)"),
    Argument("max_cpu_loras", "count", (), "adapters kept in the host's memory"),
    Argument("lora_dtype", "text", (), "type of adapters"),
    Argument("fully_sharded_loras", "switch", (), "deal both matrices of an adapter over the ranks"),
    Argument("cpu_offload_gb", "gib", ("cpu_offload",), "GiB of each rank's weights that stay in the host's memory"),
    Argument("kv_offloading_size", "gib", ("kv_offloading",), "GiB of the host's memory for KV cache that leaves the card"),
    Argument("swap_space", "gib", ("swap",), "GiB of the host's memory for each rank's swapped blocks, until 0.2x"),
    Argument("num_gpu_blocks_override", "count", (), "blocks of the pool, whatever memory there is"),
    Argument("gpu_memory_bytes", "bytes", ("memory",), "the card's memory as torch reports it", ours=True),
    Argument("weights_bytes", "bytes", ("weights",), "weights on each rank", ours=True),
    Argument("checkpoint_bytes", "bytes", ("checkpoint",), "all weights, divided evenly over the ranks", ours=True),
    Argument("other_bytes", "bytes", ("other",), "all other consumption inside the budget, on each rank", ours=True),
    Argument("kv_cache_memory_bytes", "bytes", ("pool", "kv_cache_memory"), "the pool itself on each rank, whatever the fraction"),
)  # fmt: skip

MOST_QUOTED = 60
"""Letters of a wrong value that an error repeats."""
BY_NAME = {name: argument for argument in ARGUMENTS for name in (argument.name, *argument.short)}
"""Every spelling, with underscores, to its argument."""


def argument_of(spelling: str) -> Argument | None:
    """The argument that a flag or a word names: --max-model-len, max_model_len, ctx."""
    return BY_NAME.get(spelling.lstrip("-").replace("-", "_").lower())


def value_of(argument: Argument, text: str) -> Any:
    """A value as people write it: 128k, 0.9, 90%, 46.1GB, on. ValueError with a sentence when it has no such form."""
    from bot.domain.size import parse_size
    from bot.rulebook.sizing_words import load_sizing_words

    try:
        match argument.kind:
            case "count":
                figure = text.replace(",", "").replace("_", "")
                return load_sizing_words().numbers.get(figure.lower()) or int(figure)
            case "tokens":
                return _tokens(text)
            case "fraction":
                return float(text[:-1]) / 100 if text.endswith("%") else float(text)
            case "bytes":
                return parse_size(text)
            case "switch":
                return text.lower() not in {"0", "off", "no", "false"}
            case "json":
                return _json(text)
            case "gib":
                return float(re.sub(r"(?i)\s*g(i?b)?$", "", text))
            case "text":
                return text
    except (ValueError, OverflowError):  # 1e400 is no number of tokens
        raise ValueError(f"{argument.name} is {_short(text)!r}; it takes {_FORMS[argument.kind]}") from None


_FORMS = {
    "count": "a whole number, for example 8",
    "tokens": "a number of tokens, for example 131072 or 128k, or auto",
    "fraction": "a fraction, for example 0.92",
    "bytes": "bytes, for example 46100000000 or 46.1GB",
    "json": "a JSON object",
    "gib": "GiB, for example 4",
}


def _short(text: str) -> str:
    return text if len(text) <= MOST_QUOTED else f"{text[:MOST_QUOTED]}…"


def _json(text: str) -> dict[str, Any]:
    value = foreign_json(text)
    if not isinstance(value, dict):
        raise ValueError(text)
    return value


def _tokens(text: str) -> int | str:
    """128k is 131,072 tokens, as model cards count; 1m is 1,048,576; auto stays."""
    plain = text.lower().replace(",", "").replace("_", "")
    if plain in {"auto", "-1"}:
        return -1
    unit = {"k": 1024, "m": 1024**2}.get(plain[-1:], 1)
    number = float(plain[:-1] if unit > 1 else plain)
    return round(number * unit)
