"""Who erased and exported what, at this machine's command line."""

import json
from collections.abc import Callable
from getpass import getuser
from pathlib import Path

Oombot = Callable[..., tuple[int, str, str]]


def test_an_empty_trail_is_said(oombot: Oombot) -> None:
    assert oombot("audit") == (0, "Nobody has done any of that yet.\n", "")


def test_an_erasure_and_an_export_name_the_account(oombot: Oombot, log: Path, tmp_path: Path) -> None:
    oombot("diagnose", str(log))
    oombot("forget", "D-0001")
    oombot("db", "export", str(tmp_path / "all.jsonl"))
    status, out, _ = oombot("audit", "--json")
    rows = [(row["by"], row["says"]) for row in json.loads(out)["rows"]]
    mine = f"account {getuser()}"
    assert (status, rows) == (0, [(mine, "exported the whole history"), (mine, "erased the evidence of D-0001")])
    assert "erased the evidence of D-0001" in oombot("audit")[1]
