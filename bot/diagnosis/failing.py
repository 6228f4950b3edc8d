"""The first error, the process it happened in, and that process' rank. Never a wrapper, never a guess."""

import re
from collections.abc import Sequence
from dataclasses import replace

from bot.diagnosis.clock import earlier_by_the_clock
from bot.diagnosis.scene import LONGEST_SHOWN, as_given
from bot.domain.diagnosis import FirstError
from bot.domain.evidence import Evidence, Fact, Speaker
from bot.domain.rank import Grid, Rank, RankBasis

ERROR_KINDS = (
    "torch_oom",
    "cuda_oom",
    "hip_oom",
    "xpu_oom",
    "cublas_alloc",
    "cumem",
    "nccl",
    "free_memory_check",
    "no_cache_blocks",
    "context_exceeds_cache",
    "too_few_state_blocks",
    "profiling_assert",
    "sampler_warmup",
    "host_alloc",
    "shm",
    "host_kill",
)
_FIGURES = {
    "tried": "tried_bytes",
    "free": "free_bytes",
    "total": "total_bytes",
    "process": "process_bytes",
    "allocated": "allocated_bytes",
    "allowed": "allowed_bytes",
    "unallocated": "reserved_unallocated_bytes",
    "private": "private_pool_bytes",
}
_OF_CHECKS = {"free_at_start_bytes": "free_bytes", "total_bytes": "total_bytes"}
"""What the start-up check calls the same."""
_EXCEPTION_LIKE = re.compile(
    r"^[\W_]{0,6}(?:[\w.]*(?:Error|Exception|OutOfMemory\w*)\b\s*(?:[:(]|$)|"
    r"(?:CUDA|HIP|XPU) (?:error: )?out of memory\b(?! (?:- |(?:when|while|with|after|on|in|at|during|even|for|but)\b)))"
)
_QUOTED = re.compile(r"[\s>*-]{0,8}['\"`“]")
_BARE = ("torch.oom-bare", "cuda.oom")
"""What people write too."""
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
_HEADING = re.compile(r"#{1,6} |\[[A-Za-z]{2,12}\]:? ")
"""A title or a heading tells of an error that stands further down."""
_NUMBER = re.compile(r"(?:(?<![\w-])-)?\d{1,6}(?:\.\d+)?")
_ONE_PROCESS = re.compile(r"(?<![a-z_])(?:uniproc_executor|gpu_executor)\.py")
"""The executors that run the one worker in their own process."""


RETRIED_WITHIN = 8
"""Lines between an allocation that failed and the engine's word that it goes on without."""


def first_error_fact(evidence: Evidence) -> Fact | None:
    """The earliest allocation failure or self-naming memory error; prose and quotations only where nothing better stands."""
    noticed = {(f.source, f.line) for f in evidence.facts if "notice" in f.kinds}
    candidates = [
        f for f in evidence.facts if f.kinds & {"allocation-failed", "memory-error", "host-kill"} and (f.source, f.line) not in noticed
    ]
    ready = max((f.order for f in evidence.facts if "ready" in f.kinds), default=0)
    over = [f.order for f in evidence.facts if "recovers" in f.kinds and f.order < ready]
    candidates = [f for f in candidates if not any(0 <= order - f.order <= RETRIED_WITHIN for order in over)]
    if not candidates:
        return None
    above: dict[tuple[str, int, int], list[Fact]] = {}
    for fact in candidates:
        above.setdefault((fact.id, fact.source, fact.line + 1), []).append(fact)
    candidates = [f for f in candidates if not any(_goes_on(g, f) for g in above.get((f.id, f.source, f.line), ()))]
    quoted = {(f.source, f.line) for f in evidence.facts if "quotes-cause" in f.kinds}
    figured = {(f.source, f.line) for f in candidates if "without-figures" not in f.kinds}
    printed = {(f.source, f.line) for f in candidates if not f.kinds & {"without-figures", "retold"}}
    candidates = [f for f in candidates if "retold" not in f.kinds or (f.source, f.line) not in printed]
    standing = {id(f): _standing(f, quoted, figured) for f in candidates}
    if any("sampler_warmup" in f.kinds and _EXCEPTION_LIKE.match(f.text) for f in candidates):
        standing |= {id(f): 5 for f in candidates if _in_words(f)}  # who tells of it says less than the engine's own sentence
    standing |= {id(f): 1 for f in candidates if standing[id(f)] == 0 and _told_in_full_below(f, candidates, evidence)}
    first = min(candidates, key=lambda f: (standing[id(f)], f.source, f.order))
    return earlier_by_the_clock(first, [f for f in candidates if standing[id(f)] == standing[id(first)]])


