"""A log of any size is read in one pass; what is kept keeps its number."""

import json
import tracemalloc
from pathlib import Path

import pytest

from bot.reading.large import CHUNK, condensed, numbered, telling_text
from bot.reading.redact import redact
from bot.reading.select import AFTER, FIRST, HEAD, LAST, LONGEST, Sieve
from bot.reading.text import NotText, split_lines
from bot.rulebook.load import load_rulebook

NOISE = '(APIServer pid=1) INFO:     10.0.0.7:57124 - "GET /health HTTP/1.1" 200 OK'
ERROR = "(Worker_TP1 pid=5) ERROR 11-18 10:00:01 [x.py:1] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."


def kept(lines: list[str], step: int) -> dict[int, str]:
    sieve = Sieve(load_rulebook())
    data = "\n".join(lines).encode()
    for at in range(0, len(data), step):
        sieve.feed(data[at : at + step])
    found = dict(sieve.lines())
    assert sieve.count == len(lines)
    return found


def test_noise_in_the_middle_is_left_out() -> None:
    found = kept([NOISE] * 20_000, CHUNK)
    assert 1 in found
    assert 20_000 in found
    assert HEAD + 100 not in found


@pytest.mark.parametrize("step", [1000, 4096, 65_537, CHUNK])
def test_an_error_in_the_middle_stands_at_its_number_with_its_neighbours(step: int) -> None:
    lines = [NOISE] * 5000 + ["before", ERROR, "after"] + [NOISE] * 9000
    found = kept(lines, step)
    assert (found[5002], found[5003]) == (ERROR, "after")
    assert 5002 + AFTER in found


def test_every_kept_line_is_the_line_of_its_number() -> None:
    lines = [ERROR if n % 977 == 0 else f"{NOISE} {n}" for n in range(30_000)]
    found = kept(lines, 100_003)
    assert all(lines[number - 1] == text for number, text in found.items())


def test_a_message_that_recurs_is_kept_first_and_last() -> None:
    lines = [f"{ERROR} {n}" for n in range(40_000)]
    found = kept(lines, CHUNK)
    assert len(found) < HEAD + 3000 + (FIRST + LAST) * 12
    assert {1, 40_000} <= found.keys()


def test_a_line_without_end_gives_what_surrounds_its_messages() -> None:
    found = kept(["x" * (3 * CHUNK) + ERROR + "y" * CHUNK], CHUNK)
    assert ERROR in found[1]
    assert len(found[1]) <= 20 * LONGEST


def test_gaps_are_marked_and_counted_on() -> None:
    lines = [NOISE] * 30_000 + [ERROR]
    text, cut = condensed(lines)
    assert cut
    assert dict(numbered(split_lines(text)))[30_001] == ERROR
    assert condensed(["a", "b"]) == ("a\nb", False)


def test_a_file_in_utf16_is_read_as_one_in_utf8(tmp_path: Path) -> None:
    lines = [NOISE] * 30_000 + [ERROR, ""]
    (tmp_path / "a.log").write_bytes("\n".join(lines).encode("utf-16"))
    (tmp_path / "b.log").write_bytes("\n".join(lines).encode())
    assert telling_text(tmp_path / "a.log")[0].splitlines()[1:] == telling_text(tmp_path / "b.log")[0].splitlines()[1:]


