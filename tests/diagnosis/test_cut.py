"""Pastes that are cut: what is left may still tell, but never more than it shows."""

import pytest

from tests.diagnosis.material import frame, judged, oom, worker

WORKER = "v1/worker/gpu_worker.py"
V0_WORKER = "worker/worker.py"


def test_a_cut_right_below_warm_up_leaves_capture_as_likely() -> None:
    document = judged(worker("Worker_TP1", frame(WORKER, "compile_or_warm_up_model"), oom("64.00 MiB", "20.00 MiB", gpu=1)))
    assert (document["phase"], document["verdict"]) == ("graph_capture", "likely")


def test_a_finished_capture_says_that_warm_up_came_after_it() -> None:
    done = worker("Worker_TP1", "Graph capturing finished in 28 secs, took 1.88 GiB", at="INFO 10-23 09:37:54 [gpu_model_runner.py:3480]")
    text = done + "\n" + worker("Worker_TP1", frame(WORKER, "compile_or_warm_up_model"), oom("64.00 MiB", "20.00 MiB", gpu=1))
    assert judged(text)["phase"] == "warmup"


def test_the_source_line_of_the_last_frame_names_the_call_that_was_running() -> None:
    lines = [frame(V0_WORKER, "initialize_cache"), "    self._warm_up_model()"]
    assert judged("\n".join(["Traceback (most recent call last):", *lines, oom("64.00 MiB", "20.00 MiB")]))["phase"] == "graph_capture"


def test_v0s_initialize_cache_alone_is_not_certain_for_it_captures_too() -> None:
    document = judged("\n".join([frame(V0_WORKER, "initialize_cache"), oom("64.00 MiB", "20.00 MiB")]))
    assert (document["phase"], document["verdict"]) == ("kv_cache_allocation", "likely")


@pytest.mark.parametrize("phase_frames", [[frame(WORKER, "init_device")], [frame("entrypoints/llm.py", "_run_engine")]])
def test_where_much_else_fails_a_traceback_without_a_memory_error_is_not_certain(phase_frames: list[str]) -> None:
    assert judged(worker("Worker_TP1", "Traceback (most recent call last):", *phase_frames))["verdict"] != "certain"


def test_the_head_of_a_traceback_alone_asks_for_its_end() -> None:
    head = worker("Worker_TP1", "WorkerProc failed to start.", "Traceback (most recent call last):")
    assert judged(head)["questions"][0]["text"].startswith("Can you paste the end of this traceback?")
    whole = head + "\n" + worker("Worker_TP1", frame(WORKER, "init_device"), "OSError: no such file")
    assert not any("the end of this traceback" in question["text"] for question in judged(whole)["questions"])


def test_a_method_named_in_a_title_is_likely_and_in_the_log_certain() -> None:
    sentence = "Exception in worker VllmWorkerProcess while processing method load_model"
    assert judged(f"[Bug]: vllm serve raises {sentence}")["verdict"] == "likely"
    assert judged(f"(VllmWorkerProcess pid=7) ERROR 03-02 21:41:11 [multiproc_worker_utils.py:242] {sentence}.")["verdict"] == "certain"


def test_a_frame_beside_an_exception_that_is_no_shortage_is_not_certain() -> None:
    head = "(Worker_TP1 pid=7) ERROR 10-23 09:37:55 [multiproc_executor.py:708] "
    outer, inner = frame("v1/worker/gpu_worker.py", "compile_or_warm_up_model"), frame("v1/worker/gpu_model_runner.py", "capture_model")
    cut = f"{head}{outer}\n{head}{inner}"
    assert (judged(cut)["phase"], judged(cut)["verdict"]) == ("graph_capture", "certain")
    told = judged(f"{cut}\n{head}RuntimeError: the worker process is in no state to go on")
    assert (told["phase"], told["verdict"]) == ("graph_capture", "likely")


def test_an_engine_core_that_waits_for_workers_is_not_the_worker() -> None:
    lines = [
        frame("v1/executor/multiproc_executor.py", "get_response"),
        "RuntimeError: Worker failed with error 'CUDA error: out of memory",
    ]
    assert judged("\n".join(f"(EngineCore_DP0 pid=7) ERROR 10-23 09:37:55 [core.py:708] {line}" for line in lines))["rank"] is None


def test_an_utilization_at_its_limit_is_never_raised() -> None:
    text = "vllm serve m --gpu-memory-utilization 0.97\nValueError: No available memory for the cache blocks. Try increasing"
    document = judged(text)
    offered = [document["recommendation"], *document["alternatives"]]
    assert all(change["flag"] != "--gpu-memory-utilization" for change in offered)


def test_a_value_that_stands_there_already_is_not_offered() -> None:
    text = "vllm serve m --enforce-eager --kv-cache-dtype fp8\n" + worker(
        "Worker_TP1", frame("v1/worker/gpu_model_runner.py", "capture_model"), oom("64.00 MiB", "20.00 MiB", gpu=1)
    )
    document = judged(text)
    assert all(change["flag"] != "--enforce-eager" for change in (document["recommendation"], *document["alternatives"]))


def test_the_command_of_another_engine_carries_its_own_spelling() -> None:
    text = (
        "trtllm-serve m --tp_size 4\n[07/08/2026-19:47:15] [TRT-LLM] [RANK 0] [E] Executor creation failed due to insufficient GPU memory."
        "\n\nThe following component could not be created: Initial KV cache"
    )
    command = judged(text)["recommendation"]["command"]
    assert command.startswith("trtllm-serve ")
    assert command.endswith(" --tp_size 4 --max_num_tokens 4096")
