import gzip
import io
import json
import re
import sqlite3
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

Oombot = Callable[..., tuple[int, str, str]]
A_FAILURE = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.02 GiB. GPU 0 has 20.00 MiB free.\n"


def test_nothing_given_says_what_to_give(oombot: Oombot) -> None:
    status, out, err = oombot("diagnose")
    assert (status, out) == (2, "")
    assert "oombot diagnose vllm.log" in err


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("empty.log", b"", "is empty"),
        ("blank.log", b"  \n\n", "is empty"),
        ("shot.png", b"\x89PNG\r\n\x1a\n" + bytes(200), "PNG"),
        ("engine.bin", bytes(range(256)) * 40, "binary"),
        ("broken.gz", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff" + b"garbage" * 20, "gzip"),
        ("broken.zip", b"PK\x03\x04garbage", "zip"),
    ],
)
def test_unusable_files_are_named_with_what_to_do(oombot: Oombot, tmp_path: Path, name: str, content: bytes, says: str) -> None:
    (tmp_path / name).write_bytes(content)
    status, out, err = oombot("diagnose", str(tmp_path / name))
    assert (status, out) == (2, "")
    assert name in err
    assert says in err
    assert "Traceback" not in err


def test_a_file_that_is_not_there_and_a_folder(oombot: Oombot, tmp_path: Path) -> None:
    assert oombot("diagnose", "no-such.log")[0] == 2
    assert "folder" in oombot("diagnose", str(tmp_path))[2]


def test_json_is_the_contract_and_nothing_else(oombot: Oombot, log: Path) -> None:
    status, out, err = oombot("diagnose", str(log), "--json")
    document = json.loads(out)
    assert (status, err) == (0, "")
    assert document["schema"] == "oombot.diagnosis/1"
    assert document["id"] == "D-0001"
    assert (document["phase"], document["verdict"], document["engine_version"]) == ("graph_capture", "certain", "0.11.0")
    assert (document["rank"]["number"], document["rank"]["label"]) == (1, "Worker_TP1")
    assert document["first_error"]["line"] == 9
    assert document["first_error"]["tried_bytes"] == 136 * 2**20
    assert document["budgets"][0]["rank"] == 1
    assert document["budgets"][0]["lines"]["kv_cache_bytes"] == 4
    assert (document["deployment"]["model"], document["deployment"]["tensor_parallel_size"]) == ("Qwen/Qwen3-32B", 2)


def test_the_terminal_shows_verdict_rank_error_line_budget_change_and_what_not_to_touch(oombot: Oombot, log: Path) -> None:
    _, out, _ = oombot("diagnose", str(log))
    for part in (
        "on rank 1 (Worker_TP1) in CUDA graph capture",
        "First error, line 9",
        "KV pool",
        "not reported",
        "lower --gpu-memory-utilization",
        "Wrong if",
        "Leave alone",
    ):
        assert part in out


def test_no_store_keeps_nothing(oombot: Oombot, log: Path, database: Path) -> None:
    assert json.loads(oombot("diagnose", str(log), "--json", "--no-store")[1])["id"] is None
    assert not database.exists()


