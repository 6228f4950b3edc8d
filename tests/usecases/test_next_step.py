"""What to do after an answer without a change."""

from typing import Any

import pytest

from bot.domain.incident import Contribution
from bot.rulebook.load import load_rulebook
from bot.usecases.judge import judge
from bot.usecases.next_step import next_step, nothing_failed, to_talk
from bot.usecases.wording import named_rank, which_rank


def diagnosis(**other: Any) -> dict[str, Any]:
    plain = {"phase": "not_oom", "recommendation": None, "questions": [], "proof": [], "rank": None}
    return {**plain, **other}


def proof(rule: str, text: str | None = "OSError: Address already in use") -> list[dict[str, Any]]:
    return [{"source": 1, "line": 12, "rule": rule, "text": text}]


LOG = "If memory ran out all the same, send the log from the server's start to its first error."


@pytest.mark.parametrize(
    ("document", "step"),
    [
        (diagnosis(recommendation={"id": "fix-environment"}, proof=proof("not-oom.port")), ""),
        (diagnosis(phase="graph_capture", recommendation={"id": "x"}), ""),
        (diagnosis(phase="unknown", questions=[{"text": "Which rank?"}, {"text": "Which card?"}]), "Which rank?"),
        (diagnosis(phase="unknown"), ""),
        (diagnosis(proof=proof("not-oom.illegal-access")), f"Go by line 12, which says what it was. {LOG}"),
        (diagnosis(proof=proof("not-oom.illegal-access", None)), LOG),
        (
            diagnosis(proof=proof("not-oom.ready", "Application startup complete.")),
            "If it failed later, send the log from there to its first error.",
        ),
        (diagnosis(), LOG),
    ],
)
def test_the_one_next_step(document: dict[str, Any], step: str) -> None:
    assert next_step(document) == step


def test_talk_is_told_what_to_give_and_a_question_what_answers_it() -> None:
    hello = to_talk(judge(load_rulebook(), [Contribution("paste", "hello")]))
    assert hello.endswith("send the log from the server's start to its first error. `oombot explain` and a few words answer a question.")
    asked = to_talk(judge(load_rulebook(), [Contribution("paste", "does fp8 kv halve memory?")]))
    assert asked.startswith("This asks how memory is used and shows no failure. `oombot explain fp8-kv` may answer it")
    assert "few words" not in asked


def test_preemption_and_a_question_lead_to_explain() -> None:
    assert next_step(diagnosis(proof=proof("not-oom.preemption"))).startswith("`oombot explain preemption` says")
    assert next_step(diagnosis(proof=proof("not-oom.question"))).startswith("Ask it as `oombot explain`")


@pytest.mark.parametrize(
    ("asked", "topic"),
    [
        ("what is the meaning of life?", None),
        ("should I raise utilization?", "utilization"),
        ("Why is the KV cache so small?", "smaller-pool"),
        ("torch.OutOfMemoryError: CUDA out of memory. Should I raise utilization?", None),
    ],
)
def test_the_topic_that_answers_a_question_is_named_and_no_other(asked: str, topic: str | None) -> None:
    document = judge(load_rulebook(), [Contribution("paste", asked)])
    assert (document["topic"] or {}).get("id") == topic
    assert ("may answer it" in next_step(document)) == (topic is not None)
    assert topic is None or next_step(document).startswith(f"`oombot explain {topic}` may answer it: {document['topic']['title']}")


@pytest.mark.parametrize(
    ("rank", "named", "which"),
    [
        (None, "", "not decided by the evidence"),
        ({"number": None, "gpu_index": 3, "label": "GPU 3", "basis": "gpu_index"}, "", "not decided; the error names GPU 3"),
        ({"number": 3, "label": "rank 3", "basis": "answer"}, "rank 3", "3, known by your answer"),
        ({"number": 0, "label": "GPU 0", "basis": "only_worker"}, "rank 0", "0, known by being the only worker"),
        (
            {"number": 7, "label": "Worker_TP7", "basis": "prefix"},
            "rank 7 (Worker_TP7)",
            "7 (Worker_TP7), known by the prefix of its log lines",
        ),
    ],
)
def test_a_rank_is_named_in_one_way(rank: dict[str, Any] | None, named: str, which: str) -> None:
    assert named_rank(rank) == named
    assert which_rank(diagnosis(phase="unknown", rank=rank)) == which


def test_a_check_of_the_engine_core_belongs_to_no_rank() -> None:
    assert which_rank(diagnosis(phase="kv_cache_sizing")) == "none: a check of the engine core"


@pytest.mark.parametrize(
    ("asked", "command"),
    [
        ("does fp8 kv halve memory?", None),
        ("why is 90% of my card used?", None),
        ("how many H200 do I need for deepseek v3 at 64k?", "oombot size deepseek-ai/DeepSeek-V3 --gpu H200-141GB --max-model-len 65536"),
        (
            "is it possible to run mixtral 8x7b on a single 24gb gpu quantized, or on several 3090?",
            "oombot size mistralai/Mixtral-8x7B-Instruct-v0.1 --gpu RTX3090-24GB",
        ),
        (
            "vLLM deployment with 1M context: how much memory at least? Are 8x H20 (96G) enough?",
            "oombot size MODEL --gpu H20-96GB --max-model-len 1048576 --tensor-parallel-size 8",
        ),
        (
            "vllm serve Qwen/Qwen2.5-3B-Instruct-AWQ   (0.8.1, RTX3090)\nbin/python      15982MiB\nsame with the other. why?",
            "oombot size Qwen/Qwen2.5-3B-Instruct-AWQ --gpu RTX3090-24GB --engine-version 0.8.1",
        ),
    ],
)
def test_a_question_that_names_model_card_or_context_is_one_for_sizing_with_all_it_names(asked: str, command: str | None) -> None:
    document = judge(load_rulebook(), [Contribution("paste", asked)])
    assert document["sizing"] == command
    assert (f"`{command}` tells what it needs and what fits" in next_step(document)) == (command is not None)
    assert ("MODEL stands for the model." in next_step(document)) == ("MODEL" in (command or ""))
    assert command is None or (document["topic"] or {}).get("id") in (None, "how-many-cards")
    assert nothing_failed(document)


def test_only_a_server_that_came_up_or_was_stopped_shows_no_failure() -> None:
    assert not nothing_failed(diagnosis(proof=proof("not-oom.port")))
    assert not nothing_failed(diagnosis())
    assert nothing_failed(diagnosis(proof=proof("not-oom.ready", "Application startup complete.")))
