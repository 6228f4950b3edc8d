"""A version that is not printed is narrowed from wording, source lines and defaults, and never beyond what they say."""

import pytest

from bot.domain.incident import Contribution
from bot.reading.read import read
from bot.reading.versions import narrowed, releases_of
from bot.rulebook.load import load_rulebook

BOOK = load_rulebook()


def range_of(text: str) -> str | None:
    return read(BOOK, [Contribution("paste", text)]).engine_version_range


def test_what_every_version_says_narrows_nothing() -> None:
    assert range_of("vllm serve /models/m\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.") is None


def test_what_a_shell_says_of_shared_memory_is_no_releases_wording() -> None:
    assert range_of("vllm serve /models/m --tensor-parallel-size 2\nBus error (core dumped)") is None
    assert range_of("vllm serve /models/m\nRuntimeError: Insufficient space in /dev/shm for ring buffer: 9 MiB required") == ">=0.27.0"


def test_a_printed_version_is_not_narrowed() -> None:
    evidence = read(
        BOOK, [Contribution("paste", "INFO 11-19 13:17:27 [core.py:77] Initializing a V1 LLM engine (v0.11.0) with config: model='m'")]
    )
    assert (evidence.engine_version, evidence.engine_version_range) == ("0.11.0", None)


KV = "(EngineCore pid=60) INFO 04-02 10:00:41 [gpu_worker.py:423] Available KV cache memory: 3.86 GiB\n"


@pytest.mark.parametrize(
    ("words", "version"),
    [
        ("flashinfer 0.6.1 and trl 0.21.0", None),
        ("with 0.21.0 and on 0.22.1", None),  # which failed nobody says
        ("this is what I got with 0.9.1", None),  # no such release says what stands above
        ("this is what I got with 0.23.9", None),  # there was none
        ("this is what I got with 0.21.0", "0.21.0"),
        ("L40S, Qwen3-14B FP8, util .92, 0.22.1", "0.22.1"),
        ("升级到 0.20.2 之后起不来了", "0.20.2"),
        ("0.20.2 after 0.22.1, and now this", None),
        ("since we upgraded from 0.20.2 to 0.22.1", "0.22.1"),
    ],
)
def test_a_number_alone_is_the_release_where_it_is_one_and_says_what_the_log_says(words: str, version: str | None) -> None:
    assert read(BOOK, [Contribution("paste", KV + words)]).engine_version == version
    assert read(BOOK, [Contribution("paste", words)]).engine_version is None


def test_a_build_from_sources_without_their_tags_names_no_release() -> None:
    text = "INFO 11-19 13:17:27 [core.py:77] Initializing a V1 LLM engine (v0.1.dev8932+g9ecab12) with config: model='m'"
    sized = "(EngineCore_DP0 pid=7) INFO 02-17 09:01:02 [gpu_worker.py:1] Available KV cache memory: 4.60 GiB"
    evidence = read(BOOK, [Contribution("paste", f"{text}\n{sized}")])
    assert (evidence.engine_version, evidence.engine_version_range) == (None, ">=0.10.2,<0.14.0")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("INFO 02-17 09:01:02 model_runner.py:915] Loading model weights took 14.9595 GB", "<0.8.0"),
        ("INFO 02-17 09:01:02 [gpu_model_runner.py:1] Model loading took 14.9595 GB and 3.1 seconds", ">=0.8.0,<0.8.3"),
        ("(EngineCore_DP0 pid=7) INFO 02-17 09:01:02 [gpu_worker.py:1] Available KV cache memory: 4.60 GiB", ">=0.10.2,<0.14.0"),
        ("(EngineCore_DP0 pid=7) INFO 02-17 09:01:02 [gpu_worker.py:1] Available KV cache memory: 4.6 GiB", ">=0.14.0"),
        ("(VllmWorker rank=3 pid=7) ERROR 02-17 09:01:02 [multiproc_executor.py:1] x", ">=0.6.5,<0.10.1.1"),
        ("(EngineCore pid=7) ERROR 02-17 09:01:02 [core.py:1] EngineCore failed to start.", ">=0.18.0"),
        ("INFO 02-17 09:01:02 [x.py:1] # cuda blocks: 0, # CPU blocks: 4681", ">=0.7.3,<0.11.0"),
        ("(EngineCore_DP0 pid=7) INFO 02-17 09:01:02 [gpu_worker.py:1] Free memory on device (7.9/8.0 GiB) on startup. Desired GPU memory utilization is (0.9, 7.2 GiB). Actual usage is 5.1 GiB for weight, 0.4 GiB for peak activation, 0.1 GiB for non-torch memory, and 0.2 GiB for CUDAGraph memory.", ">=0.10.2,<0.27.0"),
    ],
)  # fmt: skip
def test_a_wording_leaves_the_releases_that_have_it(line: str, expected: str) -> None:
    assert range_of(line) == expected


def test_source_lines_name_a_minor_series() -> None:
    assert range_of("ERROR 11-19 13:17:27 [core.py:708] EngineCore failed to start.") == ">=0.11.0,<0.12.0"


