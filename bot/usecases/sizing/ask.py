"""A sizing question as doors ask it: in words or as arguments, with the model found by name, on the hub, or in its cache."""

import asyncio
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from bot.domain.tensors import Checkpoint
from bot.hub.error import HubError
from bot.reading.model.stored_formats import ONLINE
from bot.rulebook.model_names import NamedModel, load_model_names
from bot.settings import NO_TOKEN, Settings, data_folder
from bot.store.errors import StoreError
from bot.usecases.desk import Desk, Viewer
from bot.usecases.reply import Reply, Unusable
from bot.usecases.sizing.cards import cards_in
from bot.usecases.sizing.draft import WITHOUT_MODEL, told_of_draft
from bot.usecases.sizing.estimates import Measured
from bot.usecases.sizing.measured import measured_terms
from bot.usecases.sizing.question import load_sizing
from bot.usecases.sizing.size import size
from bot.usecases.sizing.values import Refused
from bot.usecases.sizing.words import read_words

if TYPE_CHECKING:
    from bot.hub.hub import Hub

NO_GGUF = (
    "its weights are llama.cpp's own formats, which are not sized here. Name the original model (as owner/name) for the cache and for "
    "other formats, or give its config.json and what the file weighs: --config FILE --checkpoint-bytes 4.9GB"
)
Find = Callable[[str], Checkpoint]
"""A model's id -> its files without the weights. Blocks; HubError when they cannot be had."""


async def size_words(desk: Desk, words: str, viewer: Viewer | None = None) -> Reply:
    """The answer to a question in words; `corrections` and `asked` (arguments) say how it was read. Raises Unusable without an answer.

    With a `viewer`, starts that his or her team measured stand in for estimates, as far as that person may see them.
    """
    question, corrections = read_words(load_sizing(), words)
    if not question.get("model"):
        said = f" ({'; '.join(corrections)})" if corrections else ""
        raise Unusable(f"Which model? Write for example: llama-3.3-70b on 4xH100 128k fp8 kv{said}")
    document = await _sized(desk, question, viewer, names_first=True)
    return Reply("sizing", {**document, "corrections": list(corrections), "asked": _as_read(question)})


def read_as(words: str) -> dict[str, str | int | float]:
    """The arguments that a question in words was read as, also where it cannot be answered. Unusable where it asks for no card at all."""
    return _as_read(read_words(load_sizing(), words).question)


def _as_read(question: Mapping[str, Any]) -> dict[str, str | int | float]:
    return {name: value for name, value in with_cards(question).items() if isinstance(value, str | int | float) and name != "fewest"}


async def size_arguments(desk: Desk, question: Mapping[str, Any], viewer: Viewer | None = None) -> Reply:
    """The answer to a question in engine arguments, `model` or `config` among them; `viewer` as for words."""
    return Reply("sizing", await _sized(desk, question, viewer, names_first=False))


async def _sized(desk: Desk, question: Mapping[str, Any], viewer: Viewer | None, *, names_first: bool) -> dict[str, Any]:
    carded = with_cards(question)
    whole = await asyncio.to_thread(with_model, carded, on_hub(desk.settings), names_first=names_first)
    seen: Measured | None = None
    left_out: list[str] = []
    try:
        seen = await measured_of(desk, whole, viewer)
    except StoreError as error:  # estimates stand in: a question needs no database
        left_out = [f"what was measured here is left out: {error}"]
    document = (await asyncio.to_thread(size, load_sizing(), whole, seen)).document
    return {**document, "assumptions": [*document.get("assumptions", ()), *left_out]}


async def measured_of(desk: Desk, question: Mapping[str, Any], viewer: Viewer | None) -> Measured | None:
    """What the team's own incidents measured for that model, None where nothing is kept or nobody asks."""
    if desk.store is None or viewer is None or not question.get("model"):
        return None
    return measured_terms(await desk.store.measured(viewer, str(question["model"])))


def with_cards(question: Mapping[str, Any]) -> dict[str, Any]:
    """The question with `4xH100` read as the card and, where nothing else spreads the model, as tensor parallel size 4.

    A name that is no card's as it stands (`24gb 3090`, `a100 40`) is read as words are. Unusable where there are 0 of it.
    """
    told, rules = str(question.get("gpu") or ""), load_sizing()
    name, count = cards_in(rules, told)
    if count == 0 or question.get("cards") == 0:
        raise Unusable("No card holds no model: name at least one, for example 4xH100.")
    if name is None or "," in told or "," in name:
        return dict(question)
    if count is None:
        return {**question, "gpu": name} if rules.gpus.decide(told, None) is None and rules.gpus.decide(name, None) else dict(question)
    spread = {} if question.get("tensor_parallel_size") is not None else {"tensor_parallel_size": count}
    return {**question, **spread, "gpu": name}


