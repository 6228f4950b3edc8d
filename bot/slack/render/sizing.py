"""A sizing answer: does it fit, the budget of one GPU as a table, the command; shared or kept to the asker."""

from collections.abc import Mapping, Sequence
from typing import Any

from bot.slack.render.blocks import Block, actions, bold, bullets, button, code, figure, header, line, person, rich, small, table
from bot.slack.render.escape import cut
from bot.slack.render.limits import FALLBACK, VALUE, fit_message
from bot.slack.render.wording import gib, number, size

Document = Mapping[str, Any]


def sizing_message(document: Document, words: str, *, shared_by: str | None = None) -> tuple[list[Block], str]:
    """Blocks and text. `words` is the question as asked: the buttons carry it."""
    blocks = [
        header(_verdict(document)),
        *(_corrections(document) if _left_out(document) else []),
        *_why(document),
        *_table(document),
        *_requests(document),
        *([] if _left_out(document) else _corrections(document)),
        *_ways(document),
        *_command(document),
    ]
    blocks += _assumptions(document)
    if shared_by is not None:
        blocks.append(rich(line("Asked by ", person(shared_by), ".")))
    elif len(words) <= VALUE:
        share = button("share", "Share in channel", words or "-", "Share this sizing in the channel")
        blocks.append(actions(share, button("change_inputs", "Change inputs", words or "-", "Change the inputs of this sizing")))
    why = str(document.get("why") or "")
    unread = [f"Not read: {cut(item, 200)}." for item in _left_out(document)[:2]]
    return fit_message(blocks), cut(" ".join([*unread, f"{_verdict(document)}. {why[:1].upper()}{why[1:]}"]), FALLBACK)


def _left_out(document: Document) -> list[str]:
    """What could not be read: the answer is of another question than the one that was asked, so this comes before it."""
    said = map(str, document.get("corrections") or ())
    return [item.rstrip(".") for item in said if "left out" in item and ("it takes" in item or "=" in item)]


def _verdict(document: Document) -> str:
    what = " on ".join(str(document[key]) for key in ("model", "gpu") if document.get(key))
    answer = document.get("headline") or {True: "It fits", False: "It does not fit", None: "Cannot be decided yet"}[document.get("fits")]
    return f"{answer}: {what}" if what else answer


def _why(document: Document) -> list[Block]:
    why = str(document.get("why") or "")
    return [rich(line(cut(f"{why[:1].upper()}{why[1:]}{'' if why.endswith('.') else '.'}", 1_000)))] if why else []


def _limiting(document: Document) -> Document | None:
    ranks: Sequence[Document] = document.get("ranks") or ()
    wanted = document.get("limiting_rank")
    return next((rank for rank in ranks if rank.get("rank") == wanted), ranks[0] if ranks else None)


def _whose(ranks: Sequence[Document], limiting: Document) -> str:
    if len(ranks) == 1:
        return f"GPU of rank {limiting['rank']}"
    alike = all({**rank, "rank": None} == {**limiting, "rank": None} for rank in ranks)
    return f"GPU of each of {len(ranks)} ranks" if alike else f"GPU of rank {limiting['rank']}, which limits"


def _table(document: Document) -> list[Block]:
    rank = _limiting(document)
    if rank is None:
        return []
    rows: list[list[str | Block]] = [[_whose(document["ranks"], rank), "GiB"]]
    labels = (
        ("total_bytes", "Device"),
        ("budget_bytes", "Budget"),
        ("weights_bytes", "Weights"),
        ("other_bytes", "Other, inside the budget"),
        ("kv_pool_bytes", "KV cache pool"),
        ("outside_budget_bytes", "Outside the budget"),
    )
    rows += [[label, figure(round(rank[key] / 2**30, 2), gib(rank[key]))] for key, label in labels if rank.get(key) is not None]
    return [table(rows)]


def _requests(document: Document) -> list[Block]:
    kv = document.get("kv") or {}
    items: list[list[str | Block]] = []
    if kv.get("tokens") is not None:
        items.append([f"KV cache holds {number(kv['tokens'])} tokens, {size(kv.get('bytes_per_token'))} a token on each rank"])
    if kv.get("max_concurrency") is not None:
        items.append([f"{number(kv['max_concurrency'])} full-length requests at once, {size(kv.get('request_bytes'))} each"])
    if kv.get("longest_context") is not None:
        likely = ", if the estimates hold" if document.get("range") else ""
        items.append([f"Longest context of one request: {number(kv['longest_context'])} tokens{likely}, the model's own limit aside"])
    if at_once := document.get("at_once"):
        items.append([cut(f"{at_once['says'][:1].upper()}{at_once['says'][1:]}", 400)])
        items += [[cut(f"For all of them: {way['says']}. {way['costs'][:1].upper()}{way['costs'][1:]}", 400)] for way in at_once["ways"]]
    demand = document.get("demand") or {}
    if demand.get("requests"):
        items.append(
            [
                f"{number(demand['requests'])} such requests would demand {size(demand.get('bytes_all_ranks'))} over all ranks: "
                "demand, not a reservation"
            ]
        )
    pool = (document.get("range") or {}).get("kv_pool_bytes")
    if pool:
        items.append([f"The pool is between {size(pool[0])} and {size(pool[1])}: part of it is estimated"])
    return [rich(bullets(items))] if items else []


def _corrections(document: Document) -> list[Block]:
    said = [str(item) for item in document.get("corrections") or ()]
    label = "Not all of it was read: " if _left_out(document) else "How I read it: "
    return [rich(line(bold(label), cut(" ".join(said), 800)))] if said else []


def _ways(document: Document) -> list[Block]:
    """What would make it fit, cheapest first."""
    ways = [[cut(f"{way['says']}. {way['costs'][:1].upper()}{way['costs'][1:]}.", 400)] for way in document.get("ways") or ()]
    return [rich(line(bold("What would make it fit, cheapest first")), bullets(ways))] if ways else []


def _command(document: Document) -> list[Block]:
    """Of what fits; where that is a change, with which."""
    if not document.get("command"):
        return []
    beside = [line(bold("Run"), ", with ", cut(str(document["command_with"]), 300))] if document.get("command_with") else []
    return [rich(*beside, code(cut(str(document["command"]), 1_500)))]


def _assumptions(document: Document) -> list[Block]:
    said = "; ".join(str(item) for item in (document.get("assumptions") or ())[:6])
    version = document.get("engine_version")
    return (
        [small(cut(" · ".join(part for part in (f"vLLM {version}" if version else "", f"Assumed: {said}" if said else "") if part), 900))]
        if said or version
        else []
    )
