"""Questions as people write them in their own language: read as in English, or said back; never read wrong in silence."""

from pathlib import Path
from typing import Any

import pytest

from bot.rulebook.load import RulebookError
from bot.rulebook.sizing_words import load_sizing_words
from bot.usecases.sizing.question import load_sizing
from bot.usecases.sizing.tongues import in_english
from bot.usecases.sizing.words import read_words

LLAMA_8B, LLAMA_70B = "meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.3-70B-Instruct"
QWEN, R1 = "Qwen/Qwen3-32B", "deepseek-ai/DeepSeek-R1"


def card(gpu: str, cards: int = 1, model: str = QWEN, **more: Any) -> dict[str, Any]:
    return {"model": model, "gpu": gpu, "tensor_parallel_size": cards, **more}


@pytest.mark.parametrize(("text", "said"), [
    ("установите llama 3.1 8b на RTX 3090", "установите"),
    ("qwen3-32b 怎么配置 4090", "怎么配置"),
    ("qwen3-32b をぜひ H100 で", "をぜひ"),
    ("llama 3.1 8b στην H100", "στην"),
    ("llama 3.1 8b على H100", "على"),
])  # fmt: skip
def test_a_word_in_another_script_that_nobody_knows_is_said_back(text: str, said: str) -> None:
    assert read_words(load_sizing(), text).corrections == (f"{said!r} was not understood and is left out",)


@pytest.mark.parametrize(("text", "question"), [
    ("Wie viel Kontext schafft Qwen3 32B auf einer RTX 4090 mit AWQ?", card("RTX4090-24GB", quantization="awq")),
    ("llama 3.3 70b mit 2x H100 à 80 GB und 64k Kontext, 20 Nutzer", card("H100-80GB", 2, LLAMA_70B, max_model_len=65536, max_num_seqs=20)),
    ("Llama 3.1 8B auf T4, 4k Kontext und 3 gleichzeitige Nutzer", {"model": LLAMA_8B, "gpu": "T4-16GB", "max_model_len": 4096, "max_num_seqs": 3}),
    ("llama 3.3 70b Auslastung 0,9 4xH100", card("H100-80GB", 4, LLAMA_70B, gpu_memory_utilization=0.9)),
    ("¿cabe llama 3.3 70b en 2 A100 de 80GB?", card("A100-80GB", 2, LLAMA_70B)),
    ("¿cuántas H100 necesito para deepseek-r1?", {"model": R1, "gpu": "H100-80GB", "fewest": True}),
    ("combien de H100 pour servir llama 3.3 70b avec 128k de contexte ?", {
        "model": LLAMA_70B, "gpu": "H100-80GB", "max_model_len": 131072, "fewest": True}),
    ("llama 3.3 70b su due A100 da 80GB con contesto 64k", card("A100-80GB", 2, LLAMA_70B, max_model_len=65536)),
    ("qwen3 32b em duas L40S com 40k de contexto", card("L40S-48GB", 2, max_model_len=40960)),
    ("quantas gpus L40S preciso para qwen3-32b", {"model": QWEN, "gpu": "L40S-48GB", "fewest": True}),
    ("hoeveel A100 80GB heb ik nodig voor llama 3.3 70b", {"model": LLAMA_70B, "gpu": "A100-80GB", "fewest": True}),
    ("ile H100 potrzebuję do qwen3-32b", {"model": QWEN, "gpu": "H100-80GB", "fewest": True}),
    ("llama 3.1 8b tek RTX 4090 üzerinde 32k bağlam çalışır mı", card("RTX4090-24GB", 1, LLAMA_8B, max_model_len=32768)),
    ("сколько H100 нужно для qwen3-32b", {"model": QWEN, "gpu": "H100-80GB", "fewest": True}),
    ("влезет ли llama 3.1 8b на RTX 3090 с контекстом 32к", {"model": LLAMA_8B, "gpu": "RTX3090-24GB", "max_model_len": 32768}),
    ("8 ускорителей H100, deepseek-r1, контекст 64 тыс", card("H100-80GB", 8, R1, max_model_len=65536)),
    ("qwen3-32b H100 контекст 64тыс", {"model": QWEN, "gpu": "H100-80GB", "max_model_len": 65536}),
    ("qwen3-32b H100 con 32mil de contexto", {"model": QWEN, "gpu": "H100-80GB", "max_model_len": 32768}),
    ("llama 3.1 8b на двух 3090", card("RTX3090-24GB", 2, LLAMA_8B)),
    ("qwen3-32b 4090 4장", card("RTX4090-24GB", 4)),
    ("4090 2枚で qwen3-32b", card("RTX4090-24GB", 2)),
    ("qwen3-32b sur 2 cartes A100 de 80 Go", card("A100-80GB", 2)),
    ("kannst du mir sagen, ob qwen3-32b auf zwei 4090 passt", card("RTX4090-24GB", 2)),
    ("qwen3-32b 4cartes H100", card("H100-80GB", 4)),
    ("用两张4090能跑qwen3-32b吗", card("RTX4090-24GB", 2)),
    ("双卡3090跑qwen3-32b", card("RTX3090-24GB", 2)),
    ("四张A100 80G部署 qwen3-32b 上下文 32k", card("A100-80GB", 4, max_model_len=32768)),
    ("8卡H20 deepseek-r1 并发 32", card("H20-96GB", 8, R1, max_num_seqs=32)),
    ("qwen3-32b 需要几张H100", {"model": QWEN, "gpu": "H100-80GB", "fewest": True}),
    ("H200 8枚でdeepseek-r1は動きますか", card("H200-141GB", 8, R1)),
    ("3万トークンで qwen3-32b を H100 2枚", card("H100-80GB", 2, max_model_len=30000)),
    ("RTX 4090 2장으로 qwen3 32b 돌릴 수 있나요", card("RTX4090-24GB", 2)),
])  # fmt: skip
def test_a_question_in_another_language_is_read_without_a_correction(text: str, question: dict[str, Any]) -> None:
    assert read_words(load_sizing(), text) == (question, ())


