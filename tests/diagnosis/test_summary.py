"""The verdict in one sentence: never more than the paste shows."""

import pytest

from bot.domain.incident import Contribution
from bot.rulebook.load import load_rulebook
from bot.usecases.judge import judge
from tests.diagnosis.material import frame, judged, oom, worker

BOOK = load_rulebook()
LOADER, RUNNER = "v1/worker/gpu_worker.py", "v1/worker/gpu_model_runner.py"


def said(text: str) -> dict[str, object]:
    return judge(BOOK, [Contribution("paste", text)])


def test_a_traceback_without_its_last_line_is_no_shortage_yet() -> None:
    document = judged(worker("Worker_TP3", "Traceback (most recent call last):", frame(LOADER, "load_model")))
    assert (document["phase"], document["verdict"]) == ("weight_loading", "certain")
    assert document["summary"] == "Stopped on rank 3 (Worker_TP3) in weight loading; the line that says why is cut off."
    assert document["questions"][0]["text"].startswith("Can you paste the end of this traceback?")
    assert document["notes"][0].startswith("No line here says that memory ran out.")


def test_with_its_last_line_it_is_one_and_nothing_is_asked() -> None:
    document = judged(worker("Worker_TP3", frame(LOADER, "load_model"), oom("64.00 MiB", "20.00 MiB", gpu=3)))
    assert document["summary"].startswith("Out of memory on rank 3 (Worker_TP3) in weight loading; it wanted 64.00 MiB")
    assert document["questions"] == []


def test_an_exception_below_the_frames_is_the_end_that_was_asked_for() -> None:
    document = judged(worker("Worker_TP1", frame(RUNNER, "capture_model"), "RuntimeError: the worker is in no state to go on"))
    assert "no line here says that memory ran out" in document["summary"]
    assert not any("end of this traceback" in question["text"] for question in document["questions"])


def test_people_who_say_that_memory_ran_out_are_believed_for_a_cut_traceback() -> None:
    document = judged("vLLM dies of CUDA OOM\n" + worker("Worker_TP1", frame(LOADER, "load_model")))
    assert document["summary"].startswith("Out of memory on rank 1")


def test_a_cut_traceback_in_an_open_phase_is_asked_for_its_end_not_for_what_stands_above() -> None:
    cut = '[rank0]: Traceback (most recent call last):\n[rank0]:   File "/srv/app/llm.py", line 17, in create'
    document = said(cut + "\n")
    assert document["phase"] == "unknown"
    assert document["questions"][0]["text"].startswith("Can you paste the end of this traceback?")  # type: ignore[index]


def test_a_log_that_came_up_says_that_nothing_failed_and_excludes_nothing() -> None:
    document = judged(
        "INFO 01-05 07:11:02 [core.py:210] init engine (profile, create kv cache, warmup model) took 9.31 seconds\nINFO:     Application startup complete.\n"
    )
    assert document["summary"] == "The server started; nothing failed in this log."
    assert document["also_possible"] == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("  Startup probe failed: connection refused\n      Exit Code:    137\n", "the kubelet ended the container because a probe failed"),
        ("$ docker stop engine-1\nengine-1 exited with code 137\n", "somebody stopped it by a command"),
    ],
)
def test_who_ended_it_stands_in_the_sentence(text: str, words: str) -> None:
    assert words in str(said(text)["summary"])


def test_llama_cpp_has_no_profiling_run() -> None:
    text = (
        'time=2025-07-01T08:00:00.000Z level=INFO source=sched.go:777 msg="new model will fit in available VRAM in single GPU, loading"\n'
        "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 1536.00 MiB on device 0: cudaMalloc failed: out of memory\n"
        "ggml_gallocr_reserve_n: failed to allocate CUDA0 buffer of size 1610612736\n"
        'time=2025-07-01T08:00:07.000Z level=ERROR source=sched.go:456 msg="error loading llama server" '
        'error="llama runner process has terminated: cudaMalloc failed: out of memory"\n'
    )
    document = said(text)
    assert document["phase"] == "profiling"
    assert "the compute buffers" in str(document["summary"])
    assert "profiling" not in str(document["summary"])
