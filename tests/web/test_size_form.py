"""The sizing form after an answer: amounts in the units of the question, fields filled, and only what fits to run."""

import re
from dataclasses import replace

import pytest

from bot.usecases.sizing.ask import size_arguments, size_words
from tests.web.conftest import Browser, Serve, Shelf, seen


@pytest.fixture
async def sizer(serve: Serve, shelf: Shelf) -> Browser:
    return await serve(asks=replace(shelf.asks(), size_arguments=size_arguments, size_words=size_words))


def field(text: str, name: str) -> str:
    found = re.search(rf'<input id="{name}" name="{name}" value="([^"]*)"', text)
    assert found is not None, name
    return found[1]


async def test_a_question_that_is_refused_fills_no_field(sizer: Browser) -> None:
    text = await sizer.text("/size?q=does+it+fit", status=400)
    assert (field(text, "model"), field(text, "gpu")) == ("", "")


async def test_the_fields_show_how_words_were_read(sizer: Browser) -> None:
    text = await sizer.text("/size?q=llama-3.3-70b+on+4xH100+128k+fp8+kv")
    names = ("q", "model", "gpu", "tensor_parallel_size", "max_model_len", "kv_cache_dtype", "max_num_seqs")
    assert [field(text, name) for name in names] == [
        "llama-3.3-70b on 4xH100 128k fp8 kv", "meta-llama/Llama-3.3-70B-Instruct", "H100-80GB", "4", "131072", "fp8", "",
    ]  # fmt: skip


async def test_a_fitted_length_and_a_switch_are_filled_as_a_person_would_type_them(sizer: Browser) -> None:
    text = await sizer.text("/size?q=qwen3-30b-a3b+on+2xH100+--max-model-len+auto+--enable-expert-parallel")
    assert field(text, "max_model_len") == "auto"
    assert 'name="enable_expert_parallel" value="1" checked' in text


async def test_amounts_are_gib_where_nothing_was_given_in_gb(sizer: Browser) -> None:
    text = await sizer.text("/size?q=llama-3.3-70b+on+4xH100+128k")
    assert "79.19 GiB</td>" in text
    assert " GB</td>" not in text
    assert re.search(r"<dd[^>]*>[^<]*[0-9],[0-9]{3} bytes", text) is None


async def test_amounts_that_were_given_in_gb_are_shown_in_both(sizer: Browser) -> None:
    assert "42.93 GiB<br>46.1 GB</td>" in await sizer.text("/size?example=worked")


async def test_what_does_not_fit_is_not_offered_to_run(sizer: Browser) -> None:
    text = await sizer.text("/size?q=llama-3.3-70b+on+1xRTX4090+8k")
    assert "<h3>Run, with a 4-bit AWQ checkpoint, --tensor-parallel-size 4</h3>" in text
    assert "vllm serve 4-BIT-CHECKPOINT --tensor-parallel-size 4 --max-model-len 8192" in seen(text)
    assert "vllm serve meta-llama" not in text


async def test_what_an_estimate_leaves_open_may_fit(sizer: Browser) -> None:
    assert "It may fit</h2>" in await sizer.text("/size?q=gpt-oss-120b+on+H100")
