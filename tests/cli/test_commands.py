import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

Oombot = Callable[..., tuple[int, str, str]]


def test_help_lists_every_command_and_loads_nothing_heavy() -> None:
    code = "import sys; from bot.main import run; run(['--help'])"
    done = subprocess.run([sys.executable, "-X", "importtime", "-c", code], capture_output=True, text=True, check=False)
    for command in (
        "serve",
        "diagnose",
        "size",
        "history",
        "show",
        "outcome",
        "explain",
        "stats",
        "forget",
        "settings",
        "doctor",
        "rules",
        "db",
    ):
        assert command in done.stdout
    loaded = done.stderr
    assert not [
        name for name in ("sqlalchemy", "aiohttp", "slack_bolt", "regex", "pydantic", "PIL") if f"| {name}\n" in loaded.replace("   ", "")
    ]


def test_an_unknown_command_is_refused(oombot: Oombot) -> None:
    assert oombot("xyzzy") == (2, "", "oombot: There is no command 'xyzzy'; `oombot --help` lists those there are.\n")
    assert oombot("diagnoze", "vllm.log")[2] == "oombot: There is no command 'diagnoze'; did you mean diagnose?\n"


@pytest.mark.parametrize(("asked", "usage"), [(("help",), "usage: oombot [-h]"), (("help", "history"), "usage: oombot history [-h]")])
def test_help_may_be_asked_for_as_a_command(oombot: Oombot, asked: tuple[str, ...], usage: str) -> None:
    status, out, err = oombot(*asked)
    assert (status, err) == (0, "")
    assert out.startswith(usage)


def test_a_history_from_diagnosis_to_outcome(oombot: Oombot, log: Path) -> None:
    oombot("diagnose", str(log))
    _, out, _ = oombot("history", "phase:graph_capture", "--json")
    row = json.loads(out)["rows"][0]
    assert (row["id"], row["phase"], row["rank"], row["model"], row["outcome"]) == ("D-0001", "graph_capture", 1, "Qwen/Qwen3-32B", None)
    status, out, _ = oombot("outcome", "D-0001", "same", "--json")
    refuted = json.loads(out)
    assert (status, refuted["outcome"]) == (0, "same")
    assert refuted["next"]["id"] != "lower-gpu-memory-utilization"
    _, out, _ = oombot("outcome", "D-0001", "fixed", "--note", "with fewer sizes", "--json")
    assert len(json.loads(out)["checklist"]) == 5
    shown = json.loads(oombot("show", "1", "--json")[1])
    assert [trial["outcome"] for trial in shown["trials"]] == ["same", "fixed"]
    oombot("outcome", "D-0001", "--undo")
    assert [t["outcome"] for t in json.loads(oombot("show", "1", "--json")[1])["trials"]] == ["same", None]


@pytest.mark.parametrize("arguments", [("show", "D-0042"), ("outcome", "D-0042", "fixed"), ("forget", "D-0042")])
def test_an_incident_that_is_not_there(oombot: Oombot, arguments: tuple[str, ...]) -> None:
    status, out, err = oombot(*arguments)
    assert (status, out) == (2, "")
    assert "D-0042" in err


def test_forget_erases_the_evidence_and_leaves_what_was_learned(oombot: Oombot, log: Path) -> None:
    oombot("diagnose", str(log))
    oombot("forget", "D-0001")
    shown = json.loads(oombot("show", "1", "--json")[1])
    assert shown["erased"]
    assert shown["contributions"][0]["text"] is None
    assert shown["diagnosis"]["phase"] == "graph_capture"
    text = oombot("show", "1")[1]
    assert "The evidence is erased. What stays: phase graph capture, model Qwen/Qwen3-32B" in text
    assert [gone for gone in ("because .", "Costs:", "First error", "  [") if gone in text] == []


def test_what_is_cut_says_so_and_a_moment_reads_as_one(oombot: Oombot, tmp_path: Path) -> None:
    long = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 64.00 MiB. " + "x " * 400
    (tmp_path / "long.log").write_text(f"vllm serve org/{'a' * 60}\n(Worker_TP0 pid=9) ERROR 11-18 09:15:29 [core.py:1] {long}\n")
    assert "…" in oombot("diagnose", "long.log")[1]
    cell = next(word for word in oombot("history")[1].split() if word.startswith("org/a"))
    assert (len(cell), cell[-1]) == (48, "…")
    assert re.match(r"D-0001, \d{4}-\d\d-\d\d \d\d:\d\d UTC\n", oombot("show", "1")[1])


