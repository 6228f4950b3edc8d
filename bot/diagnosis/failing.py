"""The process that failed first, and its rank. Never a guess."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from bot.diagnosis.first_error import HEADING, in_a_report, in_words
from bot.domain.evidence import Evidence, Fact, Frame, Speaker
from bot.domain.rank import Grid, Rank, RankBasis

_WORKER_FILES = (
    "gpu_worker.py",
    "gpu_model_runner.py",
    "uniproc_executor.py",
    "gpu_executor.py",
    "worker/worker.py",
    "model_runner.py",
    "xpu_worker.py",
    "/model_executor/",
    "worker/cache_engine.py",
    "cpu_worker.py",
)
DOES_NOT_KNOW = re.compile(r"(?i)don.?t know|no idea|unknown|not sure|^\\?$")
"""An answer that is none."""
_NUMBER = re.compile(r"(?:(?<![\w-])-)?\d{1,6}(?:\.\d+)?")
_DENIED = re.compile(r"(?i)\b(?:not|never|except|but)\b|n['\u2019]t\b")
_ONE_PROCESS = re.compile(r"(?<![a-z_])(?:uniproc_executor|gpu_executor)\.py")
"""The executors that run the one worker in their own process."""


def failing_speaker(evidence: Evidence, fact: Fact | None) -> Speaker | None:
    """Who failed first. An error that the engine core only repeats belongs to the first worker that logged an error."""
    repeated = fact is not None and any(
        f.line == fact.line and f.source == fact.source and "quotes-cause" in f.kinds for f in evidence.facts
    )
    # by a C library, in a title, or in people's words
    said_apart = fact is not None and ("nccl" in fact.kinds or bool(HEADING.match(fact.text)) or in_words(fact) or in_a_report(fact))
    unsigned = fact is not None and said_apart and fact.speaker.role == "unknown"
    if fact is not None and not (repeated and fact.speaker.role != "worker") and not unsigned:
        return fact.speaker
    worker = next((line.speaker for line in evidence.errors if line.speaker.role == "worker"), None)
    worker = worker or next((f.speaker for f in evidence.frames if f.speaker.role == "worker"), None)
    if worker is not None:
        return worker
    traced = next((f.speaker for f in evidence.frames if fact is None or f.speaker.role == "engine-core"), None)
    return traced if traced is not None or fact is None else fact.speaker


def failing_rank(evidence: Evidence, speaker: Speaker | None, fact: Fact | None) -> Rank | None:
    """The rank of the process that failed, or None; the device index alone where that is all that is known."""
    grid: Grid = evidence.grid
    gpu = None if fact is None else fact.fields.get("gpu")
    signed = evidence.ranks.get(speaker.key) if speaker is not None else None
    if signed is not None and signed.number is not None:
        return replace(signed, gpu_index=gpu) if isinstance(gpu, int) else signed
    answered = answered_rank(evidence)
    if answered is not None:
        return Rank(number=answered, label=f"rank {answered}", basis="answer")
    if signed is not None:
        return replace(signed, gpu_index=gpu) if isinstance(gpu, int) else signed
    died = next((f for f in evidence.facts if "process-died" in f.kinds and "rank" in f.fields), None)
    if died is not None and (fact is None or "host-kill" in fact.kinds):
        worker = f"VllmWorker-{died.fields['rank']}" if died.id.startswith("vllm.") else f"rank {died.fields['rank']}"
        return Rank(number=int(died.fields["rank"]), label=worker, basis="message")
    named = {f.fields["rank"] for f in evidence.facts if "rank-failed" in f.kinds} if gpu is None else set()
    if len(named) == 1 and (grid.world is None or max(named) < grid.world) and not grid.several:
        return Rank(number=max(named), label=f"rank {max(named)}", basis="message")
    if (own := _by_its_engine(evidence, speaker, gpu)) is not None:
        return own
    if speaker is not None and speaker.label == "VllmWorkerProcess" and grid.world == 2 and not grid.several:
        return Rank(number=1, label=speaker.label, pid=speaker.pid, basis="tag", gpu_index=gpu if isinstance(gpu, int) else None)
    if (fact is None or "no_cache_blocks" in fact.kinds) and (short := _without_pool(evidence)) is not None:
        return short
    if fact is not None and fact.kinds & {"host-kill", "no_cache_blocks", "context_exceeds_cache"}:
        return _alone(speaker, None) if _only_worker(evidence, speaker, fact) and grid.world == 1 else None
    return _by_device(evidence, speaker, fact, grid, gpu)


def _without_pool(evidence: Evidence) -> Rank | None:
    """The one rank that reports no memory for a pool, where others report some: for it the engine stops."""
    pools = {
        rank: fact.fields["kv_cache_bytes"]
        for fact in evidence.facts
        if fact.id == "vllm.available-kv" and (rank := evidence.ranks.get(fact.speaker.key)) is not None and rank.number is not None
    }
    short = [rank for rank, size in pools.items() if size <= 0]
    return short[0] if len(short) == 1 < len(pools) else None


def ranks_said(evidence: Evidence) -> Mapping[str, int | None]:
    """What people answered to the question which rank failed, and the one rank that each answer names; who does not know says nothing."""
    return {said: _one_rank(said, evidence.grid) for said in evidence.ranks_said if not DOES_NOT_KNOW.search(said)}


def answered_rank(evidence: Evidence) -> int | None:
    """The one rank that all who answered name; None where two differ: nobody's answer is taken before another's."""
    named = set(ranks_said(evidence).values())
    return named.pop() if len(named) == 1 else None


def _one_rank(said: str, grid: Grid) -> int | None:
    """The rank that an answer names (3, gpu3, Worker_TP3); None for none, several, one that it is not, or one beyond the grid."""
    named = set(_NUMBER.findall(said))
    number = named.pop() if len(named) == 1 and not _DENIED.search(said) else ""
    if not number.isdecimal() or (grid.world is not None and int(number) >= grid.world):
        return None
    return int(number)


def _by_device(evidence: Evidence, speaker: Speaker | None, fact: Fact | None, grid: Grid, gpu: object) -> Rank | None:
    label = speaker.label if speaker is not None else ""
    pid = speaker.pid if speaker is not None else None
    if isinstance(gpu, int):
        decides = not (grid.ray or grid.several or grid.nodes or grid.devices_set or (grid.dp or 1) > 1 or _engine_index(speaker))
        decides = decides and not (evidence.engine == "tensorrt-llm" and evidence.ranks)  # its ranks sign for themselves
        decides = decides and not (evidence.engine == "llama.cpp" and gpu)  # its one process has all devices
        if decides and (grid.world is None or gpu < grid.world):
            basis: RankBasis = "only_worker" if grid.world == 1 else "gpu_index"
            return Rank(number=gpu, label=label or f"GPU {gpu}", gpu_index=gpu, pid=pid, basis=basis)
        return Rank(number=None, label=label or f"GPU {gpu}", gpu_index=gpu, pid=pid, basis="gpu_index")
    alone = evidence.engine == "tensorrt-llm" and grid.world == 1  # as its one process says itself
    if alone or _only_worker(evidence, speaker, fact):
        return _alone(speaker, pid)
    return None


def _by_its_engine(evidence: Evidence, speaker: Speaker | None, gpu: object) -> Rank | None:
    """The one worker of an engine of several: it runs in the engine's own process, which signs with its data-parallel place."""
    place = speaker.parts.get("engine") if speaker is not None and speaker.role == "engine-core" else None
    grid = evidence.grid
    if speaker is None or place is None or not (place or (grid.dp or 1) > 1) or grid.several or {grid.pp, grid.tp} - {None, 1}:
        return None
    paths = [frame.path for frame in evidence.frames if frame.speaker.key == speaker.key]
    if not any(file in path for path in paths for file in _WORKER_FILES) or any("multiproc_executor.py" in path for path in paths):
        return None
    index = gpu if isinstance(gpu, int) else None
    return Rank(number=place, label=speaker.label, dp=place, pp=0, tp=0, gpu_index=index, pid=speaker.pid, basis="tag")


