"""What a sizing answer adds to the plan: estimates with a range, ways to make it fit, versions and cards side by side."""

from typing import Any

import pytest

from bot.budget.search import first, largest
from bot.domain.overheads import Estimate
from bot.domain.size import GIB
from bot.rulebook.model_names import load_model_names
from bot.usecases.reply import Unusable
from bot.usecases.size import size, size_batch
from bot.usecases.size_question import load_sizing


def question(model: str, **more: Any) -> dict[str, Any]:
    named = load_model_names().find(model)
    assert named is not None
    return {"model": named.id, "config": named.config, **more}


def ask(model: str, **more: Any) -> dict[str, Any]:
    return dict(size(load_sizing(), question(model, **more)).document)


def test_a_shared_card_name_is_asked_back_not_guessed() -> None:
    with pytest.raises(Unusable, match=r"'A100' is not one card we know; say which: A100-40GB"):
        ask("llama-3.1-8b", gpu="A100")


def test_without_a_card_nothing_is_estimated() -> None:
    document = ask("llama-3.1-8b", tensor_parallel_size=1)
    assert document["fits"] is None
    assert (document["terms"], document["range"], document["ways"]) == ([], None, [])


def test_other_bytes_override_every_estimate() -> None:
    document = ask("llama-3.1-8b", gpu="H100", other_bytes=10 * 10**9)
    assert document["terms"] == [{"name": "other", "bytes": 10 * 10**9, "basis": "given"}]
    assert document["range"] is None
    assert document["ranks"][0]["other_bytes"] == 10 * 10**9


def test_a_given_pool_has_no_range() -> None:
    assert ask("llama-3.1-8b", gpu="H100", kv_cache_memory_bytes=20 * 10**9)["range"] is None


def test_estimated_terms_carry_range_formula_and_side_of_the_budget() -> None:
    document = ask("llama-3.1-8b", gpu="H100", max_model_len=32768, engine_version="0.33.0", max_num_batched_tokens=8192)
    terms = {term["name"]: term for term in document["terms"]}
    assert set(terms) == {"activations", "non-torch", "CUDA graphs", "CUDA context and communicators"}
    assert all(term["range"][0] <= term["bytes"] <= term["range"][1] for term in terms.values())
    assert all(term["basis"].startswith("estimated (") for term in terms.values())
    assert [term["inside_budget"] for term in terms.values()] == [True, True, True, False]
    inside = sum(term["bytes"] for term in terms.values() if term["inside_budget"])
    rank, (low, high) = document["ranks"][0], document["range"]["kv_pool_bytes"]
    assert rank["other_bytes"] == inside
    assert rank["kv_pool_bytes"] == rank["budget_bytes"] - rank["weights_bytes"] - inside
    assert low < rank["kv_pool_bytes"] < high
    assert high - low <= 3 * GIB + 2


def test_a_measured_start_stands_in_for_the_estimate_of_that_term() -> None:
    seen = Estimate("activations", 2 * GIB, 2 * GIB, 2 * GIB, "measured D-0187")
    document = size(load_sizing(), question("llama-3.1-8b", gpu="H100", max_model_len=8192), measured=lambda asked: [seen]).document
    term = document["terms"][0]
    assert (term["name"], term["bytes"], term["basis"], term["range"]) == ("activations", 2 * GIB, "measured D-0187", [2 * GIB, 2 * GIB])


def test_an_estimate_that_could_tip_the_answer_is_said() -> None:
    why = ask("llama-3.3-70b", gpu="H100", tensor_parallel_size=2, max_model_len=22528)["why"]
    assert "other consumption is estimated, and at worst the pool has" in why


def test_what_fits_has_no_ways_but_says_what_more_would_fit() -> None:
    document = ask("llama-3.1-8b", gpu="H100", tensor_parallel_size=4, max_model_len=8192)
    assert document["ways"] == []
    assert document["room"] == ["up to 131,072 tokens of context would fit", "tensor parallel size 1 would be enough"]


