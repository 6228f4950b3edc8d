"""The pages themselves: what stands on them, and that nothing a person wrote becomes markup."""

import asyncio
import base64
import re
from dataclasses import replace
from typing import Any

import pytest

from bot.store.errors import StoreError
from bot.usecases.reply import Reply
from tests.web import documents
from tests.web.conftest import Browser, Serve, Shelf, seen


async def test_an_unknown_incident_is_a_page_that_says_so(browser: Browser) -> None:
    text = await browser.text("/d/D-9999", status=404)
    assert "There is no incident D-9999" in text
    assert "`" not in text
    assert "Traceback" not in text


async def test_an_address_that_does_not_exist_says_where_to_go(browser: Browser) -> None:
    text = await browser.text("/nowhere", status=404)
    assert "Nothing answers at /nowhere" in text


async def test_the_first_page_has_the_box_the_examples_and_the_past(browser: Browser) -> None:
    text = await browser.text("/")
    assert '<textarea id="paste" name="paste"' in text
    assert '<input id="file" type="file" name="file" multiple>' in text
    assert text.count('href="/examples/') == 3
    assert '<a href="/d/D-0187">D-0187</a>' in text


async def test_the_first_page_of_an_empty_history_says_what_comes(serve: Serve, shelf: Shelf) -> None:
    shelf.found = documents.found(rows=[], count=0, count_text="0", counts={"phase": {}, "model": {}, "gpu": {}, "outcome": {}})
    text = await (await serve()).text("/")
    assert "becomes D-0001" in text


async def test_the_diagnosis_says_phase_rank_error_and_the_one_change(browser: Browser) -> None:
    text = await browser.text("/d/D-0187")
    assert "Rank 5 of 8 ran out of GPU memory while it captured CUDA graphs" in text
    assert "lower --gpu-memory-utilization from 0.95 to 0.92" in seen(text)
    assert "--max-num-seqs 512 --gpu-memory-utilization 0.92" in seen(text)
    assert "The same rank runs out in capture again" in text
    assert "model revision, engine image, GPU topology, workload" in text
    assert "Do not lower <code>--max-model-len</code>." in text
    assert "What else was using GPU 5?" in text
    assert '<button name="choice" value="nothing">nothing</button>' in text
    assert text.count("I don&#39;t know") + text.count("I don't know") == 1


async def test_a_missing_figure_is_said_to_be_missing_and_a_known_one_links_to_its_line(browser: Browser) -> None:
    text = await browser.text("/d/D-0187")
    weights = re.search(r'<th scope="row">Weights</th>(.*?)</tr>', text, re.S)
    assert weights
    assert "not in the log" in weights[1], "rank 5 reported no weights"
    line = documents.diagnosis()["budgets"][0]["lines"]["weights_bytes"]
    assert f'<a href="#L{line}">8.51 GiB</a>' in weights[1]


async def test_the_first_error_is_marked_in_the_log_and_linked_from_the_verdict(browser: Browser) -> None:
    text = await browser.text("/d/D-0187")
    line = documents.diagnosis()["first_error"]["line"]
    assert f'<li id="L{line}" class="first">' in text
    assert f'<a href="#L{line}">line {line}</a>' in text


async def test_an_open_diagnosis_asks_and_offers_no_change(serve: Serve, shelf: Shelf) -> None:
    shelf.incident = documents.incident(diagnosis=documents.open_diagnosis(), trials=[], similar=[])
    text = await (await serve()).text("/d/D-0187")
    assert "No change yet" in text
    assert 'name="result"' not in text
    assert "What is the first error in the log?" in text
    assert "Not excluded: <b>profiling</b>" in text
    assert "No rank reported its memory" in text


async def test_an_erased_incident_keeps_its_finding_and_offers_nothing_more(serve: Serve, shelf: Shelf) -> None:
    erased = documents.incident(erased=True)
    erased["contributions"][0]["text"] = None
    shelf.incident = erased
    text = await (await serve()).text("/d/D-0187")
    assert "The evidence of this incident was erased" in text
    assert '<p class="dim">Erased.</p>' in text
    assert "/evidence" not in text
    assert 'href="#L' not in text, "no line is there to be led to"


async def test_an_erased_incident_that_was_not_decided_speaks_of_no_questions_and_blames_no_log(serve: Serve, shelf: Shelf) -> None:
    blank = documents.diagnosis(phase="unknown", verdict="open", recommendation=None, questions=[], budgets=[], first_error=None)
    shelf.incident = documents.incident(erased=True, diagnosis=blank, trials=[])
    for one in shelf.incident["contributions"]:
        one["text"] = None
    text = await (await serve()).text("/d/D-0187")
    assert "The questions below" not in text
    assert "No rank reported" not in text
    assert 'Paste the log <a href="/">anew</a>' in text