def _alone(speaker: Speaker | None, pid: int | None) -> Rank:
    return Rank(number=0, label=(speaker.label if speaker else "") or "the only worker", pid=pid, basis="only_worker")


def _engine_index(speaker: Speaker | None) -> int:
    return 0 if speaker is None else speaker.parts.get("engine", 0) or 0


def _only_worker(evidence: Evidence, speaker: Speaker | None, fact: Fact | None) -> bool:
    """Worker code in the engine core or a plain worker, and nothing that speaks of more workers than one."""
    grid: Grid = evidence.grid
    if speaker is None or not grid.single or (grid.ray and grid.world != 1) or grid.several or _engine_index(speaker):
        return False
    apart = any("multiproc_executor.py" in f.path for f in evidence.frames) or any(
        f.id == "vllm.worker-failed-with" for f in evidence.facts
    )
    if apart and grid.world != 1 and speaker.role != "worker":
        return False  # the workers are processes of their own, and this is none of them
    if any(s.speaker.parts.keys() & {"tp", "pp"} or s.speaker.label == "VllmWorkerProcess" for s in evidence.speakers):
        return False
    if speaker.role == "worker":
        return speaker.label == "Worker" and (grid.world == 1 or not _before_its_place(evidence, speaker, fact))
    worker_side = fact is not None and bool(fact.kinds & {"allocation-failed", "worker-side"})
    frames = [f for f in evidence.frames if f.speaker.key == speaker.key]
    in_worker = any(any(w in f.path for w in _WORKER_FILES) for f in frames)
    if speaker.role == "engine-core":
        return worker_side or in_worker
    signed_by_core = any((line.file or "").endswith("core.py") for line in evidence.errors if line.speaker.key == speaker.key)
    if any(_ONE_PROCESS.search(f.path) for f in frames) or (in_worker and signed_by_core):
        return grid.world == 1 or not _one_of_many(evidence, frames)
    return (worker_side or in_worker) and grid.world == 1


