"""How the engine was started, as the contract shows it."""

from typing import Any

from bot.domain.engines import ENGINES
from bot.domain.evidence import Evidence
from bot.rulebook.book import Rulebook

_SHOWN = (
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "max_model_len",
    "gpu_memory_utilization",
    "max_num_seqs",
    "max_num_batched_tokens",
)


def deployment_of(book: Rulebook, evidence: Evidence) -> dict[str, Any]:
    """The contract's deployment object: flags by vLLM's argument names, environment variables by their own."""
    source = evidence.deployment
    shown: dict[str, Any] = {
        "model": source.model.value if source.model else None,
        "gpu": source.gpu.value if source.gpu else None,
        "gpu_count": source.gpu_count.value if source.gpu_count else None,
    }
    shown |= dict.fromkeys(_SHOWN) | {name: known.value for name, known in source.arguments.items()}
    for argument in book.arguments:
        if argument.same_as:
            value = shown.get(argument.same_as) or shown.get(argument.name)
            shown |= {argument.same_as: value} if value or argument.same_as in _SHOWN else {}
    own = ENGINES[evidence.engine].fraction if evidence.engine in ENGINES else ""
    printed = next((fact.fields["fraction"] for fact in evidence.facts if "fraction" in fact.fields), None)
    if own and printed is not None and shown.get(own) is None:
        shown[own] = float(printed)
    shown |= {name: known.value for name, known in source.environment.items()}
    tags = evidence.grid.tp if (evidence.grid.tp or 1) > 1 and not evidence.grid.at_least else None
    shown["tensor_parallel_size"] = shown["tensor_parallel_size"] or tags
    shown["pipeline_parallel_size"] = shown["pipeline_parallel_size"] or (evidence.grid.pp if (evidence.grid.pp or 1) > 1 else None)
    shown["tried"] = {name: list(values) for name, values in source.tried.items()}
    names = ("memory_bytes", "limit_bytes", "rss_bytes", "shm_bytes")
    shown["host"] = {name: source.host[name].value if name in source.host else None for name in names}
    shown["launcher"] = source.launcher.value if source.launcher else None
    return shown
