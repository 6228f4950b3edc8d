import pytest

from tests.diagnosis.material import frame, judged, oom, worker

WORKER = "v1/worker/gpu_worker.py"
RUNNER = "v1/worker/gpu_model_runner.py"


def test_an_empty_paste_names_no_phase_and_asks_for_the_first_error() -> None:
    document = judged("hello\n")
    assert (document["phase"], document["verdict"], document["recommendation"]) == ("unknown", "open", None)
    assert document["questions"][0]["id"] == "first_error"


def test_a_wrapper_alone_names_no_phase() -> None:
    document = judged("RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}")
    assert document["phase"] == "unknown"
    assert document["first_error"] is None


def test_an_allocation_failure_without_anything_around_it_stays_open() -> None:
    document = judged(oom("1.00 GiB", "500.00 MiB"))
    assert (document["phase"], document["verdict"]) == ("unknown", "open")
    assert document["questions"]


@pytest.mark.parametrize(
    ("phase", "frames"),
    [
        ("startup_check", [frame(WORKER, "init_device"), frame("distributed/device_communicators/pynccl.py", "__init__")]),
        (
            "weight_loading",
            [frame(WORKER, "load_model"), frame(RUNNER, "load_model"), frame("model_executor/layers/linear.py", "create_weights")],
        ),
        ("weight_loading", [frame(WORKER, "load_model"), frame("model_executor/model_loader/utils.py", "process_weights_after_loading")]),
        ("weight_loading", [frame(WORKER, "init_device"), frame(RUNNER, "__init__")]),
        ("profiling", [frame(WORKER, "determine_available_memory"), frame(RUNNER, "profile_run"), frame(RUNNER, "_dummy_run")]),
        ("profiling", [frame(WORKER, "determine_available_memory"), frame(RUNNER, "profile_run"), frame(RUNNER, "_dummy_sampler_run")]),
        (
            "profiling",
            [frame(WORKER, "determine_available_memory"), frame(RUNNER, "profile_cudagraph_memory"), frame(RUNNER, "capture_model")],
        ),
        ("profiling", [frame("worker/worker.py", "determine_num_available_blocks"), frame("worker/model_runner.py", "profile_run")]),
        ("kv_cache_allocation", [frame(WORKER, "initialize_from_config"), frame(RUNNER, "initialize_kv_cache")]),
        ("kv_cache_allocation", [frame("worker/worker.py", "initialize_cache"), frame("worker/cache_engine.py", "__init__")]),
        ("graph_capture", [frame(WORKER, "compile_or_warm_up_model"), frame(RUNNER, "capture_model"), frame(RUNNER, "_dummy_run")]),
        ("graph_capture", [frame("worker/worker.py", "_warm_up_model"), frame("worker/model_runner.py", "capture_model")]),
        ("warmup", [frame(WORKER, "compile_or_warm_up_model"), frame(RUNNER, "_dummy_sampler_run")]),
        ("warmup", [frame(WORKER, "compile_or_warm_up_model"), frame("model_executor/warmup/kernel_warmup.py", "kernel_warmup")]),
        ("serving", [frame(WORKER, "execute_model"), frame(RUNNER, "execute_model"), frame(RUNNER, "_model_forward")]),
        ("wake_up", [frame(WORKER, "wake_up"), frame("device_allocator/cumem.py", "create_and_map")]),
        ("host_memory", [frame(WORKER, "sleep"), frame("device_allocator/cumem.py", "sleep"), "    cpu_backup_tensor = torch.empty("]),
    ],
)
def test_the_outermost_telling_frame_of_the_failing_worker_is_certain(phase: str, frames: list[str]) -> None:
    document = judged(worker("Worker_TP1", "Traceback (most recent call last):", *frames, oom("2.00 GiB", "1.00 GiB", gpu=1)))
    assert (document["phase"], document["verdict"]) == (phase, "certain")
    assert document["rank"]["number"] == 1
    assert document["recommendation"] is not None


def test_new_weights_that_a_trainer_hands_over_fail_as_a_wake_up_does() -> None:
    handed = '  File "/x/verl/workers/rollout/vllm_rollout/utils.py", line 212, in update_weights_from_ipc'
    document = judged(worker("Worker_TP1", handed, frame(RUNNER, "load_weights"), oom("2.00 GiB", "1.32 GiB", gpu=1)))
    assert (document["phase"], document["verdict"]) == ("wake_up", "likely")


def test_another_workers_traceback_does_not_speak_for_the_failing_one() -> None:
    text = "\n".join(
        [
            worker("Worker_TP0", frame(WORKER, "execute_model"), "RuntimeError: NCCL error: unhandled cuda error", pid=7500),
            worker(
                "Worker_TP1", frame(WORKER, "compile_or_warm_up_model"), frame(RUNNER, "capture_model"), oom("2.00 GiB", "1.00 GiB", gpu=1)
            ),
        ]
    )
    assert judged(text)["phase"] == "graph_capture"


def test_the_engine_cores_call_says_more_than_the_title_above_it() -> None:
    core = '(EngineCore_DP0 pid=7)   File "/x/vllm/v1/executor/abstract.py", line 85, in determine_available_memory\n'
    document = judged("[Bug]: the engine loads the model but crashes in the sampler warm-up\n\n" + core)
    assert (document["phase"], document["verdict"]) == ("profiling", "likely")
    assert document["also_possible"][0]["phase"] == "warmup"


