"""Facts that follow from figures: arithmetic that decides when words do not. Rules name them by kind."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import NamedTuple

from bot.diagnosis.derived_error import of_error
from bot.diagnosis.derived_start import of_start
from bot.diagnosis.named_size import card_at_most, outgrows_cards
from bot.diagnosis.stated import stated
from bot.domain.deployment import Setting
from bot.domain.engines import HIGHEST_FRACTION
from bot.domain.evidence import Evidence, Fact, LogLine
from bot.domain.size import GIB, gib
from bot.rulebook.book import Rulebook
from bot.rulebook.patterns import search
from bot.rulebook.versions import UnknownVersion, holds

LITTLE_FREE = 0.35  # below this share of the card another process holds it; above, a smaller fraction is the smaller step
SLEEP_FREED_LITTLE = 0.05  # of what is still in use: where sleep works it gives back most of what the engine held
HARDLY_FREE = 0.2  # below this no fraction that passes the check holds a model
ONLINE_QUANTIZATION = ("fp8", "bitsandbytes", "torchao", "experts_int8", "fp8_per_tensor")
CPU_FRACTION = "0.20"  # the first release whose fraction is also one of the machine's memory, on the CPU backend
V0_BLOCK = 16  # tokens, on a card
IMPLAUSIBLE_GRAPHS = 16 * GIB
TINY_WEIGHTS = GIB
WEIGHTS_FILL = 0.92  # beside such weights no smaller batch leaves room for a pool
_TRAINERS = r"^(?:WorkerDict|LLMRayActor|\w*ModelRayActor|PolicyModelActor|ActorRolloutRef\w*)$"
"""How a trainer's workers sign."""
_OLLAMA = r"(?:^|[./_-])ollama(?:[./_-]|$)"
"""How its container or its unit is called."""
_SAYS_ENGINE = ("vllm.engine-config", "vllm.v0-fallback")


def derived_facts(book: Rulebook, evidence: Evidence, error: Fact | None) -> list[Fact]:
    """Every derived fact of this evidence, each with the line of the figure that it rests on."""
    found = list(of_error(book, evidence, error)) if error is not None else [cut for cut in (_cut_off(evidence),) if cut is not None]
    told = [
        *_of_progress(evidence, error),
        *of_start(evidence, error),
        *_of_checks(evidence, error),
        *_of_sglang(evidence),
        *_of_host(evidence),
        *_of_cpu(evidence),
        *_of_engine(book, evidence),
    ]
    return [*found, *told, *_of_speech(evidence, error), *_of_deployment(book, evidence, error), *_of_arguments(evidence, error)]


_EXCEPTION = re.compile(r"(?<![\w.])[\w.]*(?:Error|Exception|Interrupt|Exit)(?::\s|$)|out of memory", re.IGNORECASE)


def _cut_off(evidence: Evidence) -> Fact | None:
    """The last line of a traceback, a frame or its head alone, below which no line names an exception: the end of the paste, or a gap,
    took it.
    """
    kind = frozenset({"error-cut-off"})
    ends = [Fact("derived.error-cut-off", kind, {}, f.speaker, f.source, f.line, f.echo, f.order) for f in evidence.frames]
    heads = (line for line in evidence.errors if line.text.startswith("Traceback (most recent call last)"))
    ends += [Fact("derived.error-cut-off", kind, {}, h.speaker, h.source, h.number, h.text, h.number) for h in heads]
    last = max(ends, key=lambda end: (end.source, end.line), default=None)
    if last is None:
        return None
    below = (text for (source, line), text in evidence.lines.items() if source == last.source and line > last.line)
    return None if any(map(_EXCEPTION.search, below)) else last


def _of_engine(book: Rulebook, evidence: Evidence) -> Iterator[Fact]:
    """Which engine speaks, by the marks that derived.toml lists."""
    marks = {row.kind: row.marks for row in book.derived}
    paths = [frame.path for frame in evidence.frames]
    told = [*paths, *(f.text for f in evidence.facts if "wrapper" in f.kinds or f.id in _SAYS_ENGINE)]
    switched = str(getattr(evidence.deployment.environment.get("VLLM_USE_V1"), "value", "")) == "0"
    if switched or any(map(_in_a_running_loop, evidence.errors)) or _any_in(marks.get("older-engine", ()), told):
        yield stated("older-engine", None)
    if evidence.engine not in ("vllm", "unknown"):
        yield stated("llama-cpp-engine" if evidence.engine == "llama.cpp" else "another-engine", None)
    if evidence.engine == "unknown" and _any_in(marks.get("foreign-engine", ()), paths):
        yield stated("foreign-engine", None)
    if any(_names(_OLLAMA, line.speaker.group) for line in evidence.speakers if line.speaker.group):
        yield stated("ollama", None)
    if any(_names(_TRAINERS, line.speaker.label) for line in evidence.speakers if line.speaker.label):
        yield stated("trainer", None)


