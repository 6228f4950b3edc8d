"""What words of a sentence mean together that none of them means alone: a pair that names a moment, a complaint denied, a title."""

import re
from collections.abc import Sequence
from itertools import pairwise

from bot.reading.words import Mention

COMPLAINTS = ("shortage", "failure", "killed", "lack", "error")
WITHIN = 36
"""Letters between the two words of a pair."""
COMMA = re.compile(r"[,，、]")
_ASIDE = re.compile(r"\([^()]*\)")
_PARTING = (*COMPLAINTS, "moment", "but", "before", "after", "while", "cache", "weights")
_BELONG = frozenset(("averted", "not", "weights", "trial", "back", "make", "first"))
"""Without one of these no word of a sentence means another thing beside another one."""
_DENIABLE = ("shortage", "failure", "killed", "error")
_WENT_WELL = frozenset(("never", "doesn't", "does not", "didn't", "did not", "don't"))
_DENYING = frozenset(
    ("not", "no", "never", "nothing", "nobody", "doesn't", "does not", "didn't", "did not", "don't", "isn't", "wasn't", "nicht", "nie",
     "kein", "keine", "nichts", "没有")
)  # fmt: skip
_MESSAGE = re.compile(r"\b(?:errors?|exceptions?|warnings?|traceback)\b|报错|エラー")
_SO_FAR = re.compile(r"(?:\d\ ?%|\d/\d+)\ (?:of\ |into\ |through\ )?(?:the\ |all\ |its\ )?$")
_OF_SO_MANY = re.compile(r"\ #?\d+\ ?(?:/|of|von|sur|de)\ ?\d")
_TITLE = re.compile(r"[\s>#*+-]*(?:\[[^\]\n]{1,60}\]\s*)*(?:(?:#?\d{1,2}[.)]|[\w/, ]{1,24}(?:\([^)\n]{1,40}\))?!?:)\s*)?")


def meant_together(words: Sequence[Mention], text: str, start: int, pairs: Sequence[tuple[str, str, str]]) -> list[Mention]:
    """The words of a sentence that begins at `start`, with what they mean together. `pairs`: two meanings or moments, what they name."""
    told = _paired(words, text, start, pairs)
    if not any(one.means in ("failure", "killed") for one in told):
        return told
    silent = {one for two in pairwise(told) if _messages(*two, text) for one in two}
    return [one for one in told if one not in silent and not unsaid(one, text)]


def _paired(words: Sequence[Mention], text: str, start: int, pairs: Sequence[tuple[str, str, str]]) -> list[Mention]:
    means = {one.means for one in words}
    if means.isdisjoint(_BELONG):
        return [*words]
    told = [*words]
    if "averted" in means:
        told = _titled(told, text, start)
    if "not" in means:
        told = _denied(told, text)
    if "weights" in means:
        told = _under_way(told, text)
    names = means | {one.moment for one in words}
    for one, other, moment in pairs:
        if one in names and other in names:
            told = _whole(told, text, (one, other), moment)
    return told


def unsaid(denied: Mention, text: str) -> bool:
    """Is it a message that is denied (`no traceback`)? What died all the same died silently."""
    return denied.moment == "prose.denied" and _MESSAGE.search(text, denied.start, denied.end) is not None


def _messages(word: Mention, error: Mention, text: str) -> bool:
    """`Without any error`"""
    return word.means == "not" and error.means == "error" and text[word.end : error.start].strip() in ("", "a", "an", "any")


def _titled(words: Sequence[Mention], text: str, start: int) -> list[Mention]:
    """`Avoid OOM in X` is a report where it is a title, and a wish anywhere else."""
    first = next(one for one in words if one.means == "averted")
    title = _TITLE.fullmatch(text, start, first.start) is not None
    kept = [first._replace(means="shortage")] if title else []
    return sorted([*(one for one in words if one.means != "averted"), *kept])


def _under_way(words: Sequence[Mention], text: str) -> list[Mention]:
    """`At shard 11/30`, `62 % of the shards`: so far were the weights read. Of layers there are other things too."""
    told = [*words]
    for place, word in enumerate(words):
        if word.means == "weights" and not text.startswith("layer", word.start):
            before = _SO_FAR.search(text, max(0, word.start - WITHIN), word.start)
            if before is not None or _OF_SO_MANY.match(text, word.end) is not None:
                told[place] = word._replace(means="moment", moment="prose.load", telling=True)
    return told


def _denied(words: Sequence[Mention], text: str) -> list[Mention]:
    """`Nothing dies`, `it never crashes`; where another matter follows (`it doesn't crash at X but at Y`) something does."""
    told = [*words]
    whosever = [one for one in words if one.means != "device"]  # `no CUDA out of memory`
    for place, (word, complaint) in enumerate(pairwise(whosever)):
        between = [one for one in words if word < one < complaint]
        apart = complaint.start - word.end - sum(1 + one.end - one.start for one in between)
        adjacent = word.means == "not" and complaint.means in _DENIABLE and apart <= 1
        if adjacent and text[word.start : word.end] in _DENYING and not any(one.means == "but" for one in whosever[place + 2 :]):
            fine = complaint.means == "failure" and text[word.start : word.end] in _WENT_WELL
            span = word._replace(end=complaint.end)
            both = span._replace(means="fine") if fine else span._replace(means="moment", moment="prose.denied", telling=True)
            told = sorted([*(one for one in told if one not in (word, complaint, *between)), both])
    return told


def _whole(words: Sequence[Mention], text: str, pair: tuple[str, str], moment: str) -> list[Mention]:
    one, other = ([word for word in words if name in (word.means, word.moment)] for name in pair)
    found = sorted(((a, b) if a < b else (b, a) for a in one for b in other), key=lambda two: two[1].start - two[0].end)
    for first, last in found:
        if last.start - first.end <= WITHIN and not _parted(first, last, words, text):
            rest = [word for word in words if word not in (first, last)]
            return sorted([*rest, Mention(first.start, last.end, "moment", moment, True)])
    return [*words]


def _parted(first: Mention, last: Mention, words: Sequence[Mention], text: str) -> bool:
    between = (word for word in words if first.end <= word.start < last.start)
    told = _ASIDE.sub("", text[first.end : last.start])
    return "already" in told or COMMA.search(told) is not None or any(word.means in _PARTING for word in between)
