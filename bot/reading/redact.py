"""Hides secrets before anything is stored, shown or read further."""

from bot.rulebook.book import texts
from bot.rulebook.load import load_rulebook
from bot.rulebook.patterns import compiled

HIDDEN = "[hidden]"


def redact(text: str) -> tuple[str, int]:
    """The text with every known kind of secret hidden, and how many were found. Line numbers stay as they are."""
    count = 0
    lowered = text.lower()
    for rule in load_rulebook().redactions:
        if not any(anchor.lower() in lowered for anchor in texts(rule.anchor)):
            continue
        text, found = _hide(rule.pattern, text)
        count += found
    return text, count


def _hide(pattern: str, text: str) -> tuple[str, int]:
    pieces: list[str] = []
    end = found = 0
    for match in compiled(pattern).finditer(text):
        start, stop = match.span("secret")
        if start < end or match["secret"] == HIDDEN:
            continue
        pieces += [text[end:start], HIDDEN, "\n" * match["secret"].count("\n")]
        end = stop
        found += 1
    return "".join([*pieces, text[end:]]), found
