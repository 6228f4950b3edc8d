"""What follows from the figures of the request that failed: whose memory it was, what it was for, whether fragmentation explains it."""

import re
from collections.abc import Iterator

from bot.diagnosis.stated import stated
from bot.domain.evidence import Evidence, Fact
from bot.domain.size import GIB, MIB, gib
from bot.rulebook.book import Rulebook
from bot.rulebook.patterns import search

ROWS = (1024, 256)
"""The defaults of max-num-seqs, tried where nothing says how many rows there are: with more, every other size is a product of something."""
SMALLEST_SAMPLER = 100 * MIB
BEYOND_CAPTURED = 256 * MIB
"""512 tokens of the widest layer that was seen, 2 bytes each, take a tenth of it."""
SAMPLER_BYTES = (4, 8, 12)
NOT_PYTORCH = 8 * GIB  # more than a process has beside what PyTorch counts
LARGEST_TENSOR = 8 * GIB  # of those that a load was seen to ask for at once
NO_POOL = 0.75  # of the budget: what a pool leaves of it is little
USUAL_UTILIZATION = 0.9
_CONTEXT = 3 * GIB  # more than a process keeps on a card that it only reaches over to
_LISTED = re.compile(r"\bProcess \d+ has (\d+(?:\.\d+)?) ([GM])iB")
_PRINTED = GIB // 10
"""By so much several figures of two digits, and what the driver itself keeps, may be off together."""
_OTHERS, _OR_ITS_OWN = "Other processes hold", "Other processes, or this one beside what PyTorch counts, hold"
MANY_WORKERS = 2
_REPEATED = re.compile(r"\[repeated (\d{1,4})x across cluster\]")
_OLD_ALLOCATOR = "max_split_size_mb"
"""What torch's sentence advises in releases whose allocator has no segments that can grow."""


def of_error(book: Rulebook, evidence: Evidence, error: Fact) -> Iterator[Fact]:
    """Each with the line of the error."""
    at = error.fields
    tried, free, total = at.get("tried"), at.get("free"), at.get("total")
    allocated, private, unallocated = at.get("allocated"), at.get("private"), at.get("unallocated")
    if "memory-error" in error.kinds and "undecided" not in error.kinds:
        yield stated("decided-error", error)
    if private:
        yield stated("private-pools", error, bytes=private)
        if tried and tried >= BEYOND_CAPTURED and private < (allocated or 0) / 4:  # more of it are the pools of sleep mode
            yield stated("beyond-captured", error)
    if tried and (rows := sampler_rows(book, tried, evidence)) is not None:
        yield stated("sampler-size", error, rows=rows[0], vocabulary=rows[1], width=rows[2])
    if tried and total and tried > total:
        yield stated("tried-exceeds-card", error)
    if tried and tried > LARGEST_TENSOR and "torch_oom" in error.kinds:
        yield stated("tried-exceeds-tensors", error)
    if tried and free and free > 50 * tried and free > GIB:
        yield stated("free-far-above-tried", error, says=f"{gib(free)} were free and {gib(tried)} were asked for")
    if tried and unallocated is not None:
        covers = unallocated >= tried and unallocated > 256 * MIB
        yield stated("fragmentation-covers" if covers else "fragmentation-excluded", error)
        if covers and unallocated > GIB and unallocated - (private or 0) >= tried:  # what graphs' pools have spare is for graphs alone
            yield stated("fragmentation-decides", error)
    allocator = str(evidence.deployment.environment.get("PYTORCH_CUDA_ALLOC_CONF", ""))
    claimed = evidence.deployment.value("enable_sleep_mode") is True or evidence.deployment.value("kv_transfer_config")
    if claimed or _OLD_ALLOCATOR in error.text or "cudaMallocAsync" in allocator:
        yield stated("segments-fixed", error)
    yield from _of_others(evidence, error)
    if (evidence.grid.world or 0) > MANY_WORKERS and 2 * _failed_likewise(evidence, error) > (evidence.grid.world or 0):
        yield stated("most-workers-failed", error)
    utilization = evidence.deployment.number("gpu_memory_utilization")
    if total and free and total - free < NO_POOL * total * (utilization or USUAL_UTILIZATION):
        yield stated("no-pool-yet", error)
    if allocated and total and not private:
        if utilization and allocated > total * utilization and utilization > 0.5:
            yield stated("allocated-above-budget", error, budget=round(total * utilization))
        elif allocated > 0.955 * total and evidence.engine != "unknown":  # any program fills a card; an engine's budget ends below that
            yield stated("allocated-nearly-all", error)


