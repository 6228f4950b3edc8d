"""Which lines of a log stand beside the diagnosis."""

from typing import Any

from bot.web.log_view import anchor, marks_of, sources_of


def paste(lines: int, **changed: Any) -> dict[str, Any]:
    return {
        "kind": "paste",
        "name": None,
        "text": "\n".join(f"line {number}" for number in range(1, lines + 1)),
        "truncated": False,
    } | changed


def found(*lines: int, source: int = 1) -> dict[str, Any]:
    return {"first_error": None, "proof": [{"source": source, "line": line, "rule": f"rule-{line}"} for line in lines], "budgets": []}


def numbers(source: Any) -> list[int]:
    return [line.number for line in source.lines]


def test_what_is_no_evidence_is_no_source() -> None:
    assert sources_of([{"kind": "answer", "text": "rank=3"}, {"kind": "outcome", "text": "fixed"}], found()) == []


def test_an_erased_source_keeps_its_place() -> None:
    one, two = sources_of([paste(3, text=None), paste(3)], found(2, source=2))
    assert (one.erased, one.count) == (True, 0)
    assert two.lines[1].marks == ("proof",)


def test_a_short_log_is_shown_whole() -> None:
    (source,) = sources_of([paste(40)], found(20))
    assert numbers(source) == list(range(1, 41))


def test_a_long_one_is_shown_around_what_matters() -> None:
    (source,) = sources_of([paste(1000)], found(500))
    assert numbers(source) == list(range(496, 505))
    assert (source.lines[0].gap, source.left_out) == (495, 496)


def test_a_gap_of_a_few_lines_is_closed() -> None:
    (source,) = sources_of([paste(1000)], found(500, 512))
    assert numbers(source) == list(range(496, 517)), "505 to 507 lie between"
    (source,) = sources_of([paste(1000)], found(8))
    assert numbers(source)[0] == 1


def test_a_long_log_without_marks_shows_its_beginning() -> None:
    (source,) = sources_of([paste(1000)], found())
    assert numbers(source) == list(range(1, 41))


def test_a_mark_beyond_the_end_of_what_was_kept_breaks_nothing() -> None:
    (source,) = sources_of([paste(100)], found(5000))
    assert 5000 not in numbers(source)


def test_lines_end_as_the_contract_says() -> None:
    (source,) = sources_of([paste(0, text="one\r\n10%\r20%\r100%\ntwo\n")], found())
    assert [line.text for line in source.lines] == ["one", "10%\r20%\r100%", "two"]


def test_a_line_of_a_second_source_has_its_own_anchor() -> None:
    assert (anchor(1, 15), anchor(2, 15)) == ("L15", "S2L15")


def test_a_very_long_line_is_cut_and_says_so() -> None:
    (source,) = sources_of([paste(0, text="x" * 5000)], found())
    assert source.lines[0].text.endswith("… (3,000 more characters)")


def test_a_figure_marks_the_line_of_the_source_that_it_was_read_in() -> None:
    budget = {"lines": {"weights_bytes": 3, "kv_cache_bytes": 4}, "sources": {"kv_cache_bytes": 2}}
    assert marks_of({"budgets": [budget]}) == {(1, 3): ["weights"], (2, 4): ["kv cache"]}
