"""Facts about a start that did not end: derived from its figures and its stamps."""

from collections.abc import Iterator

from bot.diagnosis.clock import seconds_between
from bot.diagnosis.stated import stated
from bot.domain.evidence import Evidence, Fact

NEXT_TO_NOTHING = 1 / 400  # of the budget: less than one request of any model that fills a card
JUST_CAPTURED = 5
"""Seconds from the end of the capture in which kernels are warmed up and nobody can have asked for anything yet."""


def of_start(evidence: Evidence, error: Fact | None) -> Iterator[Fact]:
    """How little was left for a pool, and whether graphs were captured a moment before the failure."""
    budget = max((f.fields["requested_bytes"] for f in evidence.facts if f.fields.get("requested_bytes")), default=0)
    pools = [f for f in evidence.facts if "budget" in f.kinds and f.fields.get("kv_cache_bytes") is not None]
    least = min(pools, key=lambda f: int(f.fields["kv_cache_bytes"]), default=None)
    if least is not None and 0 < least.fields["kv_cache_bytes"] < budget * NEXT_TO_NOTHING:
        yield stated("pool-next-to-nothing", least)
    captured = next((f for f in reversed(evidence.facts) if f.id == "vllm.graphs-captured"), None)
    failed = (error.at if error is not None else None) or next((line.at for line in evidence.errors), None)
    passed = None if captured is None else seconds_between(captured.at, failed)
    if passed is not None and 0 <= passed <= JUST_CAPTURED:
        yield stated("just-captured", captured)
