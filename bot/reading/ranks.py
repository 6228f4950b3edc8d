"""Which speaker is which rank: from its own tag, from its pid, from lines that state a rank."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from bot.domain.deployment import Deployment
from bot.domain.evidence import Fact, LogLine, Speaker
from bot.domain.rank import Grid, Rank

_RAY = ("ray::", "ray.exceptions", "RayTaskError", "RayActorError", "/ray/_private/", "executor/ray_", "ray start ")
MOST_CARDS = 8
"""Of a machine, save few."""


def grid_of(lines: Sequence[LogLine], facts: Sequence[Fact], deployment: Deployment) -> Grid:
    """The grid, from flags first, then from the highest places seen in tags and rank lines."""
    speakers = {line.speaker.key: line.speaker for line in lines}.values()
    seen = {part: max((s.parts[part] for s in speakers if part in s.parts), default=None) for part in ("dp", "pp", "tp", "rank")}
    worlds = [int(f.fields["world_size"]) for f in facts if "world_size" in f.fields]
    for fact in facts:
        for part in ("dp", "pp", "tp"):
            if part in fact.fields and "world_size" in fact.fields:
                seen[part] = max(seen[part] or 0, int(fact.fields[part]))
    dp = _size(deployment, "data_parallel_size", seen["dp"])
    pp = _size(deployment, "pipeline_parallel_size", seen["pp"])
    tp = _size(deployment, "tensor_parallel_size", seen["tp"])
    if tp is None and seen["pp"] and deployment.gpu_count is not None and not dp:
        share, rest = divmod(deployment.gpu_count.value, seen["pp"] + 1)
        tp = share if rest == 0 and seen["tp"] is not None and share > seen["tp"] else tp
    count = deployment.gpu_count
    counted = count is not None and count.value == (dp or 1) * (pp or 1) * (tp or 0)
    world = max(worlds, default=None) or ((dp or 1) * (pp or 1) * (tp or 1) if tp or pp else None)
    if world is None and seen["rank"]:
        world = seen["rank"] + 1
    world = world or _plain_workers(speakers, facts)
    devices = _devices(deployment)
    if world is None and devices is not None and len(devices) == 1 and not dp:
        world = 1  # one device is visible, so there is one worker
    backend = str(deployment.value("distributed_executor_backend") or "")
    tags = {s.parts["tp"] for s in speakers if "tp" in s.parts}
    return Grid(
        dp=dp, pp=pp, tp=tp, world=world, at_least="tensor_parallel_size" not in deployment.arguments and len(tags) != tp,
        counted=counted, least=_least(speakers, seen["rank"]),
        several=any(f.id == "trainer.marker" or "several-engines" in f.kinds for f in facts),
        nodes=(tp or 1) * (pp or 1) > MOST_CARDS or any("several-nodes" in f.kinds for f in facts),
        ray="ray" in backend or any("ray" in s.label.lower() or s.ip for s in speakers) or _ray_traces(lines),
        devices_set=devices == [] or (devices is not None and len(devices) > 1 and devices != [str(i) for i in range(len(devices))]),
    )  # fmt: skip


def _least(speakers: Iterable[Speaker], highest: int | None) -> int:
    """As a power of two. vLLM names a worker's place only where there are several."""
    several = any("tp" in s.parts and s.label.startswith("Worker_") for s in speakers)
    return _power(max(2 if several else 1, (highest or 0) + 1))


def _ray_traces(lines: Sequence[LogLine]) -> bool:
    text = "\n".join([line.text for line in lines])
    return any(mark in text for mark in _RAY)


def _plain_workers(speakers: Iterable[Speaker], facts: Sequence[Fact]) -> int | None:
    """At least how many workers there are where several sign without a place in the grid; None where no more than one does."""
    pids = {(s.pid, s.group) for s in speakers if s.label == "Worker" and s.pid is not None}
    highest = max((f.fields["gpu"] for f in facts if isinstance(f.fields.get("gpu"), int)), default=-1)
    return max(len(pids), highest + 1) if len(pids) > 1 and len({group for _, group in pids}) == 1 else None


def _devices(deployment: Deployment) -> list[str] | None:
    """The devices that a variable makes visible; None where nothing sets it, empty where it was set to several values."""
    if "CUDA_VISIBLE_DEVICES" in deployment.tried:
        return []
    visible = deployment.environment.get("CUDA_VISIBLE_DEVICES")
    return None if visible is None else [part.strip() for part in str(visible.value).strip("'\"").split(",") if part.strip()]


def _size(deployment: Deployment, name: str, highest: int | None) -> int | None:
    given = deployment.number(name)
    if given is not None and (highest is None or given > highest):
        return int(given)
    return None if highest is None or highest == 0 else highest + 1 if name != "tensor_parallel_size" else _power(highest + 1)


def _power(least: int) -> int:
    size = 1
    while size < least:
        size *= 2
    return size


