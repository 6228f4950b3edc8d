"""Whatever the terminal is: narrow, of another alphabet, with a stream that was closed."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bot.cli.terminal import command, table

ROOT = Path(__file__).parents[2]
Oombot = Callable[..., tuple[int, str, str]]
COMMAND = 'vllm serve Qwen/Qwen3-32B --tensor-parallel-size 2 --override \'{"a b": "c --d"}\' --gpu-memory-utilization 0.90'


def ran(tmp_path: Path, line: str, **environ: str) -> subprocess.CompletedProcess[bytes]:
    """A shell's line in which `oombot` is this program."""
    given = {**os.environ, "PYTHONPATH": str(ROOT), "OOMBOT_DATABASE_URL": f"sqlite+aiosqlite:///{tmp_path}/t.db", **environ}
    shell = f'oombot() {{ "{sys.executable}" -m bot "$@"; }}; {line}'
    return subprocess.run(["bash", "-c", shell], cwd=tmp_path, env=given, capture_output=True, check=False)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_a_letter_that_the_terminal_cannot_show_is_replaced(tmp_path: Path, log: Path, encoding: str) -> None:
    shown = ran(tmp_path, f"oombot diagnose --no-store {log}", PYTHONIOENCODING=encoding)
    assert (shown.returncode, shown.stderr) == (0, b"")
    assert "graph capture" in shown.stdout.decode(encoding)
    answered = ran(tmp_path, "oombot explain weight-mismatch --json", PYTHONIOENCODING=encoding)
    assert json.loads(answered.stdout.decode("ascii"))["title"] == "Does a 2× weight mismatch prove that FP8 became BF16?"


@pytest.mark.parametrize("line", ["oombot diagnose -", "oombot db import -", "oombot size --batch -"])
def test_a_closed_standard_input_is_said(tmp_path: Path, line: str) -> None:
    shown = ran(tmp_path, f"{line} <&-")
    assert shown.returncode == 2
    assert shown.stderr.decode().startswith("oombot: Standard input is closed")


def test_what_is_written_to_a_closed_stream_is_lost_and_stands_nowhere_else(tmp_path: Path, log: Path) -> None:
    assert ran(tmp_path, f"oombot diagnose --no-store {log} >&-").returncode == 0
    assert ran(tmp_path, "oombot diagnose absent.log --json 2>&-").stdout == b""


def test_a_config_may_come_through_a_pipe(tmp_path: Path) -> None:
    shown = ran(tmp_path, "echo '{}' | oombot size --config /dev/stdin --gpu H100")
    assert shown.returncode == 2
    assert b"config.json names neither `architectures` nor a known `model_type`" in shown.stderr


def test_in_a_narrow_terminal_every_line_fits_but_for_words_that_do_not(oombot: Oombot, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wide = oombot("diagnose", str(log))[1]
    monkeypatch.setenv("COLUMNS", "40")
    narrow = oombot("diagnose", str(log))[1]
    assert max(map(len, wide.splitlines())) > 80
    assert [line for line in narrow.splitlines() if len(line) > 42 and " " in line.strip()] == []


def test_a_command_is_broken_before_its_flags_and_stays_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert command(COMMAND) == f"    {COMMAND}"
    monkeypatch.setenv("COLUMNS", "40")
    broken = command(COMMAND)
    assert '\'{"a b": "c --d"}\'' in broken
    said = subprocess.run(["bash", "-c", f"printf '%s|' {broken}"], capture_output=True, check=True).stdout
    assert said == subprocess.run(["bash", "-c", f"printf '%s|' {COMMAND}"], capture_output=True, check=True).stdout


def test_a_table_too_wide_becomes_paragraphs(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [["id", "model", "change"], ["D-0001", "", "raise --tensor-parallel-size to 2"]]
    assert table(rows, headed=True).splitlines()[1] == "  D-0001         raise --tensor-parallel-size to 2"
    monkeypatch.setenv("COLUMNS", "40")
    assert table(rows, headed=True) == "  D-0001 change: raise\n      --tensor-parallel-size to 2"
    assert table([["weights", "12.00 GiB", "line 31 of the second source"]]) == "  weights: 12.00 GiB, line 31 of the\n      second source"
