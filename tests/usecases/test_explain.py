"""People ask in their own words; what is no question of ours gets the list of topics, not a guess."""

from datetime import UTC, datetime

import pytest

from bot.rulebook.load import load_rulebook
from bot.settings import Settings
from bot.usecases.desk import Desk, Viewer
from bot.usecases.explain import answered, explain, figures_of, find_topic
from bot.usecases.judge import judged_here
from bot.usecases.reply import Unusable

TOPICS = load_rulebook().topics


@pytest.mark.parametrize(
    "words",
    [
        *(
            "what is the weather",
            "banana",
            "hello",
            "how does the moon work",
            "the model",
            "help me please",
            "",
            "lunch?",
            "thanks, that helped",
        ),
        *("how long does loading take", "is sglang better than vllm", "should I use awq or gptq", "how to enable prefix caching"),
        *("what is the price of an H100", "which model is best for coding", "wie lange dauert das laden", "quelle heure est-il"),
    ],
)
def test_words_that_no_topic_is_about_are_answered_with_the_list(words: str) -> None:
    with pytest.raises(Unusable, match=r"No topic fits .*\n- Should utilization go up or down\?\n- "):
        find_topic(TOPICS, words)


@pytest.mark.parametrize(
    ("words", "topic"),
    [
        ("why does a small model take 90% of the card?", "small-model-large-memory"),
        ("vllm uses 22 GB for a 0.5B model", "small-model-large-memory"),
        ("should I raise or lower gpu-memory-utilization", "utilization"),
        ("utilization up or down?", "utilization"),
        ("it worked on 0.8 why not with 0.11", "new-version"),
        ("oom after upgrading", "new-version"),
        ("the gpu is empty in nvidia-smi, how can it be full", "empty-card"),
        ("how many GPUs do I need for llama 70b", "how-many-cards"),
        ("how many concurrent users fit", "how-many-cards"),
        ("why is my kv cache so small", "smaller-pool"),
        ("kv cache is smaller than I calculated", "smaller-pool"),
        ("max_model_len is larger than the kv cache", "context-and-cache"),
        ("do cuda graphs count inside utilization", "graphs"),
        ("how do I run two vllm instances on one gpu", "two-engines"),
        ("why does it crash only with long prompts", "only-under-load"),
        ("what does engine core initialization failed mean", "wrapper"),
        ("EngineDeadError", "wrapper"),
        ("memory not freed after ctrl-c", "not-released"),
        ("is there a memory leak", "leak"),
        ("which limit for images", "multimodal"),
        ("is preemption an error", "preemption"),
        ("GB vs GiB", "units"),
        ("does fp8 kv cache halve memory", "fp8-kv"),
        ("does a 2× weight mismatch prove FP8 became BF16?", "weight-mismatch"),
        ("does TP divide the kv cache", "tensor-parallel"),
        ("exit code 137", "host-memory"),
        ("killed", "host-memory"),
        ("how do I use fp8 kv cache", "fp8-kv"),
        ("why is my KV cache only 1 GiB?", "smaller-pool"),
        ("how much KV cache memory do I get", "smaller-pool"),
        ("should I set expandable_segments", "expandable-segments"),
        ("sleep mode", "sleep"),
        ("does max-num-seqs reserve memory", "max-num-seqs"),
        ("why did lower concurrency help startup?", "max-num-seqs"),
        ("what is the difference between allocated and used cache", "pool-and-blocks"),
        ("how do i free memory after killing vllm", "not-released"),
        ("gpu memory stays in use since I killed the server", "not-released"),
        ("fp8 halves memory?", "fp8-kv"),
        ("why does ollama use the cpu", "cpu-fallback"),
        ("what is graph capture", "graph-capture"),
        ("what is cuda graph capturing?", "graph-capture"),
        ("why do CUDA graphs need memory", "graph-capture"),
        ("what happens during the warm up", "warm-up"),
        ("profiling run", "profiling"),
        ("startup check", "startup-check"),
        ("does it help to lower the context when the weights do not fit", "weights"),
        ("why is rank 3 the only one that fails", "one-rank"),
        ("how many bytes per token does the kv cache take", "kv-arithmetic"),
        ("I change utilization and nothing changes: no effect", "explicit-pool"),
        ("where should I start debugging", "first-step"),
        ("Wie bekomme ich den GPU-Speicher nach einem Absturz frei?", "not-released"),
        ("Wieso braucht ein kleines Modell den ganzen Speicher?", "small-model-large-memory"),
        ("wie viele H100 brauche ich für llama 70b", "how-many-cards"),
        ("Was ist Graph Capture?", "graph-capture"),
        ("halbiert FP8 den KV-Cache?", "fp8-kv"),
        ("comment libérer la mémoire GPU après avoir tué vllm", "not-released"),
        ("combien de GPU faut-il pour llama 70b", "how-many-cards"),
        ("c'est quoi la capture de graphes CUDA", "graph-capture"),
        ("est-ce que deux modèles tiennent sur une seule carte", "two-engines"),
    ],
)
def test_a_question_finds_its_topic(words: str, topic: str) -> None:
    assert find_topic(TOPICS, words).id == topic


