"""Values of the limits on tokens of a step, from what they are and from what failed."""

import math

from bot.diagnosis.figures import NONE_HELPS, USUAL_PEAK, Value, by_default, figure
from bot.diagnosis.fractions import utilization
from bot.diagnosis.scene import Scene
from bot.domain.diagnosis import ReportedBudget

USUAL_TOKENS = 2048
"""The tokens of a step up to which the activations of one take no more than twice USUAL_PEAK."""
LOG_PROBABILITY_BUFFERS = 2
"""Tokens × vocabulary in float32 that stand at once: the scores as they were, converted, and their logarithms."""
PREFILL_ABOVE_INPUT = 50
"""By so much TGI's prefill batch is above its longest input where nothing sets it."""
STEP = 256


def fewer_batched_tokens(scene: Scene, budget: ReportedBudget | None) -> Value:
    """Half of what was set; where the default was in force 2048, or half of a default that is no larger; fewer where the figures say that
    half of what failed does not fit either. Not below the context where a prompt is read whole, nor below the requests at once: that start
    is refused. None where nothing lower is left.
    """
    return _fewer(scene, _activations_that_fit(scene, budget))


def fewer_scored_tokens(scene: Scene, budget: ReportedBudget | None) -> Value:
    """So few that the log-probabilities of a step fit into what was free, or half."""
    error = scene.error.figures if scene.error is not None else {}
    now, tried, free = _tokens(scene), error.get("tried_bytes"), error.get("free_bytes")
    return _fewer(scene, now * free / (tried * LOG_PROBABILITY_BUFFERS) if now and tried and free is not None else None)


def fewer_profiled_tokens(scene: Scene, budget: ReportedBudget | None) -> Value:
    """The same for a pool that is too small; none helps where even all that fewer tokens give back is less than what it lacks."""
    fewer, now = fewer_batched_tokens(scene, budget), _tokens(scene)
    kv, needed = figure(budget, "kv_cache_bytes"), figure(budget, "needed_bytes")
    if kv is None or not fewer[0]:
        return fewer
    lacked = (needed or 0) - kv
    freed = _most_profiled(scene, budget, now) * (1 - int(fewer[0]) / now) if now else 2 * USUAL_PEAK
    return NONE_HELPS if lacked > freed else fewer


