from datetime import UTC, datetime, timedelta

import pytest

from bot.store.numbers import micros, version_sort, version_span
from bot.store.query import Term, parse

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def test_an_unknown_field_is_answered_with_those_there_are() -> None:
    asked = parse("card:h100 sampler", NOW)
    assert asked.terms == ()
    assert asked.words == ("sampler",)
    assert asked.ignored[0].startswith("card: is no field. Fields are gpu, model, family, phase")


def test_a_field_without_a_value_and_a_comparison_that_makes_no_sense_are_said() -> None:
    asked = parse("gpu: model:>qwen since:someday", NOW)
    assert (asked.terms, asked.since) == ((), None)
    assert asked.ignored[0].startswith("gpu: has no value")
    assert "only version, rank, tp can be compared" in asked.ignored[1]
    assert "7d" in asked.ignored[2]


def test_a_word_is_not_excluded_and_that_is_said() -> None:
    query = parse('"out of memory" -sglang -tp --enforce-eager', NOW)
    assert query.words == ("out of memory", "tp", "enforce eager")
    assert query.ignored == ("-sglang: a word cannot be excluded, only a field's value, as in -engine:sglang; it is left out.",)


def test_a_value_is_excluded_and_a_comparison_or_a_rule_is_not() -> None:
    assert parse("-phase:serving -version:0.20", NOW).terms == (Term("phase", "!=", "serving"), Term("version", "!=", "0.20"))
    asked = parse("-version:>=0.20 -rule:frame.warm-up -card:h100", NOW)
    assert (asked.terms, len(asked.ignored)) == ((), 3)
    assert parse("--max-num-seqs -1", NOW).words == ("max num seqs", "1"), "what begins like a flag is a word"


def test_signs_alone_are_wordless_and_beside_anything_else_they_are_left_out() -> None:
    assert all(parse(text, NOW).wordless for text in ("(((", '"?!" :'))
    assert not any(parse(text, NOW).wordless for text in ("", "((( sampler", "((( gpu:h100", "((( D-0001", "((( since:7d", "since:banana"))


def test_the_whole_syntax() -> None:
    asked = parse(
        'gpu:h100 phase:graph_capture outcome:fixed version:>=0.20 "CUDA out of memory" max_num_seqs samp* since:7d until:2026-11-29', NOW
    )
    assert asked.terms == (
        Term("gpu", "=", "h100"),
        Term("phase", "=", "graph_capture"),
        Term("outcome", "=", "fixed"),
        Term("version", ">=", "0.20"),
    )
    assert asked.words == ("cuda out of memory", "max num seqs", "samp*")
    assert asked.since == micros(NOW - timedelta(days=7))
    assert asked.until == micros(datetime(2026, 11, 29, tzinfo=UTC))
    assert asked.ignored == ()


def test_values_may_be_quoted_and_an_address_is_no_field() -> None:
    assert parse('model:"Qwen/Qwen3 8B"', NOW).terms == (Term("model", "=", "Qwen/Qwen3 8B"),)
    assert parse("https://github.com/vllm-project", NOW).words == ("https github com vllm project",)


def test_an_incident_is_named_by_its_id_and_a_quoted_id_is_a_word() -> None:
    assert (parse("D-0187 d-2 gpu:h100", NOW).numbers, parse("D-0187", NOW).words) == ((187, 2), ())
    assert (parse('"D-0187" D-0187x', NOW).numbers, parse('"D-0187"', NOW).words) == ((), ("d 0187",))


def test_the_head_of_a_copied_error_line_is_a_word_and_no_field() -> None:
    asked = parse("RuntimeError: CUDA error", NOW)
    assert (asked.words, asked.ignored) == (("runtimeerror", "cuda", "error"), ())


@pytest.mark.parametrize("text", ["", "   ", '"', '""', "***", ":", "()", "AND OR NOT", '"unclosed phrase'])
def test_odd_texts_are_no_errors(text: str) -> None:
    assert parse(text, NOW).terms == ()


def test_versions_sort_as_they_were_released() -> None:
    released = ["0.6.6", "0.8.5.post1", "0.10.0rc1", "0.10.0", "0.10.1", "0.11.2.dev276+gabc", "0.11.2", "0.20.0", "1.0"]
    assert sorted(released, key=lambda version: version_sort(version) or 0) == released
    assert version_sort("nightly") is None
    assert version_sort(None) is None


def test_a_short_version_spans_its_releases() -> None:
    span = version_span("0.20")
    assert span
    inside = [span[0] <= (version_sort(version) or 0) < span[1] for version in ("0.19.9", "0.20.0rc1", "0.20.0", "0.20.7", "0.21.0")]
    assert inside == [False, True, True, True, False]


def test_days_are_meant_from_their_beginning() -> None:
    assert parse("since:yesterday", NOW).since == micros(datetime(2026, 11, 29, tzinfo=UTC))
    assert parse("since:today until:Today", NOW).until == micros(datetime(2026, 11, 30, tzinfo=UTC))


def test_out_of_memory_is_one_thing_however_it_is_typed() -> None:
    assert parse("Out of memory sampler", NOW).words == ("out of memory", "sampler")
    assert parse('"CUDA out of memory"', NOW).words == ("cuda out of memory",)
    assert parse("out of blocks", NOW).words == ("out", "of", "blocks")
