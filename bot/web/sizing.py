"""The sizing form: words or engine arguments in, the plan and its arithmetic out; a question without a pasted config is a link."""

import difflib
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from aiohttp import web

from bot.domain.foreign import foreign_json
from bot.usecases.reply import Unusable
from bot.usecases.sizing.arguments import BY_NAME, argument_of, value_of
from bot.usecases.sizing.ask import read_as
from bot.web.access import viewer_of
from bot.web.door import door_of
from bot.web.forms import read_form
from bot.web.showing import go, page

LONGEST_ADDRESS = 4_000
"""Characters; a server takes a little more, chats and mails cut earlier."""
EXAMPLE = Path(__file__).parent / "examples" / "worked-70b.json"

# (name, label, what stands in the empty field): vLLM's own argument names, then the contract's overrides in bytes.
COUNTS = (
    ("tensor_parallel_size", "Tensor parallel", "1"),
    ("pipeline_parallel_size", "Pipeline parallel", "1"),
    ("data_parallel_size", "Data parallel", "1"),
    ("decode_context_parallel_size", "Decode context parallel", "1"),
    ("max_model_len", "Longest context", "of the model"),
    ("max_num_seqs", "Requests at once", "of the version"),
    ("max_num_batched_tokens", "Batched tokens", "of the version"),
    ("block_size", "Block size", "of the version"),
)
OVERRIDES = (
    ("gpu_memory_bytes", "Device memory", "of the GPU"),
    ("weights_bytes", "Weights, each rank", "computed"),
    ("checkpoint_bytes", "Checkpoint, whole", "computed"),
    ("other_bytes", "Other, each rank", "estimated"),
    ("kv_cache_memory_bytes", "KV cache pool", "what is left"),
)
WORDS = ("model", "gpu", "gpu_memory_utilization", "kv_cache_dtype", "quantization", "engine_version", "enable_expert_parallel")
_LABELS = {
    "gpu": "GPU", "gpu_memory_utilization": "Utilization", "kv_cache_dtype": "KV cache dtype", "quantization": "Quantization",
    **{name: label for name, label, _ in (*COUNTS, *OVERRIDES)},
}  # fmt: skip
ARGUMENTS = (*WORDS, *(name for name, _, _ in (*COUNTS, *OVERRIDES)))
FIELDS = ("q", *ARGUMENTS, "config")


def in_the_form(text: str) -> str:
    """What says by which flags something is given, in the form's own words: `--gpu-memory-bytes` is its field “Device memory”."""
    return _FLAG.sub(lambda flag: _field(flag[1]) or flag[0], text.replace("give --config FILE", "paste its config.json"))


_FLAG = re.compile(r"--([a-z][a-z-]+)")


def _field(flag: str) -> str:
    label = _LABELS.get(flag.replace("-", "_"))
    return f"“{label}”" if label else ""


def question_of(given: Mapping[str, str]) -> dict[str, Any]:
    """A form's texts as the question that sizing takes. Unusable names the field that is no number or no JSON."""
    question = {name: _value(name, text.strip()) for name, text in given.items() if name not in ("q", "config") and text.strip()}
    if text := given.get("config", "").strip():
        question["config"] = _config(text)
    return question


def named(query: Iterable[tuple[str, str]]) -> dict[str, str]:
    """A query by the engine's own names, short ones (tp, ctx) read as those. Unusable names what is said twice and what nothing reads."""
    given: dict[str, str] = {}
    for spelling, text in query:
        argument = argument_of(spelling)
        name = spelling if spelling in FIELDS or argument is None else argument.name
        if name not in FIELDS and argument is None:
            near = difflib.get_close_matches(spelling, [*FIELDS, *BY_NAME], n=1)
            raise Unusable(f"Sizing has no parameter {spelling[:60]!r}{f'; did you mean {near[0]}?' if near else '.'}")
        if text.strip() and given.setdefault(name, text) != text:
            raise Unusable(f"{name} is said twice: {given[name][:60]!r} and {text[:60]!r}.")
    return given


