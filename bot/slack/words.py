"""Plain words of a message: a verb, evidence, facts, or none of these."""

import re
from dataclasses import dataclass

VERBS = ("size", "history", "show", "explain", "stats", "watch", "unwatch", "forget", "settings", "audit", "help", "outcome")
# What only someone with an out-of-memory problem writes or pastes; cheap, and enough to answer unasked in a watched channel.
_SHORT_OF_MEMORY = re.compile(
    r"OutOfMemory|out of memory|\bOOM\b|OOMKilled|No available memory for the cache blocks|Free memory on device|"
    r"less than desired GPU memory utilization|is larger than the (?:available KV cache|maximum number of tokens)|"
    r"To serve at least one request|CUBLAS_STATUS_ALLOC_FAILED|cuMem(?:Create|Alloc)|cumem_allocator|memory allocation of \d+|"
    r"Cannot allocate memory|No space left on device.*shm|/dev/shm|exit(?:ed|s)?(?: with)?(?: code)? 137|Killed\b|"
    r"NCCL WARN.*memory|No available Mamba|HIP out of memory|Tried to allocate|does not fit in (?:GPU )?memory",
    re.IGNORECASE,
)
# Of these, what people say of the matter itself; and what says that it happened.
_NAMED = re.compile(r"out of memory|\bOOM\b|\bKilled\b", re.IGNORECASE)
_HAPPENED = re.compile(
    r"\b(?:CUDA|HIP|GPU|device|host)(?: error)?:? out of memory|\bout of memory[:.]|"
    r"\b(?:ran|runs?|running|is|are|was|goes|go|went|going) out of memory|"
    r"\b(?:crash|fail)\w*|\b(?:dies|died|dying|kills|exits|exited|restarts|restarted)\b|"
    r"\bOOM\b\W*(?:on|in|when|while|whilst|during|with|after|before|again|at (?:start|load|boot))\b|"
    r"\b(?:got|gets?|getting|hits?|hitting|had|having|see|seeing) (?:an? |the |this |cuda |gpu )*OOM\b|"
    r"\d ?[MG]i?B\b|\brank ?\d|\bworker_?\w*\d|\b(?:pod|container)\b",
    re.IGNORECASE,
)
# Each phrase above holds one of these. A large text is looked through for them first: a pattern of many choices takes seconds for 20 MB.
_TELLING = (
    "outofmemory", "out of memory", "oom", "no available", "free memory on device", "less than desired", "is larger than the",
    "to serve at least", "cublas_status", "cumem", "memory allocation of", "cannot allocate", "no space left", "/dev/shm", " 137",
    "killed", "nccl warn", "tried to allocate", "does not fit",
)  # fmt: skip
_PIECE = 500_000  # characters looked through at once, so that other threads get their turn
_LOGGED = re.compile(
    r"Traceback \(most recent call last\)|\b(?:ERROR|WARNING|INFO)\b.*\d\d:\d\d|File \".*\", line \d+|--[a-z][a-z-]+[ =]\S+|\bvllm\b",
    re.IGNORECASE,
)
_FACTS = re.compile(
    r"\b(?:vllm|sglang|tensorrt|tgi|lmdeploy|llama\.cpp|ray|tp|pp|dp|[ahbl]\d{2,3}|rtx|mi\d{3}|version|fp8|awq|gptq|bf16|\d+\s*(?:GB|GiB|MiB|k))\b|\d+\.\d+\.\d+|\d+\s*[x×]\s*\w",
    re.IGNORECASE,
)
_ANEW = re.compile(r"\b(?:anew|again|afresh|re-?diagnose)\b", re.IGNORECASE)
_ANYTHING = re.compile(r".*")
_NOTHING = re.compile(r"[.!?]?|please[.!]?", re.IGNORECASE)
_TAKES = {
    "help": _NOTHING,
    "settings": _NOTHING,
    "audit": _NOTHING,
    "unwatch": _NOTHING,
    "watch": re.compile(r"|on|off|stop|this channel|here", re.IGNORECASE),
    "stats": re.compile(r"|\d+[dwm]|\d{4}-\d\d(-\d\d)?", re.IGNORECASE),
    "show": re.compile(r"|D?-?\d+", re.IGNORECASE),
    "forget": re.compile(r"|D?-?\d+", re.IGNORECASE),
    "outcome": re.compile(r"(?:D-?\d+\s+)?(?:fixed|moved|same|wrong|other|undo)\b.*", re.IGNORECASE),
}
_INCIDENT = re.compile(r"\bD-?\d{1,9}\b", re.IGNORECASE)
LONG = 300  # characters from which a message is taken for a paste


@dataclass(frozen=True, slots=True)
class Verb:
    """A command and what follows it."""

    name: str
    rest: str


def verb(text: str, *, typed_as_command: bool = False) -> Verb | None:
    """The verb that a one-line message begins with; None for anything else.

    In a conversation “help, it crashed” and “show me” are talk: there a verb must be followed by what it takes.
    """
    line = " ".join(text.split()) if typed_as_command else text.strip()
    if not line or "\n" in line or len(line) > 1_000:
        return None
    first, *rest = line.split(maxsplit=1)  # at whatever space: copied words have no-break ones
    found = Verb(first.lower(), "".join(rest))
    if found.name not in VERBS or not (typed_as_command or _TAKES.get(found.name, _ANYTHING).fullmatch(found.rest)):
        return None
    return found


def incident(text: str) -> str | None:
    """The first incident id in it, as `D-0187`."""
    if text.strip().isdigit():
        return f"D-{text.strip():0>4}"
    found = _INCIDENT.search(text)
    return None if found is None else "D-" + re.sub(r"\D", "", found[0]).zfill(4)


def short_of_memory(text: str) -> bool:
    """Does it speak of running out of memory?"""
    if len(text) < _PIECE:
        return _speaks_of_it(text) if len(text) > LONG else _SHORT_OF_MEMORY.search(text) is not None
    start = 0
    while start < len(text):
        end = text.find("\n", start + _PIECE) + 1 or len(text)
        if _speaks_of_it(text[start:end]):
            return True
        start = end
    return False


def shows_shortage(text: str) -> bool:
    """Is it evidence, and no talk? A line that only names the matter (“the OOM talk is at 3”) must also say that something ran out."""
    if not short_of_memory(text):
        return False
    talk = len(text) < LONG and "\n" not in text.strip() and not _LOGGED.search(text)
    return not talk or _SHORT_OF_MEMORY.search(_NAMED.sub(" ", text)) is not None or _HAPPENED.search(text) is not None


def _speaks_of_it(text: str) -> bool:
    """The same, asked only of the lines in which a telling word stands."""
    small = text.lower()
    for telling in _TELLING:
        at = small.find(telling)
        while at >= 0:
            end = small.find("\n", at) + 1 or len(small)
            if _SHORT_OF_MEMORY.search(small, small.rfind("\n", 0, at) + 1, end):
                return True
            at = small.find(telling, end)
    return False


def is_evidence(text: str) -> bool:
    """A paste: long, several lines that look logged, or words on running out of memory."""
    return len(text) >= LONG or short_of_memory(text) or (_LOGGED.search(text) is not None)


def wants_anew(text: str) -> bool:
    """A few words that ask for another diagnosis of what was just named as known."""
    return _ANEW.search(text) is not None and not is_evidence(text)


def tells_facts(text: str) -> bool:
    """A short reply that names an engine, a GPU, a version, a size or a flag. A question tells nothing."""
    if text.rstrip().endswith(("?", "？")):
        return False
    return _FACTS.search(text) is not None or _LOGGED.search(text) is not None
