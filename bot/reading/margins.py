"""What stands before every line of a paste: an indentation, a pod's name, or line numbers that an editor, cat or grep printed."""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

_NUMBER = re.compile(r"\s{0,8}(?:[\w./-]{1,120}\.(?:log|txt|out|err)[:-])?(\d{1,8})(?:[:\t]|\s?[|│]|-(?=\D)|\s{1,4})[ ]?")
_POD = re.compile(r"([a-z0-9]+(?:-[a-z0-9]+)+ [a-z0-9][a-z0-9-]{0,40}) (?![|│›])")
SAMPLE, FEWEST = 200, 3


def unframed(lines: Sequence[tuple[int, str]]) -> Sequence[tuple[int, str]]:
    """The lines without a margin that they all share; numbers of lines stay those of the text as given."""
    texts = [text for _, text in lines[:SAMPLE] if text.strip()]
    if len(texts) < FEWEST:
        return lines
    if _doubled(lines[:SAMPLE]):
        return unframed([(number, text) for number, text in lines if text.strip()])
    if _counted(texts):
        return [(number, text[match.end() :] if (match := _NUMBER.match(text)) else text) for number, text in lines]
    if _podded(texts):
        return [(number, _POD.sub(r"\1 | ", text, count=1) if _POD.match(text) else text) for number, text in lines]
    margin = min(len(text) - len(text.lstrip(" \t")) for text in texts)
    if margin < 2:
        return lines
    return [(number, text[margin:] if not text[:margin].strip() else text) for number, text in lines]


def _doubled(lines: Sequence[tuple[int, str]]) -> bool:
    """Is every second line empty, as when a page's paragraphs are copied?"""
    filled = [bool(text.strip()) for _, text in lines]
    return len(filled) > 2 * FEWEST and sum(filled) <= len(filled) // 2 + 1 and not any(a and b for a, b in pairwise(filled))


def _counted(texts: Sequence[str]) -> bool:
    """Does nearly every line start with a number that is greater than the one before?"""
    found = [int(match[1]) for text in texts if (match := _NUMBER.match(text)) is not None]
    rising = sum(a < b for a, b in pairwise(found))
    return len(found) >= 0.9 * len(texts) and rising >= 0.95 * (len(found) - 1)


def _podded(texts: Sequence[str]) -> bool:
    """Do nearly all lines start with one of a few pairs of a pod and a container, as stern prints them?"""
    pods = Counter(match[1] for text in texts if (match := _POD.match(text)) is not None)
    return sum(pods.values()) >= 0.9 * len(texts) and len(pods) <= len(texts) // 2