def test_a_log_from_standard_input_in_utf16_with_windows_line_ends(oombot: Oombot, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = log.read_text().replace("\n", "\r\n").encode("utf-16")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    document = json.loads(oombot("diagnose", "-", "--json")[1])
    assert (document["phase"], document["first_error"]["line"]) == ("graph_capture", 9)


def test_gzip_and_a_zip_of_several_logs(oombot: Oombot, log: Path, tmp_path: Path) -> None:
    packed = tmp_path / "vllm.log.gz"
    packed.write_bytes(gzip.compress(log.read_bytes()))
    assert json.loads(oombot("diagnose", str(packed), "--json")[1])["phase"] == "graph_capture"
    archive = tmp_path / "logs.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("a-command.txt", "vllm serve Qwen/Qwen3-32B --max-num-seqs 512\n")
        file.writestr("b-engine.log", log.read_text())
    document = json.loads(oombot("diagnose", str(archive), "--json")[1])
    assert document["deployment"]["max_num_seqs"] == 512
    assert (document["first_error"]["source"], document["first_error"]["line"]) == (2, 9)


def test_a_log_cut_in_the_middle_of_its_error_is_still_read(oombot: Oombot, log: Path) -> None:
    text = log.read_text()
    log.write_text(text[: text.index("79.18 GiB")])
    document = json.loads(oombot("diagnose", str(log), "--json")[1])
    assert document["phase"] == "graph_capture"
    assert document["first_error"]["tried_bytes"] == 136 * 2**20


def test_secrets_are_hidden_in_the_answer_and_in_the_database(oombot: Oombot, log: Path, database: Path) -> None:
    secrets = ["hf_" + "Ab1" * 12, "xoxb-123456789012-abcdefABCDEF", "s3cretpassword"]
    log.write_text(f"HF_TOKEN={secrets[0]}\nslack {secrets[1]}\nhttp://me:{secrets[2]}@proxy.example:3128\n" + log.read_text())
    _, out, _ = oombot("diagnose", str(log), "--json")
    assert json.loads(out)["redactions"] == 3
    oombot("show", "1", "--evidence")
    connection = sqlite3.connect(database)
    try:
        stored = "\n".join(connection.iterdump())
    finally:
        connection.close()
    assert not [s for s in secrets if s in out or s in stored]


def test_a_secret_in_the_name_of_a_file_or_of_an_archive_s_member_is_kept_nowhere(oombot: Oombot, log: Path, database: Path) -> None:
    secret = "hf_" + "Ab1" * 12
    named, packed, large = (log.with_name(f"{kind}-{secret}{end}") for kind, end in (("a", ".log"), ("b", ".zip"), ("c", ".log")))
    named.write_text(log.read_text())
    large.write_text(log.read_text() + "INFO 11-30 04:31:07 [x.py:1] nothing to see\n" * 30_000)
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(f"logs/{secret}/rank0.log", log.read_text())
    for path in (named, packed, large):
        status, out, err = oombot("diagnose", str(path))
        assert (status, secret in out + err) == (0, False)
    connection = sqlite3.connect(database)
    try:
        stored = "\n".join(connection.iterdump())
    finally:
        connection.close()
    assert secret not in stored
    assert "[hidden]" in stored


def test_an_answer_and_a_second_paste_join_the_incident(oombot: Oombot, log: Path, tmp_path: Path) -> None:
    log.write_text(re.sub(r"\(Worker_TP\d pid=\d+\) |GPU 1 has", lambda m: "GPU has" if m[0].startswith("GPU") else "", log.read_text()))
    oombot("diagnose", str(log))
    status, out, _ = oombot("diagnose", "--into", "D-0001", "--answer", "rank=1", "--json")
    assert (status, json.loads(out)["rank"]["number"]) == (0, 1)
    more = tmp_path / "command.txt"
    more.write_text("vllm serve Qwen/Qwen3-32B --max-num-seqs 512\n")
    document = json.loads(oombot("diagnose", str(more), "--into", "1", "--json")[1])
    assert (document["id"], document["deployment"]["max_num_seqs"], document["phase"]) == ("D-0001", 512, "graph_capture")


def test_an_answer_without_an_incident_and_an_unknown_incident_are_refused(oombot: Oombot, log: Path) -> None:
    assert oombot("diagnose", "--answer", "rank=1")[0] == 2
    assert oombot("diagnose", "--answer", "rank", "--into", "1")[0] == 2
    status, _, err = oombot("diagnose", str(log), "--into", "D-0999")
    assert status == 2
    assert "D-0999" in err


def test_a_database_that_cannot_be_written_loses_no_diagnosis(
    oombot: Oombot, log: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OOMBOT_DATABASE_URL", f"sqlite+aiosqlite:///{log}/oombot.db")
    status, out, err = oombot("diagnose", str(log), "--json")
    assert (status, json.loads(out)["id"], json.loads(out)["phase"]) == (0, None, "graph_capture")
    assert "not kept" in err


def test_a_locked_database_loses_no_diagnosis(oombot: Oombot, log: Path, database: Path) -> None:
    oombot("diagnose", str(log))
    holder = sqlite3.connect(database)
    holder.execute("BEGIN EXCLUSIVE")
    try:
        status, out, err = oombot("diagnose", str(log), "--json")
    finally:
        holder.close()
    assert (status, json.loads(out)["id"]) == (0, None)
    assert "locked" in err


def test_contradictory_flags_are_said_to_be_tried_and_no_value_is_chosen(oombot: Oombot, log: Path) -> None:
    log.write_text(log.read_text() + "$ vllm serve Qwen/Qwen3-32B --tensor-parallel-size 2 --gpu-memory-utilization 0.9\n")
    deployment = json.loads(oombot("diagnose", str(log), "--json")[1])["deployment"]
    assert (deployment["gpu_memory_utilization"], deployment["tried"]["gpu_memory_utilization"]) == (None, [0.95, 0.9])


@pytest.mark.parametrize("answer", ["rank=banana", "nonsense=1", "rank"])
def test_an_answer_that_answers_nothing_is_refused_and_the_questions_are_named(oombot: Oombot, log: Path, answer: str) -> None:
    oombot("diagnose", str(log))
    status, _, err = oombot("diagnose", "--into", "1", "--answer", answer)
    assert status == 2
    assert answer.partition("=")[0] in err


def test_an_answer_in_words_is_read_like_a_paste_and_the_question_is_gone(oombot: Oombot, tmp_path: Path) -> None:
    first = tmp_path / "first.log"
    first.write_text(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.02 GiB. GPU 6 has a total capacity of 79.18 GiB of which 837.06 MiB is free.\n"
    )
    asked = json.loads(oombot("diagnose", str(first), "--json")[1])["questions"]
    assert "engine_config" in [question["id"] for question in asked]
    command = "python -m sglang.launch_server --model-path acme/m --mem-fraction-static 0.9 --tp 8"
    document = json.loads(oombot("diagnose", "--into", "1", "--answer", f"engine_config={command}", "--json")[1])
    assert (document["engine"], document["deployment"]["mem_fraction_static"]) == ("sglang", 0.9)
    assert "engine_config" not in [question["id"] for question in document["questions"]]


def test_a_gzip_that_was_cut_short_is_read_with_a_warning(oombot: Oombot, log: Path, tmp_path: Path) -> None:
    packed = tmp_path / "vllm.log.gz"
    packed.write_bytes(gzip.compress(log.read_bytes(), 0)[:-9])
    status, out, err = oombot("diagnose", str(packed), "--json")
    assert (status, json.loads(out)["phase"]) == (0, "graph_capture")
    assert "vllm.log.gz was cut short" in err
    assert json.loads(oombot("show", "1", "--json")[1])["contributions"][0]["truncated"]


def test_a_link_that_leads_back_to_itself_is_named_as_such(oombot: Oombot, tmp_path: Path) -> None:
    (tmp_path / "loop.log").symlink_to("loop.log")
    status, out, err = oombot("diagnose", str(tmp_path / "loop.log"))
    assert (status, out) == (2, "")
    assert "leads back to itself" in err


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("hello world", None),
        ("how much memory do I need for llama 70b on H100?", None),
        (A_FAILURE, "D-0001"),
        ("hello world\n" * 200, "D-0001"),  # as much as nobody says for talk
    ],
)
def test_talk_and_questions_on_standard_input_are_kept_nowhere_and_it_says_so(
    oombot: Oombot, monkeypatch: pytest.MonkeyPatch, said: str, kept: str | None
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(said.encode())))
    status, out, err = oombot("diagnose", "-", "--json")
    assert (status, json.loads(out)["id"]) == (0, kept)
    assert ("kept nowhere" in err) == (kept is None)


