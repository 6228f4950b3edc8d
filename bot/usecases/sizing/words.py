"""Free text into a sizing question: `llama-3.3-70b on 4xH100 128k fp8 kv`. A word not understood is corrected, never an error."""

import re
from typing import Any, NamedTuple

from bot.rulebook.model_names import load_model_names
from bot.usecases.sizing.cards import read_cards
from bot.usecases.sizing.figures import read_amounts, read_kv_types, read_lengths, read_pairs, read_rates, read_versions
from bot.usecases.sizing.flags import read_flags, read_tables
from bot.usecases.sizing.formats import read_formats
from bot.usecases.sizing.leftovers import leftovers
from bot.usecases.sizing.question import SizingRules
from bot.usecases.sizing.reader import Reader
from bot.usecases.sizing.shorthand import read_adapters, read_drafts
from bot.usecases.sizing.spread import read_nodes, spread
from bot.usecases.sizing.tongues import in_english
from bot.usecases.sizing.without import read_without

_LEAD = re.compile(r"^(?:/oom|oombot|vllm|size|serve|(?:\S*python3? )?-m vllm\.\S+|\s)+(?=\s|$)", re.IGNORECASE)


class Words(NamedTuple):
    """`question`: engine arguments, `model` and `gpu` as the sizing use case takes them; several models, and `cards` where they are none,
    for it to ask back. `corrections`: one sentence per word."""

    question: dict[str, Any]
    corrections: tuple[str, ...]


def read_words(rules: SizingRules, text: str) -> Words:
    """The question that a line of words asks, and a sentence for each word that had to be corrected or left out."""
    text = in_english(_LEAD.sub("", text), rules.gpus)
    reader = Reader(rules.gpus, load_model_names(), text)
    for step in (
        read_tables,
        read_flags,
        read_without,
        read_rates,
        read_drafts,
        read_adapters,
        _hub_ids,
        _named_models,
        read_nodes,
        read_cards,
        read_lengths,
        read_versions,
        read_pairs,
        read_kv_types,
        read_amounts,
        read_formats,
        leftovers,
    ):
        step(reader)
    spread(reader)
    if _asks_how_many_cards(reader, text):
        reader.question["fewest"] = True
    return Words(reader.question, tuple(reader.corrections))


_HOW_MANY = re.compile(r"\bhow many\s+(?=(?P<card>(?:gpus?|cards?)\b)?)", re.IGNORECASE)


def _asks_how_many_cards(reader: Reader, text: str) -> bool:
    """“How many H200 for …”: one card, and no word on how many of it."""
    said = reader.question
    if "," in str(said.get("gpu", ",")) or any(said.get(f"{kind}_parallel_size") for kind in ("tensor", "pipeline", "data")):
        return False
    cards = {mention.start for mention in reader.gpus.mentions(text)}
    return any(match["card"] or match.end() in cards for match in _HOW_MANY.finditer(text))


def _hub_ids(reader: Reader) -> None:
    for match in reader.take(r"(?=[\w.-]*[A-Za-z])[A-Za-z0-9][\w.-]*/(?=[\w.-]*[A-Za-z])[\w.-]*\w|[A-Za-z0-9][\w.-]*\.gguf"):
        known = reader.models.find(match[0])
        if known or "model" not in reader.question:
            reader.add("model", known.id if known else match[0])
        else:
            reader.put("model", match[0])


def _named_models(reader: Reader) -> None:
    """The longest runs of words that are a model's name. After the first only one with a figure in it: `or gemma` says too little."""
    while (found := _named_model(reader)) is not None:
        start, end, model = found
        reader.blank(start, end)
        reader.add("model", model)


def _named_model(reader: Reader) -> tuple[int, int, str] | None:
    words = list(re.finditer(r"[A-Za-z0-9][\w.-]*", reader.rest))
    for length in range(min(7, len(words)), 0, -1):
        for start in range(len(words) - length + 1):
            run = words[start : start + length]
            name = reader.rest[run[0].start() : run[-1].end()]
            if "model" in reader.question and not re.search(r"\d", name):
                continue
            known = reader.models.find(name) if re.fullmatch(r"[\w. -]+", name) and re.search("[A-Za-z]", name) else None
            if known is not None:
                return run[0].start(), run[-1].end(), known.id
    return None
