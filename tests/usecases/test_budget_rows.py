"""Which figures of memory a door shows."""

from typing import Any

import pytest

from bot.cli.show_diagnosis import diagnosis_text
from bot.domain.incident import Contribution
from bot.pictures.bars import bars_of
from bot.rulebook.load import load_rulebook
from bot.store.erasure import blanked
from bot.usecases.as_json import BUDGET_FIGURES
from bot.usecases.budget_rows import FIGURES, at_the_error, not_reported, of_what_failed
from bot.usecases.judge import judge
from tests.diagnosis.material import frame, judged, oom, worker

BOOK = load_rulebook()
LOADER = "v1/worker/gpu_worker.py"
TWO = """\
chat-1   | INFO 11-20 10:00:01 [gpu_worker.py:298] Available KV cache memory: 21.50 GiB
chat-1   | INFO:     Application startup complete.
embed-1  | (EngineCore_DP0 pid=88) INFO 11-20 10:00:30 [gpu_worker.py:298] Available KV cache memory: 1.10 GiB
embed-1  | (EngineCore_DP0 pid=88) ERROR 11-20 10:00:31 [core.py:708] ValueError: No available memory for the cache blocks.
"""


def two() -> dict[str, Any]:
    return judge(BOOK, [Contribution("paste", TWO)])


def test_an_error_without_figures_has_no_rows() -> None:
    assert at_the_error({"first_error": None}) == []
    assert at_the_error(two()) == []


def test_what_the_failed_request_says_of_its_card_is_shown_where_the_engine_reported_nothing() -> None:
    document = judged(worker("Worker_TP1", frame(LOADER, "load_model"), oom("64.00 MiB", "20.00 MiB", gpu=1)))
    assert [label for label, _ in at_the_error(document)][-2:] == ["free", "asked for"]
    assert of_what_failed(document) == []
    text = diagnosis_text(document)
    assert "The card at the first error, line" in text
    assert "64.00 MiB" in text.partition("The card at the first error")[2]
    assert "not reported" not in text


def test_of_several_containers_the_one_that_failed_is_named_and_the_others_pool_is_not_shown() -> None:
    document = two()
    assert document["container"] == "embed-1"
    assert "embed-1" in document["summary"]
    assert [budget["engine_label"] for budget in of_what_failed(document)] == ["embed-1"]
    assert len(document["budgets"]) == 2, "all of them stand in the JSON"
    text = diagnosis_text(document)
    assert "of embed-1" in text
    assert "21.50 GiB" not in text


def test_one_container_is_not_named() -> None:
    alone = "\n".join(TWO.splitlines()[2:]) + "\n"
    document = judge(BOOK, [Contribution("paste", alone)])
    assert document["container"] is None
    assert "embed-1" not in document["summary"]


def test_a_bar_that_would_mostly_be_unknown_is_not_drawn() -> None:
    budget = {"rank": 0, "total_bytes": 80 * 2**30, "weights_bytes": 2 * 2**30}
    assert bars_of({"budgets": [budget]}) == ()
    assert len(bars_of({"budgets": [budget | {"weights_bytes": 60 * 2**30}]})) == 1


def test_an_erased_incident_keeps_no_container_and_shows_its_budgets() -> None:
    erased = blanked(two())
    assert not erased["container"]
    assert len(of_what_failed(erased)) == 2


def test_every_figure_of_the_contract_has_a_name_and_no_other_has() -> None:
    assert set(FIGURES) == set(BUDGET_FIGURES) - {"graphs_inside_budget"}, "that one is a yes or no"
    assert len({figure.label for figure in FIGURES.values()}) == len(FIGURES)


@pytest.mark.parametrize(
    ("engine", "reported", "missing"),
    [
        ("sglang", {"weights_bytes": 1}, []),
        ("vllm", {}, ["device memory", "utilization", "weights", "activation peak", "KV pool"]),
        ("unknown", {"weights_bytes": 1, "total_bytes": 1}, ["utilization", "activation peak", "KV pool"]),
        ("vllm", {"consumed_bytes": 1, "total_bytes": 1, "kv_cache_bytes": 1}, ["utilization", "activation peak"]),
    ],
)
def test_what_the_engine_usually_reports_is_missed_by_name(engine: str, reported: dict[str, int], missing: list[str]) -> None:
    assert not_reported({"engine": engine}, reported) == missing


def test_what_the_card_held_is_shown_where_one_of_two_figures_says_it() -> None:
    assert at_the_error({"first_error": {"total_bytes": 3, "free_bytes": 1}}) == []
    assert at_the_error({"first_error": {"allocated_bytes": 2}}) == [("allocated by PyTorch", 2)]
    assert at_the_error({"first_error": {"process_bytes": 2}}) == [("in use by this process", 2)]


def test_a_budget_with_the_engines_own_fraction_is_shown_beside_the_card_at_the_error() -> None:
    start = "INFO 11-20 10:00:00 [api_server.py:1] args: Namespace(gpu_memory_utilization=0.9, tensor_parallel_size=2)"
    document = judged(f"{start}\n{worker('Worker_TP1', frame(LOADER, 'load_model'), oom('64.00 MiB', '20.00 MiB', gpu=1))}")
    assert at_the_error(document)
    assert [budget["utilization"] for budget in of_what_failed(document)] == [0.9]
