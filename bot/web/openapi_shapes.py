"""The shapes of the documents that the API gives, as JSON Schema; a test holds them against real ones."""

from typing import Any, get_args

from bot.domain.diagnosis import Phase, Verdict
from bot.domain.incident import RESULTS
from bot.usecases.as_json import ERROR_FIGURES
from bot.usecases.budget_rows import FIGURES

TEXT: dict[str, Any] = {"type": "string"}
TEXT_OR_NULL: dict[str, Any] = {"type": ["string", "null"]}
WHOLE: dict[str, Any] = {"type": "integer"}
NUMBER_OR_NULL: dict[str, Any] = {"type": ["number", "null"]}
WHOLE_OR_NULL: dict[str, Any] = {"type": ["integer", "null"]}
TALLY: dict[str, Any] = {"type": "object", "additionalProperties": WHOLE}
PHASE: dict[str, Any] = {"type": "string", "enum": list(get_args(Phase))}
VERDICT: dict[str, Any] = {"type": "string", "enum": list(get_args(Verdict))}
OUTCOME: dict[str, Any] = {"type": ["string", "null"], "enum": [*RESULTS, None]}


def fields(**properties: Any) -> dict[str, Any]:
    """An object that has all of these."""
    return {"type": "object", "required": list(properties), "properties": properties}


def listed(of: dict[str, Any]) -> dict[str, Any]:
    """A list of these."""
    return {"type": "array", "items": of}


def or_null(of: dict[str, Any]) -> dict[str, Any]:
    """The same object, or null."""
    return {**of, "type": ["object", "null"]}


def named(name: str) -> dict[str, Any]:
    """The shape of that name."""
    return {"$ref": f"#/components/schemas/{name}"}


ROW = fields(
    **dict.fromkeys(("id", "at"), TEXT),
    verdict=VERDICT,
    phase=PHASE,
    outcome=OUTCOME,
    erased={"type": "boolean"},
    **dict.fromkeys(("rank", "gpu_count", "tp"), WHOLE_OR_NULL),
    **dict.fromkeys(
        ("engine", "engine_version", "model", "gpu", "remedy", "flag", "direction", "value", "excerpt", "channel", "thread"), TEXT_OR_NULL
    ),
)

CONTRIBUTION = fields(
    number=WHOLE,
    kind=TEXT,
    **dict.fromkeys(("name", "author", "at", "text"), TEXT_OR_NULL),
    truncated={"type": "boolean"},
    redactions=WHOLE,
)

TRIAL = fields(
    number=WHOLE,
    change={"type": "object", "description": "A recommendation; empty where none was suggested."},
    outcome=OUTCOME,
    **dict.fromkeys(("note", "by", "at"), TEXT_OR_NULL),
)

LIKE = fields(
    id=TEXT,
    outcome=OUTCOME,
    at=TEXT,
    **dict.fromkeys(("remedy", "flag", "direction", "value", "model", "gpu", "engine_version"), TEXT_OR_NULL),
)
CHANGE_TEXTS = ("phase", "remedy", "flag", "direction")
CHANGE_COUNTS = ("tried", *RESULTS)
CHANGE = fields(**dict.fromkeys(CHANGE_TEXTS, TEXT_OR_NULL), **dict.fromkeys(CHANGE_COUNTS, WHOLE))
SETTLED = fields(name=TEXT, count=WHOLE, fixed=WHOLE)

RANK_BYTES = ("total_bytes", "budget_bytes", "weights_bytes", "other_bytes", "kv_pool_bytes", "outside_budget_bytes")
KV_COUNTS = (
    "bytes_per_token", "fixed_bytes_per_request", "request_bytes", "block_size", "num_blocks", "tokens", "full_requests",
    "estimated_max_model_len", "longest_context",
)  # fmt: skip