@pytest.mark.parametrize(("text", "question"), [
    ("a pair of H100s for llama-3.3-70b", card("H100-80GB", 2, LLAMA_70B)),
    ("DGX H100 for deepseek-r1 at 64k", card("H100-80GB", 8, R1, max_model_len=65536)),
    ("an 8-gpu H200 node serving deepseek-r1 with 64 users", card("H200-141GB", 8, R1, max_num_seqs=64)),
    ("llama 3.3 70b on a100x4 80gb, context of 100 000", card("A100-80GB", 4, LLAMA_70B, max_model_len=100_000)),
    ("qwen3-32b 4090x2 32 k", card("RTX4090-24GB", 2, max_model_len=32768)),
    ("mem fraction 0.95 qwen3-32b 2x3090", card("RTX3090-24GB", 2, gpu_memory_utilization=0.95)),
    ("how many concurrent users can llama 3.1 8b serve on L4 at 8k", {"model": LLAMA_8B, "gpu": "L4-24GB", "max_model_len": 8192}),
])  # fmt: skip
def test_a_count_of_cards_or_a_length_is_read_as_people_write_it(text: str, question: dict[str, Any]) -> None:
    assert read_words(load_sizing(), text) == (question, ())


@pytest.mark.parametrize(
    "text", ["zwei Server mit je 8 H100, deepseek-r1", "2 DGX H100, deepseek-r1", "deepseek-r1 sur deux nœuds de 8 H100"]
)
def test_machines_of_eight_cards_are_nodes(text: str) -> None:
    assert read_words(load_sizing(), text).question == card("H100-80GB", 8, R1, pipeline_parallel_size=2)


@pytest.mark.parametrize("text", ["qwen3-32b H100 100k input 4k output", "qwen3-32b H100, prompt 100k, completion 4k"])
def test_prompt_and_answer_are_one_context_and_that_is_said(text: str) -> None:
    question, corrections = read_words(load_sizing(), text)
    assert question["max_model_len"] == 104 * 1024
    assert corrections == ("100k + 4k: a context of 106,496 holds prompt and answer together",)


@pytest.mark.parametrize("text", [
    "llama-3.3-70b on 4xH100 128k fp8 kv", "mixtral 8x7b on 2x 24gb 3090", "command a on H100 with 40GB checkpoint", "H100 46GB pool qwen3-8b",
    "command a on A100 with 40GB checkpoint", "mil/heron-7b on H100", "sans-7b on H100", "qwen3-32b H100 2x H200",
])  # fmt: skip
def test_what_is_said_in_english_stays_as_it_is(text: str) -> None:
    assert in_english(text, load_sizing().gpus) == text


def test_a_word_that_stands_for_two_things_is_reported_with_its_file(tmp_path: Path) -> None:
    (tmp_path / "sizing-words.toml").write_text(
        '[stands_for]\n"users" = ["nutzer"]\n"context" = ["nutzer", "Kontext"]\n[numbers]\nfew = ["ein"]\n'
        '[counters]\ncards = "张"\nmachines = "台"\n[joins]\nsize = ["of"]\n[fillers]\nen = "a"\n'
    )
    with pytest.raises(RulebookError) as broken:
        load_sizing_words(tmp_path)
    assert broken.value.problems == (
        "sizing-words.toml: [numbers] 'few' is no number",
        "sizing-words.toml: [stands_for] 'nutzer' stands for users and for context",
        "sizing-words.toml: [stands_for] 'Kontext' stands for nothing as it is cased and for context",
    )
