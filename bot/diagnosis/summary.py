"""The verdict in one sentence, and the deployment as the contract shows it."""

import re
import shlex
from typing import Any

from bot.diagnosis.scene import Scene
from bot.domain.diagnosis import Phase
from bot.domain.evidence import Evidence
from bot.domain.phases import phase_words
from bot.domain.rank import Rank, named
from bot.domain.size import gib
from bot.rulebook.model_names import load_model_names

_CONFIG = re.compile(r'"architectures"\s*:\s*\[')


def summary_of(scene: Scene, phase: Phase, verdict: str, rank: Rank | None, rule: str | None = None, says: str = "") -> str:
    """One sentence that says what failed, where, and how sure. `says`: what the rule that decided has to say of it."""
    if phase == "unknown":
        if scene.error:
            return "The evidence does not decide which phase failed."
        if any("out of memory" in text.lower() for text in scene.evidence.lines.values()):
            return "Memory is said to have run out, but the error itself is not in this evidence, so no phase can be named."
        if any(_CONFIG.search(text) for text in scene.evidence.lines.values()):
            return "This is a model's config.json and no log: `oombot size --config FILE --gpu NAME` says whether the model will start."
        if any("card-process" in fact.kinds for fact in scene.facts) and not scene.evidence.frames:
            return "This shows who holds the cards and no failure, so no phase can be named."
        where = "what was kept of this evidence" if scene.evidence.cut else "this evidence"
        return f"There is no memory error in {where}, so no phase can be named."
    if phase == "not_oom":
        return _NO_SHORTAGE.get(rule or "") or _no_shortage(verdict, says)
    if scene.has("profiling_assert") and phase == "profiling":
        return "Stopped in the profiling run by an assertion: free memory changed while it was measured. That is no shortage."
    who = named(rank.number, rank.label) if rank is not None else ""
    where = "".join((f" on {who}" if who else "", (f" of {box}" if who else f" in {box},") if (box := container_of(scene)) else ""))
    during = phase_words(phase, scene.evidence.engine).inside
    sure = "" if verdict == "certain" else "Probably: "
    if unexplained(scene, phase):
        why = "the line that says why is cut off" if scene.has("error-cut-off") else "no line here says that memory ran out"
        return _opened(sure, f"Stopped{where} in {during}; {why}.")
    if says:
        return _opened(sure, f"Stopped{where} in {during}: {says}.")
    figures = scene.error.figures if scene.error is not None else {}
    tried, free = figures.get("tried_bytes"), figures.get("free_bytes")
    size = f"; it wanted {gib(tried)}" + (f" and {gib(free)} were free" if free is not None else "") if tried else ""
    checks = phase in ("kv_cache_sizing", "startup_check")
    lead = f"Stopped{where} in " if checks else "Out of " if phase == "host_memory" else f"Out of memory{where} in "
    return _opened(sure, f"{lead}{during}{size}.")


def container_of(scene: Scene) -> str | None:
    """The container that failed, where lines of several stand in the paste."""
    groups = {line.speaker.group for line in scene.evidence.speakers if line.speaker.group}
    return scene.failing.group or None if scene.failing is not None and len(groups) > 1 else None


_NO_SHORTAGE = {
    "not-oom.question": "This asks how memory is used and shows no failure.",
    "not-oom.ready": "The server started; nothing failed in this log.",
    "not-oom.stopped": "The server was asked to stop; nothing failed before that in this log.",
}


def _no_shortage(verdict: str, says: str) -> str:
    sure = "" if verdict == "certain" else "probably "
    return f"This is {sure}no out-of-memory failure{': ' + says if says else ''}."


def _opened(sure: str, sentence: str) -> str:
    return sure + (sentence[0].lower() + sentence[1:] if sure else sentence)


def unexplained(scene: Scene, phase: Phase) -> bool:
    """Is only known where it stopped, by a frame or a mark, and nothing says that memory was short?"""
    said = ("says-oom", "says-sizing", "pool-not-positive", "says-host", "says-killed", "host-kill")
    return phase not in ("unknown", "not_oom", "host_memory") and scene.error is None and not any(scene.has(kind) for kind in said)


