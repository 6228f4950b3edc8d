"""What a question says no to: `without fp8 kv`, `no expert parallel`, `not on H100 but on A100`. It is never read as asked for."""

import re

from bot.usecases.sizing.figures import KV_TYPE, KV_WORD
from bot.usecases.sizing.formats import ANY_FORMAT
from bot.usecases.sizing.reader import Reader

_NO = r"(?:no|not|without|w/o|don't)(?: (?:use|using|any|in|on|an?|the))*[ -]"
_ANY = re.compile(r"\b(?:no|not|without|don't|instead of|rather than|except)\b|\bw/o ", re.IGNORECASE)
_PUT = {
    r"expert[ -]parallel(?:ism)?|ep": ("enable_expert_parallel", False),
    r"eager(?: mode)?": ("enforce_eager", False),
    r"(?:cuda[ -]?)?graphs?(?: capture)?": ("enforce_eager", True),
    r"prefix[ -]cach(?:e|ing)": ("enable_prefix_caching", False),
    r"chunked[ -]prefill": ("enable_chunked_prefill", False),
    rf"(?:{KV_TYPE}|quanti[sz]ed) {KV_WORD}|{KV_WORD} (?:{KV_TYPE}|quanti[sz]ation)": ("kv_cache_dtype", "auto"),
}
_NOTHING = (
    rf"{ANY_FORMAT}|quanti[sz]ation|quanti[sz]ed weights|loras?|adapters?|mtp|eagle-?3?|ngram|speculative decoding|drafts?|offload(?:ing)?"
)
"""What is off where nobody asks for it."""
_CARD = re.compile(r"(?:\b(?:not|no|without|instead of|rather than|except)(?: (?:on|an?|the))*) $", re.IGNORECASE)


def read_without(reader: Reader) -> None:
    """Switches that are turned off, what nobody wants, and cards that are not the ones."""
    if not _ANY.search(reader.rest):
        return
    for words, (name, value) in _PUT.items():
        for _ in reader.take(rf"{_NO}(?:{words})"):
            reader.put(name, value)
    for _ in reader.take(rf"{_NO}(?:{_NOTHING})"):
        pass
    for mention in reversed(reader.gpus.mentions(reader.rest)):
        refused = _CARD.search(reader.rest[: mention.start])
        if refused:
            reader.blank(refused.start(), mention.end)
            reader.corrections.append(f"{mention.text!r} is left out, as it is said not to be the card")
