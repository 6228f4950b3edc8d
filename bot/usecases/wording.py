"""A change in words, the same at every door: an advice, a few words for a table, the deed that was done, what worked; ranks, counts."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from bot.domain.engines import ENGINES
from bot.domain.phases import phase_words
from bot.domain.rank import named

SAID = {
    "stop-other-process": (
        "stop the other process",
        "Stop the other process on this card (nvidia-smi shows it; in a container look on the host)",
    ),
    "start-one-after-another": (
        "start one after another",
        "Start the engines on this card one after another: the next only when the one before it serves",
    ),
    "upgrade-engine": ("upgrade the engine", "Upgrade the engine to a newer release"),
    "use-prequantized-checkpoint": (
        "stored quantized checkpoint",
        "Use a checkpoint that is stored quantized (FP8, AWQ, GPTQ or NVFP4) instead of one that is quantized while it loads or not at all",
    ),
    "raise-host-memory": ("more host memory", "Give the machine, or the container's limit, more memory of its own"),
    "raise-shared-memory": ("more shared memory", "Give the container more shared memory (--shm-size, or --ipc=host)"),
    "add-gpus": ("add a GPU", "Add a GPU and spread the model over it"),
    "bigger-gpu": ("bigger GPU", "Take a GPU with more memory"),
    "free-trainer-cache": (
        "free the trainer's cache",
        "Have the trainer, or whatever shares the card, free its cached blocks (torch.cuda.empty_cache) before the engine wakes",
    ),
    "fix-environment": (
        "mend the environment",
        "Mend what the message names, outside the engine: driver, libraries, card, disk, network or access",
    ),
    "use-other-kernel": ("another kernel", "Use another kernel or backend for this step"),
    "staged-wake-up": ("wake in two steps", "Wake in two steps: the weights first, kv_cache after"),
    "drain-before-sleep": (
        "drain before sleep",
        "Let running requests end, or pause the scheduler, before the engine sleeps",
    ),
    "change-other-engine-budget": (
        "the other engine's budget",
        "Give the other engine on this card a smaller budget",
    ),
}
"""The contract's ids of changes without a flag: in a few words for a table, and as the advice itself."""

_NAMES = {
    "tp": "tensor_parallel_size", "tp_size": "tensor_parallel_size", "num_shard": "tensor_parallel_size", "c": "max_model_len",
    "session_len": "max_model_len",
}  # fmt: skip
"""What other engines call an argument that `deployment` holds under vLLM's name."""


def in_words(change: Mapping[str, Any] | None, deployment: Mapping[str, Any] | None = None) -> str:
    """The advice: `lower --max-num-seqs from 512 to 256`, or a sentence for a change without a flag. Empty for none.

    The value in force is named where `deployment` has it and the change leads away from it.
    """
    if not change:
        return ""
    flag = change.get("flag")
    if not flag:
        return _said(change, 1)
    return _flagged(change, _current(change, deployment or {}))


def then_each(changes: Sequence[Mapping[str, Any]], deployment: Mapping[str, Any] | None = None) -> str:
    """The next ones in line, inside a sentence: `set --kv-cache-dtype to fp8; then add a GPU and …`."""
    said = (in_words(change, deployment) for change in changes)
    return "; then ".join(text[:1].lower() + text[1:] for text in said if text)


def in_few_words(change: Mapping[str, Any] | None) -> str:
    """The same for a cell of a table: `lower --max-num-seqs to 256`, `add a GPU`. Takes a row of the history too. Empty for none."""
    if not change:
        return ""
    return _flagged(change, None) if change.get("flag") else _said(change, 0)


def deed(change: Mapping[str, Any]) -> str:
    """The change as part of a sentence: `lowering --max-num-seqs to 256`, `the change “add a GPU”`."""
    if not change.get("flag"):
        said = _said(change, 0)
        return f"the change “{said}”" if said else "the change"
    verb = {"lower": "lowering", "raise": "raising", "set": "setting", "remove": "removing"}.get(str(change.get("direction")), "changing")
    return f"{verb} {change['flag']}{_to(change)}"


def named_change(name: str | None, flag: str | None) -> str:
    """A change whatever its value, at the beginning of a sentence: its flag, or `More host memory`."""
    few = flag or in_few_words({"id": name})
    return few if flag else few[:1].upper() + few[1:]


def left_alone(avoid: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, str]]:
    """(direction, flag, because) of each change to leave alone; both directions of one flag in one, where the reason is the same."""
    told: dict[tuple[str, str], list[str]] = {}
    for one in avoid:
        told.setdefault((one["flag"], one["because"]), []).append(one["direction"])
    return [(" or ".join(directions), flag, because) for (flag, because), directions in told.items()]


def span(seconds: object) -> str:
    """A duration in the one unit that fits it, or nothing."""
    if not isinstance(seconds, int | float):
        return ""
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} second{'' if round(seconds) == 1 else 's'}"


