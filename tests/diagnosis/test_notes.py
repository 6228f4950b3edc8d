"""Sentences beside a diagnosis: none without a reason."""

from bot.diagnosis.diagnose import diagnose
from bot.domain.incident import Contribution
from bot.reading.read import read
from bot.rulebook.load import load_rulebook

BOOK = load_rulebook()
SUMMARY = (
    "(EngineCore pid=55) DEBUG 06-01 10:01:40 [gpu_worker.py:655] Free memory on device cuda:0 (23.1/23.52 GiB) on startup. Desired GPU memory utilization is (0.92, 21.64 GiB). "
    "Actual usage is 7.62 GiB for weight, 1.46 GiB for peak activation, 0.06 GiB for non-torch memory, and 0.58 GiB for CUDAGraph memory."
)


def notes(text: str) -> tuple[str, ...]:
    return diagnose(BOOK, read(BOOK, [Contribution("paste", text)])).notes


def test_a_log_that_prints_all_needs_no_note() -> None:
    assert notes("INFO 02-17 09:01:02 [core.py:1] Initializing a V1 LLM engine (v0.11.0) with config: model='m'") == ()


def test_a_narrowed_version_says_by_what() -> None:
    (note,) = notes("ERROR 11-19 13:17:27 [core.py:708] EngineCore failed to start.")
    assert ">=0.11.0, <0.12.0" in note
    assert "core.py:708" in note


def test_a_report_of_rank_0_alone_is_said_to_be_its_own() -> None:
    counted, _, note = notes("""
(EngineCore_DP0 pid=90) INFO 02-03 10:00:01 [core.py:97] Initializing a V1 LLM engine (v0.15.0) with config: model='/models/m', tensor_parallel_size=4
(Worker_TP0 pid=101) INFO 02-03 10:01:42 [gpu_worker.py:373] Available KV cache memory: 51.2 GiB
(Worker_TP3 pid=104) ERROR 02-03 10:02:10 [multiproc_executor.py:880] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 96.00 MiB. GPU 3 has a total capacity of 79.18 GiB of which 41.00 MiB is free.
""")
    assert "Only rank 0 printed" in note
    assert "rank 3" in note
    assert "counted from 0.90, the default of vLLM 0.15.0" in counted


def test_a_missing_estimate_is_asked_for_by_its_line() -> None:
    config = "(EngineCore pid=55) INFO 06-01 10:00:00 [core.py:113] Initializing a V1 LLM engine (v0.22.1) with config: model='/models/a'\n"
    (note,) = notes(config + "(EngineCore pid=55) INFO 06-01 10:01:00 [gpu_worker.py:508] Available KV cache memory: 11.92 GiB\n" + SUMMARY)
    assert "Estimated CUDA graph memory" in note
    assert note.startswith("593.92 MiB of the budget of rank 0")


def test_terms_that_do_not_add_up_are_said() -> None:
    config = "(EngineCore pid=55) INFO 06-01 10:00:00 [core.py:113] Initializing a V1 LLM engine (v0.15.0) with config: model='/models/a'\n"
    (note,) = notes(config + "(EngineCore pid=55) INFO 06-01 10:01:00 [gpu_worker.py:508] Available KV cache memory: 9.5 GiB\n" + SUMMARY)
    assert "do not add up" in note
    assert "3.00 GiB" in note


FAILED = "(Worker_TP0 pid=101) ERROR 02-03 10:02:10 [multiproc_executor.py:{line}] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 96.00 MiB. GPU 0 has a total capacity of 79.18 GiB of which 41.00 MiB is free.\n"


def counted(text: str) -> str:
    (note,) = [note for note in notes(text) if "counted from" in note]
    return note


def test_a_default_is_named_by_its_value_where_the_version_leaves_one() -> None:
    started = (
        "(EngineCore pid=90) INFO 02-03 10:00:01 [core.py:97] Initializing a V1 LLM engine (v{version}) with config: model='/models/m'\n"
    )
    frame = '(Worker_TP0 pid=101) ERROR 02-03 10:02:10 [multiproc_executor.py:880]   File "/v/site-packages/vllm/v1/worker/gpu_worker.py", line 9, in capture_model\n'
    fails = frame + FAILED.format(line=880)
    assert "0.88 is counted from 0.90, the default of vLLM 0.15.0." in counted(started.format(version="0.15.0") + fails)
    assert "0.90 is counted from 0.92, the default of vLLM 0.32.0." in counted(started.format(version="0.32.0") + fails)
    assert "0.90 up to vLLM 0.19 and 0.92 from 0.20" in counted(fails)
    assert "0.88 is counted from 0.90, the default of these versions." in counted(
        "ERROR 11-19 13:17:27 [core.py:708] EngineCore failed to start.\n" + fails
    )
