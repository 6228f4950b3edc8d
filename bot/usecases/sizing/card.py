"""What a card is too old for: types that the engine computes in, and quantization methods."""

from collections.abc import Mapping
from typing import Any

from bot.reading.model.quantization_config import settings_of
from bot.rulebook.gpus import capability
from bot.usecases.sizing.settings import Engine
from bot.usecases.sizing.values import Refused, quantization_method

ALGORITHMS = {"NVFP4": "modelopt_fp4", "W4A16": "modelopt_fp4", "MIXED": "modelopt_mixed", "MXFP8": "modelopt_mxfp8"}
AMPERE = (8, 0)
"""CUDA capability from which cards have bfloat16. Source: vllm/platforms/cuda.py supported_dtypes."""
HALF = frozenset({"half", "float16"})
TAKES_FLOAT32 = frozenset({"", "bitsandbytes", "gguf", "torchao"})
"""Kinds of quantization that compute in float32 too. Source: get_supported_act_dtypes of vllm/model_executor/layers/quantization.
Compressed tensors take it there, but not in the kernels (Marlin, cutlass) that such cards have for them."""


def settle_dtype(question: Mapping[str, Any], engine: Engine) -> Mapping[str, Any]:
    """The question with the type that `auto` comes to where it is not one of 2 bytes. Raises Refused as the engine does."""
    config, asked = question.get("config"), str(question.get("dtype") or "auto")
    kind = str(config.get("model_type") or "") if isinstance(config, Mapping) else ""
    unstable, old = kind in engine.rules.not_float16, _before_ampere(engine.compute)
    card = f"{engine.device} has compute capability {engine.compute}"
    if asked in HALF and unstable:
        raise Refused(f"the model type {kind} does not support float16; take {'' if old else 'bfloat16 or '}float32", by="engine")
    if asked == "bfloat16" and old:
        raise Refused(f"bfloat16 needs a compute capability of 8.0, and {card}; take {'float32' if unstable else 'float16'}", by="engine")
    if asked != "auto" or not (unstable and old):
        return question
    if (method := quantization_method(question)) not in TAKES_FLOAT32:
        raise Refused(f"{kind} does not run in float16, {method} weights not in float32, and {card}, so no bfloat16", by="engine")
    said = f"{kind} runs in float32, 4 bytes a number: it does not support float16, and {card}, so no bfloat16"
    return {**question, "dtype": "float32", "assumed": (*(question.get("assumed") or ()), said)}


def refuse_old_card(question: Mapping[str, Any], engine: Engine) -> None:
    """Raises Refused where the engine has no kernels for these weights on the card.

    Source: vllm/config/vllm.py _get_quantization_config.
    """
    method = quantization_method(question)
    least, has = engine.planning.least_compute(_by_algorithm(method, question), engine.version), capability(engine.compute)
    if least is not None and has is not None and has < (capability(least) or has):
        said = f"the quantization method {method} needs a compute capability of {least}"
        raise Refused(f"{said}, and {engine.device} has {engine.compute}", by="engine")


def _by_algorithm(method: str, question: Mapping[str, Any]) -> str:
    """ModelOpt's methods under the engine's own names."""
    if method != "modelopt":
        return method
    config, beside = question.get("config"), question.get("hf_quant_config")
    for table in (settings_of(config) if isinstance(config, Mapping) else None, beside):
        nested = table.get("quantization", table) if isinstance(table, Mapping) else None
        if isinstance(nested, Mapping) and nested.get("quant_algo"):
            algorithm = str(nested["quant_algo"]).upper()
            return next((name for said, name in ALGORITHMS.items() if said in algorithm), method)
    return method


def _before_ampere(compute: str) -> bool:
    return (capability(compute) or AMPERE) < AMPERE
