"""The sizing form: engine arguments in, the plan and its arithmetic out; a question without a pasted config is a link."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from aiohttp import web

from bot.usecases.reply import Unusable
from bot.web.access import viewer_of
from bot.web.door import door_of
from bot.web.forms import read_form
from bot.web.showing import go, page

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
    ("weights_bytes", "Weights per rank", "computed"),
    ("checkpoint_bytes", "Checkpoint, whole", "computed"),
    ("other_bytes", "Other consumption per rank", "estimated"),
    ("kv_cache_memory_bytes", "KV cache pool", "what is left"),
)
WORDS = ("model", "gpu", "kv_cache_dtype", "quantization", "engine_version")
NUMBERS = tuple(name for name, _, _ in (*COUNTS, *OVERRIDES))
FIELDS = (*WORDS, *NUMBERS, "gpu_memory_utilization", "enable_expert_parallel", "config")


def question_of(given: Mapping[str, str]) -> dict[str, Any]:
    """A form's texts as the question that sizing takes. Unusable names the field that is no number or no JSON."""
    question: dict[str, Any] = {name: given[name].strip() for name in WORDS if given.get(name, "").strip()}
    for name in NUMBERS:
        if text := given.get(name, "").strip():
            question[name] = _whole(name, text)
    if text := given.get("gpu_memory_utilization", "").strip():
        question["gpu_memory_utilization"] = _fraction(text)
    if given.get("enable_expert_parallel"):
        question["enable_expert_parallel"] = True
    if text := given.get("config", "").strip():
        question["config"] = _config(text)
    return question


def _whole(name: str, text: str) -> int | str:
    if name == "max_model_len" and text in ("auto", "-1"):
        return text
    bare = text.replace(",", "").replace("_", "").replace(" ", "")
    try:
        return int(bare)
    except ValueError:
        raise Unusable(f"{name} is “{text[:40]}”: it takes a whole number, for example 8192.") from None


def _fraction(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 1:
        raise Unusable(f"gpu_memory_utilization is “{text[:40]}”: it takes a number above 0 and up to 1, for example 0.92.")
    return value


def _config(text: str) -> dict[str, Any]:
    try:
        config = json.loads(text)
    except ValueError as error:
        raise Unusable(f"The config.json is no JSON: {error}. Paste the whole file, from its first brace to its last.") from error
    if not isinstance(config, dict):
        raise Unusable("The config.json must be one JSON object. Paste the whole file, from its first brace to its last.")
    return config


async def form(request: web.Request) -> web.Response:
    """The form, answered when the address holds a question."""
    if "example" in request.query:
        return await _answered(request, {**_EXAMPLE_FIELDS, "config": EXAMPLE.read_text(encoding="utf-8")})
    given = {name: value for name, value in request.query.items() if name in FIELDS and value.strip()}
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
    if "config" not in given and "part" not in request.query:
        return go(request, f"/size?{urlencode(given)}")
    return await _answered(request, given)


async def _answered(request: web.Request, given: Mapping[str, str]) -> web.Response:
    answer, refused = None, ""
    try:
        answer = await answer_of(request, given)
    except Unusable as unusable:
        refused = str(unusable)
    values = {"given": given, "answer": answer, "refused": refused, "counts": COUNTS, "overrides": OVERRIDES}
    return page(request, _template(request), status=400 if refused else 200, **values)


async def answer_of(request: web.Request, given: Mapping[str, str]) -> Mapping[str, Any]:
    """The sizing document for a form or a query. Raises Unusable."""
    door = door_of(request)
    reply = await door.asks.size(door.desk, viewer_of(request), question_of(given))
    return reply.document


def _template(request: web.Request) -> str:
    """The page's script asks for the answer alone, to put it into the page that is open."""
    return "size_answer.html" if "part" in request.query else "size.html"
