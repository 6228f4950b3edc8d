"""What a checkpoint's quantization settings say about its KV cache."""

from collections.abc import Mapping
from typing import Any


def kv_dtype_of(raw: Mapping[str, Any], text: Mapping[str, Any], beside: Mapping[str, Any] | None) -> str | None:
    """The KV cache type that a ModelOpt checkpoint asks for when --kv-cache-dtype is `auto`: `fp8_e4m3`, `nvfp4`, or None.

    `beside`: hf_quant_config.json, read when config.json itself names no quantization.
    Source: vllm/utils/torch_utils.py get_kv_cache_quant_algo_string.
    """
    quantization = raw.get("quantization_config") or text.get("quantization_config") or beside or {}
    if not _from_modelopt(quantization):
        return None
    inner = quantization.get("quantization")
    places = [inner, quantization] if isinstance(inner, Mapping) else [quantization]
    said = [place.get(key) for key in ("kv_cache_scheme", "kv_cache_quant_algo") for place in places]
    asked = next((value for value in said if value), None)
    if isinstance(asked, Mapping):
        return "fp8_e4m3" if asked.get("dynamic") is False and asked.get("num_bits") == 8 and asked.get("type") == "float" else None
    return {"fp8": "fp8_e4m3", "nvfp4": "nvfp4"}.get(str(asked).lower())


def kv_scheme_of(raw: Mapping[str, Any], text: Mapping[str, Any]) -> str | None:
    """The KV cache type that a checkpoint in compressed tensors was calibrated for: `fp8`, or None where it says nothing of it.

    Source: vllm/model_executor/layers/attention/attention.py, which takes any scheme as FP8.
    """
    quantization = raw.get("quantization_config") or text.get("quantization_config") or raw.get("compression_config")
    if not isinstance(quantization, Mapping) or str(quantization.get("quant_method")) != "compressed-tensors":
        return None
    return "fp8" if quantization.get("kv_cache_scheme") else None


def _from_modelopt(quantization: Mapping[str, Any]) -> bool:
    """Whether the engine takes these settings for ModelOpt's: by method, or by producer where the settings are nested."""
    producer, inner = quantization.get("producer"), quantization.get("quantization")
    named = isinstance(producer, Mapping) and producer.get("name") == "modelopt"
    nested = isinstance(inner, Mapping) and inner.get("quant_algo") is not None
    return str(quantization.get("quant_method") or "").startswith("modelopt") or (named and nested)