def with_model(question: Mapping[str, Any], find: Find, *, names_first: bool = False) -> dict[str, Any]:
    """The question with its model's config.json (and tensor headers) in it; a config that is given stays.

    A name that the rulebook knows is answered from there when `names_first`, or when the hub has no answer. Raises Unusable.
    """
    if isinstance(question.get("model"), list):
        named_models = ", ".join(question["model"])
        raise Unusable(f"Several models are named: {named_models}. Ask about one at a time; which is it?")
    question, model = with_draft(question, find), question.get("model")
    if question.get("config") is not None:
        return dict(question)
    if not model:
        raise Unusable("There is no model in the question: name one, as owner/name or as in llama-3.3-70b, or give its config.json")
    if re.search(r"(?i)\.gguf$|(?:^|[-_./ ])gguf(?:[-_./ :]|$)", str(model)):
        raise Unusable(f"{model} is a GGUF file: {NO_GGUF}")
    named = load_model_names().find(str(model))
    if named is not None and (names_first or "/" not in str(model)):
        return _from_rulebook(question, named)
    try:
        return _from_checkpoint(question, find(str(model)))
    except HubError as error:
        if named is not None:
            return _from_rulebook(question, named)
        near = load_model_names().nearest(str(model))
        raise Unusable(f"{error}{f'. Did you mean {near}?' if near else ''}") from error


def with_draft(question: Mapping[str, Any], find: Find) -> Mapping[str, Any]:
    """The question with the config.json of the model that drafts tokens; where nobody has it, why is kept beside its name."""
    try:
        told = told_of_draft(question)
    except Refused as refused:
        raise Unusable(str(refused)) from refused
    model = str(told.get("model") or "")
    if not model or model.strip("[]") in WITHOUT_MODEL or told.get("config") is not None or model == question.get("model"):
        return question
    return {**question, "speculative_config": {**told, **_draft_files(model, find)}}


def _draft_files(model: str, find: Find) -> dict[str, Any]:
    named = load_model_names().find(model)
    if named is not None and "/" not in model:
        return {"config": named.config}
    try:
        return {"config": find(model).config}
    except HubError as error:
        return {"config": named.config} if named is not None else {"unknown": str(error)}


def _from_rulebook(question: Mapping[str, Any], named: NamedModel) -> dict[str, Any]:
    """With a quantization that cannot be made while loading, the model is taken as a checkpoint that is stored so."""
    asked = str(question.get("quantization") or "")
    stored = None if asked in ONLINE else load_model_names().stored_as(named, asked)
    if stored is not None:
        question, named = {name: value for name, value in question.items() if name != "quantization"} | {"stored": asked.upper()}, stored
    if named.stored and (stored is not None or "/" not in named.id):  # which checkpoint that is, nobody said: the command names no one's
        question = {**question, "serves": f"{named.stored.upper()}-CHECKPOINT"}
    said = f"the model is {named.id} as the rulebook knows it ({named.source})"
    return {**question, "model": named.id, "config": named.config, "assumed": [*question.get("assumed", ()), said]}


def _from_checkpoint(question: Mapping[str, Any], found: Checkpoint) -> dict[str, Any]:
    where = f"{found.where}, revision {found.revision}" if found.revision else found.where
    beside = {"hf_quant_config": found.hf_quant_config, "tensors": found.tensors}
    said = f"the model is {found.name} from the {where}"
    more = {name: value for name, value in beside.items() if value is not None and question.get(name) is None}
    return {**question, **more, "config": found.config, "assumed": [*question.get("assumed", ()), said]}


def on_hub(settings: Settings) -> Find:
    """Where a model's config and headers are fetched."""
    return hub_of(settings).checkpoint


def hub_of(settings: Settings) -> "Hub":
    """The hub that the settings name, with its headers kept in the user's data folder."""
    from bot.hub.hub import Hub

    offline = str(settings.hf_hub_offline or "").lower() in {"1", "true", "yes", "on"}
    token = False if settings.hf_token == NO_TOKEN else settings.hf_token
    return Hub(settings.hf_endpoint, token, offline, headers=data_folder() / "headers")
