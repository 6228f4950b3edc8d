"""Will this model fit: the engine's own plan and budget for a question, one or a batch of them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

from bot.budget.kv_groups import Unplannable
from bot.budget.plan import plan
from bot.domain.budget import RankBudget
from bot.domain.foreign import foreign_json
from bot.reading.model.numbers import MissingField
from bot.rulebook.models import UnknownArchitecture
from bot.rulebook.versions import UnknownVersion
from bot.usecases.reply import Reply, Unusable
from bot.usecases.sizing.again import TENSOR_SIZES
from bot.usecases.sizing.as_json import sizing_document
from bot.usecases.sizing.at_once import at_once
from bot.usecases.sizing.compare import compare, several
from bot.usecases.sizing.draft import told_of_draft
from bot.usecases.sizing.estimates import Measured
from bot.usecases.sizing.question import Asked, SizingRules, read_question
from bot.usecases.sizing.refusals import refuse
from bot.usecases.sizing.room import room
from bot.usecases.sizing.terms import other_terms, with_loading
from bot.usecases.sizing.values import Refused, per_rank
from bot.usecases.sizing.verdict import Answer
from bot.usecases.sizing.ways import ways
from bot.usecases.sizing.weights import weights_of

Named = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""A question with a model's name -> the same with its config.json; Unusable when nobody has that model."""


def size(rules: SizingRules, question: Mapping[str, Any], measured: Measured | None = None) -> Reply:
    """The sizing answer; terms that `measured` gives stand in for estimates. Raises Unusable with a sentence when there is no answer."""
    try:
        choices = several(question)
        if choices:
            return Reply("sizing", compare(lambda one: _told(rules, one, measured), question, choices))
        question, fewest = _fewest(rules, question, measured)
        asked, told = _told(rules, question, measured)
        told |= {"headline": f"{fewest} card{'s' * (fewest > 1)} {'are' if fewest > 1 else 'is'} enough"} if fewest else {}
        ask = partial(_again, rules, question, measured)
        found = ways(ask, question, told, rules.gpus, asked.utilization)
        more = {"ways": found, "room": room(ask, question, told), "at_once": at_once(ask, question, told, rules.gpus)}
        return Reply("sizing", {**told, **_to_run(told, found), **more})
    except Refused as refused:
        raise Unusable(str(refused)) from refused


def _fewest(rules: SizingRules, question: Mapping[str, Any], measured: Measured | None) -> tuple[dict[str, Any], int | None]:
    """The question with the fewest cards that surely hold it, where it asks how many; unchanged, and None, where none of our sizes does."""
    asked = {name: value for name, value in question.items() if name != "fewest"}
    if not question.get("fewest"):
        return asked, None
    tried = ((count, _again(rules, asked, measured, {"tensor_parallel_size": count})) for count in TENSOR_SIZES)
    fewest = next((count for count, answer in tried if answer and answer["fits"]), None)
    return (asked, None) if fewest is None else ({**asked, "tensor_parallel_size": fewest}, fewest)


def _to_run(told: Mapping[str, Any], found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The command of the question where that fits, else of the cheapest change that does, and what that change is; else none."""
    if told["fits"] or not found:
        return {"command": told["command"], "command_with": None}
    return {"command": found[0]["command"], "command_with": found[0]["with"]}


def _told(rules: SizingRules, question: Mapping[str, Any], measured: Measured | None) -> tuple[Asked, dict[str, Any]]:
    found = answer(rules, question, measured)
    return found.asked, sizing_document(found)


def _again(rules: SizingRules, question: Mapping[str, Any], measured: Measured | None, changes: Mapping[str, Any]) -> dict[str, Any] | None:
    """The same question with something changed; None where that has no answer."""
    try:
        return sizing_document(answer(rules, {**question, **changes}, measured))
    except Refused:
        return None


def size_batch(rules: SizingRules, lines: Iterable[str], named: Named | None = None) -> Iterator[dict[str, Any]]:
    """One answer for each JSON line, in order, with its id; a question without an answer gets `error` and `refused_by`.

    `named` finds the config.json of a question that has only a `model`.
    """
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield _one_of_batch(rules, line, number, named)


def _one_of_batch(rules: SizingRules, line: str, number: int, named: Named | None) -> dict[str, Any]:
    try:
        question = foreign_json(line)
    except ValueError as error:
        return {"id": None, "error": f"line {number} is not JSON: {error}", "refused_by": "oombot"}
    if not isinstance(question, dict):
        return {"id": None, "error": f"line {number} is not a JSON object", "refused_by": "oombot"}
    try:
        asks = question.get("model") and question.get("config") is None
        whole = named(question) if named and (asks or told_of_draft(question)) else question
        return {"id": question.get("id"), **sizing_document(answer(rules, whole))}
    except Refused as refused:
        return {"id": question.get("id"), "error": str(refused), "refused_by": refused.by}
    except Unusable as unusable:
        return {"id": question.get("id"), "error": str(unusable), "refused_by": "oombot"}


def answer(rules: SizingRules, question: Mapping[str, Any], measured: Measured | None = None) -> Answer:
    """The plan and the budget of every rank. Raises Refused, and says by whom."""
    try:
        asked = read_question(rules, question)
        refuse(asked)
        return _answer(asked, measured)
    except Unplannable as error:
        raise Refused(str(error), by="engine") from error
    except (MissingField, UnknownArchitecture, UnknownVersion) as error:
        raise Refused(str(error)) from error
    except Refused:
        raise
    except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError, RecursionError) as error:
        # a person's config.json may hold anything anywhere
        raise Refused(f"config.json or the question has a value of the wrong kind ({type(error).__name__}: {error})") from error


def _answer(asked: Asked, measured: Measured | None) -> Answer:
    held = weights_of(asked)
    other = with_loading(other_terms(asked, held.bytes, measured), held)
    ranks, more = _budgets(asked, held.bytes, other.bytes)
    pools = [rank.kv_pool for rank in ranks]
    known = [pool for pool in pools if pool is not None]
    whole = plan(asked.shape, asked.grid, asked.settings, asked.rules, known if len(known) == len(pools) else None)
    if asked.fit_length and whole.estimated_max_model_len:
        asked = replace(asked, settings=replace(asked.settings, max_model_len=whole.estimated_max_model_len))
        whole = plan(asked.shape, asked.grid, asked.settings, asked.rules, known)
    return Answer(asked, whole, ranks, other, (*asked.assumptions, *held.assumed, *more), held.loading)


def _budgets(asked: Asked, weights: Sequence[int] | None, other: int | None) -> tuple[tuple[RankBudget, ...], list[str]]:
    count, said = asked.grid.ranks, []
    pools = per_rank(asked.arguments, "kv_cache_memory_bytes", count)
    budget = None if asked.total is None else int(asked.total * Fraction(str(asked.utilization)))
    if pools is not None:
        said.append(f"the pool is given, so utilization {asked.utilization:g} does not size it; the start-up check still uses it")
    ranks = []
    for rank in range(count):
        held = None if weights is None else weights[rank]
        pool = pools[rank] if pools is not None else None
        if pools is None and budget is not None and held is not None and other is not None:
            pool = budget - held - other
        ranks.append(RankBudget(rank, asked.total, budget, held, other, pool))
    return tuple(ranks), said
