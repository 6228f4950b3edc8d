"""A change in words, the same at every door."""

import tomllib
from pathlib import Path
from typing import Any, get_args

import pytest

from bot.domain.diagnosis import Phase
from bot.domain.engines import ENGINES
from bot.domain.phases import ELSEWHERE, PHASES
from bot.usecases.wording import (
    SAID,
    deed,
    in_few_words,
    in_words,
    incidents,
    left_alone,
    named_change,
    phase_of,
    some_named,
    span,
    then_each,
    what_runs,
    what_worked,
)

ROOT = Path(__file__).parents[2]


def offer(name: str, flag: str | None = None, direction: str | None = None, value: str | None = None) -> dict[str, Any]:
    return {"id": name, "flag": flag, "direction": direction, "value": value}


SEQS = offer("lower-max-num-seqs", "--max-num-seqs", "lower", "256")


@pytest.mark.parametrize(
    ("change", "deployment", "words"),
    [
        (None, {}, ""),
        (SEQS, {}, "lower --max-num-seqs to 256"),
        (SEQS, {"max_num_seqs": 512}, "lower --max-num-seqs from 512 to 256"),
        (SEQS, {"max_num_seqs": 128}, "lower --max-num-seqs to 256"),
        (SEQS, {"max_num_seqs": "many"}, "lower --max-num-seqs to 256"),
        (SEQS, {"max_num_seqs": True}, "lower --max-num-seqs to 256"),
        (SEQS | {"value": None}, {"max_num_seqs": 512}, "lower --max-num-seqs below 512"),
        (SEQS | {"value": None}, {}, "lower --max-num-seqs"),
        (SEQS | {"value": "[1, 2]"}, {"max_num_seqs": 512}, "lower --max-num-seqs to [1, 2]"),
        (
            offer("lower-gpu-memory-utilization", "--gpu-memory-utilization", "lower", "0.85"),
            {"gpu_memory_utilization": 0.95},
            "lower --gpu-memory-utilization from 0.95 to 0.85",
        ),
        (offer("x", "--tp_size", "raise", "4"), {"tensor_parallel_size": 2}, "raise --tp_size from 2 to 4"),
        (offer("x", "--enforce-eager", "set", "true"), {}, "set --enforce-eager"),
        (offer("x", "VLLM_USE_V2_MODEL_RUNNER", "set", "0"), {}, "set VLLM_USE_V2_MODEL_RUNNER to 0"),
        (offer("x", "--swap-space", "remove", "4"), {"swap_space": 4}, "remove --swap-space"),
        (offer("add-gpus"), {}, "Add a GPU and spread the model over it"),
        (offer("raise-host-memory"), {}, "Give the machine, or the container's limit, more memory of its own"),
        (offer("raise-host-memory", value="96 GiB"), {}, "Raise the container's memory limit to 96 GiB"),
        (offer("something-new"), {}, "something new"),
    ],
)
def test_the_advice_names_where_it_leads_from_only_where_it_leads_away(change: Any, deployment: dict[str, Any], words: str) -> None:
    assert in_words(change, deployment) == words


@pytest.mark.parametrize(
    ("change", "few", "done"),
    [
        (SEQS, "lower --max-num-seqs to 256", "lowering --max-num-seqs to 256"),
        (offer("add-gpus"), "add a GPU", "the change “add a GPU”"),
        (offer("raise-host-memory", value="96 GiB"), "memory limit of 96 GiB", "the change “memory limit of 96 GiB”"),
        ({"remedy": "add-gpus", "flag": None}, "add a GPU", "the change “add a GPU”"),
        ({"id": "D-0001", "remedy": "add-gpus", "flag": None}, "add a GPU", "the change “add a GPU”"),
        ({"id": "D-0001", "remedy": None, "flag": None}, "", "the change"),
        ({}, "", "the change"),
        ({"flag": None, "direction": None, "value": None, "remedy": None}, "", "the change"),
    ],
)
def test_a_cell_and_a_sentence_say_the_same_change(change: Any, few: str, done: str) -> None:
    assert (in_few_words(change), deed(change)) == (few, done)


def test_every_change_without_a_flag_has_its_sentence() -> None:
    rules = tomllib.loads((ROOT / "rules/remedies.toml").read_text(encoding="utf-8"))["remedy"]
    assert {rule["id"] for rule in rules if not rule.get("flag")} - set(SAID) == set()
    assert [few for few, _ in SAID.values() if len(few) > 40] == []


def test_one_incident_is_no_incidents() -> None:
    assert [incidents(count) for count in (0, 1, 1200)] == ["0 incidents", "1 incident", "1,200 incidents"]