def what_worked(similar: Sequence[Mapping[str, Any]]) -> str:
    """What worked most often in similar incidents, in a sentence; nothing where fewer than two have ended or none was fixed."""
    ended = [one for one in similar if one.get("outcome")]
    names = ("remedy", "direction", "flag")
    fixes = Counter(tuple(one.get(name) for name in names) for one in ended if one["outcome"] == "fixed" and in_few_words(one))
    if len(ended) < 2 or not fixes:
        return ""
    fix, count = fixes.most_common(1)[0]
    return f"{count} of {len(ended)} {'was' if count == 1 else 'were'} fixed by {deed(dict(zip(names, fix, strict=True)))}."


def engine_of(told: Mapping[str, Any]) -> str:
    """The engine of a diagnosis, or of a row of the history, with its version or the range that is known: `vLLM 0.11.0`."""
    known = ENGINES.get(told["engine"] or "")
    version = told.get("engine_version") or (told.get("engine_version_range") or "").replace(",", ", ")
    return " ".join(filter(None, (known.name if known else "not recognised", version)))


def what_runs(document: Mapping[str, Any]) -> str:
    """Under the label “Runs”: `Qwen/Qwen3-14B on 2 × A100-80GB, TP 2`, as far as it is known."""
    told = document["deployment"]
    card, count = told.get("gpu") or "", told.get("gpu_count")
    where = " on ".join(filter(None, (told.get("model"), f"{count} × {card}" if card and count else card)))
    tp, pp = told.get("tensor_parallel_size"), told.get("pipeline_parallel_size") or 1
    return ", ".join(filter(None, (where, f"TP {tp}" if where and tp else "", f"PP {pp}" if where and pp > 1 else "")))


def phase_of(document: Mapping[str, Any]) -> str:
    """The phase of a document in a few words, as its engine goes through it."""
    return phase_words(str(document["phase"]), str(document.get("engine"))).few


KNOWN_BY = {
    "prefix": "the prefix of its log lines",
    "tag": "the tag of its log lines",
    "pid": "its process id",
    "rank_line": "a line that maps ranks",
    "message": "the message itself",
    "gpu_index": "the GPU index of the error",
    "only_worker": "being the only worker",
    "driver": "being the driver process",
    "answer": "your answer",
}
"""How a rank was told, by its `basis`."""


def named_rank(rank: Mapping[str, Any] | None) -> str:
    """The rank of a document: `rank 7 (Worker_TP7)`. Empty where none is known."""
    return "" if rank is None else named(rank.get("number"), str(rank.get("label") or ""))


def which_rank(document: Mapping[str, Any]) -> str:
    """Under the label “Rank”: its number and how that is known, or why none is named. A check of the engine core belongs to no rank."""
    rank = document.get("rank")
    if named := named_rank(rank).removeprefix("rank "):
        return f"{named}, known by {KNOWN_BY.get(rank['basis'], rank['basis'])}" if rank and rank.get("basis") else named
    if rank is not None and rank.get("gpu_index") is not None:
        return f"not decided; the error names GPU {rank['gpu_index']}"
    return "none: a check of the engine core" if document["phase"] == "kv_cache_sizing" else "not decided by the evidence"


def some_named(ids: Sequence[str]) -> str:
    """The first three by name, the others by number: `D-0004, D-0009`, `D-0004, D-0009, D-0012 and 5 more`."""
    more = len(ids) - 3
    return ", ".join(ids[:3]) + (f" and {more:,} more" if more > 0 else "")


def incidents(count: int) -> str:
    """`1 incident`, `1,200 incidents`."""
    return f"{count:,} incident{'' if count == 1 else 's'}"


def _said(change: Mapping[str, Any], length: int) -> str:
    name = str((change["remedy"] if "remedy" in change else change.get("id")) or "")  # a row's id is the incident's
    if name == "raise-host-memory" and change.get("value"):
        return (f"memory limit of {change['value']}", f"Raise the container's memory limit to {change['value']}")[length]
    return SAID[name][length] if name in SAID else name.replace("-", " ")


def _flagged(change: Mapping[str, Any], current: Any) -> str:
    start = "" if current is None else f" from {_figure(current)}"
    end = _to(change)
    if start and not end:  # where to is not known: from where is
        start, end = "", f" {'below' if change['direction'] == 'lower' else 'above'} {_figure(current)}"
    return f"{change.get('direction') or 'set'} {change['flag']}{start}{end}"


def _to(change: Mapping[str, Any]) -> str:
    value = change.get("value")
    shown = value not in (None, "", "true", True) and change.get("direction") != "remove"
    return f" to {value}" if shown else ""


def _current(change: Mapping[str, Any], deployment: Mapping[str, Any]) -> int | float | None:
    """The value in force, a number that the change leads down or up from; else None."""
    name = str(change["flag"]).lstrip("-").replace("-", "_")
    value = deployment.get(_NAMES.get(name, name))
    if change.get("direction") not in ("lower", "raise") or isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        goal = float(change.get("value") or "nan")
    except ValueError:
        return None
    away = goal != goal or (goal < value if change["direction"] == "lower" else goal > value)
    return value if away else None


def _figure(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:g}"
