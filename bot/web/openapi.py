"""The API described for programs: OpenAPI 3.1, written by hand and held against the routes by a test."""

from typing import Any

from bot.domain.incident import RESULTS
from bot.usecases.recall import MOST_ROWS
from bot.web.history import FILTERS
from bot.web.openapi_shapes import PHASE, SCHEMAS, TEXT, WHOLE, named
from bot.web.sizing import COUNTS, OVERRIDES


def _query(name: str, says: str, schema: dict[str, Any] = TEXT) -> dict[str, Any]:
    return {"name": name, "in": "query", "description": says, "schema": schema}


def _path(name: str, says: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "description": says, "schema": TEXT}


def _get(says: str, answer: str, parameters: list[dict[str, Any]], missing: bool = False) -> dict[str, Any]:
    def gives(description: str, schema: str) -> dict[str, Any]:
        return {"description": description, "content": {"application/json": {"schema": named(schema)}}}

    responses = {"200": gives("The answer.", answer), "400": gives("The question cannot be used; the sentence says why.", "Error")}
    responses["401"] = gives("The page is behind Sign in with Slack and there is no session.", "Error")
    if missing:
        responses["404"] = gives("There is none of that name that may be seen.", "Error")
    return {"get": {"summary": says, "parameters": parameters, "responses": responses}}


SEARCH = 'The search syntax of “oombot history”: gpu:h100 phase:graph_capture outcome:fixed version:>=0.20 "sampler".'
SEARCHES = [
    _query("q", SEARCH),
    _query("phase", "Only this phase.", PHASE),
    _query("outcome", "Only this outcome; open: none yet.", {"type": "string", "enum": ["open", *RESULTS]}),
    *(_query(name, f"The field {name}: of the search syntax.") for name in FILTERS if name not in ("phase", "outcome")),
    _query("limit", "At most so many rows, newest first.", {"type": "integer", "minimum": 1, "maximum": MOST_ROWS, "default": MOST_ROWS}),
    _query("before", "The id of the last row of the page before: gives the rows that follow it."),
]
SIZES = [
    _query(
        "q",
        "The question in words, for example: llama-3.3-70b on 4xH100 128k fp8 kv. The others are then not read; `corrections` says so.",
    ),
    _query("model", "A Hugging Face id."),
    _query("gpu", "A GPU by any of its names, for example H100-80GB."),
    _query("config", "A config.json inline, instead of a model."),
    *(_query(name, "As the engine argument of that name.") for name in ("engine_version", "kv_cache_dtype", "quantization")),
    _query("gpu_memory_utilization", "As the engine argument.", {"type": "number", "exclusiveMinimum": 0, "maximum": 1}),
    *(_query(name, "As the engine argument of that name.", WHOLE) for name, _, _ in COUNTS),
    *(_query(name, "An override in bytes.", WHOLE) for name, _, _ in OVERRIDES),
    _query(
        "enable_expert_parallel",
        "Off with 0; any other value switches it on. Further engine arguments of “oombot size”, and short names (tp, ctx), are read too.",
    ),
]

DOCUMENT: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {
        "title": "oombot",
        "version": "1",
        "description": "Read-only: what the pages show, as JSON. It sees what its reader may see: all of the local team on an open page, "
        "else what the signed-in person may see in Slack.",
    },
    "paths": {
        "/api/v1/incidents": _get("Past incidents, newest first, with counts.", "History", SEARCHES),
        "/api/v1/incidents/{id}": _get("One incident whole.", "Incident", [_path("id", "For example D-0187.")], missing=True),
        "/api/v1/stats": _get("What costs the team most, and what works.", "Stats", [_query("since", "For example 30d or 2026-11-01.")]),
        "/api/v1/explain/{topic}": _get(
            "A topic explained.",
            "Explanation",
            [_path("topic", "A topic's id."), _query("incident", "With the numbers of this one.")],
            missing=True,
        ),
        "/api/v1/size": _get("Will it fit, and how much fits.", "Sizing", SIZES),
    },
    "components": {"schemas": SCHEMAS},
}
