"""How high the engine's fraction of the card should be: vLLM's utilization, and what other engines call so."""

import math
from collections.abc import Iterator

from bot.diagnosis.figures import Value, by_default, figure, implied_total, missing
from bot.diagnosis.scene import Scene
from bot.diagnosis.stated import stated
from bot.domain.diagnosis import ReportedBudget
from bot.domain.engines import ENGINES, HIGHEST_FRACTION
from bot.domain.evidence import Fact
from bot.domain.size import GIB, MIB, gib
from bot.rulebook.gpus import load_gpus

POOL_ITSELF = 0.98
"""The share of the pool from which a request is that for the pool itself: both are printed with two digits."""
USUAL = 0.8
"""A fraction below this was set low on purpose, or for no reason at all: where the card is its own, a step of 0.05 is none."""


def utilization(scene: Scene, budget: ReportedBudget | None) -> float | None:
    """As reported, as set, or the version's default."""
    return _stated(scene, budget) or by_default(scene, "gpu_memory_utilization")


def _stated(scene: Scene, budget: ReportedBudget | None) -> float | None:
    return figure(budget, "utilization") or scene.evidence.deployment.number("gpu_memory_utilization")


def passing_utilization(scene: Scene, budget: ReportedBudget | None) -> Value:
    """free ÷ total, rounded down to two digits: the largest fraction that passes the start-up check. Where no total is reported, that of
    the card that is named.
    """
    free, total = figure(budget, "free_at_start_bytes"), figure(budget, "total_bytes") or _named_total(scene)
    if not free or not total or free > total:
        return None, None
    value = math.floor(free / total * 100) / 100
    return f"{value:.2f}", None


def lower_utilization(scene: Scene, budget: ReportedBudget | None) -> Value:
    """So much lower that the failed allocation fits outside the pool."""
    now = utilization(scene, budget)
    return (None, None) if now is None else _lowered(now, scene, budget, _total(scene, budget))


def _total(scene: Scene, budget: ReportedBudget | None) -> float | None:
    """The card's bytes, as the error prints them, else the engine."""
    return (scene.error.figures.get("total_bytes") if scene.error is not None else None) or figure(budget, "total_bytes")


def _lowered(now: float, scene: Scene, budget: ReportedBudget | None, of: float | None) -> tuple[str, int | None]:
    """A fraction of `of` bytes lower by what the failed allocation lacked, and 256 MiB beside it: by 0.02 at least, in whole steps of
    0.01 down; by 0.05 where nothing says of how many bytes. Something of a small pool stays, but what was lacking is freed if it has that.
    """
    lacked = missing(scene)
    step = max(0.02, _hundredths((lacked + 256 * MIB) / of) if lacked else 0) if of else 0.05
    pool = figure(budget, "kv_cache_bytes")
    if of and pool and pool > 0:
        enough = _hundredths(lacked / of)
        most = max(0.01, math.floor(pool / of * 100 - 0.5) / 100)
        step = min(step, max(most, enough if enough * of < pool else 0))
    value = max(0.05, math.floor((now - step) * 100 + 1e-6) / 100)
    return f"{value:.2f}", math.floor((now - value) * of) if of else None


def _hundredths(share: float) -> float:
    """A share in whole hundredths, rounded up."""
    return math.ceil(share * 100) / 100


def raise_utilization(scene: Scene, budget: ReportedBudget | None) -> Value:
    """So much higher that the missing bytes become part of the budget; at most the highest, or what is free allows. None where even that
    adds less than is missing: to this card, or to the largest there is where none is named.
    """
    now = utilization(scene, budget)
    if now is None:
        return None, None
    total, kv, needed = figure(budget, "total_bytes"), figure(budget, "kv_cache_bytes"), figure(budget, "needed_bytes")
    free = figure(budget, "free_at_start_bytes")
    weights = figure(budget, "weights_bytes")
    if total is None and weights and kv is not None:
        total = implied_total(weights, kv, now)
    if total is None and kv is not None and (kv <= 0 or needed):
        total = _named_total(scene)
    if kv is not None and _is_lower(now, kv, total, _stated(scene, budget)):
        return f"{HIGHEST_FRACTION:.2f}", None
    card = total or _at_most(scene)
    most = min(HIGHEST_FRACTION, math.floor(free / total * 100) / 100) if free and total else HIGHEST_FRACTION
    if total and kv is not None and kv <= 0:
        wanted = math.ceil((now + (-kv + GIB) / total) * 100) / 100
    elif total and kv is None and weights and weights >= now * total:
        wanted = math.ceil((weights + GIB) / total * 100) / 100
        if wanted > most:
            return None, None  # beside the weights not even the largest fraction leaves a pool
    elif total and kv is not None and needed:
        wanted = math.ceil((now + (needed - kv) / total + 0.005) * 100) / 100
    else:
        wanted = now + 0.05 if now >= USUAL or _shared(scene) else USUAL
        if kv is not None:
            wanted = max(wanted, math.ceil((now + ((needed or 0) - kv) / card) * 100) / 100)
    value = round(min(most, wanted), 2)
    if kv is not None and kv + (value - now) * card < (needed or 1):
        return None, None  # not even the largest fraction holds one request
    return (f"{value:.2f}", None) if value > now else (None, None)