def test_history_says_what_it_does_not_show_how_to_see_it_and_what_it_left_out(oombot: Oombot, log: Path) -> None:
    for _ in range(3):
        oombot("diagnose", str(log))
    assert oombot("history")[1].splitlines()[0] == "3 found"
    few = oombot("history", "--limit", "2")[1].splitlines()
    assert few[0] == "3 found, 2 shown and 1 not: --limit 3 shows more; words and fields (since:7d) narrow it down"
    assert few[1].split()[:4] == ["id", "date", "engine", "phase"]
    assert "vLLM 0." in few[2]
    left_out = oombot("history", "since:banana")[1].splitlines()
    assert left_out[1].endswith("yesterday, or a date such as 2026-11-30; it is left out.")
    assert len(left_out) == 6


@pytest.mark.parametrize("query", ['"out of memory"', 'gpu:h100 "out of memory"', "out of memory"])
def test_history_takes_quotes_that_the_shell_left_as_they_are(oombot: Oombot, log: Path, query: str) -> None:
    oombot("diagnose", str(log))
    assert "it is left out" not in oombot("history", query)[1]
    assert json.loads(oombot("history", query, "--json")[1])["query"].count('"') == 2


def test_what_the_help_shows_of_history_can_be_typed_into_a_shell(oombot: Oombot) -> None:
    example = " ".join(oombot("history", "--help")[1].split()).partition("for example: ")[2].partition(" positional")[0]
    assert shlex.split(example) == ["gpu:h100", "phase:graph_capture", "outcome:fixed", "version:>=0.20", "out of memory"]
    assert "version:'>=0.20'" in example, "a shell would write into a file"


def test_history_excludes_a_value_where_argparse_would_see_an_option(oombot: Oombot, log: Path) -> None:
    oombot("diagnose", str(log))
    phase = json.loads(oombot("history", "--json")[1])["rows"][0]["phase"]
    assert json.loads(oombot("history", f"-phase:{phase}", "--json")[1])["count"] == 0
    assert json.loads(oombot("history", "-phase:serving", "gpu:h100", "--json")[1])["query"] == "-phase:serving gpu:h100"
    assert oombot("history", "-x")[0] == 2


def test_history_refuses_a_limit_below_one_and_names_changes_without_a_flag(oombot: Oombot, tmp_path: Path) -> None:
    assert oombot("history", "--limit", "-3")[0] == 2
    (tmp_path / "words.txt").write_text("The vLLM pod ended while it loaded the weights: OOMKilled, exit code 137")
    oombot("diagnose", "words.txt")
    row = json.loads(oombot("history", "--json")[1])["rows"][0]
    assert (row["flag"], row["remedy"]) == (None, "raise-host-memory")
    assert "more host memory" in oombot("history")[1]
    oombot("outcome", "1", "wrong")
    (line,) = [line for line in oombot("stats")[1].splitlines() if "more host memory" in line]
    assert line.split()[-6:] == ["1", "0", "0", "0", "1", "0"]
    counted = oombot("stats")[1]
    assert re.search(r"^mean time to outcome: \d+ seconds?$", counted, re.MULTILINE)
    assert "mean_seconds_to_outcome" in oombot("stats", "--json")[1]


def test_explain_answers_a_question_in_the_askers_words(oombot: Oombot) -> None:
    assert "Down" in oombot("explain", "should", "utilization", "go", "up", "or", "down?")[1]
    assert json.loads(oombot("explain", "fp8", "kv", "--json")[1])["topic"] == "fp8-kv"
    status, _, err = oombot("explain", "zebra")
    assert status == 2
    assert "utilization" in err