def test_ways_to_make_it_fit_are_found_and_ranked_by_cost() -> None:
    document = ask("llama-3.3-70b", gpu="H100", tensor_parallel_size=2, max_model_len=131072)
    assert document["fits"] is False
    changes = [way["change"] for way in document["ways"]]
    assert [next(iter(change)) for change in changes] == ["max_model_len", "quantization", "tensor_parallel_size", "gpu", "pipeline_parallel_size"]
    length = changes[0]["max_model_len"]
    assert ask("llama-3.3-70b", gpu="H100", tensor_parallel_size=2, max_model_len=length)["fits"] is True
    assert ask("llama-3.3-70b", gpu="H100", tensor_parallel_size=2, max_model_len=length + 256)["fits"] is False
    assert changes[2] == {"tensor_parallel_size": 4}
    assert all(way["says"] and way["costs"] for way in document["ways"])


def test_every_way_that_is_offered_does_fit() -> None:
    asked: dict[str, Any] = {"gpu": "RTX 4090", "tensor_parallel_size": 2, "max_model_len": 32768}
    for way in ask("qwen3-32b", **asked)["ways"]:
        assert ask("qwen3-32b", **(asked | way["change"]))["fits"] is True, way


def test_the_longest_context_and_eight_bit_cache_come_before_more_cards() -> None:
    asked: dict[str, Any] = {"gpu": "A100-40GB", "max_model_len": 131072, "checkpoint_bytes": 16 * 10**9, "other_bytes": 8 * 10**9}
    names = [next(iter(way["change"])) for way in ask("llama-3.1-8b", **asked)["ways"]]
    assert names.index("max_model_len") < names.index("kv_cache_dtype") < names.index("tensor_parallel_size")
    assert "max_num_seqs" not in names  # other consumption is given, so fewer sequences cannot shrink it


def test_two_versions_are_answered_and_their_difference_explained() -> None:
    document = ask("gemma-3-27b", gpu="H100", max_model_len=131072, engine_version=["0.25.0", "0.26.0"])
    beside = document["side_by_side"]
    assert [answer["engine_version"] for answer in beside["answers"]] == ["0.25.0", "0.26.0"]
    assert document["engine_version"] == "0.25.0"
    assert any("a window is charged with the tokens in flight" in reason for reason in beside["reasons"])
    assert any("one full request takes" in reason for reason in beside["reasons"])


def test_rules_that_do_not_touch_a_model_are_no_reason() -> None:
    reasons = ask("llama-3.1-8b", gpu="H100", max_model_len=8192, engine_version=["0.25.0", "0.26.0"])["side_by_side"]["reasons"]
    assert not any("window" in reason or "recurrent" in reason for reason in reasons)


def test_a_version_that_starts_to_charge_graphs_is_named() -> None:
    reasons = ask("llama-3.1-8b", gpu="H100", max_model_len=8192, engine_version=["0.19.1", "0.20.0"])["side_by_side"]["reasons"]
    assert "the budget leaves CUDA graphs on top in 0.19.1 and pays for CUDA graphs in 0.20.0" in reasons
    assert "the default utilization is 0.9 in 0.19.1 and 0.92 in 0.20.0" in reasons


def test_several_cards_stand_side_by_side() -> None:
    beside = ask("llama-3.3-70b", gpu="H100-80GB, H200,B200", tensor_parallel_size=1, max_model_len=32768)["side_by_side"]
    assert [(answer["of"], answer["fits"]) for answer in beside["answers"]] == [("H100-80GB", False), ("H200", False), ("B200", True)]
    assert beside["says"].startswith("H100-80GB does not fit")
    assert any(reason.startswith("B200-180GB reports 178.35 GiB") for reason in beside["reasons"])


def test_an_unknown_card_among_several_is_refused_by_name() -> None:
    with pytest.raises(Unusable, match="H1000"):
        ask("llama-3.1-8b", gpu="H100,H1000")


def test_a_batch_keeps_to_the_answer_alone() -> None:
    import json

    (answer,) = size_batch(load_sizing(), [json.dumps(question("llama-3.3-70b", gpu="H100", id="a"))])
    assert answer["id"] == "a"
    assert "ways" not in answer


def test_searching_finds_the_largest_that_holds() -> None:
    assert largest(lambda n: n <= 1000, 256, 131072, 256) == 768
    assert largest(lambda n: n <= 100, 256, 131072, 256) is None
    assert largest(lambda n: True, 256, 100, 256) is None
    assert first([1, 2, 4], lambda n: n > 1) == 2
    assert first([1, 2, 4], lambda n: n > 4) is None
