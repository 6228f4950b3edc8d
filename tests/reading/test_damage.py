"""A log says the same after every kind of damage: wraps, lost line ends, margins, quotes."""

from collections.abc import Callable

import pytest

from bot.reading.wraps import wrap_of
from tests.reading.material import evidence, fact, signed

PREFIX = "(Worker_TP1 pid=512) ERROR 11-18 10:00:01 [multiproc_executor.py:671] "
BODY = [
    "WorkerProc hit an exception.",
    "Traceback (most recent call last):",
    '  File "/usr/local/lib/python3.12/dist-packages/vllm/v1/executor/multiproc_executor.py", line 666, in worker_busy_loop',
    "    output = func(*args, **kwargs)",
    "             ^^^^^^^^^^^^^^^^^^^^^",
    '  File "/usr/local/lib/python3.12/dist-packages/vllm/v1/worker/gpu_worker.py", line 263, in determine_available_memory',
    "    self.model_runner.profile_run()",
    '  File "/usr/local/lib/python3.12/dist-packages/vllm/v1/worker/gpu_model_runner.py", line 3361, in profile_run',
    "    hidden_states, last_hidden_states = self._dummy_run(self.max_num_tokens, is_profile=True)",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.16 GiB. GPU 1 has a total capacity of 79.19 GiB of which 1.02 GiB is free. "
    "Including non-PyTorch memory, this process has 78.15 GiB memory in use. Of the allocated memory 75.02 GiB is allocated by PyTorch, "
    "and 2.05 GiB is reserved by PyTorch but unallocated.",
]
LOG = "\n".join(PREFIX + line for line in BODY)
FUNCTIONS = ["worker_busy_loop", "determine_available_memory", "profile_run"]


def cut(text: str, width: int) -> str:
    return "\n".join(line[at : at + width] for line in text.split("\n") for at in range(0, max(len(line), 1), width))


def between_words(text: str, width: int) -> str:
    lines: list[str] = []
    for line in text.split("\n"):
        rest = line
        while len(rest) > width and " " in rest[1:width].strip():
            at = rest.rindex(" ", 1, width + 1)
            lines.append(rest[:at])
            rest = rest[at + 1 :]
        lines.append(rest)
    return "\n".join(lines)


def says_the_same(text: str) -> None:
    found = evidence(text)
    error = fact(found, "torch.oom")
    assert (error.fields["tried"], error.fields["free"], error.fields["gpu"]) == (round(1.16 * 2**30), round(1.02 * 2**30), 1)
    assert error.speaker.label == "Worker_TP1"
    assert [frame.function for frame in found.frames] == FUNCTIONS
    assert {frame.speaker.label for frame in found.frames} == {"Worker_TP1"}


def test_the_log_as_it_was() -> None:
    says_the_same(LOG)


@pytest.mark.parametrize("width", [72, 80, 97, 100, 120, 132, 160])
def test_a_wrap_at_one_width_is_undone(width: int) -> None:
    says_the_same(cut(LOG, width))


@pytest.mark.parametrize("width", [90, 100, 120])
def test_a_wrap_between_words_is_undone(width: int) -> None:
    says_the_same(between_words(LOG, width))


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "\n".join("> " + line for line in cut(text, 98).split("\n")),
        lambda text: "\n".join("    " + line for line in text.split("\n")),
        lambda text: "\n".join(f"{n:6d}\t{line}" for n, line in enumerate(text.split("\n"), 1)),
        lambda text: "\n".join(f"{n}:{line}" for n, line in enumerate(text.split("\n"), 40)),
        lambda text: "\n\n".join(text.split("\n")),
        lambda text: " ".join(line.strip() for line in text.split("\n")),
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "```" + text + "```",
        lambda text: cut("\n".join("2026-11-18T10:00:00.1Z " + line for line in text.split("\n")), 110),
        lambda text: "\n".join("vllm-6d5f8-abcde vllm " + line for line in text.split("\n")),
    ],
)  # fmt: skip
def test_other_damage_is_undone(damage: Callable[[str], str]) -> None:
    says_the_same(damage(LOG))


def test_a_wrapped_line_has_the_number_of_its_beginning() -> None:
    text = cut(LOG, 100)
    first = next(n for n, line in enumerate(text.split("\n"), 1) if "torch.OutOfM" in line)
    assert fact(evidence(text), "torch.oom").line == first


def test_lines_of_one_length_that_were_not_wrapped_stay_apart() -> None:
    line = "(Worker_TP{} pid=1{}) INFO 11-18 10:00:01 [gpu_worker.py:298] Available KV cache memory: 35.68 GiB, all of it here"
    text = "\n".join(line.format(n, n) for n in range(4)) + "\nthat is all"
    assert [number for number, _, _ in signed(text)] == [1, 2, 3, 4, 5]


def test_ordinary_text_has_no_wrap() -> None:
    widths = [60, 71, 55, 90, 64]
    assert wrap_of(widths, ["x"] * 5, [True] * 5, [False] * 5).width == 0


def test_a_progress_bar_gives_each_of_its_rewrites() -> None:
    text = (
        "Capturing CUDA graphs:   0%|  | 0/67\rCapturing CUDA graphs:  43%|██▎  | 29/67(Worker_TP0 pid=12) INFO 11-18 10:00:00 [x.py:1] hi"
    )
    assert [label for _, label, _ in signed(text)] == ["", "", "Worker_TP0"]
    assert {number for number, _, _ in signed(text)} == {1}


def test_frames_of_a_notebook_and_of_rich_are_frames() -> None:
    text = (
        "File ~/env/lib/python3.11/site-packages/vllm/worker/cache_engine.py:49, in CacheEngine.__init__(self, cache_config)\n"
        "│ /usr/local/lib/python3.12/dist-packages/vllm/v1/worker/gpu_worker.py:245 in    │\n"
        "│ determine_available_memory                                                     │\n"
    )
    assert [(frame.function, frame.file_line) for frame in evidence(text).frames] == [("__init__", 49), ("determine_available_memory", 245)]


def test_underscores_that_a_chat_took_for_italics_stand_in_frames_again() -> None:
    at = "(Worker TP3 pid=44) ERROR 10-11 10:10:10 [multiproc executor.py:671] "
    text = (
        f'{at}File "/opt/my env/vllm/v1/worker/gpu worker.py", line 340, in compile or warm up model\n'
        f'{at}File "/opt/my env/vllm/v1/worker/gpu model runner.py", line 3100, in capture model\n'
        f'{at}File "/opt/my env/vllm/forward.py", line 9, in capture and more\n'
    )
    found = evidence(text)
    assert [(frame.path, frame.function) for frame in found.frames] == [
        ("/opt/my env/vllm/v1/worker/gpu_worker.py", "compile_or_warm_up_model"),
        ("/opt/my env/vllm/v1/worker/gpu_model_runner.py", "capture_model"),
        ("/opt/my env/vllm/forward.py", "capture"),
    ]
    assert found.speakers[0].speaker.parts == {"tp": 3}


def test_a_partial_line_of_a_container_runtime_is_joined_with_its_rest() -> None:
    text = "2026-03-11T17:57:10.9Z stderr P CUDA out of memory. Tried to allo\n2026-03-11T17:57:10.9Z stderr F cate 2.00 GiB. GPU 0 has a total capacity"
    assert signed(text) == [(1, "", "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity")]
