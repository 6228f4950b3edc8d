"""Computes the value of a change from the evidence: the largest fraction that passes, the longest context that fits."""

import math
import re
from collections.abc import Mapping
from itertools import takewhile

from bot.diagnosis.batches import (
    fewer_batched_tokens,
    fewer_cached_tokens,
    fewer_input_tokens,
    fewer_prefill_tokens,
    fewer_profiled_tokens,
    fewer_scored_tokens,
    fewer_total_tokens,
)
from bot.diagnosis.figures import NONE_HELPS, Compute, Value, by_default, figure, missing
from bot.diagnosis.fractions import lower_fraction, lower_utilization, passing_utilization, raise_fraction, raise_utilization
from bot.diagnosis.host_pools import LMCACHE, MOONCAKE, cut_to_fit, enlarged
from bot.diagnosis.llama_cpp import fewer_layers, half_context, quantized_keys, smaller_batch
from bot.diagnosis.partition import partition
from bot.diagnosis.scene import Scene
from bot.diagnosis.weights import by_name, fits
from bot.domain.diagnosis import ReportedBudget
from bot.domain.size import GIB, MIB

USUAL_PIXELS, LEAST_PIXELS = 1280 * 28 * 28, 64 * 28 * 28
_PIXELS = re.compile(r"max_pixels\W{1,6}(\d{3,9})")
_NO_VIDEO = re.compile(r"video\W{1,6}0\b")
_CAPTURE_SIZES = frozenset({"--cudagraph-capture-sizes", "--cudagraph_capture_sizes", "--cuda-graph-sizes"})


def raised_limit(scene: Scene, budget: ReportedBudget | None) -> Value:
    """Half as much again as the container's limit, or as the killed process held where no line says the limit; in whole steps of 8 GiB
    (of 1 GiB below 16): what it needs is above the limit, and no line says how far.
    """
    limit, killed = scene.evidence.deployment.host.get("limit_bytes"), scene.first("derived.group-killed")
    held = limit.value if limit is not None else killed.fields["bytes"] if killed is not None else None
    if held is None:
        return None, None
    step = 8 if held >= 16 * GIB else 1
    return f"{math.ceil(held * 1.5 / GIB / step) * step} GiB", None