def _of_cpu(evidence: Evidence) -> Iterator[Fact]:
    """Does the CPU backend's variable say how large its pool is? Where it is set, and in releases that have nothing else."""
    backend = next((f for f in evidence.facts if "cpu-only" in f.kinds), None)
    if backend is not None and ("VLLM_CPU_KVCACHE_SPACE" in evidence.deployment.environment or _before(evidence, CPU_FRACTION)):
        yield stated("cpu-pool", backend)


def _before(evidence: Evidence, version: str) -> bool:
    try:
        return evidence.engine_version is not None and holds(f"<{version}", evidence.engine_version)
    except UnknownVersion:
        return False


def _any_in(marks: Sequence[str], texts: Sequence[str]) -> bool:
    return any(mark in text for text in texts for mark in marks)


def _names(pattern: str, name: str) -> bool:
    return not pattern or search(pattern, name) is not None


def _of_progress(evidence: Evidence, error: Fact | None) -> Iterator[Fact]:
    until = error.order if error is not None else 10**9
    source = error.source if error is not None else None
    before = [f for f in evidence.facts if f.order <= until and (source is None or f.source == source)]
    sized = any(f.kinds & {"kv-sized", "ready"} or f.id in ("vllm.graphs-captured", "vllm.available-kv", "vllm.generating") for f in before)
    private = error is not None and bool(error.fields.get("private"))
    if not sized and not private:
        yield stated("before-cache", error)
    for state, begins, ends in (
        ("capture-open", "vllm.capture-begins", ("vllm.graphs-captured",)),
        ("sizes-open", "vllm.compile-size", ("vllm.capture-begins", "vllm.graphs-captured")),
        ("autotune-open", "vllm.autotune-begins", ("vllm.autotune-ends", "vllm.capture-begins")),
    ):
        begun = next((f for f in reversed(before) if f.id == begins), None)
        if begun is not None and not any(f.id in ends and f.order > begun.order for f in before):
            yield stated(state, begun)
    if any(_in_a_running_loop(line) for line in evidence.errors):
        yield stated("running-loop-logged", error)
    for fact in before:
        if "budget" in fact.kinds and fact.fields.get("kv_cache_bytes", 1) <= 0:
            yield stated("pool-not-positive", fact, kv_cache_bytes=fact.fields["kv_cache_bytes"])
        if 0 < fact.fields.get("max_concurrency", 1) < 1:
            yield stated("holds-less-than-one", fact)
        if (tokens := _too_few_tokens(evidence, fact)) is not None:
            yield stated("holds-less-than-one", fact, tokens=tokens)
        if fact.id in ("vllm.blocks", "typed.blocks") and fact.fields.get("num_gpu_blocks", 1) <= 0:
            yield stated("pool-not-positive", fact)


def _too_few_tokens(evidence: Evidence, fact: Fact) -> int | None:
    """The tokens of V0's blocks on the card, where one request may be longer than all of them; its block has 16 unless one is set."""
    blocks, length = fact.fields.get("num_gpu_blocks", 0), evidence.deployment.number("max_model_len")
    if fact.id != "vllm.blocks" or str(fact.fields["device"]).lower() not in ("gpu", "cuda", "rocm") or not length:
        return None
    tokens = int(blocks * (evidence.deployment.number("block_size") or V0_BLOCK))
    return tokens if 0 < tokens < length else None


def _in_a_running_loop(line: LogLine) -> bool:
    """Did V0's loop write it? It logs what ends it; a start that fails is logged by its message alone, without the exception's name."""
    file = line.file or ""
    return file.endswith("async_llm_engine.py") or (file == "engine.py" and line.text.startswith("OutOfMemoryError('"))