def _failed_likewise(evidence: Evidence, error: Fact) -> int:
    """How many workers report this failure, those counted that Ray leaves out of its log."""
    alike = [
        f for f in evidence.facts if f.id == error.id and f.speaker.role == "worker" and f.fields.get("tried") == error.fields.get("tried")
    ]
    told = sum(int(m[1]) for f in alike if (m := _REPEATED.search(evidence.lines.get((f.source, f.line), ""))) is not None)
    return len({f.speaker.key for f in alike}) + told


_ENGINES_OWN = re.compile(r"(?i)(?:vllm|sglang)::")
"""How an engine names its processes to the driver."""


def _listed_beside(evidence: Evidence, error: Fact) -> int:
    """The bytes that nvidia-smi lists for others on the card that failed, where it names the engine's own process there too."""
    if evidence.grid.devices_set:
        return 0  # the driver counts the cards otherwise
    listed = [f for f in evidence.facts if "card-process" in f.kinds and f.fields.get("card", -1) == error.fields.get("gpu")]
    others = [f for f in listed if not _ENGINES_OWN.match(str(f.fields["process"]))]
    return sum(f.fields["held"] for f in others) if len(others) < len(listed) else 0


def _of_others(evidence: Evidence, error: Fact) -> Iterator[Fact]:
    """What of the card is neither free nor this process's: exactly where the message says what this process has, else at the least."""
    at = error.fields
    free, total, process, allocated = at.get("free"), at.get("total"), at.get("process"), at.get("allocated")
    if not total or free is None:
        return
    used, beside = total - free, _listed_beside(evidence, error)
    if beside and not process:
        others, least, much = min(used, beside), GIB, total // 10
    elif not (process or allocated):
        return
    elif process:
        others, least, much = _as_listed(error, used - process) - _of_siblings(evidence, error), GIB, total // 10
    elif at.get("other"):  # in a container the pids do not match: this process is one of those listed, and has what PyTorch allocated
        own = min((size for size in (at["other"], used - at["other"]) if size >= allocated), default=used)
        others, least, much = _as_listed(error, used - own), GIB, total // 10
    else:
        others, least, much = used - allocated - (at.get("unallocated") or 0), NOT_PYTORCH, total // 4
    who = _OR_ITS_OWN if least == NOT_PYTORCH else _OTHERS
    if others > least:
        yield stated("others-hold", error, bytes=others, who=who)
        if others > much and not (evidence.deployment.value("enable_sleep_mode") and not process):
            yield stated("others-hold-much", error, bytes=others, who=who)


def _as_listed(error: Fact, difference: int) -> int:
    """What others have: as the message lists them, one or all, where that is what is missing; else the difference."""
    listed = [_bytes(size) for size in _LISTED.findall(error.text)]
    return next((size for size in (sum(listed), *listed) if size and abs(difference - size) <= _PRINTED), difference)


def _bytes(size: tuple[str, str]) -> int:
    return round(float(size[0]) * (GIB if size[1] == "G" else MIB))


def _of_siblings(evidence: Evidence, error: Fact) -> int:
    """What the engine's own other workers keep on this card, in bytes: a context each, of one size; zero where that is not plain."""
    sizes = _LISTED.findall(error.text)
    if not 2 <= len(sizes) < (evidence.grid.world or 0) or len(set(sizes)) > 1:
        return 0
    each = _bytes(sizes[0])
    return each * len(sizes) if each < _CONTEXT else 0


def sampler_rows(book: Rulebook, tried: int, evidence: Evidence) -> tuple[int, int, int] | None:
    """(rows, vocabulary, bytes an entry) when a request is rows × vocabulary × 4, 8 or 12 as printed to two decimals; else None.

    4: float32 logits, 8: int64 indices, 12: a sort, which needs both.
    """
    rows_said = evidence.deployment.number("max_num_seqs")
    dummy = next((f.fields["dummy_requests"] for f in evidence.facts if "dummy_requests" in f.fields), None)
    rows = (int(dummy),) if dummy else (int(rows_said),) if rows_said else ROWS
    if len(rows) > 1 and (tried < SMALLEST_SAMPLER or (tried % MIB == 0 and (tried // MIB).bit_count() == 1)):
        return None  # a power of two is a buffer's or a weight's size too
    unit = GIB if tried >= GIB else MIB
    shown = round(tried / unit, 2)
    model = evidence.deployment.model.value if evidence.deployment.model else ""
    sizes = [size for v in book.vocabularies if not v.pattern or search(v.pattern, model) for size in v.sizes]
    for count in rows:
        for vocabulary in sizes:
            for width in SAMPLER_BYTES:
                exact = count * vocabulary * width
                rounded = -(-exact // (2 * MIB)) * 2 * MIB  # the allocator hands out whole 2 MiB above 10 MiB
                if exact > 20 * MIB and shown in (round(exact / unit, 2), round(rounded / unit, 2)):
                    return count, vocabulary, width
    return None