def fitting_cpu_space(scene: Scene, budget: ReportedBudget | None) -> Value:
    """What the node has left, in whole GiB, as the variable takes it."""
    free = scene.error.figures.get("free_bytes") if scene.error is not None else None
    return (str(int(free // GIB)), None) if free and free >= GIB else (None, None)


def less_cpu_space(scene: Scene, budget: ReportedBudget | None) -> Value:
    """Half of what the CPU backend sets aside for its cache, in whole GiB; None where that is not said."""
    known = scene.evidence.deployment.environment.get("VLLM_CPU_KVCACHE_SPACE")
    now = str(known.value) if known is not None else ""
    return (str(int(now) // 2), None) if now.isdecimal() and int(now) > 1 else (None, None)


def needed_cpu_space(scene: Scene, budget: ReportedBudget | None) -> Value:
    """What one request needs, in whole GiB above the two digits that are printed; None where that is not said."""
    needed = figure(budget, "needed_bytes")
    return (str(math.ceil((needed + GIB / 100) / GIB)) if needed else None), None


def fp8_cache(scene: Scene, budget: ReportedBudget | None) -> Value:
    """FP8 halves what a request needs; None where half is still too much."""
    kv, needed = figure(budget, "kv_cache_bytes"), figure(budget, "needed_bytes")
    return (None, None) if kv is not None and needed and needed / 2 > kv else ("fp8", None)


def fitting_length(scene: Scene, budget: ReportedBudget | None) -> Value:
    """The engine's own estimate of the longest context; else what the pool's tokens or blocks hold."""
    estimate = figure(budget, "estimated_max_model_len")
    if estimate:
        return str(int(estimate)), None
    few = next((fact.fields["tokens"] for fact in scene.named("holds-less-than-one") if "tokens" in fact.fields), None)
    if few is not None:
        return str(few), None
    tokens = figure(budget, "kv_tokens")
    if tokens and scene.error is not None and scene.error.kind == "context_exceeds_cache":
        return str(int(tokens)), None
    kv, needed = figure(budget, "kv_cache_bytes"), figure(budget, "needed_bytes")
    length = scene.evidence.deployment.number("max_model_len")
    if kv and needed and length and kv > 0:
        return str(int(length * kv / needed) // 16 * 16), None
    return None, None


def fitting_state_blocks(scene: Scene, budget: ReportedBudget | None) -> Value:
    """As many sequences as there are recurrent-state blocks."""
    blocks = figure(budget, "state_blocks")
    return (str(int(blocks)), None) if blocks else (None, None)


def fewer_sequences(scene: Scene, budget: ReportedBudget | None) -> Value:
    """Half the sequences (256 where nothing says how many), or so few that the sampler's buffer fits into what was free."""
    sampler = scene.first("derived.sampler-size")
    dummy = next((f.fields["dummy_requests"] for f in scene.facts if "dummy_requests" in f.fields), None)
    rows = int(
        scene.evidence.deployment.number("max_num_seqs")
        or dummy
        or (sampler.fields["rows"] if sampler else by_default(scene, "max_num_seqs") or 256)
    )
    if sampler is not None and scene.error is not None and (free := scene.error.figures.get("free_bytes")):
        each = sampler.fields["vocabulary"] * sampler.fields["width"]
        fitting = max(1, 2 ** int(math.log2(max(1, free // each)))) if free >= each else max(1, rows // 4)
        value = min(rows // 2, fitting)
        return str(max(1, value)), (rows - value) * each
    return str(max(1, rows // 2)), None


def _proven(kind: str) -> Compute:
    """The value that passed in the paste itself, by the kind of the fact that says so."""

    def value(scene: Scene, budget: ReportedBudget | None) -> Value:
        found = scene.first(kind)
        return (None if found is None else str(found.fields["value"])), None

    return value


def fewer_running_requests(scene: Scene, budget: ReportedBudget | None) -> Value:
    """Half of SGLang's limit of requests; none where it is not known."""
    now = scene.evidence.deployment.number("max_running_requests") or scene.evidence.deployment.number("max_num_seqs")
    return (str(max(1, int(now) // 2)), None) if now else (None, None)


def ranks_given(scene: Scene) -> float | None:
    """The tensor-parallel size that is set, that tags prove, or by which TensorRT-LLM's processes count themselves."""
    grid = scene.evidence.grid
    counted = grid.world if scene.evidence.engine == "tensorrt-llm" else None
    return scene.evidence.deployment.number("tensor_parallel_size") or grid.tp or counted


def ranks_seen(scene: Scene) -> int:
    """The tensor-parallel size that is set, or the least that tags and the failing device prove, as a power of two."""
    grid = scene.evidence.grid
    given = ranks_given(scene)
    gpu = scene.error_fact.fields.get("gpu") if scene.error_fact is not None else None
    if given or grid.several or (grid.dp or 1) > 1:
        return int(given or 1)
    return max(grid.least, 1 << gpu.bit_length() if isinstance(gpu, int) else 1)


def ranks_unsaid(scene: Scene) -> bool:
    """Do several machines hold the model, and nothing says on how many ranks? Ray names the machine of each process that is not its own."""
    said = scene.evidence.deployment.number("tensor_parallel_size") or scene.evidence.grid.tp or scene.evidence.deployment.gpu_count
    return not said and scene.evidence.grid.ray and any(line.speaker.ip for line in scene.evidence.speakers)


def more_tensor_parallel(scene: Scene, budget: ReportedBudget | None) -> Value:
    """The next size that the cards of one pipeline stage allow: all of them, or twice as many where their number is not known, or as
    many as hold the weights; none where all are used or even they do not hold them. No size where several machines are in use and nothing
    says how many cards of them.
    """
    now = ranks_seen(scene)
    count, card = scene.evidence.deployment.gpu_count, scene.evidence.deployment.gpu
    if count is None and card is not None and "Laptop" in card.value:
        return NONE_HELPS  # it has no other
    stages = int(scene.evidence.deployment.number("pipeline_parallel_size") or scene.evidence.grid.pp or 1)
    if count is not None:
        most = max(2 ** int(math.log2(max(1, count.value // stages))), now)
        share = scene.share(most)
        return NONE_HELPS if share is not None and not fits(share) else (str(most), None)
    if ranks_unsaid(scene):
        return None, None
    least = max(now * 2, _least_ranks(scene))
    larger = next((size for size in (least, 2 * least, 4 * least) if (share := scene.share(size)) is not None and fits(share)), least)
    return str(larger), None


def _least_ranks(scene: Scene) -> int:
    """The smallest power of two whose share of the weights fits into nine tenths of a card, by the billions that the model's name
    says and two bytes for each where the weights are not quantized; 1 where either is not said.
    """
    total = scene.error.figures.get("total_bytes") if scene.error is not None else None
    whole = by_name(scene)
    return 1 if whole is None or not total else 1 << max(0, math.ceil(math.log2(whole / (0.9 * total))))


def pinned_pool(scene: Scene, budget: ReportedBudget | None) -> Value:
    """The pool that was given in bytes or reported, less what the allocation lacked, in whole gibibytes and at least one of them."""
    kv = scene.evidence.deployment.number("kv_cache_memory_bytes") or figure(budget, "kv_cache_bytes")
    less = max(1, math.ceil(missing(scene) / GIB)) * GIB
    return (str(int(kv) - less), less) if kv and kv > less + GIB else (None, None)


def needed_pool(scene: Scene, budget: ReportedBudget | None) -> Value:
    """What one request needs, in whole MiB above the two digits of a GiB that are printed; None where that is not said."""
    needed = figure(budget, "needed_bytes")
    return (str(math.ceil((needed + GIB / 100) / MIB) * MIB) if needed else None), None


def needed_trace_region(scene: Scene, budget: ReportedBudget | None) -> Value:
    """What the trace needs, in whole MiB above it."""
    refused = scene.first("not-oom.tt-trace-region")
    return (None if refused is None else str(math.ceil(refused.fields["needed"] / MIB + 1) * MIB)), None


def fewer_items(scene: Scene, budget: ReportedBudget | None) -> Value:
    """Half of the images that a prompt may hold, one where nothing was said; no videos. None where it is one and no video already."""
    said = next((f for f in scene.facts if f.id == "prose.mm-limit"), None)
    images = 2 if said is None else int(said.fields["images"])
    if said is not None and images <= 1 and _NO_VIDEO.search(said.text):
        return None, None
    return f'{{"image":{max(1, images // 2)},"video":0}}', None


def smaller_items(scene: Scene, budget: ReportedBudget | None) -> Value:
    """A cap of 1,280 patches on an image's pixels, or half of the cap that is set; None where so little is left that it cannot be it."""
    set_to = _PIXELS.search(str(scene.evidence.deployment.value("mm_processor_kwargs")))
    pixels = USUAL_PIXELS if set_to is None else min(USUAL_PIXELS, int(set_to[1]) // 2)
    return (f'{{"max_pixels":{pixels}}}', None) if pixels >= LEAST_PIXELS else (None, None)


def fewer_capture_sizes(scene: Scene, budget: ReportedBudget | None) -> Value:
    """A handful of sizes, none above half of the requests at once or of the largest that was given; None where none is left below it."""
    seqs = int(scene.evidence.deployment.number("max_num_seqs") or 32)
    given = max(_capture_sizes(scene), default=None)
    most = min(max(1, seqs // 2), given // 2 if given else seqs)
    return " ".join(str(size) for size in (1, 2, 4, 8, 16) if size <= most) or None, None


def _capture_sizes(scene: Scene) -> list[int]:
    """The sizes that were given, as a list or one behind the other; none where only the first of them was read."""
    listed = str(scene.evidence.deployment.value("cudagraph_capture_sizes") or "")
    if "," in listed or listed[:1] == "[":
        return [int(size) for size in re.findall(r"\d+", listed)]
    words = next((c.value for c in reversed(scene.evidence.deployment.commands) if _CAPTURE_SIZES & {*c.value}), ())
    behind = list(words)[next((n + 1 for n, word in enumerate(words) if word in _CAPTURE_SIZES), len(words)) :]
    return [int(word) for word in takewhile(str.isdecimal, behind)]


def shifted_partition(scene: Scene, budget: ReportedBudget | None) -> Value:
    """The layers of each pipeline stage, with fewer on the one that failed."""
    return partition(scene), None


def fitting_host_pool(scene: Scene, budget: ReportedBudget | None) -> Value:
    """The largest pool of the machine's memory cut to what fits, in its own unit."""
    return cut_to_fit(scene.evidence, scene.error_fact.fields.get("free") if scene.has("hierarchical-cache") and scene.error_fact else None)


def larger_connector_pool(scene: Scene, budget: ReportedBudget | None) -> Value:
    """A larger pool for the connector whose own is full; none where the machine has no more."""
    return enlarged(scene.evidence, LMCACHE if scene.first("lmcache.pool-full") else MOONCAKE), None


def larger_swap_space(scene: Scene, budget: ReportedBudget | None) -> Value:
    """V0's swap space doubled, and no less than four times the 4 GiB that it takes by itself."""
    now = scene.evidence.deployment.number("swap_space")
    return str(max(16, int(2 * now) if now else 0)), None


COMPUTED: Mapping[str, Compute] = {
    f.__name__.replace("_", "-"): f
    for f in (
        raised_limit,
        passing_utilization,
        fitting_cpu_space,
        less_cpu_space,
        needed_cpu_space,
        lower_utilization,
        raise_utilization,
        fp8_cache,
        fitting_length,
        fitting_state_blocks,
        fewer_sequences,
        fewer_running_requests,
        fewer_batched_tokens,
        fewer_scored_tokens,
        fewer_profiled_tokens,
        more_tensor_parallel,
        half_context,
        fewer_layers,
        quantized_keys,
        smaller_batch,
        fewer_prefill_tokens,
        fewer_input_tokens,
        fewer_total_tokens,
        fewer_cached_tokens,
        pinned_pool,
        needed_pool,
        needed_trace_region,
        fewer_items,
        smaller_items,
        fewer_capture_sizes,
        lower_fraction,
        shifted_partition,
        raise_fraction,
        fitting_host_pool,
        larger_connector_pool,
        larger_swap_space,
    )
} | {kind: _proven(kind) for kind in ("proven-seqs", "proven-tokens", "proven-length", "proven-fraction", "proven-higher-fraction")}