def _one_of_many(evidence: Evidence, frames: Sequence[Frame]) -> bool:
    """Is it an engine that sleeps and wakes, as a trainer starts one on each of several cards? None of them tells its place."""
    count = evidence.deployment.gpu_count
    return count is not None and count.value > 1 and any(f.function in ("wake_up", "sleep") for f in frames)


def _before_its_place(evidence: Evidence, speaker: Speaker, fact: Fact | None) -> bool:
    """Did it fail while its device was prepared? Until then every worker signs without its place in the grid (0.17 and later)."""
    functions = {f.function for f in evidence.frames if f.speaker.key == speaker.key}
    functions |= {str(f.fields["call"]) for f in evidence.facts if "call-shown" in f.kinds and f.speaker.key == speaker.key}
    loaded = functions & {"load_model", "get_model"} or any(
        f.speaker.key == speaker.key and f.id.startswith("vllm.load-") for f in evidence.facts
    )
    early = fact is not None and "free_memory_check" in fact.kinds
    early = early or bool(functions & {"init_device", "request_memory", "init_worker_distributed_environment"})
    return early or (not loaded and any(f.id == "vllm.wrapper-load" and f.speaker.key == speaker.key for f in evidence.facts))


def _is_one_process(speaker: Speaker) -> bool:
    """Does the label name one worker? Some engines sign lines of theirs with the engine's name alone."""
    return any(letter.isdigit() for letter in speaker.label) or speaker.pid is not None


def also_failed(speaker: Speaker | None, facts: Sequence[Fact]) -> tuple[str, ...]:
    """Labels of the other workers that report an allocation failure of their own."""
    labels = dict.fromkeys(
        f.speaker.label
        for f in facts
        if "allocation-failed" in f.kinds and f.speaker.role == "worker" and f.speaker != speaker and _is_one_process(f.speaker)
    )
    return tuple(labels)