def _named_total(scene: Scene) -> int | None:
    """The bytes of the one card that somebody names; None where none is, or its memory is a machine's."""
    card = scene.evidence.deployment.gpu
    spec = load_gpus().by_id.get(card.value) if card is not None and card.origin == "log" else None
    return None if spec is None or spec.unified else spec.total


def _is_lower(default: float, pool: float, total: float | None, said: float | None) -> bool:
    """Is a fraction in force that nobody stated and that is lower than the default? Weights and activations fitted onto the card, so a
    pool cannot lack more than what the budget leaves of it; of a card that is not known, that cannot be told.
    """
    return said is None and pool <= 0 and (total is None or -pool > (1 - default) * total)


def _at_most(scene: Scene) -> int:
    """No more bytes than these does the card have: those of the one that is named, a machine's memory too, else of the largest there is."""
    named = scene.evidence.deployment.gpu
    known = load_gpus().by_id
    spec = known.get(named.value) if named is not None else None
    return (spec and spec.total) or max(spec.total or 0 for spec in known.values())


def of_budget(scene: Scene, budget: ReportedBudget | None) -> Iterator[Fact]:
    """Does no fraction of the card make a pool, or one that holds a request? Said where raising it is what the engine itself asks for."""
    now, kv, needed = utilization(scene, budget), figure(budget, "kv_cache_bytes"), figure(budget, "needed_bytes")
    asked = now is not None and now < HIGHEST_FRACTION and kv is not None and (kv <= 0 or needed)
    if asked and raise_utilization(scene, budget)[0] is None:
        yield stated("no-fraction-reaches", scene.error_fact, short=gib((needed or 0) - (kv or 0)))


def _shared(scene: Scene) -> bool:
    """Does something else use this card, or the machine its memory, so that a low fraction was meant?"""
    return any(map(scene.has, ("says-neighbour", "several-engines", "card-process", "others-hold", "trainer", "unified", "mig")))


def _fraction(scene: Scene) -> float | None:
    """Another engine's fraction: as set, as TensorRT-LLM printed it, or as SGLang's own figures imply it."""
    said = scene.evidence.deployment.number(ENGINES[scene.evidence.engine].fraction)
    said = said or next((float(f.fields["fraction"]) for f in scene.named("tensorrt-llm.profiled") if "fraction" in f.fields), None)
    return said or next((f.fields["value"] for f in scene.facts if f.id == "derived.implied-mem-fraction"), None)


def lower_fraction(scene: Scene, budget: ReportedBudget | None) -> Value:
    """Another engine's fraction lowered: SGLang's, of what was free before the weights, by what the allocation lacked; one of what is
    free later, which nobody printed, by 0.05. Where nothing says which was in force, counted from what the engine takes by itself.
    """
    now = _fraction(scene)
    if (fitting := _of_the_free(now, scene, budget)) is not None:
        return fitting
    of = figure(budget, "free_at_start_bytes") or _total(scene, budget) if scene.evidence.engine == "sglang" else None
    usual = ENGINES[scene.evidence.engine].usual if of and missing(scene) else None
    if now is None and usual is None:
        return ENGINES[scene.evidence.engine].careful, None
    value, frees = _lowered(now or usual or 0, scene, budget, of)
    return value.rstrip("0"), frees if now else None


def _of_the_free(now: float | None, scene: Scene, budget: ReportedBudget | None) -> Value | None:
    """TensorRT-LLM's fraction cut to what the pool that it asked for found free: the pool grows with it, and is the whole request."""
    pool, error = figure(budget, "kv_cache_bytes"), scene.error.figures if scene.error is not None else {}
    tried, free = error.get("tried_bytes"), error.get("free_bytes")
    if scene.evidence.engine != "tensorrt-llm" or not (now and pool and tried and free is not None) or tried < POOL_ITSELF * pool:
        return None
    value = max(0.05, math.floor(now * free / tried * 100) / 100)
    return f"{value:.2f}".rstrip("0"), math.floor((now - value) / now * tried)


def raise_fraction(scene: Scene, budget: ReportedBudget | None) -> Value:
    """Another engine's fraction: a little above the least that makes a pool, else 0.05 higher."""
    least = next((f.fields["least_fraction"] for f in scene.facts if "least_fraction" in f.fields), None)
    if least is not None:
        return f"{min(HIGHEST_FRACTION, math.ceil((least + 0.02) * 100) / 100):.2f}".rstrip("0"), None
    now = _fraction(scene)
    return (f"{min(HIGHEST_FRACTION, now + 0.05):.2f}".rstrip("0"), None) if now else (None, None)
