"""Free text into a sizing question: `llama-3.3-70b on 4xH100 128k fp8 kv`. A word not understood is corrected, never an error."""

import difflib
import re
from typing import Any, NamedTuple

from bot.rulebook.model_names import load_model_names
from bot.usecases.sizing.arguments import BY_NAME, Argument, argument_of, value_of
from bot.usecases.sizing.cards import read_cards
from bot.usecases.sizing.formats import read_formats
from bot.usecases.sizing.leftovers import leftovers
from bot.usecases.sizing.question import SizingRules
from bot.usecases.sizing.reader import Reader
from bot.usecases.sizing.spread import read_nodes, spread
from bot.usecases.sizing.tongues import in_english

_KV_WORD = r"kv(?:[ -]?cache)?"
_KV_TYPE = r"fp8(?:_e4m3|_e5m2|_ds_mla)?|bf16|bfloat16|fp16|float16|nvfp4|(?:int8|fp8|int4)_per_token_head|turboquant_\w+"
_NUMBER = r"\d[\d,_]*(?:\.\d+)?"

_LEAD = re.compile(r"^(?:/oom|oombot|vllm|size|serve|(?:\S*python3? )?-m vllm\.\S+|\s)+(?=\s|$)", re.IGNORECASE)
_SHORT_KV = {"bf16": "bfloat16", "fp16": "float16"}


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
        _tables,
        _flags,
        _drafts,
        _adapters,
        _hub_ids,
        _named_models,
        read_nodes,
        read_cards,
        _both_lengths,
        _pairs,
        _kv_types,
        _amounts,
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


def _tables(reader: Reader) -> None:
    """--speculative-config '{"method": …}', quoted or not; --speculative-config.method …"""
    for match in list(
        re.finditer(r"--speculative[-_]config[= ]+(['\"]?)(\{[^{}]{0,2000}(?:\{[^{}]{0,500}\}[^{}]{0,500}){0,5}\})\1", reader.rest)
    ):
        reader.blank(match.start(), match.end())
        _put(reader, BY_NAME["speculative_config"], match[2])
    told: dict[str, Any] = {}
    for match in list(re.finditer(r"(?<!\S)--speculative[-_]config\.(\w{1,40})[= ](\S{1,200})", reader.rest)):
        reader.blank(match.start(), match.end())
        told[match[1]] = int(match[2]) if match[2].isdecimal() else match[2]
    if told:
        reader.put("speculative_config", told)


_DRAFTED = 3
"""Tokens drafted at once where the words do not say; what model cards of EAGLE heads start with."""


def _drafts(reader: Reader) -> None:
    """mtp 1, eagle3, ngram 4, draft llama-3.2-1b 5."""
    for match in reader.take(r"(?P<method>mtp|eagle-?3?|ngram|dflash|dspark|medusa)(?:[ =:-]?(?P<tokens>\d{1,2})(?: tokens?)?)?"):
        method = match["method"].lower().replace("-", "")
        _draft(reader, {"method": method}, match["tokens"] or ("1" if method == "mtp" else None), method)
    for match in reader.take(r"draft(?:ed by| model)?[ =:]+(?P<model>[A-Za-z][\w./-]*\w)(?: (?P<tokens>\d{1,2})(?: tokens?)?(?![.\w]))?"):
        _draft(reader, {"method": "draft_model", "model": match["model"]}, match["tokens"], match["model"])


def _draft(reader: Reader, told: dict[str, Any], tokens: str | None, what: str) -> None:
    if "speculative_config" in reader.question:
        return
    if tokens is None:
        reader.corrections.append(f"{what!r} without a number: {_DRAFTED} tokens drafted at once are taken")
    reader.put("speculative_config", {**told, "num_speculative_tokens": int(tokens or _DRAFTED)})


