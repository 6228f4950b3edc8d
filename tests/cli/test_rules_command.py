import json
import subprocess
from collections.abc import Callable
from pathlib import Path

Oombot = Callable[..., tuple[int, str, str]]


def test_no_verb_says_which_there_are(oombot: Oombot) -> None:
    status, out, err = oombot("rules")
    assert (status, out) == (2, "")
    assert "VERB" in err


def test_the_shipped_rules_are_checked_in_one_line(oombot: Oombot) -> None:
    status, out, _ = oombot("rules", "check")
    assert status == 0
    assert out.startswith("ok  rulebook: ")


def test_one_file_a_folder_or_a_rule_is_checked_by_itself(oombot: Oombot) -> None:
    rules = Path(__file__).parents[2] / "rules"
    told = [
        oombot("rules", "check", name) for name in (str(rules / "facts" / "nvidia-smi.toml"), "formats", "torch.oom", "models/qwen2.toml")
    ]
    assert [status for status, _, _ in told] == [0, 0, 0, 0]
    assert [out.partition(" examples of ")[2].strip() for _, out, _ in told] == [
        "facts/nvidia-smi.toml were read as they say",
        "formats were read as they say",
        "torch.oom were read as they say",
        "model families need the bytes that they say",
    ]


def test_what_is_no_file_and_no_rule_is_said(oombot: Oombot) -> None:
    status, out, err = oombot("rules", "check", "torch.omm")
    assert (status, out) == (2, "")
    assert "torch.omm: there is no such file in" in err


def test_anchors_find_what_the_rules_would_read(oombot: Oombot, tmp_path: Path) -> None:
    status, out, _ = oombot("rules", "anchors")
    assert status == 0
    anchors = out.splitlines()
    assert all(anchors)
    (tmp_path / "anchors").write_text(out)
    (tmp_path / "serve.log").write_text("nothing here\nAvailable KV cache memory: 4.02 GiB\n")
    counted = subprocess.run(["grep", "-c", "-F", "-f", "anchors", "serve.log"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert counted.stdout == "1\n"


def test_anchors_as_json_are_the_same(oombot: Oombot) -> None:
    document = json.loads(oombot("rules", "anchors", "--json")[1])
    assert document["schema"] == "oombot.anchors/1"
    assert "Available KV cache memory`" in document["anchors"]


def test_replay_of_an_unchanged_rulebook_changes_nothing(oombot: Oombot, tmp_path: Path) -> None:
    log = tmp_path / "v.log"
    log.write_text(
        "ValueError: Free memory on device cuda:1 (3.6/23.99 GiB) on startup is less than desired GPU memory utilization (0.9, 21.59 GiB)."
    )
    assert oombot("diagnose", str(log))[0] == 0
    status, out, _ = oombot("rules", "replay")
    assert status == 0
    assert "1 incidents judged again: 1 the same, 0 different" in out
    document = json.loads(oombot("rules", "replay", "--json")[1])
    assert (document["judged"], document["changed"]) == (1, [])