def _of_checks(evidence: Evidence, error: Fact | None) -> Iterator[Fact]:
    """What the figures of checks and reports say about their cause."""
    for fact in evidence.facts:
        at = fact.fields
        free = (at.get("free_before_profile_bytes"), at.get("free_after_profile_bytes"))
        if "profiling_assert" in fact.kinds and free[0] is not None and free[0] == free[1]:
            yield stated("assert-equal-figures", fact)
        if "free_memory_check" in fact.kinds and at.get("total_bytes") and "free_at_start_bytes" in at:  # the figures may be cut away
            share = at["free_at_start_bytes"] / at["total_bytes"]
            if share < LITTLE_FREE:
                yield stated("little-free", fact)
            if share < HARDLY_FREE:
                yield stated("hardly-free", fact)
        if fact.id == "vllm.sleep-amounts" and at["freed"] < SLEEP_FREED_LITTLE * at.get("in_use", 0):
            yield stated("sleep-freed-little", fact)
        estimate = at.get("graph_estimate_bytes")
        if estimate and estimate > IMPLAUSIBLE_GRAPHS:
            yield stated("graph-estimate-implausible", fact, bytes=estimate)
        if estimate and estimate < 0:
            yield stated("graph-estimate-negative", fact)
    weights = [f for f in evidence.facts if f.fields.get("weights_bytes")]
    if weights and error is not None and "no_cache_blocks" in error.kinds and weights[-1].fields["weights_bytes"] < TINY_WEIGHTS:
        yield stated("tiny-weights", weights[-1])
    total = max((f.fields["total_bytes"] for f in evidence.facts if f.fields.get("total_bytes")), default=None)
    if weights and total and max(f.fields["weights_bytes"] for f in weights) > WEIGHTS_FILL * total:
        yield stated("weights-fill-card", weights[-1])
    card = total or card_at_most(evidence)
    utilization = evidence.deployment.number("gpu_memory_utilization")
    if weights and card and utilization and weights[-1].fields["weights_bytes"] >= card * utilization:
        yield stated("weights-above-budget", weights[-1])
    wanted = ("estimated_max_model_len", "needed_bytes", "max_model_len", "kv_cache_bytes")
    shorter = next((f.fields for f in evidence.facts if all(f.fields.get(name) for name in wanted)), None)
    if shorter and shorter["estimated_max_model_len"] < shorter["max_model_len"] * shorter["kv_cache_bytes"] / shorter["needed_bytes"] / 4:
        yield stated("estimate-implausibly-short", error)


def _of_sglang(evidence: Evidence) -> Iterator[Fact]:
    """SGLang makes its pool so large that 1 − fraction of what was free before the weights is left beside it: what was left says the
    fraction in force, and what the weights left says the least that makes a pool.

    On several ranks the least of each figure counts, as the engine itself takes it.
    """
    before, _ = _least(evidence, "free_at_start_bytes")
    left, loaded = _least(evidence, "left_for_pool")
    if before is None and left and loaded is not None and loaded.fields.get("weights_bytes"):
        before = left + loaded.fields["weights_bytes"]  # what the load took, as the same line says
    stands = any("kv-sized" in f.kinds for f in evidence.facts if f.id.startswith("sglang."))
    if before and left and left < before and not stands:
        least = math.ceil((1 - left / before) * 1000) / 1000
        yield stated("least-mem-fraction", loaded, least_fraction=least, before=gib(before), after=gib(left))
    beside, ended = _least(evidence, "left_beside")
    given = any("--max-total-tokens" in word for start in evidence.deployment.commands for word in start.value)
    later = any(f.id == "sglang.pool-later" for f in evidence.facts)  # sized after the capture, which is then still to come
    if before and beside and beside < before and not given and not later:
        yield stated("implied-mem-fraction", ended, value=round(1 - beside / before, 2), before=gib(before), after=gib(beside))


def _least(evidence: Evidence, figure: str) -> tuple[int | None, Fact | None]:
    """The least of SGLang's figures of that name, with its fact."""
    said = [f for f in evidence.facts if f.id.startswith("sglang.") and f.fields.get(figure)]
    least = min(said, key=lambda f: int(f.fields[figure]), default=None)
    return (None, None) if least is None else (int(least.fields[figure]), least)


_GROUP = "Memory cgroup"
"""How the kernel begins where a container's limit, and not the machine, was full."""
_OF_THE_CONTAINER = ("OOMKill", "137", "cgroup", "failcnt", "MEMCG", "limit")
"""What stands in a kill for a container's own limit; the kernel also kills for the whole machine."""


