"""The model that the evidence names: by flag, by banner, by config, or as an id in running text."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

import ahocorasick_rs

from bot.domain.deployment import Setting
from bot.domain.engines import ENGINES
from bot.domain.evidence import Fact, LogLine
from bot.domain.known import Known
from bot.reading.anchored import standing
from bot.rulebook.book import Rulebook

_WORD = r"(?:raises?|fails?|crash(?:es)?|dies|hangs|with|on|and|in|is|to|then|not|for|does|commands?|server)\b"  # "vllm serve raises …"
_SERVE = re.compile(rf"(?:vllm|trtllm-)\s?serve\s+[\"']?(?P<model>(?!-|{_WORD})[\w./~-]*[\w-]+)")
_PYTHON = re.compile(r"""\bLLM\(\s*(?:model\s*=\s*)?["'](?P<model>[\w./~-]+)["']""")
_LABELLED = re.compile(
    r"(?i)(?:^|[\s\-*])(?<!loading )model(?:_name|_id|\s+name)?\s*[:=]\s*`?"
    r"(?P<model>[A-Za-z][\w.-]*/[\w.-]+|[A-Za-z](?=[\w.-]*\d)[\w.-]{3,})"
)
_IS_LABEL = re.compile(r"model(?:_name|_id|\s+name)?\s*[:=]")
"""What makes the word a label, in small letters: most sentences speak of a model."""
_NAME = re.compile(r"[~./\w$-][\w./:@$ {}()+-]{0,250}[\w/})]")
_CLASS = re.compile(r"\.(?:py|sh|so|yaml)$|[a-z\d](?:ForCausalLM|ForConditionalGeneration|LMHeadModel|ForSequenceClassification)$")
_NUMBER = re.compile(r"\d[\d.]*[A-Za-z]?")
_OTHER_FLAG = re.compile(r"""--(?!(?:[\w-]*model|mcore|pretrain|tokenizer))[\w-]{1,60}[= ]["']?$""")
_NO_MODEL = re.compile(r"(?i)\b(?:pods?|containers?|statefulsets?|namespace|hostname)\b ?[=:/]? ?[\"'`]?$")
"""What stands before a name of something else that is called after its model."""
MOST_LINES = 4000


def model_named(book: Rulebook, lines: Sequence[LogLine], facts: Sequence[Fact], given: Known[Setting] | None) -> Known[str] | None:
    """A flag's value first, then what the engine printed, then an id in the text, then a name that looks like a model."""
    if given is not None and _is_name(str(given.value).strip("\"'")):
        return Known(str(given.value).strip("\"'"), given.origin, given.source, given.line)
    for fact in facts:
        if isinstance(fact.fields.get("model"), str) and _is_name(fact.fields["model"]):
            return Known(str(fact.fields["model"]), "log", fact.source, fact.line)
    words = _words_of(book)
    places = words.places([line.text for line in lines[:MOST_LINES]])
    for pattern in words.patterns:
        for place in places.get(pattern, ()):
            line = lines[place]
            match = pattern.search(line.text)
            if match is None or not _is_name(match["model"]):
                continue
            begins = match.start("model")
            if not _OTHER_FLAG.search(line.text, 0, begins) and not _NO_MODEL.search(line.text, max(0, begins - 40), begins):
                return Known(match["model"], "log", line.source, line.number)
    return None


def _is_name(text: str) -> bool:
    """Could a model be called so? Not a file of the program, a class, a number or a size, the beginning of a message, or the engine that a
    harness runs.
    """
    named = _NAME.fullmatch(text) is not None and text.lower() not in ENGINES
    return named and _CLASS.search(text) is None and _NUMBER.fullmatch(text) is None


class _Words:
    """The patterns that find a model's name, the surest first, behind one automaton of the texts that they need."""

    def __init__(self, book: Rulebook) -> None:
        owners = [owner for row in book.model_words for owner in row.owners]
        families = [family for row in book.model_words for family in row.families]
        by_owner = re.compile(rf"(?<![\w/.@:-])(?P<model>(?:{'|'.join(map(re.escape, owners))})/[\w.-]+\w)")
        self._by_family = re.compile(
            rf"(?i)(?<![A-Za-z0-9_/.-])(?P<model>(?:{'|'.join(map(re.escape, families))})"
            r"[a-z0-9_.]{0,40}(?:-[a-z0-9_.]{1,40}){0,12}\d(?:[a-z0-9_.]{0,40}[a-z0-9])?(?:-[a-z0-9_.]{0,40}[a-z0-9]){0,12})"
        )
        self.patterns = (_SERVE, _PYTHON, by_owner, _LABELLED, self._by_family)
        needed = [("serve", _SERVE), ("llm(", _PYTHON), ("model", _LABELLED)]
        needed += [(f"{owner.lower()}/", by_owner) for owner in owners] + [(family.lower(), self._by_family) for family in families]
        self._automaton = ahocorasick_rs.AhoCorasick([text for text, _ in needed])
        self._needing = [pattern for _, pattern in needed]

    def places(self, texts: Sequence[str]) -> Mapping[re.Pattern[str], Sequence[int]]:
        """Which lines each pattern may match: those with a text that it needs, all found at once."""
        lower = [text.lower() for text in texts]
        found: dict[re.Pattern[str], dict[int, None]] = {}
        for place, text, start in standing(self._automaton, lower):
            pattern = self._needing[text]
            if pattern is self._by_family:
                before = lower[place][start - 1 : start]
                may_be = not ((before.isalnum() and before.isascii()) or before in ("_", "/", ".", "-"))
            else:
                may_be = pattern is not _LABELLED or _IS_LABEL.match(lower[place], start) is not None
            if may_be:
                found.setdefault(pattern, {})[place] = None
        return {pattern: list(places) for pattern, places in found.items()}


@lru_cache(maxsize=8)
def _words_of(book: Rulebook) -> _Words:
    return _Words(book)