def _told_in_full_below(fact: Fact, candidates: Sequence[Fact], evidence: Evidence) -> bool:
    """Does a bare line stand alone above the log that shows the same failure with its figures or its worker?"""
    if fact.id not in _BARE or fact.speaker.label or fact.at:
        return False
    place = (fact.source, fact.line)
    logged = [(line.source, line.number) for line in evidence.speakers if line.signed or line.speaker.label]
    logged += [(frame.source, frame.line) for frame in evidence.frames]
    if any(source == fact.source and (source, line) <= place for source, line in logged):
        return False
    return any(
        (f.source, f.line) > place
        and "allocation-failed" in f.kinds
        and ("without-figures" not in f.kinds or f.speaker.role == "worker")
        and any(place < one <= (f.source, f.line) for one in logged)
        for f in candidates
    )


def _goes_on(above: Fact, fact: Fact) -> bool:
    """Is the fact the second line of a message that was read with the line above it, where the same stands?"""
    return (
        above.speaker == fact.speaker
        and bool(fact.fields)
        and fact.fields.items() <= above.fields.items()
        and not _EXCEPTION_LIKE.match(fact.text)
    )


def _standing(fact: Fact, quoted: set[tuple[int, int]], figured: set[tuple[int, int]]) -> int:
    place = (fact.source, fact.line)
    if "without-figures" in fact.kinds and place in figured:
        return 9
    if "undecided" in fact.kinds or "engine-wrapper" in fact.kinds:
        return 4
    if place in quoted:
        return 3
    if fact.id == "host.kernel-oom" and "victim" not in fact.fields:
        return 1  # the line that names whom the kernel killed says it all
    if "nccl" in fact.kinds or fact.id in ("host.exit-9", "host.exit-137", "torch.allocator-warning"):
        return 2
    if _in_words(fact) or "retold" in fact.kinds:
        return 1
    if "memory-error" in fact.kinds and _HEADING.match(fact.text):
        return 1
    return 0


def _in_words(fact: Fact) -> bool:
    """Does the error stand in a title or a sentence, not where a program raises it?"""
    return fact.id in _BARE and not _EXCEPTION_LIKE.match(fact.text)


def raised_here(fact: Fact) -> bool:
    """Does the line stand as a program raised it, or quoted as that, or give its figures, and not only tell of it?"""
    return bool(fact.fields.get("tried") or _EXCEPTION_LIKE.match(fact.text) or _QUOTED.match(fact.text))


def as_first_error(fact: Fact, evidence: Evidence) -> FirstError:
    """The contract's first_error of a fact."""
    kind = next((k for k in ERROR_KINDS if k in fact.kinds), "other")
    if kind == "torch_oom" and "HIP out of memory" in fact.text:
        kind = "hip_oom"
    if kind == "torch_oom" and "XPU out of memory" in fact.text:
        kind = "xpu_oom"
    told = _told_below(fact, evidence)
    figures = {name: told.fields.get(field) for field, name in _FIGURES.items()}
    figures |= {name: value for field, name in _FIGURES.items() if figures[name] is None and (value := _told_beside(told, evidence, field))}
    figures |= {name: fact.fields[field] for field, name in _OF_CHECKS.items() if fact.fields.get(field) is not None}
    other, allocated = told.fields.get("other"), told.fields.get("allocated")
    if figures["process_bytes"] is None and other and allocated and other >= allocated:
        figures["process_bytes"] = other  # of several pids that a container cannot match, the one that can hold what PyTorch allocated
    return FirstError(fact.source, fact.line, as_given(fact, evidence.lines)[:LONGEST_SHOWN], kind, figures)


