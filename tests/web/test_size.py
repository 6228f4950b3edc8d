"""The sizing page, on the real arithmetic."""

import json
import re
from dataclasses import replace

import pytest

from bot.usecases.sizing.ask import size_arguments, size_words
from bot.web.openapi import DOCUMENT
from bot.web.sizing import EXAMPLE, in_the_form
from tests.web.conftest import Browser, Serve, Shelf, seen
from tests.web.test_api import _fits

CONFIG = EXAMPLE.read_text()


@pytest.fixture
async def sizer(serve: Serve, shelf: Shelf) -> Browser:
    return await serve(asks=replace(shelf.asks(), size_arguments=size_arguments, size_words=size_words))


async def test_what_is_no_number_is_named(sizer: Browser) -> None:
    text = await sizer.text("/size?model=x&tensor_parallel_size=several", status=400)
    assert "tensor_parallel_size is &#39;several&#39;; it takes a whole number" in text
    assert 'value="several"' in text, "what was typed is still in its field"


@pytest.mark.parametrize("value", ["1.5", "0", "-1", "nan", "lots"])
async def test_a_utilization_that_cannot_be_is_named(sizer: Browser, value: str) -> None:
    assert "gpu_memory_utilization is" in await sizer.text(f"/size?model=x&gpu_memory_utilization={value}", status=400)


async def test_a_question_in_words_is_answered_and_says_how_it_was_read(sizer: Browser) -> None:
    text = await sizer.text("/size?q=llama-3.3-70b+on+4xH100+128k+fp8+kv+pleese")
    assert "each of 4 ranks" in text
    assert "--tensor-parallel-size 4" in seen(text)
    assert "pleese" in text[text.index('id="answer"') :]


async def test_words_that_cannot_be_answered_stand_in_the_form_as_they_were_read(sizer: Browser) -> None:
    text = await sizer.text("/size?q=qwen3-32b+on+4xH100+128k", status=400)
    assert "max_model_len 131072 is greater than the 40960 tokens" in text
    for name, value in (("model", "Qwen/Qwen3-32B"), ("gpu", "H100-80GB"), ("tensor_parallel_size", "4"), ("max_model_len", "131072")):
        assert f'id="{name}" name="{name}" value="{value}"' in text
    assert 'id="gpu" name="gpu" value=""' in await sizer.text("/size?q=qwen3-32b+on+0xH100", status=400)


async def test_words_that_name_no_model_are_answered_with_an_example(sizer: Browser) -> None:
    assert "Write for example" in await sizer.text("/size?q=does+it+fit", status=400)


async def test_what_does_not_fit_comes_with_what_would(sizer: Browser) -> None:
    text = await sizer.text("/size?q=llama-3.3-70b+on+1xH100+8k")
    assert "It does not fit" in text
    assert "What would fit" in text


async def test_a_question_without_a_config_is_refused_in_a_sentence(sizer: Browser) -> None:
    assert 'role="alert"' in await sizer.text("/size?gpu=H100-80GB", status=400)


@pytest.mark.parametrize(
    ("query", "status", "says"),
    [
        ("model=llama-3.3-70b&gpu=H10O", 400, "or give its memory by “Device memory”"),
        ("model=llama-3.3-70b", 200, "give “GPU”, or the pool itself by “KV cache pool”."),
        ("model=llama-3.3-70b&gpu=H100&tensor_parallel_size=4", 200, "--tensor-parallel-size 4"),  # what is to be typed stays a flag
    ],
)
async def test_what_is_missing_is_named_as_the_form_names_it(sizer: Browser, query: str, status: int, says: str) -> None:
    text = await sizer.text(f"/size?{query}", status=status)
    assert says in seen(text)
    assert "--gpu-memory-bytes" not in text


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        (
            "the hub cannot be reached: check the network, or give --config FILE",
            "the hub cannot be reached: check the network, or paste its config.json",
        ),
        ("give --weights-bytes or --no-such-flag", "give “Weights, each rank” or --no-such-flag"),
    ],
)
def test_a_flag_of_the_command_line_is_said_as_what_the_form_has_for_it(told: str, shown: str) -> None:
    assert in_the_form(told) == shown


async def test_a_config_that_is_no_json_is_named(sizer: Browser) -> None:
    async with sizer.post("/size", data={"token": await sizer.token("/size"), "config": "{'a': 1}"}) as answer:
        assert answer.status == 400
        assert "config.json is no JSON" in await answer.text()


async def test_the_worked_example_gives_the_articles_figures(sizer: Browser) -> None:
    text = await sizer.text("/size?example=worked")
    assert "each of 4 ranks" in text
    assert re.findall(r">([\d.]+ GB)</td>", text) == ["80 GB", "73.6 GB", "17.5 GB", "10 GB", "46.1 GB", "6.4 GB"]
    for figure in ("81,920 bytes a rank", "10,737,418,240 bytes a rank", "35,171 blocks of 16", "562,736 tokens", "4.29 at once"):
        assert figure in text
    assert "10,995,116,277,760 bytes" in text
    assert "That is demand, not a reservation" in text


