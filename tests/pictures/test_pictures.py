"""The budget picture: what it shows, in bytes, percent and words."""

import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from io import BytesIO
from typing import Any

import pytest

from bot.pictures import NARROW, Bar, Part, alt_text, bars_of, budget_png, budget_svg
from bot.pictures.layout import LETTER, picture
from bot.pictures.marks import COLOURS, Rectangle, Text

GB = 10**9
GIB = 2**30


def article(**changes: Any) -> dict[str, Any]:
    rank = {
        "total_bytes": 80 * GB, "budget_bytes": 73_600_000_000, "weights_bytes": 17_500_000_000, "other_bytes": 10 * GB,
        "kv_pool_bytes": 46_100_000_000, "outside_budget_bytes": 6_400_000_000,
    }  # fmt: skip
    return {"limiting_rank": 0, "ranks": [{"rank": n, **rank, **changes} for n in range(4)]}


def test_a_document_that_says_too_little_draws_no_bar_and_says_so() -> None:
    assert bars_of({"budgets": [{"rank": 0, "kv_cache_bytes": None, "total_bytes": 80 * GB}]}) == ()
    assert bars_of({"ranks": [{"rank": 0, "total_bytes": None}]}) == ()
    assert alt_text(()) == "No rank reported enough to draw its budget."
    assert "No rank reported enough" in budget_svg(())
    assert budget_png(()).startswith(b"\x89PNG")


def test_four_ranks_alike_share_one_bar_whose_parts_fill_the_device() -> None:
    (bar,) = bars_of(article())
    assert bar.label == "ranks 0 to 3"
    assert bar.parts == (
        Part("weights", 17_500_000_000),
        Part("other", 10 * GB),
        Part("pool", 46_100_000_000),
        Part("outside", 6_400_000_000),
    )
    assert bar.claimed == bar.total == 80 * GB


@pytest.mark.parametrize(
    ("labels", "shared"),
    [
        (("Worker_TP0", "Worker_TP1", "Worker_TP3"), "Worker_TP0, 1, 3"),  # rank 2 failed and has a bar of its own
        (("Worker_TP0", "Worker_TP1"), "Worker_TP0 to 1"),
        (("rank 1", "rank 3", "rank 4", "rank 5"), "ranks 1, 3 to 5"),
        (("rank 4", "rank 1", "rank 5", "rank 3"), "ranks 1, 3 to 5"),  # in whatever order they reported
        (("Worker_DP0_TP0", "Worker_DP1_TP0"), "Worker_DP0_TP0 and 1 more"),
        (("EngineCore_DP0", "an unnamed rank"), "EngineCore_DP0 and 1 more"),
    ],
)
def test_a_bar_that_ranks_share_names_those_and_no_rank_between_them(labels: tuple[str, ...], shared: str) -> None:
    told = {"total_bytes": 80 * GB, "weights_bytes": 30 * GB, "kv_cache_bytes": 40 * GB}
    failed = {"rank": 2, "label": "Worker_TP2", **told, "kv_cache_bytes": 39 * GB}
    others = [{"rank": n, "label": label, **told} for n, label in enumerate(labels)]
    assert [bar.label for bar in bars_of({"budgets": [failed, *others]})] == ["Worker_TP2", shared]


def test_the_words_carry_every_figure_in_bytes_and_percent() -> None:
    assert alt_text(bars_of(article())) == (
        "Ranks 0 to 3, 74.51 GiB: weights 16.30 GiB (22 %), other 9.31 GiB (12 %), KV pool 42.93 GiB (58 %), outside 5.96 GiB (8 %)."
    )


def test_a_pool_below_nothing_is_said_as_missing_not_drawn() -> None:
    (bar,) = bars_of(article(kv_pool_bytes=-3 * GIB, weights_bytes=67 * GB, other_bytes=9_700_000_000))
    assert "pool" not in {part.kind for part in bar.parts}
    assert bar.missing == 3 * GIB
    assert "KV pool 3.00 GiB short" in alt_text((bar,))