def _of_host(evidence: Evidence) -> Iterator[Fact]:
    limit, rss = evidence.deployment.host.get("limit_bytes"), evidence.deployment.host.get("rss_bytes")
    for fact in [f for f in evidence.facts if f.id == "vllm.offloaded"][:1]:
        yield stated("cpu-offloaded", fact, bytes=fact.fields["offloaded"])
    if limit is None and rss is not None:
        killed = (f for f in evidence.facts if "host-kill" in f.kinds and _GROUP in f.text and "rss" in f.fields)
        yield from (stated("group-killed", kill, bytes=rss.value, line=kill.line) for kill in list(killed)[:1])
    kernels = any("host-kill" in f.kinds and "limit" in f.fields for f in evidence.facts)  # which says what all in the container used
    if limit is None or (rss is not None and rss.value < limit.value / 2 and not kernels):
        return
    said = [f for f in evidence.facts if f.kinds & {"host-kill", "says-host"} and any(mark in f.text for mark in _OF_THE_CONTAINER)]
    said += [f for f in evidence.facts if "says-pod-oom" in f.kinds]
    if (kill := next(iter(said), None)) is not None:
        yield stated("limit-reached", kill, bytes=limit.value, line=limit.line)


_TRIED = {
    "batched": "proven-tokens",
    "batch": "proven-seqs",
    "num_seqs": "proven-seqs",
    "model_len": "proven-length",
    "utilization": "proven-fraction",
}
"""What a row that somebody tried proves, by a part of the argument's name; the first that is in it."""


class _Trial(NamedTuple):
    """A value that somebody tried, and how it went."""

    value: str
    passed: bool
    said: Fact

    @property
    def size(self) -> float:
        return float(self.value)


def _proven(rows: Sequence[Fact], wanted: Set[float]) -> Iterator[Fact]:
    """The largest value that passed below the smallest that failed; of a fraction also the smallest above the largest that failed. Who
    wants what failed knows that already.
    """
    for kind in dict.fromkeys(map(_tried, rows)):
        trials = [trial for row in rows if _tried(row) == kind for trial in _trials(row)]
        for name, sign in ((kind, 1), *([("proven-higher-fraction", -1)] if kind == "proven-fraction" else [])):
            failed = min((trial for trial in trials if not trial.passed), key=lambda trial: sign * trial.size, default=None)
            below = [trial for trial in trials if trial.passed and failed is not None and sign * trial.size < sign * failed.size]
            if failed is not None and below and failed.size not in wanted:
                passed = max(below, key=lambda trial: sign * trial.size)
                yield stated(name, passed.said, value=passed.value, failed=failed.value, line=passed.said.line)


def _meant(figure: str) -> Iterator[float]:
    """What a figure may stand for: 32k is 32,000 or 32,768."""
    count = float(figure.lower().removesuffix("k").replace(",", ""))
    yield from (count * 1000, count * 1024) if figure[-1] in "kK" else (count,)


_WAYS = {"lower": 1, "reduc": 1, "decreas": 1, "rais": -1, "increas": -1}


def _cured(rows: Sequence[Fact]) -> Iterator[Fact]:
    """The value to which somebody lowered or raised it, and it passed; which one failed is not said."""
    for row in rows:
        sign, kind = _WAYS.get(str(row.fields.get("way")).lower(), 0), _tried(row)
        if sign > 0 or (sign < 0 and kind == "proven-fraction"):
            name, failed = (kind, "more") if sign > 0 else ("proven-higher-fraction", "less")
            yield stated(name, row, value=str(row.fields["at"]).replace(",", ""), failed=failed, line=row.line)


def _tried(row: Fact) -> str:
    name = str(row.fields["name"]).lower().replace("-", "_").replace(" ", "_")
    return next(kind for part, kind in _TRIED.items() if part in name)


def _trials(row: Fact) -> Iterator[_Trial]:
    """Of a row one, of a sentence two; a fraction is no count."""
    told = [
        (row.fields.get(where), passed) for where, passed in (("at", "passed" in row.fields), ("passed_at", True), ("failed_at", False))
    ]
    for value, passed in told:
        trial = _Trial(str(value).replace(",", ""), passed, row)
        if value is not None and ("." in trial.value) == (_tried(row) == "proven-fraction"):
            yield trial


