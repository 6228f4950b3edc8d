"""What a stranger sends commands no terminal and overwrites no file."""

import json
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from bot.cli.faults import sentence
from bot.reading.archive import opened
from bot.reading.text import harmless

Oombot = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize(
    "hostile",
    [
        "\x1b[31mred\x1b[0m",
        "\x1b]0;title\x07red",
        "\x9b31mred",
        "\x1b]8;;http://x\x1b\\red",
        "\x9d0;title\x9cred",
        "r\x08e\x7fd",
        "r\u202eed",
    ],
)
def test_a_line_commands_no_terminal(hostile: str) -> None:
    assert harmless(f"a\n\t{hostile}\nb") == "a\n\tred\nb"


def test_a_log_with_controls_is_shown_without_them(oombot: Oombot, log: Path) -> None:
    log.write_text(log.read_text().replace("CUDA out of memory", "\x1b]0;owned\x07\x1b[31mCUDA out of memory"))
    for out in (oombot("diagnose", str(log))[1], oombot("show", "1", "--evidence")[1]):
        assert "CUDA out of memory" in out
        assert not {"\x1b", "\x07"} & set(out)
        assert "owned" not in out


def test_a_fault_is_kept_for_its_owner_alone_under_a_new_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for _ in range(2):
        assert "oombot-fault-" in sentence(ValueError("x"))[0]
    kept = list(tmp_path.iterdir())
    assert len(kept) == 2
    assert {stat.S_IMODE(path.stat().st_mode) for path in kept} == {0o600}


def test_a_program_is_no_export(oombot: Oombot, tmp_path: Path) -> None:
    (tmp_path / "ls").write_bytes(b"\x7fELF\xff\xfe" + bytes(range(128, 256)))
    status, out, err = oombot("db", "import", str(tmp_path / "ls"))
    assert (status, out) == (2, "")
    assert "is not text" in err
    assert "fault" not in err


def test_json_stays_json(oombot: Oombot, log: Path) -> None:
    assert json.loads(oombot("diagnose", str(log), "--json")[1])["phase"] == "graph_capture"


def test_a_config_without_end_and_a_bottomless_one_are_refused(oombot: Oombot, tmp_path: Path) -> None:
    deep = tmp_path / "config.json"
    deep.write_text('{"a":' * 100_000 + "1" + "}" * 100_000)
    for path, says in (("/dev/zero", "no file with an end"), (str(deep), "nested too deeply")):
        status, out, err = oombot("size", "--config", path, "--gpu", "H100-80GB")
        assert (status, out) == (2, "")
        assert says in err


def test_a_quoted_line_in_the_document_has_no_controls(oombot: Oombot, log: Path) -> None:
    log.write_text(log.read_text().replace("CUDA out of memory", "\x1b[31mCUDA out of memory\x1b]0;owned\x07"))
    document = json.loads(oombot("diagnose", str(log), "--json")[1])
    assert "CUDA out of memory. Tried" in document["first_error"]["text"]
    assert not [line for line in (document["first_error"], *document["proof"]) if {"\x1b", "\x07"} & set(line["text"])]


def test_a_closed_standard_output_is_no_fault(oombot: Oombot, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", None)
    assert oombot("diagnose", str(log))[0] == 0


def test_what_is_repeated_on_standard_error_commands_no_terminal(oombot: Oombot, log: Path) -> None:
    hostile = "\x1b]0;owned\x07\u202eD-9"
    for arguments in (("diagnose", hostile), ("show", hostile), ("diagnose", str(log), "--answer", f"{hostile}=3")):
        status, _, err = oombot(*arguments)
        assert (status, "\x1b" in err, "\u202e" in err) == (2, False, False)


def test_a_name_inside_an_archive_commands_nothing(tmp_path: Path) -> None:
    path = tmp_path / "logs.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("\x1b[31m\u202egol.log", "torch.OutOfMemoryError: CUDA out of memory.")
    assert [name for name, _ in opened("l\x1bogs.zip", path.read_bytes()).parts] == ["gol.log"]
    assert [name for name, _ in opened("l\x07og", b"text").parts] == ["log"]


@pytest.mark.parametrize("line", ["[" * 100_000, '{"a":' * 50_000])
def test_a_bottomless_line_is_one_answer_of_a_batch(oombot: Oombot, tmp_path: Path, line: str) -> None:
    batch = tmp_path / "batch.jsonl"
    batch.write_text(f'{line}\n{{"id": 2, "model": "llama-3.3-70b", "gpu": "H100"}}\n')
    status, out, _ = oombot("size", "--batch", str(batch))
    first, second = (json.loads(answer) for answer in out.splitlines())
    assert (status, first["error"], second["id"]) == (0, "line 1 is not JSON: it is nested too deeply", 2)


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("quantization_config", '"fp8"', "quantization_config is 'fp8'; it must be a table"),
        ("hf_quant_config", "[1]", "hf_quant_config is [1]; it must be a table"),
        ("quantization", "[1e400]", "quantization is [inf]; it must be one word"),
        ("max_model_len", "1e400", "max_model_len is inf; it must be a number"),
        ("max_num_seqs", "1e30", "max_num_seqs is 1e+30; it must be at most 1,000,000,000,000,000"),
    ],
)
def test_a_value_of_the_wrong_kind_is_named_in_a_batch(oombot: Oombot, tmp_path: Path, key: str, value: str, says: str) -> None:
    batch = tmp_path / "batch.jsonl"
    config = {"architectures": ["LlamaForCausalLM"], "hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 1, "vocab_size": 9}
    inner = f', "{key}": {value}' if key == "quantization_config" else ""
    outer = "" if inner else f', "{key}": {value}'
    batch.write_text(f'{{"gpu": "H100", "config": {json.dumps(config)[:-1]}{inner}}}{outer}}}\n')
    assert json.loads(oombot("size", "--batch", str(batch))[1])["error"].startswith(says)


@pytest.mark.parametrize("length", ["1e400", "inf", "9" * 400])
def test_a_length_beyond_all_lengths_is_refused_before_anything_is_computed(oombot: Oombot, length: str) -> None:
    status, out, err = oombot("size", "llama-3.3-70b", "--gpu", "H100", "--max-model-len", length)
    assert (status, out) == (2, "")
    assert "max_model_len is" in err
    assert len(err) < 300