def test_weights_larger_than_the_device_stand_out_over_its_edge() -> None:
    (bar,) = bars_of({"budgets": [{"rank": 1, "total_bytes": 79 * GIB, "weights_bytes": 85 * GIB}]})
    assert bar.parts == (Part("weights", 85 * GIB),)
    assert "6.00 GiB more than the device has" in alt_text((bar,))


def test_every_line_that_is_drawn_stands_in_the_legend() -> None:
    over = {
        "rank": 0,
        "total_bytes": 24 * GIB,
        "budget_bytes": 22 * GIB,
        "weights_bytes": 40 * GIB,
        "other_bytes": GIB,
        "kv_pool_bytes": -19 * GIB,
    }
    drawn = [budget_svg(bars_of({"ranks": [rank]})) for rank in (over, over | {"weights_bytes": 10 * GIB, "kv_pool_bytes": 11 * GIB})]
    assert [("the budget ends" in svg, "the device ends" in svg) for svg in drawn] == [(True, True), (True, False)]


def test_an_estimated_pool_shows_its_range_on_the_ranks_it_is_of() -> None:
    document = article() | {"range": {"kv_pool_bytes": [44 * GIB, 41 * GIB]}}
    document["ranks"][3]["kv_pool_bytes"] += GB
    first, last = bars_of(document)
    assert (first.label, first.pool_range, last.pool_range) == ("ranks 0 to 2", (44 * GIB, 41 * GIB), None)


def test_a_reported_budget_counts_nothing_twice() -> None:
    (bar,) = bars_of({"budgets": [{
        "rank": 7, "label": "Worker_TP7", "total_bytes": 80 * GIB, "requested_bytes": 72 * GIB, "weights_bytes": 38 * GIB, "kv_cache_bytes": 29 * GIB,
        "activation_peak_bytes": 5 * GIB, "graph_estimate_bytes": GIB, "graphs_inside_budget": True, "non_torch_bytes": 0,
    }]})  # fmt: skip
    assert bar.parts == (Part("weights", 38 * GIB), Part("other", 5 * GIB), Part("pool", 29 * GIB), Part("outside", 8 * GIB))


def test_answers_side_by_side_show_one_bar_each() -> None:
    answers = [{"of": name, **article()} for name in ("H100", "H200")]
    assert [bar.label for bar in bars_of({**article(), "side_by_side": {"answers": answers}})] == ["H100", "H200"]


def test_what_a_rank_did_not_report_is_not_guessed() -> None:
    (bar,) = bars_of({"budgets": [{"rank": None, "label": None, "total_bytes": 80 * GIB, "weights_bytes": 40 * GIB}]})
    assert bar.label == "an unnamed rank"
    assert bar.parts == (Part("weights", 40 * GIB), Part("unknown", 40 * GIB))


def test_consumed_memory_holds_the_non_torch_part_already() -> None:
    (bar,) = bars_of({"budgets": [{
        "rank": 0, "total_bytes": 20 * GIB, "consumed_bytes": 12 * GIB, "activation_peak_bytes": 2 * GIB, "non_torch_bytes": GIB, "kv_cache_bytes": 4 * GIB,
    }]})  # fmt: skip
    assert bar.parts == (Part("weights", 12 * GIB), Part("other", 2 * GIB), Part("pool", 4 * GIB), Part("outside", 2 * GIB))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_svg_is_well_formed_named_and_described(theme: Any) -> None:
    bars = (Bar('<b> & "quoted"', 80 * GIB, (Part("weights", 60 * GIB), Part("pool", 20 * GIB))),)
    root = ElementTree.fromstring(budget_svg(bars, theme))
    ns = "{http://www.w3.org/2000/svg}"
    assert root.attrib["role"] == "img"
    assert root.findtext(f"{ns}title") == "Memory budget per rank"
    assert root.findtext(f"{ns}desc") == alt_text(bars)
    assert root.find(f"{ns}script") is None
    widths = [float(rect.attrib["width"]) for rect in root.iter(f"{ns}rect") if rect.attrib["height"] == "34"]
    assert widths[0] == pytest.approx(3 * widths[1], abs=0.2)