def test_a_frame_of_the_engine_is_a_source_line_too() -> None:
    frame = '(EngineCore_DP0 pid=7) ERROR 11-19 13:17:27 [core.py:1]   File "/usr/lib/python3/dist-packages/vllm/v1/engine/core.py", line 699, in run_engine_core'
    assert range_of(frame) == ">=0.11.0,<0.12.0"


def test_the_same_line_number_in_another_package_says_nothing_of_the_series() -> None:
    frame = '(EngineCore_DP0 pid=7) ERROR 11-19 13:17:27 [x.py:1]   File "/usr/lib/python3/dist-packages/other/core.py", line 699, in run'
    assert range_of(frame) == ">=0.10.2"


def test_a_default_counts_only_where_the_start_command_is_shown() -> None:
    check = "(EngineCore pid=7) ValueError: Free memory on device cuda:1 (3.6/23.99 GiB) on startup is less than desired GPU memory utilization (0.92, 22.07 GiB)."
    assert range_of(check) == ">=0.18.0"
    assert range_of("vllm serve m --max-model-len 4096\n" + check) == ">=0.20.0"
    assert range_of("vllm serve m --gpu-memory-utilization 0.92 --max-model-len 4096\n" + check) == ">=0.18.0"


def test_each_step_of_the_narrowing_has_its_reason() -> None:
    evidence = read(
        BOOK, [Contribution("paste", "(EngineCore pid=7) INFO 02-17 09:01:02 [gpu_worker.py:1] Available KV cache memory: 4.6 GiB")]
    )
    state = narrowed(BOOK, evidence.facts, evidence.speakers)
    assert len(state.left) < len(releases_of(BOOK))
    assert any("line 1" in reason for reason in state.reasons)


def test_wordings_that_contradict_each_other_leave_the_last_that_agreed() -> None:
    text = "INFO 02-17 09:01:02 model_runner.py:915] Loading model weights took 14.9595 GB\n(EngineCore pid=7) INFO 02-17 09:01:02 [core.py:1] EngineCore failed to start."
    assert range_of(text) is not None


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("INFO 07-08 13:53:30 [core.py:526] Waiting for init message from front-end.", ">=0.9.0.1,<0.10.0"),
        ("(EngineCore pid=7) INFO 07-09 21:29:51 [gpu_worker.py:508] Available KV cache memory: 11.92 GiB", ">=0.24.0,<0.25.0"),
        ("(EngineCore pid=7) INFO 07-09 21:29:51 [core.py:114] hello", ">=0.23.0,<0.25.0"),
        (
            "(EngineCore pid=7) INFO 07-09 21:29:51 [core.py:114] hello\n(EngineCore pid=7) INFO 07-09 21:29:51 [gpu_worker.py:508] there",
            ">=0.24.0,<0.25.0",
        ),
    ],
)
def test_the_more_source_lines_agree_the_fewer_releases_are_left(lines: str, expected: str) -> None:
    assert range_of(lines) == expected


@pytest.mark.parametrize(
    ("folder", "version"),
    [
        ("/opt/envs/vllm-0.6.3/lib/python3.10/site-packages/vllm", None),  # an environment keeps its name
        ("/opt/vllm/lib/python3.10/site-packages/vllm", None),
        ("/opt/vllm-0.2.7/vllm", "0.2.7"),
        ("/opt/vllm-0.8.5.post1/vllm", "0.8.5.post1"),
        ("/usr/lib/python3.10/site-packages/vllm-0.6.3-py3.10-linux-x86_64.egg/vllm", "0.6.3"),
    ],
)
def test_the_folder_that_a_traceback_runs_in_tells_the_version(folder: str, version: str | None) -> None:
    text = f'Traceback (most recent call last):\n  File "{folder}/worker/model_runner.py", line 9, in load_model\n    self.load()'
    assert read(BOOK, [Contribution("paste", text)]).engine_version == version


def test_what_the_engine_printed_goes_before_a_folders_name() -> None:
    text = 'INFO 03-10 10:00:00 llm_engine.py:70] vLLM API server version 0.4.2\n  File "/opt/vllm-0.2.7/vllm/worker/model_runner.py", line 9, in load_model'
    assert read(BOOK, [Contribution("paste", text)]).engine_version == "0.4.2"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("vLLM 0.18 works, vLLM 0.19 does not", None),
        ("it came in vLLM 0.19", None),
        ("vLLM 0.19 or later", None),
        ("RTX 4090, vLLM 0.19, 16K", ">=0.19.0,<0.20.0"),
        ("on vLLM 0.7.x", ">=0.7.0,<0.8.0"),
        (  # what the engine says goes before what a person does
            "vLLM 0.19\n(EngineCore_DP0 pid=7) INFO 02-17 09:01:02 [gpu_worker.py:1] Available KV cache memory: 4.60 GiB",
            ">=0.10.2,<0.14.0",
        ),
    ],
)
def test_a_series_that_a_person_names_narrows_the_version(text: str, expected: str | None) -> None:
    assert range_of(f"{text}\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.") == expected