def test_talk_is_answered_shortly_and_with_what_to_give(oombot: Oombot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"hello world")))
    _, out, _ = oombot("diagnose", "-")
    assert "grep" not in out
    assert "send the log from the server's start" in out.replace("\n", " ")


def test_a_figure_of_a_later_file_says_of_which_and_the_json_too(oombot: Oombot, log: Path, tmp_path: Path) -> None:
    (tmp_path / "before.log").write_text("starting\n")
    files = str(tmp_path / "before.log"), str(log)
    budget = json.loads(oombot("diagnose", *files, "--json")[1])["budgets"][0]
    assert {budget["sources"][name] for name in budget["lines"]} == {2}
    assert f"line {budget['lines']['kv_cache_bytes']} of source 2" in oombot("diagnose", *files)[1]
    assert json.loads(oombot("diagnose", str(log), "--json")[1])["budgets"][0]["sources"] == {}


def test_lines_of_several_files_say_of_which_and_of_one_file_do_not(oombot: Oombot, log: Path, tmp_path: Path) -> None:
    assert "of source" not in oombot("diagnose", str(log))[1]
    (tmp_path / "before.log").write_text("starting\n")
    out = oombot("diagnose", str(tmp_path / "before.log"), str(log))[1]
    for place in ("First error, line 9 of source 2", "line 9 of source 2: the first error", "at the first error, line 9 of source 2"):
        assert place in out


def test_the_terminal_says_what_runs(oombot: Oombot, log: Path) -> None:
    assert "\nruns Qwen/Qwen3-32B, TP 2\n" in oombot("diagnose", str(log))[1]


def test_what_decided_is_named_also_where_it_is_the_first_error_itself(oombot: Oombot, tmp_path: Path) -> None:
    (tmp_path / "vllm.log").write_text("loading\n" + A_FAILURE)
    status, out, _ = oombot("diagnose", str(tmp_path / "vllm.log"))
    assert status == 0
    assert ": the first error itself\n" in out


def test_a_worker_whose_rank_nothing_tells_is_not_called_the_engine(oombot: Oombot, tmp_path: Path) -> None:
    log = tmp_path / "two.log"
    log.write_text(
        "(VllmWorkerProcess pid=512) INFO 08-20 10:02:11 model_runner.py:732] Loading model weights took 3.1250 GB\n"
        "(VllmWorkerProcess pid=513) INFO 08-20 10:02:11 model_runner.py:732] Loading model weights took 3.1250 GB\n"
        "(VllmWorkerProcess pid=512) ERROR 08-20 10:02:19 multiproc_worker_utils.py:226] torch.cuda.OutOfMemoryError: CUDA out of memory.\n"
    )
    _, said, _ = oombot("diagnose", str(log), "--no-store")
    assert "Budget of an unnamed rank (VllmWorkerProcess), as reported" in said
    assert "Budget of the engine" not in said