def test_on_a_phone_everything_stands_within_the_sheet_and_says_the_same() -> None:
    spread = {**article(kv_pool_bytes=46_100_000_000), "range": {"kv_pool_bytes": [40 * GB, 50 * GB]}}
    drawn = picture(bars_of(spread), NARROW)
    texts = [mark for mark in drawn.marks if isinstance(mark, Text)]
    assert all(mark.x + mark.width <= 360 - 11 for mark in drawn.marks if isinstance(mark, Rectangle))
    assert all(mark.x + len(mark.text) * LETTER * mark.size / 13 <= 360 for mark in texts if not mark.middle)
    captions = [mark for mark in texts if mark.size == 12 and "GiB (" in mark.text]
    assert len({mark.y for mark in captions}) == len(captions) > 1
    assert " · ".join(mark.text for mark in captions) in alt_text(bars_of(spread)).replace(", ", " · ")
    assert max(mark.y for mark in texts) < drawn.height


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_text_stands_out_from_what_it_stands_on(theme: Any) -> None:
    colours = COLOURS[theme]
    pairs = [(f"on-{kind}", kind) for kind in ("weights", "other", "pool", "outside", "unknown")]
    pairs += [("ink", "ground"), ("faint", "ground"), ("edge", "ground")]
    assert all(contrast(colours[text], colours[below]) >= 4.5 for text, below in pairs), theme


def contrast(one: str, other: str) -> float:
    """As WCAG 2 counts it."""
    light = sorted(
        (sum(weight * channel(colour, at) for weight, at in ((0.2126, 1), (0.7152, 3), (0.0722, 5))) for colour in (one, other)),
        reverse=True,
    )
    return (light[0] + 0.05) / (light[1] + 0.05)


def channel(colour: str, at: int) -> float:
    value = int(colour[at : at + 2], 16) / 255
    return value / 12.92 if value <= 0.03928 else ((value + 0.055) / 1.055) ** 2.4


def test_the_png_shows_each_part_in_its_colour_and_proportion() -> None:
    from PIL import Image

    image = Image.open(BytesIO(budget_png(bars_of(article()))))
    row = [image.getpixel((x, (52 + 2) * 2)) for x in range(image.width)]
    seen = {
        kind: row.count(tuple(int(COLOURS["light"][kind][at : at + 2], 16) for at in (1, 3, 5)))
        for kind in ("weights", "other", "pool", "outside")
    }
    assert seen["weights"] / seen["pool"] == pytest.approx(17.5 / 46.1, abs=0.02)
    assert seen["other"] / seen["outside"] == pytest.approx(10 / 6.4, abs=0.1)


def test_more_ranks_than_a_picture_holds_are_said() -> None:
    bars = tuple(Bar(f"rank {n}", 80 * GIB, (Part("weights", n * GIB + 1),)) for n in range(20))
    assert "and 4 more ranks" in budget_svg(bars)
    assert alt_text(bars).count("Rank") == 20


def test_pillow_waits_until_a_png_is_drawn() -> None:
    code = "import sys, bot.pictures; bot.pictures.budget_svg(()); sys.exit('PIL' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_device_whose_size_nobody_reported_gets_no_shares() -> None:
    budget = {"rank": 0, "label": "Worker_TP0", "total_bytes": None, "weights_bytes": 8 * 2**30, "kv_cache_bytes": 60 * 2**30}
    said = alt_text(bars_of({"budgets": [budget]}))
    assert "%" not in said
    assert "68.00 GiB reported" in said


def test_a_text_that_fits_is_not_stretched() -> None:
    drawn = budget_svg(bars_of(article()), "light", NARROW)
    assert "KV pool 42.93 GiB (58 %) · outside 5.96 GiB (8 %)" in drawn
    assert "textLength" not in drawn
