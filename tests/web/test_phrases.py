"""Figures and words as a person reads them."""

import pytest

from bot.usecases.wording import span
from bot.web.figures import alike, exactly, figure, gib, gigabytes
from bot.web.phrases import change, linked, unbroken


def test_what_is_missing_reads_as_nothing() -> None:
    assert (gib(None), gigabytes(None), figure(None, "bytes"), exactly(None), span(None), change(None)) == ("", "", "", "", "", "")


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (41817210, "39.88 MiB"),
        (84943716188, "79.11 GiB"),
        (-3 * 2**30, "−3.00 GiB"),
        (1131796784128, "1.03 TiB"),
    ],
)
def test_bytes_read_as_engines_print_them(size: int, text: str) -> None:
    assert gib(size) == text


def test_decimal_gigabytes_are_those_of_the_article() -> None:
    assert (gigabytes(46_100_000_000), gigabytes(-1_500_000_000)) == ("46.1 GB", "−1.5 GB")


@pytest.mark.parametrize(("seconds", "text"), [(45, "45 seconds"), (5400.0, "90 minutes"), (8100.5, "2 hours"), (260000, "3 days")])
def test_durations_take_the_unit_that_fits(seconds: float, text: str) -> None:
    assert span(seconds) == text


@pytest.mark.parametrize(
    ("recommendation", "text"),
    [
        ({"flag": "--max-num-seqs", "direction": "lower", "value": "128"}, "lower --max-num-seqs to 128"),
        ({"flag": "--enforce-eager", "direction": "set", "value": None}, "set --enforce-eager"),
        ({"flag": "--enforce-eager", "direction": "remove", "value": "x"}, "remove --enforce-eager"),
        ({"flag": None, "direction": None, "value": None, "id": "upgrade-engine"}, "Upgrade the engine to a newer release"),
    ],
)
def test_a_change_reads_as_a_deed(recommendation: dict[str, str | None], text: str) -> None:
    assert change(recommendation) == text


def test_equal_ranks_share_a_column() -> None:
    ranks = [
        {"rank": 0, "weights_bytes": 1},
        {"rank": 1, "weights_bytes": 1},
        {"rank": 2, "weights_bytes": 2},
        {"rank": 3, "weights_bytes": 1},
    ]
    assert [name for name, _ in alike(ranks)] == ["ranks 0, 1, 3", "rank 2"]
    assert [name for name, _ in alike(ranks[:2])] == ["each of 2 ranks"]
    assert [name for name, _ in alike(ranks[:3])] == ["ranks 0, 1", "rank 2"]
    assert [name for name, _ in alike(ranks[:1])] == ["rank 0"]
    eight = [{"rank": number, "label": f"TP{number}", "lines": {"a": number}, "a": number in (0, 5)} for number in range(8)]
    assert [name for name, _ in alike(eight)] == ["ranks 0, 5", "ranks 1–4, 6, 7"]


def test_a_rank_without_a_number_goes_by_its_label() -> None:
    assert [name for name, _ in alike([{"rank": None, "label": "EngineCore", "a": 1}, {"rank": 0, "label": "x", "a": 2}])] == [
        "EngineCore",
        "rank 0",
    ]
    assert [name for name, _ in alike([{"rank": None, "label": "", "a": 1}])] == ["the engine"]


def test_incidents_named_in_a_sentence_are_links_and_nothing_else_is_markup() -> None:
    assert linked("<b> did not help in D-0004") == '&lt;b&gt; did not help in <a href="/d/D-0004">D-0004</a>'
    assert linked("AD-0004, D-12 and D-0004x") == "AD-0004, D-12 and D-0004x"


def test_a_command_in_a_sentence_leads_to_the_page_that_does_the_same() -> None:
    asked = linked("`oombot size org/m1 --gpu H100-80GB --tp 8` says it.")
    assert (
        asked
        == '<a href="/size?q=org/m1%20--gpu%20H100-80GB%20--tp%208"><code>oombot size org/m1 --gpu H100-80GB --tp 8</code></a> says it.'
    )
    assert linked("`oombot size MODEL --gpu NAME`") == '<a href="/size"><code>oombot size MODEL --gpu NAME</code></a>'
    assert linked("`oombot explain units`") == '<a href="/explain/units"><code>oombot explain units</code></a>'
    assert linked("`vllm serve <m>`") == "`vllm serve &lt;m&gt;`".replace("`", "<code>", 1).replace("`", "</code>")
    assert linked("`oombot size '\"><script>' --gpu H100`").count("<") == 4, "what somebody pasted is no markup, in the text or the address"


def test_a_flag_in_a_sentence_is_kept_in_one_piece_and_nothing_else_is_markup() -> None:
    assert unbroken("lower --max-num-seqs to 256") == 'lower <span class="flag">--max-num-seqs</span> to 256'
    assert unbroken("set VLLM_USE_V2_MODEL_RUNNER to 0") == 'set <span class="flag">VLLM_USE_V2_MODEL_RUNNER</span> to 0'
    assert unbroken("lower -c to 4096") == "lower -c to 4096", "one letter is never broken"
    assert unbroken("add a well-known <GPU>") == "add a well-known &lt;GPU&gt;"


def test_a_figure_below_nothing_has_a_minus_in_every_unit() -> None:
    assert [figure(-2 * 2**30, "bytes"), figure(-51872, "count"), figure(-0.79, "ratio")] == ["−2.00 GiB", "−51,872", "−0.79×"]


def test_the_history_command_leads_to_the_history() -> None:
    assert linked("`oombot history` lists them.") == '<a href="/history"><code>oombot history</code></a> lists them.'


def test_a_sizing_command_without_a_model_keeps_what_it_names() -> None:
    assert 'href="/size?q=--gpu%20H20-96GB%20--tp%208"' in linked("`oombot size MODEL --gpu H20-96GB --tp 8`")
    assert 'href="/size"' in linked("`oombot size MODEL --gpu NAME`")
