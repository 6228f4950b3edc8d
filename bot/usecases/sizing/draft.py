"""Speculative decoding in a sizing question: which model drafts, how many tokens, and what its layers keep."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bot.domain.foreign import foreign_json
from bot.domain.shape import Cache, ModelShape
from bot.reading.model.config import UnknownDraft, read_own_draft, read_shape
from bot.reading.model.numbers import MissingField
from bot.rulebook.models import Models, UnknownArchitecture
from bot.usecases.sizing.values import Refused, counted, shown

OLDER = {
    "speculative_model": "model",
    "num_speculative_tokens": "num_speculative_tokens",
    "speculative_draft_tensor_parallel_size": "draft_tensor_parallel_size",
}
"""Engine arguments of versions before --speculative-config (0.9), and what they are called in it."""
WITHOUT_MODEL = frozenset({"ngram", "ngram_gpu", "suffix"})
"""Methods that look the next tokens up in the text."""
OWN = frozenset({"mtp", "dspark"})
"""Methods that may draft with layers of the model itself."""
HEADS = frozenset({"eagle", "eagle3", "dflash", "dspark", "medusa"})
ASSISTANTS = frozenset({"gemma4_assistant", "gemma4_unified_assistant"})
"""Models of their own that the engine drafts with as with layers for further tokens. Source: vllm/config/speculative.py."""
PREFIXES = {"eagle": "Eagle", "eagle3": "Eagle3", "dflash": "DFlash"}
"""What the engine puts before the architecture that such a draft's config.json names. Source: vllm/transformers_utils/configs/eagle.py."""
MOST_TOKENS = 1024
"""More than any draft makes at once; a larger number is a slip."""


@dataclass(frozen=True, slots=True)
class Draft:
    """`method` as the engine names it; `tokens` drafted at once. `config`: the draft's own, None where the model drafts for itself or
    nothing is loaded. `layers`: what each of its layers keeps. `unknown`: why its weights and cache are not counted.
    """

    method: str
    tokens: int
    config: Mapping[str, Any] | None = None
    quantization: str | None = None
    layers: tuple[tuple[Cache, ...], ...] = ()
    unknown: str = ""

    @property
    def loads(self) -> bool:
        """Whether weights are loaded for it."""
        return self.method not in WITHOUT_MODEL and not self.unknown


def told_of_draft(question: Mapping[str, Any]) -> Mapping[str, Any]:
    """--speculative-config as a table, from JSON text or older flags too; empty where nothing is drafted. Raises Refused."""
    told = question.get("speculative_config")
    if isinstance(told, str) and told.strip() not in {"", "null", "None", "0", "false"}:
        try:
            told = foreign_json(told)
        except ValueError as error:
            raise Refused(f"speculative_config is not JSON: {error}") from error
    if told and not isinstance(told, Mapping):
        raise Refused(f"speculative_config is {shown(told)}; it must be a JSON object")
    older = {name: question[key] for key, name in OLDER.items() if question.get(key) is not None}
    return {**older, **(told or {})} if told or "model" in older else {}


def read_draft(question: Mapping[str, Any], models: Models, target: ModelShape, tp: int) -> Draft | None:
    """What drafts, None where nothing does. Raises Refused for what the engine refuses or what is no draft at all."""
    told = told_of_draft(question)
    if not told:
        return None
    method, config = _method(told), told.get("config")
    if method in OWN and not isinstance(config, Mapping) and (method == "mtp" or not told.get("model")):
        return _own_layers(method, question, told, models, target)
    tokens = _tokens(told, _drafted_block(config) if method == "dspark" and isinstance(config, Mapping) else None)
    if method in WITHOUT_MODEL:
        return Draft(method, tokens)
    if not isinstance(config, Mapping):
        said = f"speculative_config: {told.get('unknown') or 'config.json of the draft is not in the question (give `config` in it)'}"
        return Draft(method, tokens, unknown=said)
    return _other_model(method, tokens, told, named(config, method), models, target, tp)