def like(outcome: str | None, flag: str | None = "--max-num-seqs") -> dict[str, str | None]:
    return {"outcome": outcome, "flag": flag, "direction": "lower"}


def test_what_worked_before_is_a_sentence_only_where_something_did() -> None:
    assert what_worked([]) == ""
    assert what_worked([like("fixed"), like(None)]) == "", "one is no precedent"
    assert what_worked([like("same"), like("moved")]) == ""
    assert (
        what_worked([like("fixed"), like("fixed"), like("fixed"), like("same", "--enforce-eager")])
        == "3 of 4 were fixed by lowering --max-num-seqs."
    )
    assert what_worked([like("fixed"), like("same")]) == "1 of 2 was fixed by lowering --max-num-seqs."


def test_a_change_is_named_by_its_flag_or_by_what_it_is() -> None:
    assert named_change("lower-max-num-seqs", "--max-num-seqs") == "--max-num-seqs"
    assert named_change("raise-host-memory", None) == "More host memory"


def test_both_directions_of_a_flag_are_left_alone_together_only_for_one_reason() -> None:
    told = [("--a", "lower", "It is full."), ("--a", "raise", "It is full."), ("--b", "raise", "It is full."), ("--a", "set", "It is set.")]
    avoid = [{"flag": flag, "direction": direction, "because": because} for flag, direction, because in told]
    assert left_alone(avoid) == [("lower or raise", "--a", "It is full."), ("raise", "--b", "It is full."), ("set", "--a", "It is set.")]


@pytest.mark.parametrize(
    ("told", "runs"),
    [
        ({"model": None, "gpu": None, "tensor_parallel_size": 4}, ""),
        ({"model": "Qwen/Qwen3-14B", "gpu": None, "tensor_parallel_size": None}, "Qwen/Qwen3-14B"),
        ({"gpu": "H100-80GB", "gpu_count": 8}, "8 × H100-80GB"),
        (
            {"model": "m", "gpu": "H100-80GB", "tensor_parallel_size": 8, "pipeline_parallel_size": 2},
            "m on H100-80GB, TP 8, PP 2",
        ),
        ({"model": "m", "tensor_parallel_size": 1, "pipeline_parallel_size": 1}, "m, TP 1"),
    ],
)
def test_what_runs_is_said_as_far_as_it_is_known(told: dict[str, Any], runs: str) -> None:
    assert what_runs({"deployment": told}) == runs


def test_another_engine_is_not_said_to_go_through_vllms_phases() -> None:
    assert phase_of({"engine": "llama.cpp", "phase": "of tomorrow"}) == "of tomorrow"
    assert phase_of({"engine": "llama.cpp", "phase": "profiling"}) == "compute buffers"
    assert phase_of({"engine": "vllm", "phase": "profiling"}) == "profiling"


def test_every_phase_has_words_and_each_other_ones() -> None:
    assert tuple(PHASES) == get_args(Phase)
    assert len({words.few for words in PHASES.values()}) == len(PHASES)
    assert {phase for phase, words in PHASES.items() if not words.inside} == {"not_oom", "unknown"}
    assert {engine for engine, _ in ELSEWHERE} < set(ENGINES)
    assert {phase for _, phase in ELSEWHERE} < set(PHASES)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (None, ""),
        (1, "1 second"),
        (1.4, "1 second"),
        (119, "119 seconds"),
        (120, "2 minutes"),
        (7_199, "120 minutes"),
        (7_200, "2 hours"),
        (172_800, "2 days"),
    ],
)
def test_a_duration_is_said_in_the_unit_that_fits(seconds: float | None, said: str) -> None:
    assert span(seconds) == said


def test_of_many_incidents_the_first_three_are_named() -> None:
    assert some_named(["D-1"]) == "D-1"
    assert some_named(["D-1", "D-2", "D-3"]) == "D-1, D-2, D-3"
    assert some_named(["D-1", "D-2", "D-3", "D-4", "D-5"]) == "D-1, D-2, D-3 and 2 more"


def test_the_next_ones_in_line_stand_inside_a_sentence() -> None:
    assert then_each([offer("fp8-cache", "--kv-cache-dtype", "set", "fp8"), offer("add-gpus"), offer("")]) == (
        "set --kv-cache-dtype to fp8; then add a GPU and spread the model over it"
    )


def test_the_value_in_force_is_named_where_the_change_leads_away_from_it() -> None:
    assert in_words(SEQS, {"max_num_seqs": 256}) == "lower --max-num-seqs to 256"
    assert in_words(SEQS, {"max_num_seqs": 257}) == "lower --max-num-seqs from 257 to 256"
