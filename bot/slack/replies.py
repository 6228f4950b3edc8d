"""What a short reply in a thread answers: the rank that failed, that nobody knows, or nothing. Talk about a rank is no answer."""

import re
from collections.abc import Collection, Iterable

from bot.domain.incident import NOT_KNOWN
from bot.slack.words import LONG

_RANK = re.compile(
    r"\b(?:rank|gpu|worker|device)s?\s*[#:=]?\s*(\d{1,4})\b(?!\s*(?:seconds?|minutes?|hours?|days?|weeks?|months?|years?|times|%))", re.I
)
_TAG = re.compile(r"\bWorker(?:_[TPDE]P\d{1,4})+\b")
"""How a worker signs; what of it is its rank, the diagnosis knows."""
_BARE = re.compile(r"\s*(?:it'?s|it is|number|no\.?|#)?\s*(\d{1,4})\s*[.!?]?\s*", re.I)
_MORE = re.compile(r"^\s*(?:,|and|or|&|\+|/)\s*(?:(?:rank|gpu|worker|device)s?\s*[#:=]?\s*)?(\d{1,4})\b", re.I)
_ALL = re.compile(r"\b(?:all|every|each)\b.*\b(?:rank|gpu|worker|them)s?\b|^\s*all\s*[.!]?\s*$", re.I)
_UNKNOWN = re.compile(
    r"\b(?:i\s+)?(?:do\s*n[o']?t|don’t|dont|can'?t|cannot|can’t)\s+(?:know|say|tell|remember|have (?:it|that))\b|"
    r"\bno idea\b|\bnot sure\b|\bdunno\b|\bunknown\b|\bidk\b",
    re.I,
)
_CLAUSE = re.compile(r"(?<=\w)[,;.!]\s+|\n+|\s[–—-]\s|(?<!\bany)(?<!thing)(?<!\ball)\s(?:but|because|while)\s", re.I)
_DENIED = re.compile(r"\b(?:not|never|neither|nor|except|\w+ but|without|other than|rather than|instead of)\b|n['’]t\b", re.I)
_FAILED = re.compile(
    r"\b(?:fail\w*|die[sd]?|dying|crash\w*|oom\w*|(?:ran )?out of (?:gpu |cuda )?memory|ran out|killed|error\w*|exception|first|culprit|"
    r"broke|gone|down)\b",
    re.I,
)
_NEUTRAL = """
a according actually again and answer at be believe by case check checked guess he hello hey hi host i in is it it's its just log logs
looks like maybe me my node nope now number of ok okay on one only our output perhaps pid pod presumably probably rank says see seems
shows so sorry sure tag that that's thats the there think this to tp was we well with worker yeah yep yes
"""
_SAID_WITH = frozenset(_NEUTRAL.split())
"""Words that say nothing beside a rank: what is left of a reply without them is about something else."""
_WORD = re.compile(r"[^\W\d_][\w'’-]*")
_STRAY = 2  # words beside a rank that was asked for, in whatever language


def answers(text: str, asked: Iterable[str]) -> list[str]:
    """What a short reply says to the open questions, as `name=value`; empty when it is no answer."""
    questions = list(asked)
    line = text.strip()
    if not line or len(line) >= LONG or line.count("\n") > 3:
        return []
    wanted = "failing_rank" in questions
    if wanted and (tag := _TAG.search(line)) and not _DENIED.search(line):
        return [f"rank={tag[0]}"]
    if named := _named(line, wanted=wanted):
        return [f"rank={', '.join(sorted(named, key=int))}"]
    if wanted and (bare := _BARE.fullmatch(line)):
        return [f"rank={bare[1]}"]
    if wanted and _ALL.search(line):
        return ["rank=all"]
    if _UNKNOWN.search(line):
        return [f"{question}={NOT_KNOWN}" for question in questions]
    return []


def _named(line: str, *, wanted: bool) -> Collection[str]:
    """The ranks that it says failed; several are none."""
    found: set[str] = set()
    for clause in _CLAUSE.split(line):
        if (rank := _RANK.search(clause)) is None or _DENIED.search(clause):
            continue
        beside = f"{clause[: rank.start()]} {clause[rank.end() :]}"
        asks = line.endswith(("?", "？")) and bool(_stray(beside))
        if asks or _is_aside(beside, wanted=wanted):
            continue
        found.add(rank[1])
        found |= set(_more(clause[rank.end() :]))
    return found


def _is_aside(beside: str, *, wanted: bool) -> bool:
    """Are the words beside a rank about something else? Unasked, nothing but what it did may be said of it."""
    others = _stray(_FAILED.sub(" ", beside))
    return len(others) > _STRAY and not _FAILED.search(beside) if wanted else bool(others)


def _stray(said: str) -> list[str]:
    return [word for word in _WORD.findall(said) if word.lower() not in _SAID_WITH]


def _more(behind: str) -> Iterable[str]:
    """The numbers of a list that goes on: `rank 3 and 5`."""
    while (another := _MORE.match(behind)) is not None:
        yield another[1]
        behind = behind[another.end() :]
