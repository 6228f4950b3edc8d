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


def test_a_full_pool_of_a_connector_is_what_it_was_stopped_by() -> None:
    full = "LMCache WARNING: Failed to allocate memory for tensor(torch.Size([2, 32, 256, 1024]), torch.bfloat16) because no memory is available"
    assert (
        "stopped by the machine's own memory, not the card's: a pool of it"
        in judged(f"vllm serve m --max-model-len 8192\n{full}")["summary"]
    )


def test_a_log_that_came_up_says_that_nothing_failed_and_excludes_nothing() -> None:
    document = judged(
        "INFO 01-05 07:11:02 [core.py:210] init engine (profile, create kv cache, warmup model) took 9.31 seconds\nINFO:     Application startup complete.\n"
    )
    assert document["summary"] == "The server started; nothing failed in this log."
    assert document["also_possible"] == []


def test_who_says_that_it_runs_out_while_loading_is_not_told_that_the_log_of_another_run_came_up() -> None:
    document = judged("It runs out of memory while loading the weights.\nINFO:     Application startup complete.\n")
    assert (document["phase"], document["verdict"]) == ("unknown", "open")
    assert document["questions"] != []


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


def test_a_worker_that_went_to_sleep_wrongly_is_not_called_short_of_memory() -> None:
    text = (
        "CUDA Error: out of memory at /build/csrc/cumem_allocator.cpp:56\n"
        "CUDA Error: invalid argument at /build/csrc/cumem_allocator.cpp:57\n"
    )
    document = said(text)
    assert "was given an address that it does not hold" in str(document["summary"])
    changes = [document["recommendation"], *document["alternatives"]]  # type: ignore[misc]
    assert "free-trainer-cache" not in [change["id"] for change in changes]


def test_vllms_own_message_is_named_only_where_it_stands() -> None:
    loading = worker("Worker_TP1", frame(LOADER, "load_model"), oom("64.00 MiB", "20.00 MiB", gpu=1))
    sentence = "Failed to load model - not enough GPU memory. Try lowering --gpu-memory-utilization to free memory for weights."

    def reason(text: str) -> str:
        return next(one["because"] for one in judged(text)["avoid"] if one["direction"] == "lower" and "utilization" in one["flag"])

    assert "own message" not in reason(loading)
    assert "own message" in reason(loading + "\n" + worker("Worker_TP1", sentence))


def test_an_index_inside_a_process_gives_its_budget_no_rank() -> None:
    text = (
        "Free memory on device cuda:0 (19.10/22.06 GiB) on startup is less than desired GPU memory utilization (0.9, 19.85 GiB)\n\n"
        "(EngineCore_DP0 pid=6) ray.exceptions.RayTaskError(ValueError): ray::RayWorkerWrapper.execute_method() (pid=7, ip=10.0.0.10)\n"
    )
    document = said(text)
    assert document["rank"]["number"] is None  # type: ignore[index]
    assert [budget["rank"] for budget in document["budgets"]] == [None]  # type: ignore[attr-defined]


def test_where_no_line_names_the_engine_the_change_says_whose_flags_it_uses() -> None:
    text = (
        "--max-model-len 65536 --tensor-parallel-size 2\n"
        + oom("2.00 GiB", "1.08 GiB", gpu=1)
        + "\n(Model loading took 12.20 GiB) during autotuning in _dummy_run\n"
    )
    document = said(text)
    assert document["engine"] == "unknown"
    assert "No line names the engine: the change is written in vLLM's flags." in document["notes"]  # type: ignore[operator]


def test_more_free_than_asked_for_is_explained_and_less_is_not() -> None:
    def notes(free: str) -> str:
        return " ".join(judged(worker("Worker_TP1", frame(LOADER, "load_model"), oom("64.00 MiB", free, gpu=1)))["notes"])

    assert "More was free (72.00 MiB) than was asked for (64.00 MiB)" in notes("72.00 MiB")
    assert "More was free" not in notes("20.00 MiB")


def test_an_engine_that_signs_with_its_name_is_no_rank_that_failed_too() -> None:
    text = (
        "[TensorRT-LLM] TensorRT-LLM version: 0.20.0\n"
        f"[07/14/2025-10:22:33] [TRT-LLM] [RANK 2] [E] Failed to initialize executor on rank 2: {oom('3.00 GiB', '2.00 GiB', gpu=2)}\n"
        "[TensorRT-LLM][ERROR] CUDA runtime error in ::cudaMallocAsync(&ptr, n, mMemPool->getPool(), mCudaStream->get()): out of memory\n"
    )
    assert said(text)["also_failed"] == []