def _method(told: Mapping[str, Any]) -> str:
    """As given, else as the engine guesses it from the draft's name. Source: vllm/config/speculative.py __post_init__."""
    said, model = str(told.get("method") or "").strip("[]"), str(told.get("model") or "").lower()
    config = told.get("config") if isinstance(told.get("config"), Mapping) else {}
    kind = str((config or {}).get("speculators_model_type") or (config or {}).get("model_type") or "")
    if said.endswith("mtp"):
        return "mtp"
    if said and said != "draft_model":
        return said
    if model.strip("[]") == "ngram":
        return "ngram"
    guesses = {
        "eagle": "eagle-" in model,
        "eagle3": "eagle3" in model or kind == "eagle3",
        "dflash": "dflash" in model or kind == "dflash",
        "dspark": "dspark" in model,
    }
    guesses |= {"medusa": kind == "medusa", "mtp": kind.endswith("mtp") or kind in ASSISTANTS}
    return next((method for method, holds in guesses.items() if holds), "draft_model")


def _tokens(told: Mapping[str, Any], predicted: int | None) -> int:
    tokens = counted(told, "num_speculative_tokens") or predicted
    if tokens is None:
        raise Refused("speculative_config needs num_speculative_tokens: the draft does not say how many it predicts", by="engine")
    if tokens > MOST_TOKENS:
        raise Refused(f"num_speculative_tokens is {tokens:,}; at most {MOST_TOKENS:,} can be planned")
    return tokens


def _own_layers(method: str, question: Mapping[str, Any], told: Mapping[str, Any], models: Models, target: ModelShape) -> Draft:
    try:
        layers = read_own_draft(question["config"], models, method, target)
    except (UnknownDraft, MissingField, UnknownArchitecture) as error:
        return Draft(method, _tokens(told, None), unknown=str(error))
    if not layers:
        raise Refused(f"method {method} needs layers for further tokens, and config.json of the model has none", by="engine")
    return Draft(method, _tokens(told, len(layers) if method == "mtp" else _drafted_block(question["config"])), layers=layers)


def _drafted_block(config: Mapping[str, Any]) -> int | None:
    """Tokens of a block as a DSpark draft's config.json says them, where the command says none. Source: vllm/config/speculative.py."""
    inner = config.get("text_config")
    text = inner if isinstance(inner, Mapping) else config
    said = text.get("block_size") or text.get("dspark_block_size")
    return said if isinstance(said, int) and not isinstance(said, bool) else None


def _other_model(
    method: str, tokens: int, told: Mapping[str, Any], config: Mapping[str, Any], models: Models, target: ModelShape, tp: int
) -> Draft:
    spread = counted(told, "draft_tensor_parallel_size")
    if spread not in (None, 1, tp):
        raise Refused(f"draft_tensor_parallel_size is {spread}; it must be 1 or the tensor parallel size {tp}", by="engine")
    if method == "draft_model" and spread not in (None, tp):
        raise Refused(
            f"a draft model must have the tensor parallel size {tp} of its model; draft_tensor_parallel_size is {spread}", by="engine"
        )
    quantization = str(told["quantization"]) if told.get("quantization") else None
    try:
        shape = read_shape(config, models)
    except (MissingField, UnknownArchitecture) as error:
        return Draft(method, tokens, config, quantization, unknown=str(error))
    if method == "draft_model" and shape.vocab != target.vocab:
        raise Refused(
            f"the draft has {shape.vocab:,} tokens in its vocabulary and the model {target.vocab:,}; they must be the same", by="engine"
        )
    if shape.heads % tp:
        raise Refused(f"{shape.heads} attention heads of the draft are not divisible by tensor parallel size {tp}", by="engine")
    if method != "draft_model" and method not in HEADS and not (method == "mtp" and config.get("model_type") in ASSISTANTS):
        return Draft(method, tokens, config, quantization, unknown=f"we do not know how the method {method} drafts")
    return Draft(method, tokens, config, quantization, shape.layers)


def named(config: Mapping[str, Any], method: str) -> Mapping[str, Any]:
    """A draft's config.json with the architecture that the engine makes of it, and flat where Speculators nests it."""
    inner = config.get("transformer_layer_config")
    if isinstance(inner, Mapping):
        kind = "Qwen3" if "qwen3" in str(inner.get("model_type")) else "Llama"
        flat = {key: value for key, value in config.items() if key not in {"transformer_layer_config", "architectures", "model_type"}}
        config = {**inner, **flat, "architectures": [f"{kind}ForCausalLM"]}
    prefix, names = PREFIXES.get(method), [str(name) for name in config.get("architectures") or []]
    if method == "medusa" or not prefix or not names:
        return config
    ready = names[0].startswith((prefix, "PEagle", "Peagle")) or names[0].endswith("Eagle3")
    return config if ready else {**config, "architectures": [prefix + names[0]]}