def attention_is_split(engine: str, lines: Sequence[LogLine], facts: Sequence[Fact], deployment: Deployment) -> bool:
    """Does data-parallel attention live inside the tensor-parallel ranks: by its flag, else by what is said, else because replicas with
    so many ranks each would be more than the cards that are named?
    """
    given = deployment.value("attention_dp")
    if given is not None or engine != "sglang":
        return given is True
    places = [line.speaker.parts for line in lines if {"dp", "tp"} <= line.speaker.parts.keys()]
    apart = max((parts["dp"] for parts in places), default=0) + 1, max((parts["tp"] for parts in places), default=0) + 1
    cards = deployment.gpu_count
    return any("says-attention-dp" in fact.kinds for fact in facts) or (cards is not None and apart[0] * apart[1] > cards.value)


def ranks_of(lines: Sequence[LogLine], facts: Sequence[Fact], grid: Grid, *, shared_dp: bool = False) -> Mapping[str, Rank]:
    """Speaker key -> Rank, for every speaker whose rank the text decides.

    `shared_dp`: data-parallel attention lives inside the tensor-parallel ranks.
    """
    speakers: dict[str, Speaker] = {}
    for line in lines:
        speakers.setdefault(line.speaker.key, line.speaker)
    ranks = {key: rank for key, speaker in speakers.items() if (rank := _by_tag(speaker, grid, shared_dp)) is not None}
    by_pid = {(s.pid, s.ip, s.group): ranks[k] for k, s in speakers.items() if k in ranks and s.pid is not None}
    for fact in _rank_lines(facts):
        rank = _by_line(fact)
        ranks.setdefault(fact.speaker.key, rank)
        if fact.speaker.pid is not None:
            by_pid.setdefault((fact.speaker.pid, fact.speaker.ip, fact.speaker.group), rank)
    for key, speaker in speakers.items():
        if key not in ranks and speaker.pid is not None and (known := by_pid.get((speaker.pid, speaker.ip, speaker.group))):
            ranks[key] = replace(known, basis="pid", label=speaker.label or known.label)
    return ranks


def _rank_lines(facts: Sequence[Fact]) -> Iterator[Fact]:
    """Lines by which a process states its rank; none of a process that states several, for it passes on what others print."""
    stated: dict[str, dict[int, Fact]] = {}
    for fact in facts:
        speaker = fact.speaker
        if "rank-line" in fact.kinds and "rank" in fact.fields and speaker.role in ("worker", "unknown") and speaker.pid is not None:
            stated.setdefault(fact.speaker.key, {}).setdefault(fact.fields["rank"], fact)
    for by_rank in stated.values():
        if len(by_rank) == 1:
            yield from by_rank.values()


def _by_tag(speaker: Speaker, grid: Grid, shared_dp: bool) -> Rank | None:
    parts = speaker.parts
    if speaker.role != "worker" or not parts.keys() & {"rank", "dp", "pp", "tp", "ep"}:
        return None
    if "rank" in parts:
        inside_engine = speaker.label.startswith("VllmWorker") and (grid.dp or 1) > 1  # counts within one engine of several
        number = None if inside_engine else parts["rank"]
        return Rank(number=number, label=speaker.label, tp=None, pid=speaker.pid, node=speaker.ip, basis="prefix")
    dp, pp, tp = parts.get("dp", 0), parts.get("pp", 0), parts.get("tp", 0)
    tp_size = grid.tp if grid.tp is not None else (1 if "tp" not in parts else None)
    pp_size = grid.pp if grid.pp is not None else (1 if "pp" not in parts else None)
    if grid.at_least and not grid.counted and (dp or pp) and "tp" in parts:
        tp_size = None  # of the ranks before it only so many are known at the least
    number = tp if shared_dp and not pp and "tp" in parts else _number(dp, pp, tp, pp_size, tp_size)
    if number is None and "dp" in parts and "ep" in parts and "pp" not in parts:
        number = parts["ep"]  # experts are spread over the ranks of all engines, in their order
    if number is None and not parts.keys() & {"dp", "pp", "tp"}:
        number = parts.get("ep")
    return Rank(
        number=number, label=speaker.label, dp=parts.get("dp"), pp=pp, tp=tp, ep=parts.get("ep"), pid=speaker.pid, node=speaker.ip,
        basis="tag",
    )  # fmt: skip


def _number(dp: int, pp: int, tp: int, pp_size: int | None, tp_size: int | None) -> int | None:
    """dp × (PP × TP) + pp × TP + tp, where the sizes that are needed are known."""
    if ((pp or dp) and tp_size is None) or (dp and pp_size is None):
        return None
    return dp * ((pp_size or 1) * (tp_size or 1)) + pp * (tp_size or 1) + tp


def _by_line(fact: Fact) -> Rank:
    at = fact.fields
    return Rank(
        number=int(at["rank"]), label=fact.speaker.label or f"rank {at['rank']}", dp=at.get("dp"), pp=at.get("pp"), tp=at.get("tp"),
        ep=at.get("ep"), pid=fact.speaker.pid, node=fact.speaker.ip, basis="rank_line",
    )  # fmt: skip
