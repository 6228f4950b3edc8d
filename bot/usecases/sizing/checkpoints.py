"""Other checkpoints of the same model that were quantized beforehand: FP8, then 4 bits; what they would change in a question."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bot.rulebook.gpus import Gpus, capability
from bot.rulebook.model_names import NamedModel, load_model_names
from bot.usecases.sizing.values import quantization_method

LEAST_COMPUTE = (7, 5)
"""CUDA capability from which the engine has kernels for FP8 and 4-bit weights."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """`title` as a way says it; `arguments` to lay over the question, the model's name replaced by what stands for it in a command."""

    title: str
    arguments: Mapping[str, Any]

    @property
    def costs(self) -> str:
        """What it takes to use it."""
        return f"another checkpoint of the model, quantized to {self.title} beforehand; quality needs a check of its own"


def checkpoints(question: Mapping[str, Any], gpus: Gpus) -> Iterator[Checkpoint]:
    """Nothing where weights are given in bytes, are quantized already, or where the card has no kernels for them."""
    config, given = question.get("config"), ("weights_bytes", "checkpoint_bytes")
    if quantization_method(question) or not isinstance(config, Mapping) or any(question.get(name) is not None for name in given):
        return
    if _old(gpus, question):
        return
    named = load_model_names().find(str(question.get("model") or ""))
    plain = NamedModel("", "", json.dumps(dict(config)), own=named.own if named else {})
    for title, ending, name in (("FP8", "fp8", "FP8-CHECKPOINT"), ("4-bit AWQ", "awq", "4-BIT-CHECKPOINT")):
        stored = load_model_names().stored_as(plain, ending)
        if stored is not None:
            yield Checkpoint(title, {"config": stored.config, "tensors": None, "model": name})


def _old(gpus: Gpus, question: Mapping[str, Any]) -> bool:
    card = gpus.decide(str(question.get("gpu") or ""), None)
    has = capability(card.compute) if card else None
    return has is not None and has < LEAST_COMPUTE