def test_settings_show_no_secret(oombot: Oombot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLACK_BOT_TOKEN", "xoxb-123456789012-abcdefABCDEF")
    monkeypatch.setenv("OOMBOT_DATABASE_URL", "postgresql+asyncpg://bot:hunter2222@db.example/oombot")
    status, out, _ = oombot("settings", "--json")
    assert status == 0
    assert "abcdefABCDEF" not in out
    assert "hunter2222" not in out


def test_a_diagnosis_marked_wrong_becomes_a_case_with_one_command(oombot: Oombot, log: Path, tmp_path: Path) -> None:
    oombot("diagnose", str(log))
    oombot("outcome", "1", "wrong")
    status, out, _ = oombot("rules", "case", "D-0001", "--phase", "warmup", "--folder", str(tmp_path / "cases"))
    written = next((tmp_path / "cases").iterdir())
    assert status == 0
    assert str(written) in out
    assert 'phase = "warmup"' in (written / "expect.toml").read_text()
    assert "Tried to allocate" in (written / "paste.log").read_text()


def test_doctor_names_rulebook_database_and_slack(oombot: Oombot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    status, out, _ = oombot("doctor", "--json")
    checks = {check["name"]: check for check in json.loads(out)["checks"]}
    assert status == 0
    assert checks["rulebook"]["ok"] is checks["database"]["ok"] is True
    assert checks["slack"]["ok"] is None


def test_an_export_is_csv_where_its_file_says_so_and_one_that_fails_leaves_the_older_one(
    oombot: Oombot, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    oombot("diagnose", str(log))
    table, lines = tmp_path / "all.csv", tmp_path / "all.jsonl"
    assert oombot("db", "export", str(table))[0] == 0
    assert table.read_text().startswith("table,id,key,")
    assert oombot("db", "export", str(lines))[0] == 0
    kept = lines.read_text()
    assert json.loads(kept.splitlines()[0])["id"] == "D-0001"
    assert "1 was there already" in oombot("db", "import", str(table))[1]
    (tmp_path / "broken.db").write_text("no database, but long enough to look like one" * 40)
    monkeypatch.setenv("OOMBOT_DATABASE_URL", f"sqlite+aiosqlite:///{tmp_path / 'broken.db'}")
    assert oombot("db", "export", str(lines))[0] != 0
    assert lines.read_text() == kept
    status, _, err = oombot("db", "export", str(tmp_path / "nowhere" / "all.csv"))
    assert (status, "nowhere/all.csv cannot be written (No such file or directory). Give a file" in err) == (2, True)


def test_export_and_import_carry_the_history_over(oombot: Oombot, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    oombot("diagnose", str(log))
    oombot("outcome", "1", "fixed")
    assert oombot("db", "export", str(tmp_path / "all.jsonl"))[0] == 0
    monkeypatch.setenv("OOMBOT_DATABASE_URL", f"sqlite+aiosqlite:///{tmp_path / 'second.db'}")
    assert oombot("db", "import", str(tmp_path / "all.jsonl"))[0] == 0
    shown = json.loads(oombot("show", "1", "--json")[1])
    assert shown["trials"][0]["outcome"] == "fixed"


def test_a_fault_of_our_own_is_one_sentence_and_a_file(oombot: Oombot, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("boom")

    monkeypatch.setattr("bot.usecases.judge.judge", broken)
    status, _, err = oombot("diagnose", str(log), "--no-store")
    assert status == 1
    assert err.count("\n") == 1
    assert "Traceback" not in err


@pytest.mark.bench
def test_cold_starts(log: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "OOMBOT_DATABASE_URL": f"sqlite+aiosqlite:///{tmp_path / 'cold.db'}"}
    command = [sys.executable, "-m", "bot"]
    subprocess.run([*command, "diagnose", str(log)], env=environment, check=True, capture_output=True)
    for name, arguments in (
        ("help", ["--help"]),
        ("diagnose, stored", ["diagnose", str(log), "--json"]),
        ("diagnose, not stored", ["diagnose", str(log), "--no-store"]),
    ):
        seconds = []
        for _ in range(5):
            begun = time.perf_counter()
            subprocess.run([*command, *arguments], env=environment, check=True, capture_output=True)
            seconds.append(time.perf_counter() - begun)
        print(f"{name}: {sorted(seconds)[2]:.2f} s (median of 5)")


LATER = """\
(EngineCore_DP0 pid=9) ERROR 10-23 10:09:37 [core.py:708] ValueError: To serve at least one request with the models's max seq len (40960), (10.0 GiB KV cache is needed, which is larger than the available KV cache memory (6.94 GiB). Based on the available memory, the estimated maximum model length is 28400.
"""


def test_after_the_error_moved_the_new_log_is_judged_and_the_old_one_is_context(oombot: Oombot, log: Path, tmp_path: Path) -> None:
    oombot("diagnose", str(log))
    oombot("outcome", "1", "moved")
    second = tmp_path / "second.log"
    second.write_text(LATER)
    document = json.loads(oombot("diagnose", str(second), "--into", "1", "--json")[1])
    assert document["phase"] == "kv_cache_sizing"
    assert (document["first_error"]["source"], document["first_error"]["line"]) == (2, 1)
    assert document["recommendation"]["flag"] == "--max-model-len"
    assert document["deployment"]["model"] == "Qwen/Qwen3-32B"
    assert all(budget["kv_tokens"] is None for budget in document["budgets"])
    oombot("outcome", "1", "fixed")
    trials = json.loads(oombot("show", "1", "--json")[1])["trials"]
    assert [(t["change"]["flag"], t["outcome"]) for t in trials] == [("--gpu-memory-utilization", "moved"), ("--max-model-len", "fixed")]


@pytest.mark.parametrize("corrected", [("same",), ("fixed",), ("fixed", "--undo"), ("--undo",)])
def test_moved_that_was_corrected_or_taken_back_leaves_the_first_log_the_one_that_is_judged(
    oombot: Oombot, log: Path, tmp_path: Path, corrected: tuple[str, ...]
) -> None:
    oombot("diagnose", str(log))
    for outcome in ("moved", *corrected):
        oombot("outcome", "1", outcome)
    (tmp_path / "more.log").write_text("INFO 10-23 09:36:43 [gpu_worker.py:298] nothing more\n")
    document = json.loads(oombot("diagnose", str(tmp_path / "more.log"), "--into", "1", "--json")[1])
    assert (document["phase"], document["first_error"]["source"]) == ("graph_capture", 1)


def test_what_moved_stays_moved_when_the_next_change_has_its_own_outcome(oombot: Oombot, log: Path, tmp_path: Path) -> None:
    oombot("diagnose", str(log))
    oombot("outcome", "1", "moved")
    (tmp_path / "second.log").write_text(log.read_text())  # the same phase again: the same flag is offered for it
    again = json.loads(oombot("diagnose", str(tmp_path / "second.log"), "--into", "1", "--json")[1])
    assert again["first_error"]["source"] == 2
    oombot("outcome", "1", "same")
    assert json.loads(oombot("show", "1", "--json")[1])["diagnosis"]["first_error"]["source"] == 2


def test_a_backup_replaces_incidents_only_where_it_is_told_to_and_says_where_they_went(oombot: Oombot, log: Path, tmp_path: Path) -> None:
    oombot("diagnose", str(log))
    assert oombot("db", "backup", "kept.db")[0] == 0
    oombot("diagnose", str(log))
    status, _, err = oombot("db", "restore", "kept.db")
    assert (status, "--replace" in err) == (2, True)
    assert json.loads(oombot("history", "--json")[1])["count"] == 2
    status, out, _ = oombot("db", "restore", "kept.db", "--replace")
    assert (status, "oombot.db.replaced-1" in out) == (0, True)
    assert json.loads(oombot("history", "--json")[1])["count"] == 1


def test_a_secret_in_a_note_is_kept_nowhere(oombot: Oombot, log: Path) -> None:
    secret = "hf_AbCdEfGhIjKlMnOpQrStUvWxYz01234567"
    oombot("diagnose", str(log))
    assert oombot("outcome", "D-0001", "same", "--note", f"token {secret}")[0] == 0
    for said in (oombot("show", "1", "--json", "--evidence"), oombot("db", "export", "-")):
        assert secret not in said[1]
        assert "token [hidden]" in said[1]


@pytest.mark.parametrize(("name", "value"), [("OOMBOT_PORT", "abc"), ("OOMBOT_PAGE", "ajar"), ("OOMBOT_RETENTION_DAYS", "9O")])
def test_a_wrong_setting_stops_only_what_needs_it(
    oombot: Oombot, log: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert oombot("diagnose", str(log))[::2] == (0, "")
    status, out, _ = oombot("doctor", "--json")
    assert status == 1
    assert json.loads(out)["checks"][0]["says"].startswith(f"{name} is '{value}': it takes")
    status, out, _ = oombot("settings", "--json")
    assert (status, len(json.loads(out)["wrong"])) == (0, 1)
    for command in ("serve",), ("db", "purge"):
        status, out, err = oombot(*command)
        assert (status, out) == (2, "")
        assert err.startswith(f"oombot: {name} is '{value}': it takes")


def test_doctor_says_what_a_lone_token_lacks_as_a_check(oombot: Oombot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLACK_BOT_TOKEN", "xoxb-1-2")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    status, out, err = oombot("doctor", "--json")
    assert (status, err) == (1, "")
    assert "SLACK_APP_TOKEN" in json.loads(out)["checks"][-1]["says"]


def test_doctor_without_a_network_shows_no_traceback_and_blames_no_token(oombot: Oombot, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("SLACK_BOT_TOKEN", "xoxb-1-2"), ("SLACK_APP_TOKEN", "xapp-1-2"), ("SLACK_API_URL", "http://127.0.0.1:9/")):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    status, out, err = oombot("doctor")
    assert (status, err) == (1, "")
    assert out.count("Open a way from this machine to http://127.0.0.1:9/") == 2
    assert "SLACK_APP_TOKEN" not in out


def test_all_topics_are_a_document_too(oombot: Oombot) -> None:
    document = json.loads(oombot("explain", "--json")[1])
    assert (document["schema"], document["topic"]) == ("oombot.explanation/1", None)
    assert {"id": "utilization", "title": "Should utilization go up or down?"} in document["topics"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("diagnose", "--nope"), "usage: oombot diagnose"),
        (("diagnose", "--nope"), "oombot diagnose: error: there is no --nope here"),
        (("history", "--no\x1b[31mpe"), "there is no --nope here"),
        (("rules", "case", "D-0001", "--phase", "bogus"), "invalid choice: 'bogus' (choose from 'startup_check'"),
        (("db", "export", "-", "--json"), "--json goes with a file"),
        (("history", "--limt", "3"), "error: there is no --limt here; did you mean --limit?\n"),
        (("history", "--since=7d"), "error: there is no --since=7d here; a field is a word: since:…\n"),
        (("history", "--bogus"), "error: there is no --bogus here\n"),
        (("diagnose", "--rank", "3", "vllm.log"), "there is no --rank here; an answer is given as --answer rank=…\n"),
        (("stats", "\x1b[31mred"), "there is no red here; the moment to count from is given as --since red\n"),
        (("stats", "since:7d"), "there is no since:7d here; the moment to count from is given as --since 7d\n"),
        (("serve", "--port", "9000"), "there is no --port here; a setting goes before the command: OOMBOT_PORT=… oombot serve\n"),
        (("serve", "--bogus"), "error: there is no --bogus here\n"),
        (("version",), "oombot: There is no command 'version'; did you mean --version?\n"),
        (("outcome", "D-0001", "great"), "oombot: 'great' is no outcome. It is one of fixed, moved"),
        (
            ("size", "llama-3.3-70b", "--gpu", "H100,H200", "--vllm", "0.19.0", "--vllm", "0.33.0"),
            "several cards and several engine versions",
        ),
        (("size", "llama-3.3-70b", "--gpu", "H100", "--tp", "8", "--dcp", "8"), "8 KV heads have 1 copy on 8 ranks"),
    ],
)
def test_a_slip_is_named_where_it_was_made(oombot: Oombot, arguments: tuple[str, ...], says: str) -> None:
    status, out, err = oombot(*arguments)
    assert (status, out) == (2, "")
    assert says in err


@pytest.mark.parametrize(("version", "says"), [("99", "is newer than 0.33"), ("0.1.0", "is older than 0.8.5")])
def test_a_version_that_nobody_looked_at_is_an_assumption(oombot: Oombot, version: str, says: str) -> None:
    found = json.loads(oombot("size", "llama-3.3-70b", "--gpu", "H100", "--engine-version", version, "--json")[1])
    assert [said for said in found["assumptions"] if f"vLLM {version} {says}" in said]