def _told_beside(fact: Fact, evidence: Evidence, field: str) -> object:
    """A figure of the same failure that the line gives in somebody's words."""
    same = (f for f in evidence.facts if (f.source, f.line) == (fact.source, fact.line) and {"retold", "torch_oom"} <= f.kinds)
    return next((f.fields[field] for f in same if "torch_oom" in fact.kinds and field in f.fields), None)


def _told_below(fact: Fact, evidence: Evidence) -> Fact:
    """The same failure as PyTorch tells it right below a line of the allocator beneath it, which has no figures."""
    if "cumem" not in fact.kinds:
        return fact
    below = (
        f for f in evidence.facts if f.source == fact.source and 0 < f.line - fact.line <= RETRIED_WITHIN and f.speaker == fact.speaker
    )
    return next((f for f in below if "allocation-failed" in f.kinds and not f.kinds & {"without-figures", "retold"}), fact)


def failing_speaker(evidence: Evidence, fact: Fact | None) -> Speaker | None:
    """Who failed first. An error that the engine core only repeats belongs to the first worker that logged an error."""
    repeated = fact is not None and any(
        f.line == fact.line and f.source == fact.source and "quotes-cause" in f.kinds for f in evidence.facts
    )
    # by a C library, in a title, or in people's words
    said_apart = fact is not None and ("nccl" in fact.kinds or bool(_HEADING.match(fact.text)) or _in_words(fact))
    unsigned = fact is not None and said_apart and fact.speaker.role == "unknown"
    if fact is not None and not (repeated and fact.speaker.role != "worker") and not unsigned:
        return fact.speaker
    worker = next((line.speaker for line in evidence.errors if line.speaker.role == "worker"), None)
    worker = worker or next((f.speaker for f in evidence.frames if f.speaker.role == "worker"), None)
    if worker is not None:
        return worker
    if fact is not None:
        return fact.speaker
    return next((f.speaker for f in evidence.frames), None)


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


def said_of_rank(evidence: Evidence) -> str | None:
    """What was answered to the question which rank failed."""
    return evidence.answers.get("rank") or evidence.answers.get("failing_rank")


def answered_rank(evidence: Evidence) -> int | None:
    """The one rank that an answer names (3, gpu3, Worker_TP3); None where it names none, several, or one beyond the grid."""
    named = set(_NUMBER.findall(said_of_rank(evidence) or ""))
    number = named.pop() if len(named) == 1 else ""
    if not number.isdecimal() or (evidence.grid.world is not None and int(number) >= evidence.grid.world):
        return None
    return int(number)


def _by_device(evidence: Evidence, speaker: Speaker | None, fact: Fact | None, grid: Grid, gpu: object) -> Rank | None:
    label = speaker.label if speaker is not None else ""
    pid = speaker.pid if speaker is not None else None
    if isinstance(gpu, int):
        decides = not (grid.ray or grid.several or grid.devices_set or (grid.dp or 1) > 1 or _engine_index(speaker))
        decides = decides and not (evidence.engine == "tensorrt-llm" and evidence.ranks)  # its ranks sign for themselves
        if decides and (grid.world is None or gpu < grid.world):
            basis: RankBasis = "only_worker" if grid.world == 1 else "gpu_index"
            return Rank(number=gpu, label=label or f"GPU {gpu}", gpu_index=gpu, pid=pid, basis=basis)
        return Rank(number=None, label=label or f"GPU {gpu}", gpu_index=gpu, pid=pid, basis="gpu_index")
    if _only_worker(evidence, speaker, fact):
        return _alone(speaker, pid)
    return None


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
        return True
    return (worker_side or in_worker) and grid.world == 1


def _before_its_place(evidence: Evidence, speaker: Speaker, fact: Fact | None) -> bool:
    """Did it fail while its device was prepared? Until then every worker signs without its place in the grid (0.17 and later)."""
    functions = {f.function for f in evidence.frames if f.speaker.key == speaker.key}
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