def test_a_large_picture_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(b"\x89PNG\r\n" + bytes(100_000))
    with pytest.raises(NotText, match="PNG"):
        telling_text(tmp_path / "a.log")


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    with path.open("w") as file:
        for _ in range(40):
            file.write((NOISE + "\n") * 10_000)
        file.write(ERROR)
    telling_text(path)
    tracemalloc.start()
    telling_text(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert path.stat().st_size > 28 * 2**20
    assert peak < 20 * 2**20


@pytest.mark.parametrize("ahead", range(AFTER + 4))
@pytest.mark.parametrize(
    ("secret", "halves"),
    [
        (["    - name: VLLM_API_KEY", "      value: plainword9"], ["plainword9"]),
        (["    - name: VLLM_API_KEY", '      value: "two words"'], ["two words"]),
        (
            ["-----BEGIN RSA PRIVATE KEY-----", "MIIEpAIBAAKCAQEA0Z3VS5JJ", "cds3xfnygWyF2sMr1x9QqDvL", "-----END RSA PRIVATE KEY-----"],
            ["MIIEpA", "cds3xf"],
        ),
    ],
)
def test_no_half_of_a_secret_shows_at_the_edge_of_a_gap(secret: list[str], halves: list[str], ahead: int) -> None:
    lines = [NOISE] * 30_000
    at = 15_000 - ahead
    lines[at : at + len(secret)] = secret
    lines[15_000 + len(secret)] = ERROR
    lines[15_000 - ahead + 40] = ERROR
    text, cut = condensed(lines)
    hidden, _ = redact(text)
    assert cut
    assert [half for half in halves if half in hidden] == []


MARGINS = ("vllm-1  | ", "2026-11-30T04:31:07.123456789Z stdout F ", "(EngineCore_DP0 pid=11) ")
MANY_LINED = {
    "a private key": ["-----BEGIN RSA PRIVATE KEY-----", *["MIIEpAIBAAKCAQEA0Z3VS5JJcds3xfnygWyF2sMr1x9QqDvLAbCdEfGhIjKlMn01"] * 25],
    "a YAML block": ["password: |", *["  MIIEpA some words"] * 6],
    "JSON": ['{"name": "HF_TOKEN",', '   "value": "MIIEpA34"},'],
    "a command": ["vllm serve m --api-key \\", "  MIIEpA34"],
}


@pytest.mark.parametrize("margin", ["", *MARGINS])
@pytest.mark.parametrize("secret", [key for key in MANY_LINED if key != "a YAML block"])
def test_a_cut_at_any_line_of_a_secret_shows_none_of_it(secret: str, margin: str) -> None:
    for ahead in range(AFTER + 4):
        lines = [NOISE] * 30_000
        lines[15_000 - ahead : 15_000 - ahead] = [margin + line for line in MANY_LINED[secret]]
        for at in (15_000 - ahead - 3, 15_000 - ahead + len(MANY_LINED[secret]) + 2):
            lines[at] = ERROR
        assert "MIIEpA" not in redact(condensed(lines)[0])[0]


def test_a_cut_inside_a_long_line_shows_no_half_of_a_secret() -> None:
    for before in range(8150, 8210, 7):
        line = f"{'w ' * 9000}{ERROR} {'w ' * 4500}DB_PASSWORD='correct horse MIIEpA34' {'v' * before}{ERROR} {'w ' * 9000}"
        text = condensed([*[NOISE] * 12_000, line, *[NOISE] * 12_000])[0]
        assert ERROR in text
        assert "MIIEpA" not in redact(text)[0]


def exported(rows: int, after: int = 0) -> str:
    """An array of records on one line, an error behind `rows` of them and `after` more behind it."""
    noise = [{"timestamp": str(n), "line": NOISE} for n in range(rows + after)]
    return json.dumps([*noise[:rows], {"timestamp": str(rows), "line": ERROR}, *noise[rows:]])


@pytest.mark.parametrize("after", [0, 9000])
def test_an_export_that_is_one_long_line_keeps_its_error(tmp_path: Path, after: int) -> None:
    path = tmp_path / "export.json"
    path.write_text(exported(9000, after))
    text, cut = telling_text(path)
    assert cut is True
    assert len(text) < path.stat().st_size // 2
    assert ERROR in text
    assert ERROR in condensed([exported(9000, after)])[0]


def test_a_message_near_the_end_of_one_very_long_line_is_kept() -> None:
    found = kept(["x " * 700_000 + ERROR + " y" * 50, ERROR + " second"], 65_536)
    assert ERROR in found[1]
    assert found[2] == ERROR + " second"
