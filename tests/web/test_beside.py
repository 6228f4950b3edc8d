"""Computed beside measured, on the real arithmetic."""

import re
from dataclasses import replace

import pytest

from bot.usecases.sizing.ask import size_arguments
from bot.web.beside import pairs, question_for
from bot.web.sizing import EXAMPLE
from tests.web import documents
from tests.web.conftest import Browser, Serve, Shelf


@pytest.fixture
async def browser(serve: Serve, shelf: Shelf) -> Browser:
    return await serve(asks=replace(shelf.asks(), size_arguments=size_arguments))


async def test_without_any_report_there_is_nothing_to_compare(browser: Browser, shelf: Shelf) -> None:
    shelf.incident = documents.incident(diagnosis=documents.diagnosis(budgets=[]))
    text = await browser.text("/d/D-0187/computed")
    assert "nothing to compare with" in text
    assert 'name="config"' not in text


async def test_a_config_that_is_none_is_named(browser: Browser) -> None:
    data = {"token": await browser.token("/d/D-0187"), "config": "{"}
    async with browser.post("/d/D-0187/computed", data=data) as answer:
        assert answer.status == 400
        assert "config.json is no JSON" in await answer.text()


async def test_the_deployment_is_sized_as_its_rank_reported_it(browser: Browser) -> None:
    data = {"token": await browser.token("/d/D-0187"), "config": EXAMPLE.read_text()}
    async with browser.post("/d/D-0187/computed", data=data) as answer:
        text = await answer.text()
        assert answer.status == 200, text
    assert "What rank 0 reported, beside what vLLM 0.22.1" in text
    pool = re.search(r"KV cache pool</th>\s*<td[^>]*>([\d.]+ GiB)</td><td[^>]*>62.98 GiB</td>", text)
    assert pool
    weights = re.search(r"Weights</th>\s*<td[^>]*>([\d.]+) GiB</td><td[^>]*>8.51 GiB</td>", text)
    assert weights
    assert 8 < float(weights[1]) < 18


async def test_where_one_rank_prints_weights_and_pool_it_is_compared_with(browser: Browser, shelf: Shelf) -> None:
    first, *_ = documents.diagnosis()["budgets"]
    nothing = dict.fromkeys((name for name in first if name.endswith("_bytes")), None)
    failed = {
        **first,
        **nothing,
        "rank": 5,
        "label": "Worker_TP5",
        "total_bytes": 84_942_979_072,
        "requested_bytes": 80_691_249_152,
        "outside_budget_bytes": 4_251_729_920,
    }
    shelf.incident = documents.incident(
        diagnosis=documents.diagnosis(budgets=[failed, {**first, "rank": 0, "total_bytes": None, "requested_bytes": None}])
    )
    data = {"token": await browser.token("/d/D-0187"), "config": EXAMPLE.read_text()}
    async with browser.post("/d/D-0187/computed", data=data) as answer:
        text = await answer.text()
    assert "What rank 0 reported" in text
    assert re.search(r"KV cache pool</th>\s*<td[^>]*>[\d.]+ GiB</td><td[^>]*>62.98 GiB</td>", text)
    assert re.search(r"Requested budget</th>\s*<td[^>]*>75.15 GiB</td>", text), "the card is as large as another rank said"


def test_the_question_holds_what_the_log_said_and_nothing_else() -> None:
    question = question_for(documents.diagnosis(), "{}")
    assert question == {
        "model": "acme/palmyra-70b-fp8", "gpu": "H100-80GB", "tensor_parallel_size": 8, "pipeline_parallel_size": 1, "max_model_len": 65536,
        "gpu_memory_utilization": 0.95, "max_num_seqs": 512, "max_num_batched_tokens": 8192, "engine_version": "0.22.1", "config": {},
        "gpu_memory_bytes": 84_943_716_188,
    }  # fmt: skip


def test_a_term_that_nobody_has_is_left_out_and_a_difference_needs_both() -> None:
    sizing = {"ranks": [{"rank": 0, "weights_bytes": 10, "budget_bytes": 100}], "kv": {"tokens": 7}}
    found = {pair.label: pair for pair in pairs(sizing, {"rank": 0, "weights_bytes": 12, "requested_bytes": None})}
    assert set(found) == {"Requested budget", "Weights", "Tokens in the pool"}
    assert (found["Weights"].apart, found["Requested budget"].apart) == (2, None)


def test_what_lies_between_weights_and_pool_is_other() -> None:
    sizing = {"ranks": [{"rank": 0, "other_bytes": 5}], "kv": {}}
    (pair,) = [
        one
        for one in pairs(sizing, {"rank": 0, "requested_bytes": 100, "weights_bytes": 40, "kv_cache_bytes": 50})
        if one.label.startswith("Other")
    ]
    assert (pair.computed, pair.measured, pair.apart) == (5, 10, 5)