async def test_what_is_left_of_the_evidence_is_not_said_to_be_erased(serve: Serve, shelf: Shelf) -> None:
    shelf.incident = documents.incident(erased=True)
    text = await (await serve()).text("/d/D-0187")
    assert "Some of the evidence of this incident was erased" in text
    assert "The evidence of this incident was erased" not in text


async def test_what_people_wrote_is_never_markup(serve: Serve, shelf: Shelf) -> None:
    evil = "</code><script>alert(1)</script><img src=x onerror=alert(1)>\"'"
    shelf.incident = documents.incident(diagnosis=documents.diagnosis(summary=evil, notes=[evil]))
    shelf.incident["contributions"][0]["text"] = evil
    shelf.incident["trials"][0]["note"] = evil
    shelf.found = documents.found(rows=[documents.row(187, model=evil, excerpt=evil)], ignored=[evil])
    browser = await serve()
    for where in ("/", "/d/D-0187", "/history", "/d/D-0187/log/1"):
        text = await browser.text(where)
        assert "<script>alert" not in text
        assert "<img src=x" not in text


async def test_half_a_character_breaks_no_page(serve: Serve, shelf: Shelf) -> None:
    shelf.incident["contributions"][0]["text"] = "before \ud83d after"
    assert "before ? after" in await (await serve()).text("/d/D-0187")


async def test_ranks_that_reported_the_same_share_a_column_and_the_failing_one_stands_first(serve: Serve, shelf: Shelf) -> None:
    same = [
        documents.budget(rank, f"Worker_TP{rank}", None, {"graph_estimate_bytes": 10 + rank}, graph_estimate_bytes=2**30)
        for rank in (1, 2, 3, 4, 6, 7)
    ]
    shelf.incident = documents.incident(diagnosis=documents.diagnosis(budgets=[*documents.diagnosis()["budgets"], *same]))
    text = await (await serve()).text("/d/D-0187")
    assert re.findall(r'<th scope="col"[^>]*>([^<]*)</th>', text[text.index('<table class="budget">') :])[:4] == [
        "",
        "rank 5",
        "rank 0",
        "ranks 1–4, 6, 7",
    ]


async def test_a_long_log_shows_what_matters_and_links_to_the_rest(serve: Serve, shelf: Shelf) -> None:
    log = "\n".join(f"line {number}" for number in range(1, 3001))
    shelf.incident = documents.incident(diagnosis=documents.diagnosis(budgets=[], proof=[]))
    shelf.incident["diagnosis"]["first_error"] |= {"line": 2000, "text": "line 2000"}
    shelf.incident["contributions"][0]["text"] = log
    browser = await serve()
    text = await browser.text("/d/D-0187")
    assert '<li id="L2000" class="first">' in text
    assert 'id="L1995"' not in text
    assert "1,995 lines not shown" in text
    assert "996 lines more" in text
    assert 'id="L1"' in await browser.text("/d/D-0187/log/1")


async def test_filters_in_the_address_become_one_search(browser: Browser, shelf: Shelf) -> None:
    text = await browser.text("/history?q=sampler&gpu=h100&model=two+words&phase=graph_capture")
    (args, _) = shelf.calls("history")[-1]
    assert args[2] == 'sampler gpu:h100 model:"two words" phase:graph_capture'
    assert '<option value="graph_capture" selected>' in text
    assert 'href="/history?q=sampler&amp;gpu=h100&amp;model=two+words"' in text, "a chip takes its own filter away"


async def test_counts_link_to_the_narrower_list(browser: Browser) -> None:
    text = await browser.text("/history?q=oom")
    assert 'href="/history?q=oom&amp;phase=kv_cache_sizing"' in text
    assert 'width="64.3%"' in text, "9 of 14"


async def test_a_search_that_finds_nothing_says_so_and_what_was_not_understood(serve: Serve, shelf: Shelf) -> None:
    shelf.found = documents.found(
        rows=[],
        count=0,
        count_text="0",
        ignored=["There is no field “colour”."],
        counts={"phase": {}, "model": {}, "gpu": {}, "outcome": {}},
    )
    text = await (await serve()).text("/history?q=colour:red")
    assert "Nothing matches" in text
    assert "There is no field “colour”." in text


async def test_an_example_is_shown_and_never_kept(browser: Browser, shelf: Shelf) -> None:
    text = await browser.text("/examples/capture-on-one-of-eight")
    ((_, _, given), named) = shelf.calls("diagnose")[-1]
    assert named == {"keep": False}
    assert "Worker_TP5" in given[0].text
    assert "It is not kept." in text
    assert "/outcome" not in text
    assert (await browser.get("/examples/none")).status == 404