def _value(name: str, text: str) -> Any:
    argument = BY_NAME.get(name)
    if argument is None:  # the model's name is no engine argument
        return text
    try:
        value = value_of(argument, text[:200])
    except ValueError as error:
        raise Unusable(f"{error}.") from None
    if argument.kind == "fraction" and not 0 < float(value) <= 1:
        raise Unusable(f"{name} is {text[:40]!r}; it takes a fraction above 0 and up to 1, for example 0.92.")
    return value


def _config(text: str) -> dict[str, Any]:
    try:
        config = foreign_json(text)
    except ValueError as error:
        raise Unusable(f"The config.json is no JSON: {error}. Paste the whole file, from its first brace to its last.") from error
    if not isinstance(config, dict):
        raise Unusable("The config.json must be one JSON object. Paste the whole file, from its first brace to its last.")
    return config


async def form(request: web.Request) -> web.Response:
    """The form, answered when the address holds a question."""
    if "example" in request.query:
        return await _answered(request, {**_EXAMPLE_FIELDS, "config": EXAMPLE.read_text(encoding="utf-8")})
    known = ((name, value) for name, value in request.query.items() if name in FIELDS or argument_of(name))
    try:
        given = named(known)
    except Unusable as refused:
        return _shown(request, {}, None, str(refused))
    if not given:
        return page(request, _template(request), given={}, answer=None, refused="", counts=COUNTS, overrides=OVERRIDES)
    return await _answered(request, given)


_EXAMPLE_FIELDS = {
    "tensor_parallel_size": "4", "gpu_memory_bytes": "80000000000", "checkpoint_bytes": "70000000000", "other_bytes": "10000000000",
    "gpu_memory_utilization": "0.92", "max_model_len": "131072", "max_num_seqs": "256",
}  # fmt: skip


async def ask(request: web.Request) -> web.Response:
    """A submitted form. Without a pasted config it becomes an address that can be kept and sent around."""
    submitted = await read_form(request)
    submitted.close()
    given = {name: value for name, value in submitted.fields.items() if name in FIELDS and value.strip()}
    address = f"/size?{urlencode(given)}"
    if "config" not in given and "part" not in request.query and len(address) <= LONGEST_ADDRESS:
        return go(request, address)
    return await _answered(request, given)


async def _answered(request: web.Request, given: Mapping[str, str]) -> web.Response:
    answer, refused, read = None, "", {}
    try:
        answer = await answer_of(request, given)
        read = _as_typed(answer.get("asked") or {})
    except Unusable as unusable:
        refused = str(unusable)
        with suppress(Unusable):
            read = _as_typed(read_as(given.get("q", "")))
    return _shown(request, {**read, **given}, answer, refused)


def _shown(request: web.Request, given: Mapping[str, str], answer: Mapping[str, Any] | None, refused: str) -> web.Response:
    if answer and answer.get("fits") is None:
        answer = {**answer, "why": in_the_form(answer["why"])}
    refused = in_the_form(refused)
    values = {"given": given, "answer": answer, "refused": refused, "counts": COUNTS, "overrides": OVERRIDES}
    return page(request, _template(request), status=400 if refused else 200, **values)


def _as_typed(asked: Mapping[str, Any]) -> dict[str, str]:
    """The form's fields as a question in words was read, so that a person sees it and can go on from there."""
    return {name: _text(value) for name, value in asked.items() if name in ARGUMENTS and value is not False}


def _text(value: Any) -> str:
    """A value as a person would type it; a ticked box sends 1, and -1 tokens are the longest context that fits."""
    return "1" if value is True else "auto" if value == -1 else str(value)


async def answer_of(request: web.Request, given: Mapping[str, str]) -> Mapping[str, Any]:
    """The sizing document for a form or a query: words if there are any, else arguments. Raises Unusable."""
    door = door_of(request)
    if words := given.get("q", "").strip():
        return (await door.asks.size_words(door.desk, words, viewer_of(request))).document
    return (await door.asks.size_arguments(door.desk, question_of(given), viewer_of(request))).document


def _template(request: web.Request) -> str:
    """The page's script asks for the answer alone, to put it into the page that is open."""
    return "size_answer.html" if "part" in request.query else "size.html"