def test_every_topic_answers_to_its_id_its_title_and_its_own_questions() -> None:
    for topic in TOPICS:
        assert [find_topic(TOPICS, words).id for words in (topic.id, topic.title, *topic.asks)] == [topic.id] * (2 + len(topic.asks)), (
            topic.id
        )


def test_a_few_topics_are_near_another_and_never_itself() -> None:
    assert [one["id"] for one in answered(TOPICS, "sleep").document["near"]] == ["not-released", "graph-capture"]
    assert answered(TOPICS, "leak").document["near"] == [], "what shares no telling words is not near"
    for topic in TOPICS:
        near = [one["id"] for one in answered(TOPICS, topic.id).document["near"]]
        assert len([*near, topic.id]) == len({*near, topic.id}) <= 4


async def test_who_asks_nothing_gets_every_topic() -> None:
    desk = Desk(Settings(), load_rulebook, judged_here, lambda: datetime.now(UTC))
    document = (await explain(desk, Viewer("T1"), " ")).document
    assert (document["topic"], [one["id"] for one in document["topics"]]) == (None, [topic.id for topic in TOPICS])


def test_the_numbers_are_those_of_the_rank_that_failed() -> None:
    reports = [{"rank": rank, "kv_cache_bytes": rank * 2**30, "lines": {"kv_cache_bytes": 10 + rank}} for rank in (0, 3)]
    topic = find_topic(TOPICS, "pool-and-blocks")
    assert figures_of(topic, {"rank": {"number": 3}, "budgets": reports}) == [{"label": "KV pool (line 13)", "value": "3.00 GiB"}]
    assert figures_of(topic, {"rank": None, "budgets": reports[:1]}) == [{"label": "KV pool (line 10)", "value": "0 B"}]
    assert figures_of(topic, {"rank": None, "budgets": []}) == []


@pytest.mark.parametrize(
    ("words", "title", "first"),
    [
        ("utilization", "Should utilization go up or down?", "It depends on which"),
        ("why does a 3b model take 16 GB?", "Why does a small model take 90 % of the card?", "By design. "),
        (
            "is utilization of 0.95 too high for production",
            "Why does a small model take 90 % of the card?",
            "This is the nearest topic; it may not be",
        ),
        (
            "is it possible to run mixtral 8x7b on several 3090?",
            "This is a question for sizing",
            "`oombot size mistralai/Mixtral-8x7B-Instruct-v0.1 --gpu RTX3090-24GB` tells what it needs and what fits.",
        ),
        (
            "do cuda graphs count inside utilization on an H100?",
            "Do CUDA graphs count inside the utilization?",
            "For what you name: `oombot size MODEL --gpu H100-80GB` tells",
        ),
    ],
)
def test_what_is_only_near_is_called_so_and_a_question_for_sizing_gets_its_command(words: str, title: str, first: str) -> None:
    document = answered(TOPICS, words).document
    assert document["title"] == title
    assert document["paragraphs"][0].startswith(first)