SMI = """\
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 560.28.03              Driver Version: 560.28.03      CUDA Version: 12.6     |
|-----------------------------------------+------------------------+----------------------+
|   0  NVIDIA H100 80GB HBM3          On  |   00000000:19:00.0 Off |                    0 |
+-----------------------------------------+------------------------+----------------------+
| Processes:                                                                              |
|=========================================================================================|
|    0   N/A  N/A      7731      C   VLLM::EngineCore                            68210MiB |
+-----------------------------------------------------------------------------------------+
"""


def test_a_table_of_the_cards_alone_says_who_holds_them_and_on_which_line() -> None:
    document = said(SMI)
    assert document["phase"] == "unknown"
    assert document["summary"] == "This shows who holds the cards and no failure, so no phase can be named."
    assert document["notes"] == ["nvidia-smi shows VLLM::EngineCore (pid 7731, 66.61 GiB on GPU 0, line 8)."]


def test_what_outlived_its_server_is_said_to_hold_the_card() -> None:
    document = said("vllm serve a/b --tensor-parallel-size 2\nkill -KILL 4711\nVLLM::Worker_TP0 still alive, the cards stay full\n")
    assert document["phase"] == "unknown"
    assert any(str(note).startswith("Line 3 says that processes outlived their server") for note in document["notes"])  # type: ignore[attr-defined]


def test_a_share_of_the_checkpoint_in_words_says_that_it_was_loading() -> None:
    text = f'(photo) red letters: "{oom("896.00 MiB", "310.00 MiB")}", above it "Loading checkpoint shards: 42%"\n'
    assert said(text)["phase"] == "weight_loading"
    assert said(text)["verdict"] == "likely"


def test_a_sentence_that_two_processes_print_has_the_line_of_the_first() -> None:
    sentence = (
        "ValueError: To serve at least one request with the models's max seq len (65536), (8.00 GiB KV cache is needed, which is larger "
        "than the available KV cache memory (2.00 GiB). Based on the available memory, the estimated maximum model length is 16384."
    )
    text = f"(EngineCore_DP0 pid=9) ERROR 11-20 10:00:31 [core.py:842] {sentence}\nINFO 11-20 10:00:32 [x.py:1] bye\n{sentence}\n"
    document = said(text)
    error, budget = document["first_error"], document["budgets"][0]  # type: ignore[index]
    assert error["line"] == budget["lines"]["needed_bytes"] == 1  # type: ignore[index]


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("engine-0   0/1     OOMKilled   4 (2m ago)   11m\n", "certain"),
        ("Last State: Terminated\nReason: OOMKilled\nExit Code: 137\n", "certain"),
        ('"State": { "OOMKilled": true, "ExitCode": 137 }\n', "certain"),
        ("our vllm pod gets OOMKilled since the new chart\n", "likely"),
        ("engine-1 exited with code 137\n", "likely"),
    ],
)
def test_a_container_killed_for_its_memory_is_certain_where_its_state_says_so_and_not_where_people_do(text: str, verdict: str) -> None:
    document = said(text)
    assert (document["phase"], document["verdict"]) == ("host_memory", verdict)


def test_a_limit_beside_a_bare_137_is_no_proof_that_it_was_reached() -> None:
    text = "docker run --gpus all -m 12g vllm/vllm-openai:v0.9.0 --model a/b\nengine-1 exited with code 137\n"
    because = str(said(text)["recommendation"]["because"])  # type: ignore[index]
    assert because.startswith("Exit 137 is how a container ends at its memory limit of 12.00 GiB (line 1), unless somebody else killed it")


def test_a_command_that_kills_may_have_been_of_another_process_so_the_kernels_log_is_asked_for() -> None:
    document = said("$ docker stop engine-1\nengine-1 exited with code 137\n")
    assert document["phase"] == "not_oom"
    assert [question["text"][:27] for question in document["questions"]] == ["Who killed the process? The"]  # type: ignore[attr-defined]


@pytest.mark.parametrize("text", ["Why does it take 21 GB?", "how much VRAM for this?", "vLLM 0.11: is this right?"])
def test_a_question_about_an_engine_or_memory_is_called_one(text: str) -> None:
    assert judged(text)["summary"] == "This asks how memory is used and shows no failure."


def test_any_other_question_is_not() -> None:
    document = judged("lunch?")
    assert (document["verdict"], document["summary"]) == ("open", "There is no memory error in this evidence, so no phase can be named.")
