"""A sizing answer as it stands in a terminal: the sentence first, then the budget, then what to run."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bot.cli.terminal import bold, command, headline, table, wrapped
from bot.domain.size import gb, gib

Document = Mapping[str, Any]


def sizing_text(document: Document) -> str:
    """Everything that a person needs of the answer; --json has all of it."""
    return "\n".join(_parts(document))


def _parts(document: Document) -> Iterator[str]:
    beside = document.get("side_by_side")
    if beside:
        yield from _side_by_side(beside)
        return
    yield headline(_verdict(document))
    yield wrapped(_sentence(str(document["why"])))
    yield from _corrections(document)
    yield from _ranks(document)
    yield from _cache(document)
    yield from _terms(document)
    yield from _ways(document)
    yield from _assumptions(document)
    yield from _run(document)


def _run(document: Document) -> Iterator[str]:
    """Only what fits is offered to run."""
    if document.get("command"):
        beside = f", with {document['command_with']}" if document.get("command_with") else ""
        yield f"\n{bold('Run')}{beside}\n{command(document['command'])}"


def _verdict(document: Document) -> str:
    what = " on ".join(str(document[key]) for key in ("model", "gpu") if document.get(key))
    return f"{document['headline']}: {what or 'this model'}, vLLM {document['engine_version']}"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."


def _corrections(document: Document) -> Iterator[str]:
    for said in document.get("corrections") or ():
        yield wrapped(said + ".", first="  note: ", indent="        ")


def _ranks(document: Document) -> Iterator[str]:
    """One row for ranks that are alike."""
    columns = ("total_bytes", "budget_bytes", "weights_bytes", "other_bytes", "kv_pool_bytes", "outside_budget_bytes")
    rows: list[Sequence[str]] = [("", "device", "budget", "weights", "other", "KV pool", "outside")]
    groups: list[tuple[list[int], Sequence[int | None]]] = []
    for rank in document["ranks"]:
        figures: Sequence[int | None] = [rank[name] for name in columns]
        if groups and groups[-1][1] == figures:
            groups[-1][0].append(rank["rank"])
        else:
            groups.append(([rank["rank"]], figures))
    for numbers, figures in groups:
        name = f"rank {numbers[0]}" if len(numbers) == 1 else f"ranks {numbers[0]} to {numbers[-1]}"
        limits = " *" if len(groups) > 1 and document["limiting_rank"] in numbers else ""
        rows.append((name + limits, *("not known" if value is None else gib(value) for value in figures)))
        if document.get("decimal"):
            rows.append(("  in GB", *("" if value is None else gb(value) for value in figures)))
    yield f"\n{bold('Budget')}, in units of the engine's own log (1 GiB is 1.074 GB)"
    yield table(rows, right=(1, 2, 3, 4, 5, 6), headed=True)
    spread = document.get("range")
    if spread:
        low, high = spread["kv_pool_bytes"]
        yield wrapped(f"“Other” is an estimate (see below), so the KV pool may come out anywhere from {gib(low)} to {gib(high)}.")
    if len(groups) > 1 and document["limiting_rank"] is not None:
        yield "  * limits the whole replica"


def _cache(document: Document) -> Iterator[str]:
    kv, demand = document["kv"], document["demand"]
    rows = [("one full request", gib(kv["request_bytes"]), f"{gib(kv['bytes_per_token'])} a token" if kv["bytes_per_token"] else "")]
    if kv["max_concurrency"] is not None:
        rows.append(("full requests in the pool", f"{kv['max_concurrency']:.2f}", f"{kv['tokens']:,} tokens as this version prints them"))
        rows.append(("blocks", f"{kv['num_blocks']:,}", f"of {kv['block_size']:,} tokens"))
    if kv["longest_context"] is not None:
        likely = "if the estimates hold, " if document.get("range") else ""
        rows.append(("longest single request", f"{kv['longest_context']:,}", f"tokens, {likely}the model's own limit aside"))
    yield f"\n{bold('KV cache')}, per rank"
    yield table(rows, right=(1,))
    yield wrapped(
        f"Demand, not a reservation: {demand['requests']:,} permitted requests at full length would take "
        f"{gib(demand['bytes_per_rank'])} a rank; the engine allocates the pool and lets the rest wait."
    )


def _terms(document: Document) -> Iterator[str]:
    estimated = [term for term in document["terms"] if "range" in term]
    if not estimated:
        return
    yield f"\n{bold('Other')}, per rank: what the engine needs beside weights and KV cache"
    rows = [("", "likely", "range", "what it is")]
    for term in estimated:
        low, high = term["range"]
        basis = term["basis"].partition(" (")[0]  # `estimated`, or `measured D-0187`
        beside = ["outside the budget"] * (not term["inside_budget"]) + [basis] * (basis != "estimated")
        rows.append((term["name"], gib(term["bytes"]), f"{gib(low)} to {gib(high)}", ", ".join((term["says"], *beside))))
    yield table(rows, right=(1,), headed=True)
    yield wrapped("A start's own log tells these figures; --other-bytes puts one of yours in their place.")


def _ways(document: Document) -> Iterator[str]:
    ways, room = document.get("ways") or [], document.get("room") or []
    if ways:
        yield f"\n{bold('What would make it fit')}, cheapest first"
        for way in ways:
            yield wrapped(f"{way['says']}. {_sentence(way['costs'])}", first="  - ", indent="    ")
    if at_once := document.get("at_once"):
        yield "\n" + wrapped(f"{bold('At once')}: {_sentence(at_once['says'])}", first="")
        for way in at_once["ways"]:
            yield wrapped(f"{way['says']}. {_sentence(way['costs'])}", first="  - for all of them: ", indent="    ")
    if not ways and document["headline"] in ("It does not fit", "It may fit"):
        yield "\n  Nothing that was tried makes it fit for certain."
    for said in room:
        yield wrapped(_sentence(said))


def _assumptions(document: Document) -> Iterator[str]:
    if document.get("risks"):
        yield f"\n{bold('Beware')}"
        yield from (wrapped(_sentence(said), first="  - ", indent="    ") for said in document["risks"])
    if document["assumptions"]:
        yield f"\n{bold('Assumed')}"
        yield from (wrapped(said, first="  - ", indent="    ") for said in document["assumptions"])


def _side_by_side(beside: Document) -> Iterator[str]:
    answers: Sequence[Document] = beside["answers"]
    yield headline(_sentence(beside["says"]))
    rows = [("", *(str(answer["of"]) for answer in answers))]
    rows += [(label, *(_cell(answer, label) for answer in answers)) for label in _CELLS]
    yield table(rows, right=range(1, len(answers) + 1), headed=True)
    yield wrapped("“Longest context” is what one request could have, the model's own limit aside.")
    yield f"\n{bold('Why')}"
    yield from (
        wrapped(reason, first="  - ", indent="    ") for reason in beside["reasons"] or ["nothing that these answers rest on differs"]
    )
    for one in dict.fromkeys(answer["command"] for answer in answers if answer["command"]):
        fitting = [str(answer["of"]) for answer in answers if answer["command"] == one]
        yield f"\n{bold('Run')}{'' if len(fitting) == len(answers) else ', with ' + ', '.join(fitting)}\n{command(one)}"


_CELLS = ("fits", "KV pool", "one full request", "full requests", "longest context", "KV pool from", "KV pool to")


def _cell(answer: Document, label: str) -> str:
    rank, kv = answer["ranks"][answer["limiting_rank"] or 0], answer["kv"]
    low, high = (answer.get("range") or {}).get("kv_pool_bytes") or (None, None)
    value = {
        "fits": {"It fits": "yes", "It does not fit": "no", "It may fit": "maybe"}.get(answer["headline"], "open"),
        "KV pool": _gib(rank["kv_pool_bytes"]),
        "one full request": gib(kv["request_bytes"]),
        "full requests": "–" if kv["max_concurrency"] is None else f"{kv['max_concurrency']:.2f}",
        "longest context": "–" if kv["longest_context"] is None else f"{kv['longest_context']:,}",
        "KV pool from": _gib(low),
        "KV pool to": _gib(high),
    }
    return value[label]


def _gib(value: int | None) -> str:
    return "–" if value is None else gib(value)