async def test_every_answer_carries_the_policy_and_no_page_needs_more_than_it(browser: Browser) -> None:
    for where in ("/", "/d/D-0187", "/history", "/healthz", "/static/page.css", "/nowhere"):
        async with browser.get(where) as answer:
            policy = answer.headers["Content-Security-Policy"]
            assert "default-src 'none'" in policy
            assert "unsafe-inline" not in policy
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            text = await answer.text()
            assert not re.search(r"<style|\sstyle=|<script>|\son\w+=|https?://(?!www\.w3\.org)[^\"'<\s]*\.(?:css|js|woff2?)", text)


async def test_an_unknown_topic_leads_to_the_topics(browser: Browser) -> None:
    text = await browser.text("/explain/soup?incident=D-0187", status=404)
    assert "Nothing here answers “soup”." in text
    assert 'value="soup"' in text, "it can be said in other words"
    assert 'href="/explain/graph-capture?incident=D-0187"' in text


async def test_a_topic_is_explained_with_the_numbers_of_an_incident(browser: Browser, shelf: Shelf) -> None:
    text = await browser.text("/explain/budget?incident=D-0187")
    assert shelf.calls("explain")[-1][0][2:] == ("budget", "D-0187")
    assert "73.6 GB" in text
    assert 'href="/explain/graph-capture?incident=D-0187"' in text


async def test_the_budget_is_a_picture_in_both_schemes_and_in_words(browser: Browser) -> None:
    text = await browser.text("/d/D-0187")
    drawn = re.search(
        r'<source media="\(prefers-color-scheme: dark\)" srcset="data:image/svg\+xml;base64,([^"]+)"><img src="data:image/svg\+xml;base64,([^"]+)" alt="([^"]+)">',
        text,
    )
    assert drawn
    assert b"<svg" in base64.b64decode(drawn[1])
    assert drawn[1] != drawn[2]
    assert "KV pool 62.98 GiB" in drawn[3]


async def test_ranks_that_say_too_little_get_no_picture(serve: Serve, shelf: Shelf) -> None:
    shelf.incident = documents.incident(diagnosis=documents.diagnosis(budgets=[]))
    assert "data:image" not in await (await serve()).text("/d/D-0187")


async def test_where_counting_takes_a_while_the_head_of_the_page_goes_first(serve: Serve, shelf: Shelf) -> None:
    counted = asyncio.Event()

    async def slow(*asked: Any) -> Reply:
        await counted.wait()
        if asked[2] == "7d":
            raise StoreError("The database is <locked> by another process.")
        return await shelf.asks().stats(*asked)

    browser = await serve(asks=replace(shelf.asks(), stats=slow))
    for path, says in (("/stats", "Marked wrong"), ("/stats?since=7d", "The database is &lt;locked&gt; by another process.")):
        counted.clear()
        async with browser.get(path) as answer:
            first = (await answer.content.readany()).decode()
            assert (answer.status, "Content-Security-Policy" in answer.headers) == (200, True)
            assert "Counting …" in first
            assert says not in first
            counted.set()
            whole = first + (await answer.text())
        assert says in whole
        assert whole.count("<h1>") == whole.count("</html>") == 1


async def test_the_review_says_what_costs_most_and_what_works(browser: Browser, shelf: Shelf) -> None:
    text = await browser.text("/stats?since=30d")
    assert shelf.calls("stats")[-1][0][2] == "30d"
    assert 'aria-label="7 of 9"' in text
    assert "stop the other process" in text
    assert "2 hours" in text
    assert 'href="/history?rule=torch.oom&amp;outcome=wrong"' in text


async def test_a_browser_keeps_our_own_files_until_they_are_others_and_nothing_else(browser: Browser) -> None:
    page = await browser.text("/history")
    (style,) = re.findall(r'<link rel="stylesheet" href="([^"]+)">', page)
    assert re.fullmatch(r"/static/page\.css\?v=[0-9a-f]{12}", style)
    for where, kept in (
        (style, "max-age=31536000, immutable"),
        ("/static/page.css", "no-cache"),
        ("/static/none.css?v=1", "no-store"),
        ("/history", "no-store"),
    ):
        async with browser.get(where) as answer:
            assert answer.headers["Cache-Control"] == kept, where


async def test_an_engine_without_a_budget_shows_the_figures_that_it_printed_alone(serve: Serve, shelf: Shelf) -> None:
    figures = documents.diagnosis()["budgets"][:1]
    for engine, asked in (("vllm", True), ("sglang", False)):
        shown = [{**figures[0], "non_torch_bytes": None, "activation_peak_bytes": None}]
        shelf.incident = documents.incident(diagnosis=documents.diagnosis(engine=engine, budgets=shown))
        text = await (await serve()).text("/d/D-0187")
        assert ("activation peak" in text) is asked, engine
        assert "KV pool" in text


