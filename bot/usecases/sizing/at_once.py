"""How many of the requests that a question permits fit beside each other at full length; a demand, never a reservation."""

from collections.abc import Mapping
from typing import Any

from bot.rulebook.gpus import Gpus
from bot.usecases.sizing.again import Ask, Document
from bot.usecases.sizing.room import surely_held
from bot.usecases.sizing.ways import ways_for_all


def at_once(ask: Ask, question: Mapping[str, Any], document: Document, gpus: Gpus) -> dict[str, Any] | None:
    """`requests`, `held` (True, False; None where an estimate decides), `says`, and `ways` that would hold all of them.

    None where the question names no number of them, or nothing is kept for a request.
    """
    requests = int(question.get("max_num_seqs") or 0)
    if requests < 1 or document["kv"]["max_concurrency"] is None:
        return None
    likely, surely = document["kv"]["max_concurrency"], surely_held(document)
    held = True if surely >= requests else None if likely >= requests else False
    ways = [] if held else ways_for_all(ask, question, requests, gpus)
    return {"requests": requests, "held": held, "says": _says(requests, likely, surely, document), "ways": ways}


def _says(requests: int, likely: float, surely: float, document: Document) -> str:
    many = f"{requests:,} requests at full length" if requests > 1 else "one request at full length"
    if surely >= requests:
        return f"the pool holds the {many} at once"
    if likely >= requests:
        return f"the pool is likely to hold the {many} at once, at the worst of the estimates {int(surely):,} of them"
    if requests == 1:
        return "the one request at full length that is asked for does not fit into the pool"
    tokens = (document["kv"]["tokens"] or 0) // requests
    shorter = f"; of about {tokens:,} tokens each all of them would" if document["fits"] and tokens >= 256 else ""
    fitting = f"{int(likely):,} fit" if likely >= 2 else "1 fits" if likely >= 1 else "none fits"
    return f"of the {many} that are asked for, {fitting} into the pool at once; the others wait, and nothing is reserved for them{shorter}"