def cut_note(scene: Scene, phase: Phase) -> tuple[str, ...]:
    """What the change rests on where the error itself is not shown."""
    if not unexplained(scene, phase):
        return ()
    return (
        "No line here says that memory ran out. The change is the one for a shortage in this phase: "
        "if the error says something else, leave it.",
    )


def sizing_note(scene: Scene, phase: Phase, rule: str | None) -> tuple[str, ...]:
    """What `oombot size` has to do with it: it answers a question, and says whether a model and cards that are named go together."""
    size = _size_command(scene)
    if rule == "not-oom.question":
        return (f"This reads as a question; no failure is shown. `{size}` tells what it needs and what fits.",)
    if phase in ("unknown", "weight_loading") and not {"MODEL", "NAME"} & set(size.split()):
        return (f"`{size}` says whether this model goes onto these cards, and what is left for its cache.",)
    return ()


def _size_command(scene: Scene) -> str:
    """The question for `oombot size` with what the evidence names; capitals stand for what it does not, or by no name that sizing knows."""
    deployment, grid = scene.evidence.deployment, scene.evidence.grid
    model = deployment.model.value if deployment.model is not None and _has_config(deployment.model.value) else "MODEL"
    gpu = deployment.gpu.value if deployment.gpu is not None else "NAME"
    tp = int(deployment.number("tensor_parallel_size") or grid.tp or (deployment.gpu_count.value if deployment.gpu_count else 0))
    pp = int(deployment.number("pipeline_parallel_size") or grid.pp or 1)
    length = int(deployment.number("max_model_len") or 0)
    given = ((tp, f" --tp {tp}"), (pp > 1, f" --pp {pp}"), (length, f" --max-model-len {length}"))
    return f"oombot size {shlex.quote(model)} --gpu {gpu}" + "".join(text for known, text in given if known)


def _has_config(model: str) -> bool:
    """Can sizing look it up: an id of the hub, or a name that the rulebook has figures for? A path is known to its machine only."""
    return model[:1] not in "/.~$" and ("/" in model or load_model_names().find(model) is not None)


_SHOWN = (
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "max_model_len",
    "gpu_memory_utilization",
    "max_num_seqs",
    "max_num_batched_tokens",
)

_ELSEWHERE = {
    "max_model_len": ("context_length", "max_seq_len_trt", "session_len", "ctx_size"),
    "max_num_seqs": ("max_running_requests", "max_batch_size"),
    "max_num_batched_tokens": ("max_num_tokens",),
}
"""What the other engines call the same limit; the contract shows vLLM's names."""


def deployment_of(evidence: Evidence) -> dict[str, Any]:
    """The contract's deployment object: flags by vLLM's argument names, environment variables by their own."""
    source = evidence.deployment
    shown: dict[str, Any] = {
        "model": source.model.value if source.model else None,
        "gpu": source.gpu.value if source.gpu else None,
        "gpu_count": source.gpu_count.value if source.gpu_count else None,
    }
    shown |= dict.fromkeys(_SHOWN) | {name: known.value for name, known in source.arguments.items()}
    for name, others in _ELSEWHERE.items():
        shown[name] = shown[name] or next((shown[other] for other in others if shown.get(other)), None)
    shown |= {name: known.value for name, known in source.environment.items()}
    tags = evidence.grid.tp if (evidence.grid.tp or 1) > 1 and not evidence.grid.at_least else None
    shown["tensor_parallel_size"] = shown["tensor_parallel_size"] or tags
    shown["pipeline_parallel_size"] = shown["pipeline_parallel_size"] or (evidence.grid.pp if (evidence.grid.pp or 1) > 1 else None)
    shown["tried"] = {name: list(values) for name, values in source.tried.items()}
    names = ("memory_bytes", "limit_bytes", "rss_bytes", "shm_bytes")
    shown["host"] = {name: source.host[name].value if name in source.host else None for name in names}
    shown["launcher"] = source.launcher.value if source.launcher else None
    return shown
