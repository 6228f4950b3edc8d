"""What a stranger sends commands no terminal and overwrites no file."""

import json
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from bot.cli.faults import sentence
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
