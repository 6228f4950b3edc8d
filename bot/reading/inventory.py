"""The machine: cards and how many, host memory and limits, and how the engine was launched."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from bot.domain.evidence import Fact, LogLine
from bot.domain.known import Known
from bot.domain.size import GIB, parse_size
from bot.rulebook.gpus import Gpus, Mention, load_gpus

_SMI_ROW = re.compile(r"\|\s+(?P<index>\d+)\s+(?P<name>(?:NVIDIA|Tesla|GeForce|Quadro|AMD)[\w /.-]*?)\s+(?:On|Off|\.\.\.)\s*\|")
_LISTED = re.compile(r"^\s*GPU (?P<index>\d+): (?P<name>[\w /.-]+?)(?: \(UUID.*)?\s*$")
_RAM = re.compile(r"(?i)(?<![\d.])(?P<size>\d+ ?[GT](?:i?B)?) (?:of )?(?:system |host |CPU )?(?:RAM|memory(?= memory|,|$))|(?:RAM|host memory):? (?P<size2>\d+ ?[GT]i?B)")
_LIMIT = re.compile(r"^\s*memory:\s*\"?(?P<size>\d+(?:\.\d+)?[KMGT]i?)\"?\s*$")
_SHM = re.compile(r"(?:^shm\s+(?P<size>\d+[MGK])\s|--shm-size[= ](?P<flag>\d+(?:\.\d+)?[mMgG][bB]?))")
_LAUNCHERS = (
    ("kubernetes", ("kubectl", "apiVersion:", "kind: Deployment", "kind: Pod", "pod/", "values.yaml", "OOMKilled", "helm ")),
    ("compose", ("docker compose", "docker-compose", "services:")),
    ("docker", ("docker run", "--gpus all", "vllm/vllm-openai")),
    ("ray", ("ray start", "RayWorker", "ray::", "raylet")),
    ("slurm", ("srun ", "sbatch", "slurmstepd")),
)



def read_inventory(
    lines: Sequence[LogLine], facts: Sequence[Fact]
) -> tuple[Known[str] | None, Known[int] | None, Mapping[str, Known[int]], Known[str] | None]:
    """(GPU id, how many, host memory figures in bytes, launcher); None for what nothing says."""
    gpus = load_gpus()
    total = next((int(f.fields["total"]) for f in facts if f.fields.get("total")), None) or next(
        (int(f.fields["total_bytes"]) for f in facts if f.fields.get("total_bytes")), None
    )
    named: list[tuple[LogLine, Mention]] = [(line, m) for line in lines[:6000] for m in gpus.mentions(line.text) if len(line.text) < 2000]
    listed = {m["index"] for line in lines[:6000] if (m := _LISTED.match(line.text) or _SMI_ROW.search(line.text))}
    gpu = _gpu(gpus, named, total, facts)
    counts = [(m.count, line) for line, m in named if m.count]
    count = Known(counts[0][0], "log", counts[0][1].source, counts[0][1].number) if counts else None
    if count is None and listed:
        count = Known(len(listed), "log")
    return gpu, count, _host(lines, facts), _launcher(lines)


def _gpu(gpus: Gpus, named: Sequence[tuple[LogLine, Mention]], total: int | None, facts: Sequence[Fact]) -> Known[str] | None:
    ranked = Counter(m.specs[0].id for _, m in named)
    for line, mention in sorted(named, key=lambda pair: -ranked[pair[1].specs[0].id]):
        if len(mention.specs) == 1:
            return Known(mention.specs[0].id, "log", line.source, line.number)
        decided = gpus.decide(mention.text, total)
        if decided is not None:
            return Known(decided.id, "log", line.source, line.number)
    if total is None:
        return None
    whole = [spec for spec in gpus.by_total(total) if spec.part_of is None]
    return Known(whole[0].id, "assumed") if len(whole) == 1 else None


def _host(lines: Sequence[LogLine], facts: Sequence[Fact]) -> Mapping[str, Known[int]]:
    host: dict[str, Known[int]] = {}
    for fact in facts:
        if fact.fields.get("rss"):
            host.setdefault("rss_bytes", Known(int(fact.fields["rss"]), "log", fact.source, fact.line))
        if fact.id == "host.free":
            digits = fact.fields["memory"]
            host.setdefault("memory_bytes", Known(int(float(digits) * GIB) if digits.isdigit() else parse_size(digits), "log", fact.source, fact.line))
    for line in lines[:6000]:
        for name, pattern in (("memory_bytes", _RAM), ("limit_bytes", _LIMIT), ("shm_bytes", _SHM)):
            match = pattern.search(line.text)
            if match is not None and name not in host:
                host[name] = Known(parse_size(next(g for g in match.groups() if g)), "log", line.source, line.number)
    return host


def _launcher(lines: Sequence[LogLine]) -> Known[str] | None:
    for line in lines[:6000]:
        for name, needles in _LAUNCHERS:
            if any(needle in line.text for needle in needles):
                return Known(name, "log", line.source, line.number)
    return None