def _adapters(reader: Reader) -> None:
    """lora rank 64, 4 loras, lora."""
    for match in reader.take(
        r"(?:(?P<slots>\d{1,3}) )?loras?(?:[ -]adapters?)?(?:[ ,]*(?:max[ -])?rank[ =:]*(?P<rank>\d{1,3}))?|lora[ =:]*(?P<short>\d{1,3})"
    ):
        reader.put("enable_lora", True)
        for name, said in (("max_loras", match["slots"]), ("max_lora_rank", match["rank"] or match["short"])):
            if said:
                reader.put(name, int(said))
    for match in reader.take(
        r"(?:cpu[ -]?)?offload(?:ing)?[ =:]*(?P<after>\d+) ?g(?:i?b)?|(?P<before>\d+) ?g(?:i?b)? (?:cpu[ -]?)?offload(?:ed|ing)?"
    ):
        reader.put("cpu_offload_gb", float(match["after"] or match["before"]))


def _flags(reader: Reader) -> None:
    """--max-model-len 128k, tp=4, --enforce-eager."""
    for match in list(re.finditer(r"(?<!\S)(?:--?([A-Za-z][\w-]*)(?:[= ]([^\s-]\S*|-1))?|([A-Za-z][\w-]*)=(\S+))", reader.rest)):
        spelling, value = match[1] or match[3], match[2] or match[4]
        if spelling.lower() == "model" and value:
            reader.rest = reader.rest[: match.start()] + value.rjust(match.end() - match.start()) + reader.rest[match.end() :]
            continue
        argument = argument_of(spelling)
        if argument is None:
            near = difflib.get_close_matches(spelling.replace("-", "_"), BY_NAME, n=1, cutoff=0.6)
            argument = BY_NAME[near[0]] if near else None
            used = f"read as {near[0]}" if near else "left out: sizing has no such argument"
            reader.corrections.append(f"{match[0].split()[0].split('=')[0]!r} {used}")
        end = match.end()
        if argument and argument.kind == "switch" and match[2] and match[2].lower() not in {"on", "off", "true", "false", "0", "1"}:
            end, value = match.start(2), "on"  # the next word is not the switch's value
        reader.blank(match.start(), end)
        if argument is not None:
            _put(reader, argument, value or "on")


def _put(reader: Reader, argument: Argument, text: str) -> None:
    try:
        reader.put(argument.name, value_of(argument, text.rstrip(",;")))
    except ValueError as error:
        reader.corrections.append(f"{error}; left out")


def _hub_ids(reader: Reader) -> None:
    for match in reader.take(r"[A-Za-z0-9][\w.-]*/[\w.-]*\w|[A-Za-z0-9][\w.-]*\.gguf"):
        known = reader.models.find(match[0])
        if known or "model" not in reader.question:
            _several(reader, "model", known.id if known else match[0])
        else:
            reader.put("model", match[0])


def _named_models(reader: Reader) -> None:
    """The longest runs of words that are a model's name. After the first only one with a figure in it: `or gemma` says too little."""
    while (found := _named_model(reader)) is not None:
        start, end, model = found
        reader.blank(start, end)
        _several(reader, "model", model)


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


_PAIRS = {
    "tensor_parallel_size": r"tp|tensor[ -]parallel(?:[ -]size)?",
    "pipeline_parallel_size": r"pp|pipeline[ -]parallel(?:[ -]size)?",
    "data_parallel_size": r"dp|data[ -]parallel(?:[ -]size)?",
    "decode_context_parallel_size": r"dcp",
    "max_model_len": r"(?:max(?:imum)?[ -])?(?:model[ -])?(?:len|length|ctx|context)(?:[ -]?(?:length|len|window))?",
    "max_num_seqs": r"(?:max[ -])?(?:num[ -])?(?:seqs?|sequences|(?:concurrent )?(?:requests|users|clients|streams|sessions)|"
    r"concurren(?:cy|t)|in parallel|at once|batch[ -]size)",
    "max_num_batched_tokens": r"(?:max[ -])?(?:num[ -])?batched(?:[ -]tokens)?",
    "gpu_memory_utilization": r"(?:gpu[ -]memory[ -])?util(?:i[sz]ation)?",
    "block_size": r"block(?:[ -]size)?",
}
_VALUES = {
    "max_model_len": rf"{_NUMBER}[km]?|auto",
    "max_num_batched_tokens": rf"{_NUMBER}[km]?",
    "gpu_memory_utilization": r"\d?\.\d+|[01]|\d{2,3} ?%",
}


