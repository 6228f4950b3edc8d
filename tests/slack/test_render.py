"""Any text through every renderer stays within Slack's limits, has a text, and holds nothing that Slack would act on."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bot.domain.incident import Contribution
from bot.rulebook.load import load_rulebook
from bot.slack.outbox import as_sent
from bot.slack.render.blocks import plainly
from bot.slack.render.diagnosis import diagnosis_message, title
from bot.slack.render.escape import as_typed, cut
from bot.slack.render.evidence import evidence_text
from bot.slack.render.explanation import explanation_message
from bot.slack.render.forms import log_form, notice_view, sizing_form, sizing_view
from bot.slack.render.history import history_message, stats_message, worked_lines
from bot.slack.render.home import home_view
from bot.slack.render.sizing import sizing_message
from bot.store.erasure import blanked
from bot.usecases.explain import answered, find_topic, listed
from bot.usecases.judge import judge
from tests.fakeslack.blocks import MESSAGE, MESSAGE_CHARACTERS, characters, problems, view_problems
from tests.slack.material import SIZING, budget, certain, unsure

TOPICS = load_rulebook().topics
EXPECTED = Path(__file__).parent / "expected"
LIVE = re.compile(r"<[!@#]|<(?:https?|mailto):|<[^>]*\|")
NASTY = [
    "<!channel>", "<!here|here>", "<@U0001>", "<#C0001|general>", "<https://evil.example|click>", "```", "`*_~", "&lt;!channel&gt;", "\u202egnp.exe", "\u200b",
    "\x00\x1b[31m", "@everyone", "", " ", "\n" * 50, "A" * 20_000, "é" * 9_000, "\U0001f4a5" * 4_000, "a & b < c > d" * 400, "\ud800",
]  # fmt: skip
ANY = st.one_of(st.sampled_from(NASTY), st.text(max_size=400), st.text(min_size=1, max_size=30).map(lambda s: s * 300))
FREE = {
    "text",
    "because",
    "costs",
    "disproved_by",
    "command",
    "summary",
    "model",
    "how",
    "label",
    "rule",
    "value",
    "flag",
    "title",
    "why",
    "excerpt",
    "query",
}


def filled(node: Any, words: Any) -> Any:
    """The document with foreign text in every place that can hold some."""
    if isinstance(node, dict):
        return {key: (next(words) if key in FREE and isinstance(value, str) else filled(value, words)) for key, value in node.items()}
    if isinstance(node, list):
        return [filled(child, words) for child in node]
    return node


def sound(blocks: list[dict[str, Any]], text: str) -> None:
    blocks, text = as_sent(blocks, text)
    for shown in (blocks, plainly(blocks)):
        assert problems(shown, MESSAGE) == []
        assert characters(shown) <= MESSAGE_CHARACTERS
        json.dumps(shown).encode()
    assert text.strip()
    assert len(text.encode()) <= 4_000
    assert not LIVE.search(text)
    assert not any(LIVE.search(said) for said in mrkdwn(blocks))


def mrkdwn(node: Any) -> list[str]:
    if isinstance(node, dict):
        return [node["text"]] if node.get("type") == "mrkdwn" else [text for child in node.values() for text in mrkdwn(child)]
    return [text for child in node for text in mrkdwn(child)] if isinstance(node, list) else []


def row(**other: Any) -> dict[str, Any]:
    usual = {
        "id": "D-0001",
        "at": "2026-11-30T04:10:31+00:00",
        "verdict": "certain",
        "phase": "graph_capture",
        "rank": 3,
        "engine": "vllm",
        "engine_version": "0.11.0",
    }
    usual |= {
        "model": "Qwen/Qwen3-32B",
        "gpu": "H100-80GB",
        "gpu_count": 4,
        "tp": 4,
        "flag": "--gpu-memory-utilization",
        "direction": "lower",
        "value": "0.85",
    }
    return {**usual, "outcome": "fixed", "excerpt": "CUDA out of memory", "channel": "C1", "thread": "1.1", "erased": False, **other}


def history(rows: list[dict[str, Any]]) -> dict[str, Any]:
    counts = {"phase": {"graph_capture": 2}, "model": {"Qwen/Qwen3-32B": 2}, "gpu": {"H100-80GB": 2}, "outcome": {"fixed": 1, "open": 1}}
    return {
        "schema": "oombot.history/1",
        "query": "",
        "count": len(rows),
        "count_text": str(len(rows)),
        "rows": rows,
        "counts": counts,
        "ignored": [],
    }


STATS: dict[str, Any] = {
    "schema": "oombot.stats/1", "since": None, "incidents": 3, "mean_seconds_to_outcome": 7_200.0, "outcomes": {"fixed": 2, "open": 1},
    "phases": [{"phase": "graph_capture", "count": 3, "fixed": 2, "mean_seconds_to_outcome": 7_200.0}],
    "changes": [{"phase": "graph_capture", "remedy": "x", "flag": "--gpu-memory-utilization", "direction": "lower", "tried": 3, "fixed": 2, "moved": 0, "same": 1, "wrong": 0, "other": 0}],
    "wrong_rules": [{"rule": "frame.warm-up", "count": 1}], "models": [], "gpus": [],
}  # fmt: skip
TRIALS = [{"number": 1, "change": certain()["recommendation"], "outcome": "same", "note": None, "by": "U0001", "at": "2026-11-30T04:12:00+00:00"},
          {"number": 2, "change": certain()["alternatives"][0], "outcome": None, "note": None, "by": None, "at": None}]  # fmt: skip
EXPLANATION = {
    "title": "FP8 KV",
    "paragraphs": ["text", "more"],
    "numbers": [{"label": "label", "value": "1"}],
    "topics": [{"id": "kv", "title": "title"}],
}


@settings(
    max_examples=120,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)
@given(st.lists(ANY, min_size=12, max_size=12))
def test_any_text_through_every_renderer_is_sound(texts: list[str]) -> None:
    def forever() -> Any:
        while True:
            yield from texts

    words = forever()
    for document in (certain(), unsure(), {**certain(), "budgets": [budget(n, weights_bytes=n, kv_cache_bytes=n) for n in range(30)]}):
        changed = filled(document, words) | {"id": "D-0001", "notes": texts[:3], "also_failed": texts[:9]}
        sound(*diagnosis_message(changed))
        sound(*diagnosis_message(changed, filled(TRIALS, words), texts[0]))
    sound(*sizing_message(filled(SIZING, words) | {"assumptions": texts, "corrections": texts}, texts[1]))
    sound(*history_message(history([filled(row(), words)] * 50) | {"query": texts[2], "ignored": texts}, complete=False))
    sound(*stats_message(filled(STATS, words)))
    sound(*explanation_message(filled(EXPLANATION, words)))
    sound([], texts[3])
    home = home_view(
        history([filled(row(), words)] * 50),
        history([filled(row(), words)] * 50),
        filled(STATS, words),
        {"model": texts[4]},
        complete=False,
    )
    for view in (home, sizing_form("", texts[5]), log_form(""), notice_view(texts[6]), sizing_view(filled(SIZING, words), texts[7])):
        assert view_problems(view) == []


def test_a_message_that_grew_too_long_keeps_its_verdict_and_its_buttons_and_says_that_it_was_shortened() -> None:
    long = certain() | {"id": "D-0001", "notes": ["x" * 3_000] * 3}
    long["recommendation"] = {
        **long["recommendation"],
        "because": "y" * 5_000,
        "command": "z" * 9_000,
        "costs": "c" * 900,
        "disproved_by": "d" * 900,
    }
    long["budgets"] = [budget(n, weights_bytes=1, label="L" * 400, engine_label="E" * 900) for n in range(8)]
    blocks, text = diagnosis_message(long)
    sound(blocks, text)
    assert blocks[0]["type"] == "header"
    assert [block["type"] for block in blocks[-2:]] == ["actions", "actions"]
    assert "Shortened" in json.dumps(blocks)


def test_slacks_own_escapes_are_undone_once() -> None:
    assert as_typed("a &lt;b&gt; &amp;amp; c") == "a <b> &amp; c"
    assert as_typed("see <http://vllm.ai|vllm.ai> and <https://x.example/y>") == "see vllm.ai and https://x.example/y"
    assert as_typed("<@U1|ann> <#C1|gpu-help> <!here>") == "@ann #gpu-help @here"


def test_a_cut_text_ends_at_a_word_and_within_the_limit() -> None:
    assert cut("short", 10) == "short"
    assert cut("one two three four", 15) == "one two three…"
    assert len(cut("x" * 100, 10)) == 10


def test_four_buttons_at_most_stand_in_a_row_and_each_has_a_label() -> None:
    for trials in ([], TRIALS, [{**TRIALS[0], "outcome": "fixed"}]):
        blocks, _ = diagnosis_message(certain() | {"id": "D-0001"}, trials)
        for block in blocks:
            if block["type"] == "actions":
                assert len(block["elements"]) <= 4
                assert all(element["accessibility_label"] for element in block["elements"] if element["type"] == "button")


JUDGED = Path(__file__).parent / "capture.json"


def test_the_picture_shows_what_the_judge_says_of_its_log() -> None:
    """Figures, their lines and the change; sentences may change without a new picture. OOMBOT_SAVE_SCREENS=1 writes it anew."""
    log = JUDGED.with_suffix(".log").read_text(encoding="utf-8")
    document = judge(load_rulebook(), [Contribution("paste", log)])
    if os.environ.get("OOMBOT_SAVE_SCREENS"):
        JUDGED.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    shown = json.loads(JUDGED.read_text(encoding="utf-8"))
    for name in ("verdict", "phase", "rank", "first_error", "budgets", "engine_version", "questions"):
        assert shown[name] == document[name], name
    assert [(p["line"], p["rule"]) for p in shown["proof"]] == [(p["line"], p["rule"]) for p in document["proof"]]
    assert [shown["recommendation"][name] for name in ("id", "value", "command")] == [
        document["recommendation"][name] for name in ("id", "value", "command")
    ]


SHOWN = {
    "diagnosis": lambda: as_sent(*diagnosis_message(json.loads(JUDGED.read_text(encoding="utf-8")) | {"id": "D-0187"})),
    "diagnosis_after_same_error": lambda: as_sent(
        *diagnosis_message(certain() | {"id": "D-0187", "recommendation": certain()["alternatives"][0]}, TRIALS)
    ),
    "question": lambda: as_sent(*diagnosis_message(unsure() | {"id": "D-0188"})),
    "sizing": lambda: as_sent(*sizing_message(SIZING, "llama-70b-fp8 gpu=H100 tp=4 ctx=131072")),
    "history": lambda: as_sent(*history_message(history([row(), row(id="D-0002", outcome=None)]), complete=True)),
    "home": lambda: home_view(
        history([row(), row(id="D-0002", outcome=None)]), history([row(), row(id="D-0002", outcome=None)]), STATS, {}, complete=True
    ),
}


@pytest.mark.parametrize("name", SHOWN)
def test_what_people_see_is_as_it_was_last_looked_at(name: str) -> None:
    """The Block Kit JSON in expected/ is for eyes too: OOMBOT_SAVE_SCREENS=1 writes it anew."""
    shown = SHOWN[name]()
    made = shown if isinstance(shown, dict) else {"text": shown[1], "blocks": shown[0]}
    path = EXPECTED / f"{name}.json"
    if os.environ.get("OOMBOT_SAVE_SCREENS"):
        path.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    assert json.loads(path.read_text(encoding="utf-8")) == made


def test_an_explanation_names_the_nearest_topics_by_title_and_how_to_get_every_other() -> None:
    blocks, _ = explanation_message(answered(TOPICS, "graph-capture").document)
    assert blocks[-1]["elements"][0]["text"] == "Near it: Do CUDA graphs count inside the utilization? · “explain” alone lists every topic."
    blocks, _ = explanation_message(answered(TOPICS, "leak").document)
    assert blocks[-1]["elements"][0]["text"] == "“explain” alone lists every topic."


def test_the_list_of_topics_names_every_one_as_it_can_be_asked() -> None:
    blocks, _ = explanation_message(listed(TOPICS).document)
    (topics,) = (block["elements"][0]["elements"] for block in blocks if block["type"] == "rich_text")
    assert [find_topic(TOPICS, item["elements"][0]["text"]).id for item in topics] == [topic.id for topic in TOPICS]


def test_one_incident_is_one_incident() -> None:
    one = {**history([row()]), "counts": {"outcome": {"fixed": 1}}}
    assert "1 incidents" not in json.dumps(home_view(one, one, {**STATS, "incidents": 1}, {}, complete=True))
    assert "1 incident." in json.dumps(stats_message({**STATS, "incidents": 1}))


def test_a_review_names_changes_without_a_flag_and_what_was_marked_wrong() -> None:
    tried = {"phase": "serving", "remedy": "add-gpus", "flag": None, "direction": None, "tried": 4, "fixed": 1, "wrong": 2, "other": 1}
    assert worked_lines({"changes": [tried]}) == ["serving: add a GPU: 1 of 4 (2 wrong diagnosis, 1 something else)"]


def test_an_erased_incident_has_no_reason_that_is_gone() -> None:
    sure = {**certain(), "also_possible": [{"phase": "serving", "because": "requests may have run"}]}
    told = json.dumps(diagnosis_message(sure)[0], ensure_ascii=False)
    assert "Not excluded: serving, because requests may have run" in told
    blocks, text = diagnosis_message(blanked(sure))
    told = json.dumps(blocks, ensure_ascii=False)
    assert text.startswith("The evidence is erased. What stays: phase graph capture")
    assert "Not excluded" not in told
    assert "Leave alone" not in told


def test_what_would_make_it_fit_is_told_and_its_command_says_with_what() -> None:
    way = {"says": "a 4-bit AWQ checkpoint fits: a pool of 8.24 GiB", "costs": "quality needs a check of its own"}
    told = {**SIZING, "fits": False, "headline": "It does not fit", "ways": [way], "command": "vllm serve 4-BIT-CHECKPOINT"}
    blocks, _ = sizing_message({**told, "command_with": "a 4-bit AWQ checkpoint"}, "mixtral 2x3090")
    said = json.dumps(blocks)
    assert "What would make it fit, cheapest first" in said
    assert "a pool of 8.24 GiB. Quality needs a check of its own." in said
    assert said.index("cheapest first") < said.index(", with ") < said.index("vllm serve 4-BIT-CHECKPOINT")
    assert "What would make it fit" not in json.dumps(sizing_message(SIZING, "llama")[0])


def test_a_stop_whose_cause_is_not_shown_is_no_shortage_in_the_heading_either() -> None:
    said = "Probably: stopped on rank 3 (Worker_TP3) of a-rather-long-name-of-a-container-0 in the profiling run, before the cache was sized; the line that says why is cut off."
    assert title({**certain(), "summary": said}).startswith("Stopped on rank 3")
    assert title({**certain(), "summary": said.replace("stopped", "out of memory")}).startswith("Out of memory on rank 3")


def test_the_requests_that_were_asked_for_are_answered() -> None:
    at_once = {"requests": 20, "held": False, "says": "of the 20 requests 2 fit", "ways": [{"says": "card X fits", "costs": "x cards"}]}
    said = json.dumps(sizing_message({**SIZING, "at_once": at_once}, "llama 20 users")[0])
    assert said.index("Of the 20 requests 2 fit") < said.index("For all of them: card X fits. X cards")
    assert "For all of them" not in json.dumps(sizing_message({**SIZING, "at_once": None}, "llama")[0])


def test_where_the_engine_reported_nothing_the_failed_request_tells_of_its_card() -> None:
    told = {**certain(), "budgets": []}
    assert "At the first error" not in json.dumps(diagnosis_message(certain())[0])
    figures = {
        "process_bytes": 77 * 2**30,
        "allocated_bytes": 70 * 2**30,
        "free_bytes": 2**29,
        "tried_bytes": 2**30,
        "total_bytes": 79 * 2**30,
    }
    blocks, _ = diagnosis_message({**told, "first_error": {**told["first_error"], **figures}})
    shown = json.dumps(blocks)
    assert "At the first error" in shown
    assert "Allocated by PyTorch" in shown
    assert "70.00" in shown
    assert problems(blocks, MESSAGE) == []


def test_of_several_containers_only_the_figures_of_the_one_that_failed_are_shown() -> None:
    mine, other = (
        ({**certain()["budgets"][0], "engine_label": name, "kv_cache_bytes": size * 2**30}) for name, size in (("b-1", 3), ("a-1", 41))
    )
    shown = json.dumps(diagnosis_message({**certain(), "budgets": [mine, other], "container": "b-1"})[0])
    assert "3.00" in shown
    assert "41.00" not in shown


def test_an_ordinary_diagnosis_is_short_and_its_notes_stand_behind_the_change_they_explain() -> None:
    document = json.loads(JUDGED.read_text(encoding="utf-8")) | {"id": "D-0187", "notes": ["Counted from 0.90.", "Two.", "Three."]}
    document["similar"] = [row(id=f"D-000{n}", outcome=None) for n in range(1, 4)]
    blocks, _ = diagnosis_message(document)
    told = json.dumps(blocks, ensure_ascii=False)
    assert len(blocks) <= 10
    assert characters(blocks) < 1_700
    assert told.index("Change one thing") < told.index("Counted from 0.90.") < told.index("Leave alone")
    assert "Three." not in told
    assert ": D-0001, D-0002, D-0003, no outcome yet" in told
    kept = evidence_text({"id": "D-0187", "diagnosis": document})
    assert "Note: Three." in kept
    assert "device memory 79.25 GiB (line 24)" in kept


def test_a_refuted_or_wrong_change_is_offered_no_more_and_what_to_send_is_said() -> None:
    tried = {**TRIALS[0], "change": certain()["recommendation"]}
    for outcome, asked in (
        ("wrong", "Reply in this thread with more of the log"),
        ("same", "No other change is known"),
        ("moved", "with the new log"),
    ):
        noted = certain() | {"id": "D-0001", "notes": ["Counted from 0.90."]}
        blocks, text = diagnosis_message(noted, [{**tried, "outcome": outcome}])
        told = json.dumps(blocks)
        assert "Counted from" not in told
        assert "Change one thing" not in told
        assert "Suggested change" not in text
        assert asked in told
        assert asked in text
    for outcome in ("wrong", "moved"):
        assert "Reply in this thread" not in json.dumps(diagnosis_message(certain(), [{**tried, "outcome": outcome}], heard=True)[0])


def test_of_many_ranks_the_ends_and_the_middle_are_named_and_where_the_rest_is() -> None:
    pools = [40 + n for n in range(16)]
    document = {**certain(), "budgets": [budget(n, kv_cache_bytes=size * 2**30) for n, size in enumerate(pools)]}
    blocks, _ = diagnosis_message(document)
    (rows,) = (block["rows"] for block in blocks if block["type"] == "table")
    assert [(line[0]["text"], line[-1]["text"]) for line in rows[1:]] == [
        ("Rank 3", "failed"), ("Rank 0", "least KV pool"), ("Rank 7", "median KV pool"), ("Rank 15", "most KV pool"),
    ]  # fmt: skip
    assert rows[1][1] == {"type": "raw_number", "value": 43.0, "text": "43.00"}
    assert "16 ranks reported: Show evidence has all of them" in json.dumps(blocks)
    lowest = {**document, "rank": {**document["rank"], "number": 0}}
    (rows,) = (block["rows"] for block in diagnosis_message(lowest)[0] if block["type"] == "table")
    assert [line[-1]["text"] for line in rows[1:]] == ["failed, least KV pool", "median KV pool", "most KV pool"]


def test_a_value_that_was_not_read_is_said_before_the_answer_and_in_the_text() -> None:
    unread = "tensor_parallel_size is 'lots'; it takes a whole number, for example 8; left out."
    blocks, text = sizing_message({**SIZING, "corrections": [unread]}, "llama tp=lots")
    assert "'lots'" in json.dumps(blocks[1])
    assert text.startswith("Not read: tensor_parallel_size is 'lots'")
    read = "'users' read as seqs."
    blocks, text = sizing_message({**SIZING, "corrections": [read]}, "llama users=4")
    assert "How I read it" not in json.dumps(blocks[1])
    assert "Not read" not in text