def _fewer(scene: Scene, fitting: float | None) -> Value:
    """The next lower value that a start takes, at most the power of two below `fitting`."""
    deployment = scene.evidence.deployment
    now, length = deployment.number("max_num_batched_tokens"), deployment.number("max_model_len")
    default = by_default(scene, "max_num_batched_tokens")
    lower = max(512, int(now) // 2) if now else int(default) // 2 if default and default <= 2048 else 2048
    if fitting is not None:
        lower = min(lower, 1 << max(0, int(math.log2(max(1, fitting)))))
    lower = max(lower, int(deployment.number("max_num_seqs") or (0 if fitting is None else by_default(scene, "max_num_seqs") or 256)))
    chunked = deployment.value("enable_chunked_prefill")
    if (scene.defaults.get("enable_chunked_prefill", True) if chunked is None else chunked) is not False:
        return str(lower), None
    least = max(lower, int(length)) if length else None
    return (str(least), None) if least and now and least < now else (None, None)


def _tokens(scene: Scene) -> float | None:
    """Those of a step: as set, or by default."""
    return scene.evidence.deployment.number("max_num_batched_tokens") or by_default(scene, "max_num_batched_tokens")


def _activations_that_fit(scene: Scene, budget: ReportedBudget | None) -> float | None:
    """So many tokens that what activations held and asked for, which grows with them, fits beside the rest; None without the figures."""
    error, weights = scene.error.figures if scene.error is not None else {}, figure(budget, "weights_bytes")
    now, tried, free, allocated = _tokens(scene), error.get("tried_bytes"), error.get("free_bytes"), error.get("allocated_bytes")
    if not (now and tried and free is not None and allocated and weights):
        return None
    standing = weights + max(0, figure(budget, "kv_cache_bytes") or 0) + (error.get("private_pool_bytes") or 0)
    held = max(0, allocated - standing)
    return now * (free + held) / (tried + held)


def _most_profiled(scene: Scene, budget: ReportedBudget | None, now: float) -> float:
    """The activations of a profiled batch: as measured, else what of the budget is neither weights nor pool, else twice a usual peak."""
    peak, total, share = figure(budget, "activation_peak_bytes"), figure(budget, "total_bytes"), utilization(scene, budget)
    weights, kv = figure(budget, "weights_bytes"), figure(budget, "kv_cache_bytes")
    if peak is not None:
        return peak
    if total and share and weights and kv is not None:
        return max(0, total * share - weights - kv)
    return 2 * USUAL_PEAK * max(1, now / USUAL_TOKENS)


def fewer_prefill_tokens(scene: Scene, budget: ReportedBudget | None) -> Value:
    """Half of what TGI's warm-up tried, or as many as fit; 2048 where that is not known. None where it follows from the longest input."""
    fewer, least = _fewer_prefilled(scene), scene.evidence.deployment.number("max_input_length")
    given = scene.evidence.deployment.number("max_batch_prefill_tokens")
    return NONE_HELPS if least is not None and fewer < least and not given else (str(fewer), None)


def fewer_input_tokens(scene: Scene, budget: ReportedBudget | None) -> Value:
    """So much shorter an input that the prefill batch which follows from it fits; none where the batch was set by itself."""
    now, named = scene.evidence.deployment.number("max_input_length"), _prefilled(scene)
    if now is None or scene.evidence.deployment.number("max_batch_prefill_tokens") or named != now + PREFILL_ABOVE_INPUT:
        return NONE_HELPS
    fewer = (_fewer_prefilled(scene) - PREFILL_ABOVE_INPUT) // STEP * STEP
    return (str(fewer), None) if 0 < fewer < now else NONE_HELPS


def fewer_total_tokens(scene: Scene, budget: ReportedBudget | None) -> Value:
    """TGI's longest request, input and answer: 2048, which has to be above the longest input."""
    least = scene.evidence.deployment.number("max_input_length")
    return NONE_HELPS if least is not None and least >= USUAL_TOKENS else (str(USUAL_TOKENS), None)


def fewer_cached_tokens(scene: Scene, budget: ReportedBudget | None) -> Value:
    """Nine tenths of the tokens that TGI's cache holds, as set or as it counted them; how many is not said where neither is known. None
    helps below the longest request or one prefill: that start is refused.
    """
    given = scene.evidence.deployment
    now = given.number("max_batch_total_tokens") or figure(budget, "kv_tokens")
    if not now:
        return None, None
    fewer = int(now) * 9 // 10 // STEP * STEP
    least = max(given.number("max_total_tokens") or STEP, given.number("max_batch_prefill_tokens") or STEP)
    return NONE_HELPS if fewer < least else (str(fewer), None)


def _fewer_prefilled(scene: Scene) -> int:
    now = _prefilled(scene)
    half, fitting = (max(512, int(now) // 2) if now else USUAL_TOKENS), _prefill_that_fits(scene)
    return half if fitting is None else min(half, max(STEP, fitting // STEP * STEP))


def _prefilled(scene: Scene) -> float | None:
    """The tokens of TGI's warm-up: as set, or as its message says."""
    named = next((f.fields["tokens"] for f in scene.facts if f.id == "tgi.warm-up"), None)
    return scene.evidence.deployment.number("max_batch_prefill_tokens") or named


def _prefill_that_fits(scene: Scene) -> int | None:
    """So many of them as the free share of what was asked for; None where either is not said."""
    error, now = scene.error.figures if scene.error is not None else {}, _prefilled(scene)
    tried, free = error.get("tried_bytes"), error.get("free_bytes")
    return int(now * free / tried) if now and tried and free is not None else None