def test_the_engine_cores_copy_names_the_call_when_the_worker_shows_no_frame() -> None:
    copy = "\n".join(
        f"(EngineCore_DP0 pid=1) ERROR 10-23 09:37:56 [core.py:708] {line}"
        for line in (
            frame("v1/executor/abstract.py", "determine_available_memory"),
            "RuntimeError: Worker failed with error 'CUDA out of memory.'",
        )
    )
    document = judged(worker("Worker_TP1", oom("2.00 GiB", "1.00 GiB", gpu=1)) + "\n" + copy)
    assert (document["phase"], document["verdict"]) == ("profiling", "likely")


@pytest.mark.parametrize(
    ("phase", "line"),
    [
        (
            "startup_check",
            "ValueError: Free memory on device (3.6/23.99 GiB) on startup is less than desired GPU memory utilization (0.9, 21.59 GiB).",
        ),
        ("kv_cache_sizing", "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`"),
        ("kv_cache_sizing", "ValueError: max_num_seqs (512) exceeds available Mamba cache blocks (300). Each decode sequence requires one"),
        ("profiling", "AssertionError: Error in memory profiling. Initial free memory 20.1 GiB, current free memory 22.4 GiB."),
        ("host_memory", "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory."),
        ("not_oom", "RuntimeError: CUDA error: no kernel image is available for execution on the device"),
    ],
)
def test_a_message_that_names_itself_needs_no_frame(phase: str, line: str) -> None:
    assert judged(line)["phase"] == phase


def test_a_source_line_echoed_in_a_traceback_is_no_message() -> None:
    text = "\n".join(
        [
            "Traceback (most recent call last):",
            frame("v1/core/kv_cache_utils.py", "check_enough_kv_cache_memory"),
            '    raise ValueError("No available memory for the cache blocks. "',
            "KeyboardInterrupt",
        ]
    )
    assert judged(text)["first_error"] is None


@pytest.mark.parametrize(
    ("said", "phase"),
    [
        ("I deployed it on two cards and get OOM", "unknown"),
        ("After startup I get OOM", "unknown"),
        ("The server OOMs during initialization, it never comes up", "graph_capture"),
        ("服务拉起过程中显存不足", "graph_capture"),
    ],
)
def test_private_pools_mean_capture_only_where_somebody_says_that_it_was_starting(said: str, phase: str) -> None:
    assert judged(said + "\n" + oom("136.00 MiB", "120.88 MiB", private="300.00 MiB"))["phase"] == phase


def test_private_pools_with_an_open_progress_bar_mean_capture() -> None:
    bar = "Capturing CUDA graphs (decode, FULL):   9%|▉| 3/35 [00:00<00:09,  3.30it/s]"
    document = judged(bar + "\n" + oom("136.00 MiB", "120.88 MiB", private="300.00 MiB"))
    assert (document["phase"], document["verdict"]) == ("graph_capture", "likely")


def test_a_log_that_came_up_and_shows_no_error_is_no_failure() -> None:
    text = "INFO 02-05 11:46:13 [core.py:193] init engine (profile, create kv cache, warmup model) took 54.63 seconds\nINFO:     Application startup complete."
    document = judged(text)
    assert (document["phase"], document["recommendation"]) == ("not_oom", None)


def test_preemption_is_pressure_and_no_failure() -> None:
    line = "WARNING 02-05 11:46:13 scheduler.py:1057] Sequence group 7 is preempted by PreemptionMode.RECOMPUTE mode because there is not enough KV cache space."
    assert judged(line)["phase"] == "not_oom"


def test_a_check_is_not_possible_where_an_allocation_failed() -> None:
    pool = "(Worker_TP0 pid=61) INFO 07-02 03:03:15 [gpu_worker.py:447] Available KV cache memory: 40.18 GiB\n"
    error = "(Worker_TP0 pid=61) ERROR 07-02 03:04:40 [multiproc_executor.py:971] "
    failed = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 80.00 MiB. GPU 0 has a total capacity of 79.11 GiB of which 38.00 MiB is free."
    document = judged(pool + error + failed)
    assert document["verdict"] == "likely"
    assert "kv_cache_sizing" not in {document["phase"], *(one["phase"] for one in document["also_possible"])}


@pytest.mark.parametrize(
    ("text", "phase"),
    [
        (
            "Loading fails, out of memory\n    self.init_snapshot = MemorySnapshot()\n" + frame("utils/mem_utils.py", "measure"),
            "startup_check",
        ),
        ("Loading fails, out of memory\n    self.baseline_snapshot = MemorySnapshot()\n" + frame("utils.py", "measure"), "startup_check"),
        ("OOM in fp8.py: process_weights_after_loading -> _permute_scales_for_kernel", "weight_loading"),
        ("OOM. determine_available_memory → profile_run → _dummy_run", "profiling"),
        ("the prefill pod of llm-d prints\n" + oom("330.00 MiB", "319.00 MiB"), "unknown"),
        ("for util 0.5 that is 0.5 x 141 GiB = 70.5 GiB. The runner had only about 40 GiB free, so vLLM gave up.", "startup_check"),
        ("self.requested_memory is counted in init_device() and the ValueError comes from there", "startup_check"),
        ("训练之后 vLLM 重新分配 KV 缓存的时候 OOM", "wake_up"),
    ],
)
def test_the_place_that_is_named_decides_and_not_what_it_is_called(text: str, phase: str) -> None:
    assert judged(text)["phase"] == phase


@pytest.mark.parametrize("fault", ["deallocating None", "Segmentation fault", "_PyInterpreterState_Get: no current thread state"])
def test_a_fault_of_python_itself_below_a_telling_frame_is_no_shortage(fault: str) -> None:
    dumped = f'Fatal Python error: {fault}\n  File "/x/vllm/device_allocator/cumem.py", line 204 in sleep\n'
    document = judged(dumped + '  File "/x/vllm/v1/worker/gpu_worker.py", line 76 in sleep')
    assert (document["phase"], document["verdict"]) == ("not_oom", "likely")
