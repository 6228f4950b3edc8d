"""Whatever is pasted: no exception, lines that exist, secrets hidden, and time that grows with the text."""

import json
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bot.domain.incident import Contribution
from bot.reading.read import read
from bot.reading.redact import redact
from bot.reading.text import clean, decode, split_lines
from bot.rulebook.load import load_rulebook
from tests.reading.material import evidence

PIECES = [
    "(Worker_TP1 pid=512) ERROR 11-18 10:00:01 [x.py:1] ", "(EngineCore_DP0 pid=7) ", "[rank3]: ", "> ", "vllm-1  | ", "2026-11-18T10:00:00.1Z stderr P ",
    "[2025-07-02 07:41:58 DP0 TP3] ", '  File "/a/vllm/v1/worker/gpu_worker.py", line 12, in load_model', "Traceback (most recent call last):",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 64.00 MiB. GPU 5 has a total capacity of 44.50 GiB of which 512.00 KiB is free.",
    "torch.OutOfMemoryError: CUDA out", " of memory. Tried", "Available KV cache memory: -1.35 GiB", "--max-model-len", " 32768", "--gpu-memory-utilization=0.9",
    '{"message": "', '"}', "[{", "}]", '"textPayload": "x",', "Date,Host,Content", '"a","b","c"', "\n", "\n", "\n", "\r", "\r\n", "\t", "    ", "{", "}", "[", "]",
    "\x1b[31m", "^[[0m", "&lt;", "\\_", "\u0130", "\u201c", "\ud800", "\x00", "hf_AbCdEfGhIjKlMnOpQrStUvWxYz01234567", "HF_TOKEN=", "1e999", "99999999999999999999 GiB",
    "[repeated 30x across cluster]", "[... 7 similar ...]", "memory: 64Gi", "- name: CUDA_VISIBLE_DEVICES", "value: ", "[oombot left out 12 lines]", "Killed", "`", "|",
]  # fmt: skip
PASTES = st.lists(st.sampled_from(PIECES) | st.text(max_size=20), max_size=60).map("".join)
SOME = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@SOME
@given(PASTES)
def test_reading_never_fails_and_its_lines_exist(text: str) -> None:
    hidden, count = redact(text)
    found = read(load_rulebook(), [Contribution("paste", hidden, redactions=count)])
    places = set(found.lines)
    assert all((fact.source, fact.line) in places for fact in found.facts)
    assert all((frame.source, frame.line) in places for frame in found.frames)
    assert all(isinstance(value, str | int | float | bool) for fact in found.facts for value in fact.fields.values())
    json.dumps([dict(fact.fields) for fact in found.facts], allow_nan=False)


@SOME
@given(PASTES)
def test_reading_is_the_same_every_time(text: str) -> None:
    assert evidence(text) == evidence(text)


@SOME
@given(PASTES)
def test_redaction_leaves_no_secret_and_every_line(text: str) -> None:
    hidden, _ = redact(text)
    assert "hf_AbCdEfGhIjKlMnOpQrStUvWxYz01234567" not in hidden
    assert hidden.count("\n") == text.count("\n")
    assert redact(hidden)[0] == hidden


@SOME
@given(st.binary(max_size=2000))
def test_bytes_are_text_or_refused(data: bytes) -> None:
    try:
        text = decode(data)
    except ValueError:
        return
    for line in split_lines(text):
        clean(line)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 400_000, "[" * 200_000, "{" * 200_000, '{"a":' * 50_000, "\n" * 200_000, " " * 400_000, "> " * 100_000, 'File "' * 40_000, "Tried to allocate " * 12_000,
        "(Worker pid=1) " * 15_000, "--max-model-len " * 14_000, "1," * 100_000, "\\" * 200_000, "Error: " * 30_000, "out of memory " * 15_000, "/a" * 100_000,
        "\u2588" * 100_000, "\u00e2\u2013\u02c6" * 60_000, 'a,message\n"x' * 30_000, "[a](http://" * 20_000, '[{"message":"x"},' * 12_000, ".py:1 in x " * 20_000,
        "_" * 200_000, "INFO " * 40_000, "--max-model-len" + " " * 200_000, "[repeated" + " " * 200_000, "\u2502" + " " * 200_000 + "x", "/a" * 100_000 + ".py",
        "qwen" + "-a" * 100_000, 'name: "' + " " * 100_000, "model" + " " * 200_000, "|" + " " * 200_000, 'File "' + "a" * 200_000, "GPU 0: " * 30_000, "memory: " * 25_000,
    ],
    ids=lambda text: repr(text[:12]),
)  # fmt: skip
def test_hostile_text_is_read_in_time(text: str) -> None:
    begun = time.process_time()
    evidence(text)
    assert time.process_time() - begun < 3.0


def test_nothing_is_found_in_an_empty_paste() -> None:
    for text in ("", "\n\n", " \t ", "\r\r"):
        found = evidence(text)
        assert (found.facts, found.frames, found.engine, found.errors) == ((), (), "unknown", ())