async def test_what_the_figures_mean_is_told_where_there_are_figures(serve: Serve, shelf: Shelf) -> None:
    browser = await serve()
    assert "What these figures mean" in await browser.text("/d/D-0187")
    shelf.incident = documents.incident(diagnosis=documents.diagnosis(budgets=[]))
    assert "What these figures mean" not in await browser.text("/d/D-0187")


async def test_one_reason_against_both_directions_is_said_once(serve: Serve, shelf: Shelf) -> None:
    both = [{"flag": "--gpu-memory-utilization", "direction": way, "because": "It is the machine's memory."} for way in ("lower", "raise")]
    shelf.incident = documents.incident(diagnosis=documents.diagnosis(avoid=both))
    text = await (await serve()).text("/d/D-0187")
    assert "<b>Do not lower or raise <code>--gpu-memory-utilization</code>.</b> It is the machine&#39;s memory." in text
    assert text.count("It is the machine&#39;s memory.") == 1


async def test_a_command_with_a_gap_says_what_stands_for_what(serve: Serve, shelf: Shelf) -> None:
    text = "MODEL stands for yours."
    shelf.incident = documents.incident(
        diagnosis=documents.diagnosis(recommendation=documents.remedy(command="vllm serve org/m1 --enforce-eager"), alternatives=[])
    )
    browser = await serve()
    assert text not in await browser.text("/d/D-0187")
    shelf.incident = documents.incident(
        diagnosis=documents.diagnosis(recommendation=documents.remedy(command="vllm serve MODEL --enforce-eager"), alternatives=[])
    )
    assert text in await browser.text("/d/D-0187")


@pytest.mark.parametrize(
    ("outcome", "legend", "leads"),
    [
        (None, "How did it go?", '<a href="#change">To the one change</a>'),
        ("moved", "Noted: error moved. Press another if it ended otherwise.", '<a href="#paste">Add the new log</a>'),
        ("fixed", "Noted: worked. Press another if it ended otherwise.", ""),
    ],
)
async def test_a_confirmation_leads_to_what_comes_next(serve: Serve, shelf: Shelf, outcome: str | None, legend: str, leads: str) -> None:
    shelf.incident["trials"][-1]["outcome"] = outcome
    browser = await serve()
    data = {"token": await browser.token("/d/D-0187"), "result": "fixed"}
    async with browser.post("/d/D-0187/outcome", data=data) as answer:
        text = await answer.text()
    assert f"<legend>{legend}</legend>" in text
    said = re.search(r'<div class="said" role="status">(.*?)</div>', text, re.S)
    assert said
    assert leads in said[1]
    assert said[1].count("<a ") == (1 if leads else 0)


async def test_the_note_stands_before_the_buttons_that_send_it(serve: Serve, shelf: Shelf) -> None:
    text = await (await serve()).text("/d/D-0187")
    form = text[text.index('action="/d/D-0187/outcome"') :]
    assert 0 < form.index('name="note"') < form.index('name="result"') < form.index("</form>")


async def test_an_incident_that_was_fixed_is_not_called_without_a_change_yet(serve: Serve, shelf: Shelf) -> None:
    shelf.incident = documents.incident(diagnosis=documents.open_diagnosis())
    shelf.incident["trials"] = shelf.incident["trials"][:1]
    shelf.incident["trials"][0] |= {"outcome": "fixed"}
    text = await (await serve()).text("/d/D-0187")
    assert "No change yet" not in text
    assert "It is noted as working now. If it fails again, add the new log below." in text


async def test_a_trial_without_a_change_was_not_suggested(serve: Serve, shelf: Shelf) -> None:
    shelf.incident["trials"] = [{"number": 1, "change": {}, "outcome": None, "note": None, "by": None, "at": None}]
    text = await (await serve()).text("/d/D-0187")
    assert "No change was suggested" in text
    assert "suggested, no outcome yet" not in text


async def test_a_flag_of_a_command_is_not_broken_at_its_hyphens_and_is_copied_as_it_is(serve: Serve, shelf: Shelf) -> None:
    command = "vllm serve org/m1-7b --gpu-memory-utilization 0.92"
    shelf.incident = documents.incident(diagnosis=documents.diagnosis(recommendation=documents.remedy(command=command), alternatives=[]))
    text = await (await serve()).text("/d/D-0187")
    shown = re.search(r'<div class="command"><pre tabindex="0"><code>(.*?)</code>', text)
    assert shown
    assert '<span class="flag">--gpu-memory-utilization</span> 0.92' in shown[1]
    assert seen(shown[1]) == command