_IN = r"(?:tokens? )?(?:of )?(?:input|in|prompts?|prefill)"
_OUT = r"(?:tokens? )?(?:of )?(?:output|out|answers?|completions?|generat(?:ed|ion)|decode)"


def _both_lengths(reader: Reader) -> None:
    """`100k input, 4k output`, `prompt 8k + completion 1k`: a context holds both together."""
    number, between = rf"{_NUMBER}[km]?", r"[ ,;+/&]*(?:and |plus )?"
    behind = rf"(?P<a>{number}) ?{_IN}{between}(?P<b>{number}) ?{_OUT}"
    before = rf"{_IN}[ =:]+(?P<c>{number}){between}{_OUT}[ =:]+(?P<d>{number})"
    for match in reader.take(rf"{behind}|{before}"):
        said = [match["a"] or match["c"], match["b"] or match["d"]]
        together = sum(int(value_of(BY_NAME["max_model_len"], one)) for one in said)
        reader.put("max_model_len", together)
        reader.corrections.append(f"{' + '.join(said)}: a context of {together:,} holds prompt and answer together")


def _pairs(reader: Reader) -> None:
    """tp4, tp 4, 128k context, 64 seqs, util 0.95, vllm 0.11.0; the name before or after its figure."""
    for match in reader.take(r"(?:vllm|version)[ -]?v?(\d+\.\d+(?:\.\d+)?(?:\w+)?)|v?(\d+\.\d+\.\d+)(?:\w*)|v(0\.\d+)"):
        _several(reader, "engine_version", match[1] or match[2] or match[3])
    for name, words in _PAIRS.items():
        value = _VALUES.get(name, r"\d+")
        for match in reader.take(rf"(?:{words})[ =:-]*(?:of )?(?P<after>{value})|(?P<before>{value})[ -]?(?:{words})"):
            _put(reader, BY_NAME[name], (match["after"] or match["before"]).replace(" ", ""))


def _several(reader: Reader, name: str, value: str) -> None:
    """Two versions in one question are held against each other; two models are asked back."""
    given = reader.question.get(name)
    several = given if isinstance(given, list) else [given]
    if value not in several:
        reader.question[name] = value if given is None else [*several, value]


def _kv_types(reader: Reader) -> None:
    for match in reader.take(rf"(?P<before>{_KV_TYPE})[ -]{_KV_WORD}|{_KV_WORD}(?:[ -]dtype)?[ =:-]+(?P<after>{_KV_TYPE})"):
        kind = (match["before"] or match["after"]).lower()
        reader.put("kv_cache_dtype", _SHORT_KV.get(kind, kind))


def _amounts(reader: Reader) -> None:
    """46GB pool, 70GB checkpoint; then figures without a name: 128k or 131072 is a length, 0.95 or 95% a utilization."""
    size, names = r"\d+(?:\.\d+)? ?(?:GB|GiB|G|MB|MiB)", "pool|kv(?:[ -]?cache)?|weights|checkpoint|other"
    for match in reader.take(rf"(?P<before>{size}) (?:of )?(?P<kind>{names})|(?P<first>{names})[ =:]+(?:of )?(?P<after>{size})"):
        kind = (match["kind"] or match["first"]).lower()
        _put(reader, BY_NAME["pool" if kind.startswith("kv") else kind], match["before"] or match["after"])
    for match in reader.take(r"0?\.\d+|\d{2,3} ?%"):
        _put(reader, BY_NAME["gpu_memory_utilization"], match[0].replace(" ", ""))
    for match in reader.take(rf"{_NUMBER}[km]|\d{{4,7}}|\d{{1,3}},\d{{3}}"):
        _put(reader, BY_NAME["max_model_len"], match[0])
