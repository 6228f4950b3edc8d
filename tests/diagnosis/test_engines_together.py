import pytest

from tests.diagnosis.material import frame, judged, oom, worker


def test_another_engines_words_do_not_decide_for_the_one_that_failed_first() -> None:
    text = worker(
        "Worker_TP0",
        frame("v1/worker/gpu_worker.py", "compile_or_warm_up_model"),
        frame("v1/worker/gpu_model_runner.py", "capture_model"),
        oom("34.00 MiB", "16.00 MiB"),
    )
    text += "\nRun sglang with --mem-fraction-static 0.84\nRuntimeError: Not enough memory. Please try to increase --mem-fraction-static.\n"
    document = judged(text)
    assert (document["engine"], document["phase"]) == ("vllm", "graph_capture")


def test_memory_of_another_process_is_named_and_its_end_comes_first_where_it_is_much() -> None:
    line = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 64.00 MiB. GPU 0 has a total capacity of 79.11 GiB of which 39.88 MiB is free. "
        "Including non-PyTorch memory, this process has {own} GiB memory in use. Of the allocated memory 40.00 GiB is allocated by PyTorch, "
        "and 50.00 MiB is reserved by PyTorch but unallocated."
    )
    frames = (frame("v1/worker/gpu_worker.py", "compile_or_warm_up_model"), frame("v1/worker/gpu_model_runner.py", "capture_model"))
    little, much = (judged(worker("Worker", *frames, line.format(own=own))) for own in ("76.75", "48.76"))
    assert any("Other processes hold 2.32 GiB of this card" in note for note in little["notes"])
    assert little["recommendation"]["flag"] == "--gpu-memory-utilization"
    assert "stop-other-process" in [change["id"] for change in little["alternatives"]]
    assert much["recommendation"]["id"] == "stop-other-process"


def test_what_a_change_changes_is_not_kept_fixed() -> None:
    document = judged(
        worker("Worker", frame("v1/worker/gpu_worker.py", "load_model"), oom("518.00 MiB", "100.00 MiB", allocated="78.00 GiB"))
    )
    kept = {change["id"]: change["keep_fixed"] for change in (document["recommendation"], *document["alternatives"])}
    assert "GPU topology" not in kept["raise-tensor-parallel-size"]
    assert "model revision" in kept["raise-tensor-parallel-size"]


def test_the_failing_device_sets_the_least_tensor_parallel_size() -> None:
    line = "(VllmWorkerProcess pid=195359) ERROR 03-02 21:41:11 [multiproc_worker_utils.py:242] " + oom(
        "20.00 MiB", "3.31 MiB", "14.62 GiB", gpu=2, allocated="14.42 GiB"
    )
    other = "(VllmWorkerProcess pid=195361) ERROR 03-02 21:41:11 [multiproc_worker_utils.py:242] Exception in worker VllmWorkerProcess while processing method load_model."
    change = judged(line + "\n" + other)["recommendation"]
    assert change["flag"] != "--tensor-parallel-size" or int(change["value"]) >= 8


@pytest.mark.parametrize(
    "line",
    [
        "[TensorRT-LLM][ERROR] CUDA runtime error: out of memory",
        "[03/01/2026-10:00:02] [TRT-LLM] [RANK 1] [E] CUDA out of memory. Tried to allocate 2.10 GiB.",
        "[TRT-LLM] [E] CUDA out of memory. Tried to allocate 2.10 GiB.",
    ],
)
def test_the_signature_of_tensorrt_llm_names_it(line: str) -> None:
    assert judged(line)["engine"] == "tensorrt-llm"


def test_turbomind_stays_lmdeploys() -> None:
    assert judged("RuntimeError: [TM][ERROR] CUDA runtime error: out of memory")["engine"] == "lmdeploy"


def test_tensorrt_llms_warm_up_of_graphs_is_the_capture() -> None:
    log = "[TRT-LLM] [RANK 0] [I] Run generation only CUDA graph warmup for batch size=128, draft_len=0"
    document = judged(f"{log}\n[TRT-LLM] [RANK 0] [E] CUDA out of memory. Tried to allocate 2.10 GiB.")
    assert (document["phase"], document["verdict"]) == ("graph_capture", "likely")