async def test_a_question_about_a_named_model_becomes_an_address(sizer: Browser) -> None:
    data = {"token": await sizer.token("/size"), "model": "acme/heron", "gpu": "H100", "max_model_len": "131,072", "config": " "}
    async with sizer.post("/size", data=data, allow_redirects=False) as answer:
        assert (answer.status, answer.headers["Location"]) == (303, "/size?model=acme%2Fheron&gpu=H100&max_model_len=131%2C072")


async def test_the_answer_alone_is_given_to_the_pages_script(sizer: Browser) -> None:
    data = {
        "token": await sizer.token("/size"),
        "config": CONFIG,
        "gpu": "H100-80GB",
        "tensor_parallel_size": "8",
        "weights_bytes": "9,000,000,000",
    }
    async with sizer.post("/size?part=answer", data=data) as answer:
        text = await answer.text()
    assert "<html" not in text
    assert "It fits" in text


async def test_what_does_not_fit_says_so(sizer: Browser) -> None:
    data = {"token": await sizer.token("/size"), "config": CONFIG, "gpu": "A100-40GB", "checkpoint_bytes": "140000000000"}
    async with sizer.post("/size", data=data) as answer:
        assert answer.status == 200, "an answer that is no is still an answer"
        assert "It does not fit" in await answer.text()


async def test_the_api_gives_the_same_document(sizer: Browser) -> None:
    query = {
        "config": CONFIG,
        "tensor_parallel_size": "4",
        "gpu_memory_bytes": "80000000000",
        "checkpoint_bytes": "70000000000",
        "other_bytes": "10000000000",
        "gpu_memory_utilization": "0.92",
        "max_model_len": "131072",
        "max_num_seqs": "256",
    }
    async with sizer.get("/api/v1/size", params=query) as answer:
        document = await answer.json()
    _fits(document, DOCUMENT["components"]["schemas"]["Sizing"])
    assert document["ranks"][0]["kv_pool_bytes"] == 46_100_000_000


async def test_of_several_cards_it_is_said_whose_figures_stand_below(sizer: Browser) -> None:
    text = await sizer.text("/size?model=llama-3.3-70b&gpu=H200,H100-80GB&tensor_parallel_size=4")
    assert "<b>H200</b>: The pool of rank 0" in text
    assert text.index("Side by side") < text.index("<h3>H200 in full</h3>") < text.index("KV cache pool</th>")
    assert "in full" not in await sizer.text("/size?model=llama-3.3-70b&gpu=H200&tensor_parallel_size=4")


async def test_the_requests_that_were_asked_for_are_answered(sizer: Browser) -> None:
    text = await sizer.text("/size?q=llama-3.1-8b+4090+16k+20+users")
    assert "Of the 20 requests at full length that are asked for, 3 fit into the pool at once" in text
    assert "For all of them: " in text
    assert "<h3>At once</h3>" not in await sizer.text("/size?q=llama-3.1-8b+4090+16k")


@pytest.mark.parametrize(
    ("query", "ranks"), [("tp=4", 4), ("tensor-parallel-size=4&enforce_eager=1", 4), ("tp=2&pp=2", 4), ("gpu=H100", 1)]
)
async def test_the_api_reads_short_names_as_the_command_does(sizer: Browser, query: str, ranks: int) -> None:
    async with sizer.get(f"/api/v1/size?model=llama-3.3-70b&gpu=H100&{query}") as answer:
        assert len((await answer.json())["ranks"]) == ranks


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("tensor_paralel_size=4", "Sizing has no parameter 'tensor_paralel_size'; did you mean tensor_parallel_size?"),
        ("soup=1", "Sizing has no parameter 'soup'."),
        ("tp=4&tensor_parallel_size=2", "tensor_parallel_size is said twice: '4' and '2'."),
        ("tp=0", "tensor_parallel_size is 0; it must be at least 1"),
    ],
)
async def test_the_api_names_what_it_does_not_read(sizer: Browser, query: str, says: str) -> None:
    async with sizer.get(f"/api/v1/size?model=llama-3.3-70b&gpu=H100&{query}") as answer:
        assert answer.status == 400
        assert says in json.dumps(await answer.json())


async def test_beside_words_the_api_says_that_arguments_are_not_read(sizer: Browser) -> None:
    async with sizer.get("/api/v1/size?q=llama-3.3-70b+on+4xH100&tp=2") as answer:
        assert "tensor_parallel_size is not read beside q: say it in the words" in (await answer.json())["corrections"]