def _of_speech(evidence: Evidence, error: Fact | None) -> Iterator[Fact]:
    """What several lines say together: one card for several ranks, one item a prompt, the row of a table that passed."""
    wanted = {figure for f in evidence.facts if "wanted-value" in f.kinds for figure in _meant(str(f.fields["at"]))}
    rows = [f for f in evidence.facts if "tried-row" in f.kinds]
    proven = [*_proven(rows, wanted)]
    yield from proven or _cured(rows)
    refused = (f for f in evidence.facts if "allocation-failed" in f.kinds and f.fields.get("gpu") is not None)
    failed = [f for f in refused if f.speaker.key in evidence.ranks]
    ranks = {evidence.ranks[f.speaker.key].number for f in failed}
    crowded = all(f.fields.get("other") for f in failed[:1])
    if len(ranks) > 1 and len({f.fields["gpu"] for f in failed}) == 1 and crowded and not evidence.grid.ray:
        yield stated("ranks-share-device", error, ranks=", ".join(str(rank) for rank in sorted(r for r in ranks if r is not None)))
    limit = next((f for f in evidence.facts if f.id == "prose.mm-limit"), None)
    if limit is not None and limit.fields["images"] == 1:
        yield stated("one-item-per-prompt", limit)


def _of_deployment(book: Rulebook, evidence: Evidence, error: Fact | None) -> Iterator[Fact]:
    deployment = evidence.deployment
    named = _kinds_of_names(book, evidence)
    yield from (stated(kind, error) for kind in named)
    quantization = str(deployment.value("quantization") or "")
    tp = deployment.number("tensor_parallel_size") or (evidence.grid.tp or None)
    if quantization:
        yield stated("quantization-set", error)
    if quantization in ONLINE_QUANTIZATION and "prequantized-checkpoint" not in named:
        yield stated("online-quantization", error)
    if not quantization and "prequantized-checkpoint" not in named and outgrows_cards(evidence):
        yield stated("name-outgrows-cards", error)
    if deployment.gpu_count is not None and tp and deployment.gpu_count.value > tp and (evidence.grid.pp or 1) == 1:
        yield stated("idle-gpus", error, gpus=deployment.gpu_count.value, tp=int(tp))
    elif tp and tp > 1:
        yield stated("several-gpus-in-use", error, tp=int(tp))
    elif not tp and evidence.grid.least > 1:
        yield stated("several-gpus-in-use", error)  # how many is not said
    if (evidence.grid.pp or 1) > 1:
        yield stated("pipeline-parallel", error)
    if deployment.value("enable_chunked_prefill") is False:
        yield stated("chunked-prefill-off", error)
    if "expandable_segments" in str(deployment.environment.get("PYTORCH_CUDA_ALLOC_CONF", "")):
        yield stated("expandable-segments-set", error)
    if deployment.number("kv_cache_memory_bytes") or "kv_cache_memory_bytes" in deployment.tried:
        yield stated("pool-in-bytes", error)
    utilization = deployment.number("gpu_memory_utilization")
    if utilization is not None and utilization >= HIGHEST_FRACTION:
        yield stated("utilization-high", error, value=utilization)
    said = [f.fields["utilization"] for f in evidence.facts if "utilization" in f.fields] or [utilization]
    tried = deployment.tried.get("gpu_memory_utilization", ())
    if any(isinstance(value, int | float) and value >= HIGHEST_FRACTION for value in (*said, *tried)):
        yield stated("utilization-at-limit", error)


def of_defaults(evidence: Evidence, defaults: Mapping[str, Setting], error: Fact | None) -> Iterator[Fact]:
    """What follows from what was in force where nobody said anything."""
    if evidence.deployment.value("enable_chunked_prefill") is None and defaults.get("enable_chunked_prefill") is False:
        yield stated("whole-prompts", error)


def _of_arguments(evidence: Evidence, error: Fact | None) -> Iterator[Fact]:
    """Each argument by its name: set (true), given (with a value that is not zero), tried (at several values)."""
    started = [word for start in evidence.deployment.commands for word in start.value]
    told = "enforce_eager" not in evidence.deployment.given or any("enforce" in word and "eager" in word for word in started)
    if evidence.deployment.value("enforce_eager") is True and told:
        yield stated("runs-eager", error)
    for name, known in evidence.deployment.arguments.items():
        if known.value:
            yield stated(("set-" if known.value is True else "given-") + name.replace("_", "-"), error)
    for name, values in evidence.deployment.tried.items():
        yield stated("tried-" + name.replace("_", "-"), error, values=values)


def _kinds_of_names(book: Rulebook, evidence: Evidence) -> list[str]:
    model, gpu = evidence.deployment.model, evidence.deployment.gpu
    asked = [fact.text for fact in evidence.facts if "asks" in fact.kinds]
    said = {"model": [model.value] if model else [], "gpu": [gpu.value] if gpu else [], "question": asked}
    return [n.kind for n in book.namings if any(_names(n.pattern, text) for text in said[n.of])]
