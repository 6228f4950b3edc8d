"""How large a model is by its name, and whether the cards that are named hold so much."""

import re

from bot.domain.evidence import Evidence
from bot.domain.size import GIB

_BILLIONS = re.compile(r"(?<![\w.])(\d{1,4}(?:\.\d{1,2})?)[bB](?![\w.])")
_CARD = re.compile(r"-(\d{1,4})GB$")


def at_two_bytes(evidence: Evidence) -> float | None:
    """Bytes of the weights by the billions that the name says, two for each, as they are where nothing quantizes them."""
    model = evidence.deployment.model
    billions = _BILLIONS.search(model.value) if model is not None else None
    return None if billions is None else float(billions[1]) * 2e9


def card_at_most(evidence: Evidence) -> int | None:
    """What the name of the card says, which is more than what it gives."""
    named = _CARD.search(evidence.deployment.gpu.value) if evidence.deployment.gpu is not None else None
    return None if named is None else int(named[1]) * GIB


def outgrows_cards(evidence: Evidence) -> bool:
    """Are they more than all cards have that are named? False where a size or a number is not said."""
    whole, count, card = at_two_bytes(evidence), evidence.deployment.gpu_count, card_at_most(evidence)
    return whole is not None and count is not None and card is not None and whole > count.value * card
