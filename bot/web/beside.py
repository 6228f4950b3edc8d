"""Computed beside measured: the sizing answer for an incident's own deployment, against what one of its ranks reported."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from bot.usecases.reply import Unusable
from bot.web.door import door_of
from bot.web.forms import read_form
from bot.web.incident import incident_of
from bot.web.showing import page
from bot.web.sizing import ARGUMENTS, question_of

# (label, unit, where the sizing answer has it, the name among a rank's reported figures)
ROWS = (
    ("Requested budget", "bytes", "rank", "budget_bytes", "requested_bytes"),
    ("Weights", "bytes", "rank", "weights_bytes", "weights_bytes"),
    ("Other, inside the budget", "bytes", "rank", "other_bytes", "other_bytes"),
    ("KV cache pool", "bytes", "rank", "kv_pool_bytes", "kv_cache_bytes"),
    ("Outside the budget", "bytes", "rank", "outside_budget_bytes", "outside_budget_bytes"),
    ("One full request", "bytes", "kv", "request_bytes", "needed_bytes"),
    ("Tokens in the pool", "count", "kv", "tokens", "kv_tokens"),
    ("Blocks", "count", "kv", "num_blocks", "num_gpu_blocks"),
    ("Full-length requests at once", "ratio", "kv", "max_concurrency", "max_concurrency"),
)


@dataclass(frozen=True, slots=True)
class Pair:
    """One term both ways; `apart` is measured less computed, None where one of them is missing."""

    label: str
    unit: str
    computed: int | float | None
    measured: int | float | None

    @property
    def apart(self) -> int | float | None:
        """How far the measured figure is from the computed one."""
        return None if self.computed is None or self.measured is None else self.measured - self.computed


def best_reported(diagnosis: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The rank that reported weights and pool, else most of what is compared: where rank 0 alone prints, not the one that failed."""
    budgets: list[Mapping[str, Any]] = diagnosis.get("budgets") or []
    return max(budgets, key=_comparable, default=None)


def _comparable(reported: Mapping[str, Any]) -> tuple[int, int]:
    known = [name for *_, name in ROWS if reported.get(name) is not None]
    return len({"weights_bytes", "kv_cache_bytes"} & set(known)), len(known)


def question_for(diagnosis: Mapping[str, Any], config: str = "") -> dict[str, Any]:
    """The incident's own deployment as a sizing question; the device as large as a rank said that it is."""
    deployment = diagnosis["deployment"]
    given = {name: str(deployment[name]) for name in ARGUMENTS if isinstance(deployment.get(name), str | int | float)}
    if deployment.get("enable_expert_parallel") is not True:
        given.pop("enable_expert_parallel", None)
    if diagnosis.get("engine_version"):
        given["engine_version"] = diagnosis["engine_version"]
    totals = (one.get("total_bytes") for one in (best_reported(diagnosis) or {}, *(diagnosis.get("budgets") or ())))
    if (total := next(filter(None, totals), None)) is not None:  # the ranks of one engine have the same card
        given["gpu_memory_bytes"] = str(total)
    return question_of({**given, "config": config})


def pairs(sizing: Mapping[str, Any], reported: Mapping[str, Any]) -> list[Pair]:
    """Every term that at least one side has."""
    number = reported.get("rank") or 0
    rank = next((one for one in sizing["ranks"] if one["rank"] == number), sizing["ranks"][0])
    measured = {**reported, "other_bytes": _other(reported)}
    places = {"rank": rank, "kv": sizing["kv"]}
    found = [Pair(label, unit, places[place].get(computed), measured.get(name)) for label, unit, place, computed, name in ROWS]
    return [pair for pair in found if pair.computed is not None or pair.measured is not None]


def _other(reported: Mapping[str, Any]) -> int | None:
    """What a budget leaves between weights and pool, where all three were reported."""
    known = [reported.get(name) for name in ("requested_bytes", "weights_bytes", "kv_cache_bytes")]
    return None if None in known else known[0] - known[1] - known[2]  # type: ignore[operator]


async def compare(request: web.Request) -> web.Response:
    """The comparison, with the model looked up by its name."""
    return await _compared(request, "")


async def compare_with(request: web.Request) -> web.Response:
    """The same with a config.json that somebody pasted."""
    form = await read_form(request)
    form.close()
    return await _compared(request, form.fields.get("config", ""))


async def _compared(request: web.Request, config: str) -> web.Response:
    door = door_of(request)
    incident = await incident_of(request)
    diagnosis = incident["diagnosis"]
    reported = best_reported(diagnosis)
    refused, rows, sizing = "", [], None
    try:
        if reported is None:
            raise Unusable("No rank reported its memory in this incident, so there is nothing to compare with.")
        sizing = (await door.asks.size_arguments(door.desk, question_for(diagnosis, config))).document
        rows = pairs(sizing, reported)
    except Unusable as unusable:
        refused = str(unusable)
    values = {"incident": incident, "reported": reported, "rows": rows, "sizing": sizing, "refused": refused, "config": config}
    return page(request, "beside.html", status=400 if config and refused else 200, **values)
