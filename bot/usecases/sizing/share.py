"""What a rank would hold of a model's weights on the cards that a paste names: so that advice and sizing say the same."""

from bot.domain.evidence import Evidence
from bot.domain.tensors import Checkpoint
from bot.reading.model.stored_formats import ONLINE
from bot.rulebook.model_names import load_model_names
from bot.usecases.reply import Unusable
from bot.usecases.sizing.ask import with_model
from bot.usecases.sizing.question import load_sizing
from bot.usecases.sizing.size import answer
from bot.usecases.sizing.values import Refused
from bot.usecases.sizing.words import read_words

FEW_LINES, FEW_LETTERS = 4, 600
"""A paste so short is a sentence or two, and the model may stand in it in words."""


def weights_share(evidence: Evidence, ranks: int) -> tuple[int, int] | None:
    """(bytes of weights on the fullest of so many tensor-parallel ranks, the card's bytes); None where model or card is not known."""
    deployment = evidence.deployment
    model = deployment.model.value if deployment.model is not None else _in_words(evidence)
    quantization = deployment.value("quantization")
    if deployment.gpu is None or model is None or quantization in ONLINE or load_model_names().find(model) is None:
        return None
    asked = {
        "model": model,
        "gpu": deployment.gpu.value,
        "tensor_parallel_size": ranks,
        "pipeline_parallel_size": int(deployment.number("pipeline_parallel_size") or evidence.grid.pp or 1),
        "max_model_len": 4096,
        "quantization": quantization,
        "engine_version": evidence.engine_version if evidence.engine == "vllm" else None,
    }
    try:
        whole = with_model({name: value for name, value in asked.items() if value is not None}, _nowhere, names_first=True)
        found = answer(load_sizing(), whole)
    except (Refused, Unusable):
        return None
    held = [(rank.weights, rank.total) for rank in found.ranks if rank.weights is not None and rank.total is not None]
    return max(held, default=None)


def _nowhere(model: str) -> Checkpoint:
    raise Unusable(f"{model} is not looked up on the hub while a failure is judged")


def _in_words(evidence: Evidence) -> str | None:
    text = " ".join(evidence.lines.values())
    if len(evidence.lines) > FEW_LINES or len(text) > FEW_LETTERS:
        return None
    model = read_words(load_sizing(), text)[0].get("model")
    return model if isinstance(model, str) else None
