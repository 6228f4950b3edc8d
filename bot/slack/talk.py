"""Talk without evidence: what only asks, what asks for a sizing, and what says how a change ended."""

import re

from bot.domain.incident import Result
from bot.slack.words import LONG

_SENTENCE = re.compile(r"[^.!?？\n]+(?:[.!](?=\S)[^.!?？\n]*)*[.!?？]*")
_ASKS = re.compile(
    r"(?:(?:and|so|but|then|ok|hi|hello|hey|please)[ ,!]+)*"
    r"(?:wh(?:at|y|ich|en|ere|o)|how|is|are|was|do|does|did|can|could|should|shall|will|would|may|must|has|have)\b",
    re.IGNORECASE,
)
_TO_SIZE = re.compile(
    r"\bfits?\b|\bhow (?:many|much)\b|\benough\b|\bneed(?:ed)?\b|"
    r"\b(?:can|could|will|would|does|do|possible)\b.{0,60}\b(?:run|serve|load|host|start)\b",
    re.IGNORECASE,
)
_WRONG = r"\bwrong (?:diagnosis|phase|rank)\b|\bdiagnosis (?:is|was) wrong\b|^(?:that|this)(?: is|'s|’s) wrong\b"
_MOVED = r"\berror (?:has )?moved\b|\b(?:another|different|new) error\b|^moved\b"
_SAME = (
    r"\bsame (?:error|oom|problem|thing)\b|\bstill (?:the same|fails|failing|crash\w*|oom\w*|out of memory)\b|"
    r"\b(?:did|does)(?:n['’]?t| not) help\b|^same\b"
)
_FIXED = (
    r"^(?:(?:yes|ok|great|thanks),? )?(?:it|that|this) (?:now )?(?:works?|worked|helped|fixed it|did it|starts|runs)\b|"
    r"^(?:fixed|solved|worked|works)\b"
)
_OUTCOMES: tuple[tuple[Result, re.Pattern[str]], ...] = (
    ("wrong", re.compile(_WRONG, re.IGNORECASE)),
    ("moved", re.compile(_MOVED, re.IGNORECASE)),
    ("same", re.compile(_SAME, re.IGNORECASE)),
    ("fixed", re.compile(_FIXED, re.IGNORECASE)),
)
_TAKEN_BACK = re.compile(
    r"\b(?:not|never|but|until|till|before|if|only|except|then|crash\w*|die[sd]|fail(?:s|ed)|ooms|oomed|for (?:an?|\d+|some|a few) \w+)\b|"
    r"n['’]t\b|\?|？",
    re.IGNORECASE,
)
_THANKS = re.compile(
    r"(?:(?:ok|okay|great|nice|cool|perfect|many|got it)[ ,.!]+)*(?:thanks|thank you|thx|ty|cheers|merci|danke|gracias)"
    r"(?:[ ,]+(?:a lot|so much|very much|all|again|bot|oombot|everyone|that helped|for (?:the|your) help))*\W*",
    re.IGNORECASE,
)
_SHORT = 120  # characters: how a change ended is said in a line


def only_asks(text: str) -> bool:
    """Questions and nothing else: “we get an OOM, any idea?” tells of a failure and is none."""
    said = [sentence.strip() for sentence in _SENTENCE.findall(text) if sentence.strip()]
    return len(text) < LONG and bool(said) and all(one.endswith(("?", "？")) and _ASKS.match(one) for one in said)


def asks_to_size(text: str) -> bool:
    """A question whether something fits, or what it takes."""
    return only_asks(text) and _TO_SIZE.search(text) is not None


def is_thanks(text: str) -> bool:
    """Thanks and nothing else."""
    return _THANKS.fullmatch(text.strip()) is not None


def told_outcome(text: str) -> Result | None:
    """How a change ended, where a short line says that and no more: “same error”, “it worked with 0.85”."""
    line = text.strip()
    if "\n" in line or len(line) > _SHORT:
        return None
    result = next((result for result, pattern in _OUTCOMES if pattern.search(line)), None)
    return None if result == "fixed" and _TAKEN_BACK.search(line) else result
