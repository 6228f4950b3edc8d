"""The machine: cards and how many, host memory and limits, and how the engine was launched."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import accumulate

import ahocorasick_rs

from bot.domain.evidence import Fact, LogLine
from bot.domain.known import Known
from bot.domain.size import GIB, parse_size
from bot.rulebook.gpus import Gpus, Mention, load_gpus

_MAKERS = ("NVIDIA", "Tesla", "GeForce", "Quadro", "AMD")
_CARD = rf"(?P<name>(?:{'|'.join(_MAKERS)})[\w /.-]{{0,60}}?)"
_SMI_ROW = re.compile(rf"\|[ \t]+(?P<index>\d+)[ \t]+{_CARD}[ \t]+(?:On|Off|\.\.\.)[ \t]*\|")
_LISTED = re.compile(r"[ \t]*GPU (?P<index>\d+): (?P<name>[\w /.-]{2,80}?)(?: \(UUID[^\n]*)?[ \t]*$")
_QUERIED = re.compile(rf"[ \t]*(?P<index>\d{{1,2}}), ?{_CARD},")
_DIGIT = re.compile(r"\d")
_RAM = re.compile(
    r"(?i)(?<![\d.])(?P<size>\d{1,6} ?[GT](?:i?B)?) (?:of )?(?:system |host |CPU )?"
    r"(?:RAM(?! (?:is |are |was |were |still )?(?:left|free|remain\w*|available|unused))|memory(?= memory|,|$))"
    r"|\bfree -[gh]\b\W{0,3}(?:\w+ ){0,2}?(?P<total>\d{1,6} ?(?:[GT]i?B?)?)(?= total\b)|(?P<mac>\d{1,4} ?GB)(?= Mac(?:Book)?\b)"
    r"|(?:RAM|host memory|^[ \t*-]*[Mm]emory size):? (?P<size2>\d{1,6} ?[GT]i?B)",
    re.MULTILINE,
)
_LIMIT = re.compile(
    r"^[ \t]*(?:-[ \t]*)?(?:memory|mem_limit):[ \t]*[\"']?"  # a bare figure is bytes
    r"(?P<size>\d{9,15}|\d+(?:\.\d+)?(?:[KMGT]i?[Bb]?|[kmgt]b?))[\"']?[ \t]*(?:#[^\n]*)?$",
    re.MULTILINE,
)
_INSPECTED = re.compile(r"\"Memory\": ?(?P<size>\d{9,15})(?=[,\s}]|$)")
_DOCKER_LIMIT = re.compile(r"(?<![\w-])(?:--memory|-m)[= ](?P<size>\d+(?:\.\d+)?[kKmMgG][bB]?)(?![\w.])")
_SAID_LIMIT = re.compile(
    r"(?i)\b(?:pod|container|memory|cgroup)(?:'s)?(?: memory)? limit(?: is| was| of|:|=)? ?(?P<size>\d+(?:\.\d+)? ?[MGT](?:iB?|B))\b"
)
_SHM = re.compile(
    r"^shm[ \t]+(?P<size>\d+(?:\.\d+)?[MGKT])[ \t]|--shm-size[= ][\"']?(?P<flag>\d+(?:\.\d+)?[mMgG][bB]?)"
    r"|^[ \t]*shm_size:[ \t]*[\"']?(?P<key>\d+(?:\.\d+)?[ ]?[mMgG]i?[bB]?)"
    r"|^[ \t]*sizeLimit:[ \t]*[\"']?(?P<limit>\d+(?:\.\d+)?[MG]i?)[\"']?[ \t]*$",
    re.MULTILINE,
)
_HOST = (
    ("memory_bytes", _RAM, ("RAM", "ram", "ost memory", "ost Memory", "emory size", "emory memory", "emory,", "emory\n", "free -", " Mac")),
    ("limit_bytes", _LIMIT, ("memory:", "mem_limit:")),
    ("limit_bytes", _DOCKER_LIMIT, ("docker ",)),
    ("limit_bytes", _INSPECTED, ('"Memory":',)),
    ("limit_bytes", _SAID_LIMIT, (" limit",)),
    ("shm_bytes", _SHM, ("shm", "sizeLimit:")),
)
_LISTING = ("GPU ",)
_STATES = ('OOMKilled":', "OOMKilled: ")
"""Docker says of every container whether it was."""
_NODES = re.compile(r"(?i)\b([2-9]|[1-9]\d) ?x? ?(?:nodes?|machines?|hosts?|servers?|pods?)\b")
_EACH = re.compile(r" {0,2}\)? ?(?:each\b|per (?:node|host|machine|pod|server)\b|/ ?node\b)")
_MAKES = ("RTX", "GTX", "Quadro", "Radeon", "/mig-")
_NAMED_OTHERWISE = re.compile(r"\b(?:RTX|GTX|Quadro|Radeon)(?: (?:RX|PRO|Pro|T))? ?[A-Z]?\d{3,4}\b|nvidia\.com/mig-\dg\.")
_LAUNCHERS = (
    (
        "kubernetes",
        (
            "kubectl",
            "apiVersion:",
            "kind: Deployment",
            "kind: Pod",
            "pod/",
            "values.yaml",
            "OOMKilled",
            "helm ",
            "nvidia.com/gpu",
            "nvidia.com/mig",
        ),
    ),
    ("compose", ("docker compose", "docker-compose", "\nservices:", "compose.yaml", "compose.yml")),
    ("docker", ("docker run", "--gpus all", "vllm/vllm-openai", "podman run", "docker logs", "docker inspect")),
    ("ray", ("ray start", "RayWorker", "ray::", "raylet")),
    ("slurm", ("srun ", "sbatch", "slurmstepd", "#SBATCH")),
)
MOST_LINES = 6000
NEAR = 6
"""Lines above a figure in which the name of its block stands."""


@lru_cache(maxsize=1)
def _marks() -> tuple[ahocorasick_rs.AhoCorasick, Sequence[str], Mapping[str, str]]:
    """An automaton of all texts that lines are asked for, those texts, and of the marks of launchers whose they are."""
    launchers = {mark: name for name, marks in _LAUNCHERS for mark in marks}
    texts = list(dict.fromkeys([*launchers, *_LISTING, *_MAKERS, *_MAKES, *(text for _, _, needles in _HOST for text in needles)]))
    return ahocorasick_rs.AhoCorasick(texts), texts, launchers


class _Joined:
    """Lines as one text, so that a pattern runs once; `line_at` finds the line of a position."""

    def __init__(self, lines: Sequence[LogLine]) -> None:
        self.lines = [line for line in lines[:MOST_LINES] if len(line.text) < 2000]
        texts = [line.text for line in self.lines]
        self.text = "\n".join([*texts, ""])
        self._starts = list(accumulate(map((1).__add__, map(len, texts)), initial=0))
        automaton, marks, _ = _marks()
        self.marks = [(marks[number], at) for number, at, _ in automaton.find_matches_as_indexes(self.text, overlapping=True)]
        self._holding: dict[str, dict[int, None]] = {}
        for text, at in self.marks:
            self._holding.setdefault(text, {})[bisect_right(self._starts, at) - 1] = None

    def line_at(self, position: int) -> LogLine:
        return self.lines[bisect_right(self._starts, position) - 1]

    def is_request(self, line: LogLine) -> bool:
        """Does this line of a manifest say what a container asks for, not what it may have?"""
        at = next(place for place, one in enumerate(self.lines) if one is line)
        heads = (one.text.strip().lower() for one in reversed(self.lines[max(0, at - NEAR) : at]))
        return next((head.startswith("requests") for head in heads if head.startswith(("requests:", "limits:"))), False)

    def launchers(self) -> set[str]:
        """All launchers of which a mark stands somewhere."""
        return {_marks()[2][mark] for mark, _ in self.marks if mark in _marks()[2]}

    def lines_with(self, texts: Sequence[str]) -> list[LogLine]:
        """The lines that hold one of these texts, in their order."""
        return [self.lines[place] for place in sorted({place for text in texts for place in self._holding.get(text, ())})]


def read_inventory(
    lines: Sequence[LogLine], facts: Sequence[Fact]
) -> tuple[Known[str] | None, Known[int] | None, Mapping[str, Known[int]], Known[str] | None]:
    """(GPU id, how many, host memory figures in bytes, launcher); None for what nothing says."""
    gpus = load_gpus()
    joined = _Joined(lines)
    total = next((int(f.fields["total"]) for f in facts if f.fields.get("total")), None) or next(
        (int(f.fields["total_bytes"]) for f in facts if f.fields.get("total_bytes")), None
    )
    named = [(joined.line_at(m.start), m) for m in gpus.mentions(joined.text)]
    listed = {m["index"] for line in joined.lines_with(_LISTING) if (m := _LISTED.match(line.text)) is not None}
    for line in joined.lines_with(_MAKERS):
        listed |= {m["index"] for m in (*_SMI_ROW.finditer(line.text), _QUERIED.match(line.text)) if m is not None}
    gpu = _gpu(gpus, joined, named, total)
    counts = [(m.count * _nodes(joined, line, m), line) for line, m in named if m.count]
    count = Known(counts[0][0], "log", counts[0][1].source, counts[0][1].number) if counts else None
    if listed and (count is None or len(listed) > count.value):
        count = Known(len(listed), "log")
    return gpu, count, _host(joined, facts), _launcher(joined)


def _gpu(gpus: Gpus, joined: _Joined, named: Sequence[tuple[LogLine, Mention]], total: int | None) -> Known[str] | None:
    ranked = Counter(m.specs[0].id for _, m in named)
    for line, mention in sorted(named, key=lambda pair: -ranked[pair[1].specs[0].id]):
        if len(mention.specs) == 1:
            return Known(mention.specs[0].id, "log", line.source, line.number)
        decided = gpus.decide(mention.text, total)
        if decided is not None:
            return Known(decided.id, "log", line.source, line.number)
    if total is None or any(_NAMED_OTHERWISE.search(line.text) for line in joined.lines_with(_MAKES)):
        return None  # a part of a card, or one that is not listed, is none of the cards that have as much
    whole = [spec for spec in gpus.by_total(total) if spec.part_of is None]
    return Known(whole[0].id, "assumed") if len(whole) == 1 else None


def _nodes(joined: _Joined, line: LogLine, card: Mention) -> int:
    """How many nodes have so many of these cards each: `2 nodes (4x L40S each)`, `2 pods x 8 H200`; 1 where the line speaks of none."""
    at = line.text.find(card.text)
    said = None if at < 0 else _NODES.search(line.text, max(0, at - 80), at)
    if said is None:
        return 1
    beside = line.text[said.end() : at].strip() in ("", "x", "×", "*", "of", "with", "à", "each with", "with each")
    return int(said[1]) if beside or _EACH.match(line.text, at + len(card.text)) else 1


def _host(joined: _Joined, facts: Sequence[Fact]) -> Mapping[str, Known[int]]:
    host: dict[str, Known[int]] = {}
    for fact in facts:
        for field, name in (("rss", "rss_bytes"), ("limit", "limit_bytes"), ("host_memory", "memory_bytes"), ("shm_size", "shm_bytes")):
            if fact.fields.get(field):
                host.setdefault(name, Known(int(fact.fields[field]), "log", fact.source, fact.line))
        if fact.id == "host.free":
            digits = fact.fields["memory"]
            memory = int(float(digits) * GIB) if digits.isdigit() else parse_size(digits)
            host.setdefault("memory_bytes", Known(memory, "log", fact.source, fact.line))
    for name, pattern, needles in _HOST:
        if name in host:
            continue
        for line in joined.lines_with(needles):
            match = pattern.search(line.text) if _DIGIT.search(line.text) else None
            if match is not None and not (pattern is _LIMIT and joined.is_request(line)):
                size = str(next(g for g in match.groups() if g))
                size += "GiB" if "total" in match.groupdict() and match["total"] and size.isdigit() else ""  # free -g counts in these
                decimal = pattern is _LIMIT and size[-1] in "KMGT" and "kubernetes" in joined.launchers()  # its 120G are no 120Gi
                host[name] = Known(parse_size(f"{size}B" if decimal else size), "log", line.source, line.number)
                break
    return host


def _launcher(joined: _Joined) -> Known[str] | None:
    """The launcher whose mark stands first."""
    launchers = _marks()[2]
    for mark, at in joined.marks:
        if mark in launchers and not joined.text.startswith(_STATES, at):
            line = joined.line_at(at + (joined.text[at] == "\n"))
            return Known(launchers[mark], "log", line.source, line.number)
    return None