RECOMMENDATION = fields(
    id=TEXT,
    because=TEXT,
    costs=TEXT,
    disproved_by=TEXT,
    keep_fixed=listed(TEXT),
    frees_bytes=WHOLE_OR_NULL,
    **dict.fromkeys(("flag", "direction", "value", "command"), TEXT_OR_NULL),
)
RANK = fields(
    basis=TEXT, label=TEXT_OR_NULL, node={}, **dict.fromkeys(("number", "dp", "pp", "tp", "ep", "gpu_index", "pid"), WHOLE_OR_NULL)
)
FIRST_ERROR = fields(source=WHOLE, line=WHOLE, text=TEXT, kind=TEXT, **dict.fromkeys(ERROR_FIGURES, WHOLE_OR_NULL))
BUDGET = fields(
    rank=WHOLE_OR_NULL,
    label=TEXT,
    engine_label=TEXT_OR_NULL,
    reported_by_rank=WHOLE_OR_NULL,
    closes={"type": ["boolean", "null"]},
    lines=TALLY,
    **dict.fromkeys((*FIGURES, "residual_bytes"), NUMBER_OR_NULL),
)
BUDGET["properties"]["sources"] = TALLY  # documents of earlier releases have none
DIAGNOSIS = fields(
    schema={"const": "oombot.diagnosis/1"},
    id=TEXT_OR_NULL,
    verdict=VERDICT,
    phase=PHASE,
    also_possible=listed(fields(phase=PHASE, because=TEXT)),
    rank=or_null(RANK),
    first_error=or_null(FIRST_ERROR),
    budgets=listed(BUDGET),
    deployment={"type": "object", "description": "Engine arguments by vLLM's names; also model, gpu, gpu_count, tried, host."},
    recommendation=or_null(RECOMMENDATION),
    alternatives=listed(RECOMMENDATION),
    avoid=listed(fields(flag=TEXT, direction=TEXT, because=TEXT)),
    questions=listed(fields(id=TEXT, text=TEXT, how=TEXT, would_change=TEXT)),
    proof=listed(fields(source=WHOLE, line=WHOLE, rule=TEXT, text=TEXT)),
    redactions=WHOLE,
    rulebook=TEXT,
    engine=TEXT,
    **dict.fromkeys(("engine_version", "engine_version_range"), TEXT_OR_NULL),
)

SCHEMAS: dict[str, Any] = {
    "Error": fields(schema={"const": "oombot.error/1"}, error=TEXT),
    "History": fields(
        schema={"const": "oombot.history/1"},
        query=TEXT,
        count=WHOLE,
        count_text={"type": "string", "description": "The count, or “10,000+”."},
        rows=listed(ROW),
        counts=fields(phase=TALLY, model=TALLY, gpu=TALLY, outcome=TALLY),
        ignored=listed(TEXT),
    ),
    "Incident": fields(
        schema={"const": "oombot.incident/1"},
        id=TEXT,
        at=TEXT,
        erased={"type": "boolean"},
        diagnosis=named("Diagnosis"),
        contributions=listed(CONTRIBUTION),
        trials=listed(TRIAL),
        similar=listed(LIKE),
    ),
    "Diagnosis": DIAGNOSIS,
    "Stats": fields(
        schema={"const": "oombot.stats/1"},
        since=TEXT_OR_NULL,
        incidents=WHOLE,
        mean_seconds_to_outcome=NUMBER_OR_NULL,
        outcomes=TALLY,
        phases=listed(fields(phase=PHASE, count=WHOLE, fixed=WHOLE, mean_seconds_to_outcome=NUMBER_OR_NULL)),
        changes=listed(CHANGE),
        wrong_rules=listed(fields(rule=TEXT, count=WHOLE)),
        models=listed(SETTLED),
        gpus=listed(SETTLED),
    ),
    "Explanation": fields(
        schema={"const": "oombot.explanation/1"},
        topic=TEXT,
        title=TEXT,
        paragraphs=listed(TEXT),
        numbers=listed(fields(label=TEXT, value={})),
        **dict.fromkeys(("near", "topics"), listed(fields(id=TEXT, title=TEXT))),
    ),
    "Sizing": fields(
        schema={"const": "oombot.sizing/1"},
        fits={"type": ["boolean", "null"]},
        why=TEXT,
        limiting_rank=WHOLE_OR_NULL,
        ranks=listed(fields(rank=WHOLE, **dict.fromkeys(RANK_BYTES, WHOLE_OR_NULL))),
        kv=fields(**dict.fromkeys(KV_COUNTS, WHOLE_OR_NULL), max_concurrency=NUMBER_OR_NULL),
        demand=fields(requests=WHOLE, bytes_per_rank=WHOLE, bytes_all_ranks=WHOLE, reserved_at_startup={"type": "boolean"}),
        terms=listed(fields(name=TEXT, says=TEXT, bytes=WHOLE, basis=TEXT)),
        assumptions=listed(TEXT),
        engine_version=TEXT,
        command=TEXT_OR_NULL,
    ),
}
