"""Sentences beside a diagnosis: none without a reason."""

import pytest

from bot.diagnosis.diagnose import diagnose
from bot.domain.incident import Contribution
from bot.reading.read import read
from bot.rulebook.load import load_rulebook
from tests.diagnosis.material import frame, judged, oom, worker

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
    assert note.startswith("0.58 GiB of the budget of rank 0")


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


def test_how_many_ranks_there_are_is_said_to_be_taken_from_the_card_that_failed() -> None:
    at = "ERROR 03-02 21:41:11 [multiproc_worker_utils.py:242]"
    text = "\n".join(
        f"(VllmWorkerProcess pid=195361) {at} {line}"
        for line in ("Exception in worker VllmWorkerProcess while processing method load_model.", oom("20.00 MiB", "3.31 MiB", gpu=2))
    )
    document = judged(text)
    assert (document["recommendation"]["flag"], document["recommendation"]["value"]) == ("--tensor-parallel-size", "8")
    note = "How many cards are in use is not in the paste: GPU 2 failed (line 2), so 4 at least. If yours are more, go up from that."
    assert note in document["notes"]
    assert note not in judged(f"vllm serve org/m1 --tensor-parallel-size 4\n{text}")["notes"]


@pytest.mark.parametrize(
    ("tag", "value", "told"),
    [("Worker_TP0", "4", "there is a Worker_TP0 (line 2), so 2 at least."), ("VllmWorker rank=5", "16", "rank=5 (line 2), so 8 at least.")],
)
def test_a_worker_that_signs_as_one_of_several_is_not_advised_to_become_two(tag: str, value: str, told: str) -> None:
    line = f"({tag} pid=73) ERROR 03-02 21:41:11 [multiproc_executor.py:380] " + frame("v1/worker/gpu_worker.py", "load_model")
    document = judged(line)
    assert document["recommendation"]["id"] == "use-prequantized-checkpoint"
    assert value in [one["value"] for one in document["alternatives"] if one["flag"] == "--tensor-parallel-size"]
    quantized = judged(f"--quantization awq\n{line}")
    assert quantized["recommendation"]["value"] == value
    assert any(told in note for note in quantized["notes"])


def test_more_than_a_ranks_share_of_the_weights_is_pointed_out() -> None:
    told = "vllm serve org/M-32B{} -tp 2 --gpu-memory-utilization 0.6\n" + oom("3.47 GiB", "1.66 GiB", allocated="{} GiB")
    note = "By the model's name its weights take about 29.80 GiB on each of 2 ranks, and 58.90 GiB were allocated"
    assert any(said.startswith(note) for said in judged(told.format("", "58.90"))["notes"])
    for name, held in (("", "31.00"), ("-AWQ", "58.90")):
        assert not any("By the model's name" in said for said in judged(told.format(name, held))["notes"])


def test_what_outlived_its_server_is_the_answer_and_stands_first() -> None:
    document = judged("kill -KILL <api-server-pid>\nVLLM::EngineCore and VLLM::Worker_TP* survive, GPUs stay allocated\n")
    assert document["summary"].startswith("Processes outlived their server and hold their cards")
    assert document["notes"][0].startswith("Line 2 says that processes outlived their server")


def test_a_flag_that_lost_its_value_is_pointed_out() -> None:
    start = "vllm serve /models/a --tp 4 --num-gpu-blocks-override {}--trust-remote-code\nwhether I set it to 0.5 or 0.8, the card holds 87G of 96G\n"
    notes = judged(start.format(""))["notes"]
    assert any(note.startswith("--num-gpu-blocks-override stands without a value in line 1") for note in notes)
    assert not any("without a value" in note for note in judged(start.format("4096 "))["notes"])


def test_the_reasons_for_a_range_are_those_that_set_its_ends() -> None:
    text = (
        "INFO 02-26 11:04:26 model_runner.py:1115] Loading model weights took 5.2032 GB\n"
        "INFO 02-26 11:04:29 worker.py:267] model weights take 5.20GiB; non_torch_memory takes 0.03GiB; PyTorch activation peak memory takes 1.42GiB; the "
        "rest of the memory reserved for KV Cache is -1.05GiB.\n"
        "INFO 02-26 11:04:29 executor_base.py:111] # cuda blocks: 0, # CPU blocks: 4681\n"
    )
    document = judged(text)
    low, high = document["engine_version_range"].split(",")
    (note,) = (note for note in document["notes"] if note.startswith("No release is printed"))
    reasons = note.partition(" by what the log says ")[2]
    assert low.removesuffix(".0") in reasons
    assert high.removesuffix(".0") in reasons


@pytest.mark.parametrize(("said", "first"), [("try setting\n    VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=0", True), ("no advice", False)])
def test_the_advice_to_leave_graphs_out_of_the_estimate_is_spoken_against_whatever_the_version(said: str, first: bool) -> None:
    document = judged(
        f"--gpu-memory-utilization 0.98, OOM at capture:\n{oom('136.00 MiB', '120.88 MiB')} If this problem persists, {said}\n"
    )
    assert document["phase"] == "graph_capture"
    assert any(one["flag"] == "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS" for one in document["avoid"]) is first


def test_the_proof_is_the_capture_that_was_under_way_and_not_the_one_that_had_ended() -> None:
    bars = [
        "Capturing CUDA graphs (mixed prefill-decode, PIECEWISE):  85%|...| 57/67 [00:58<00:10,  1.08s/it]",
        "Capturing CUDA graphs (mixed prefill-decode, PIECEWISE): 100%|...| 67/67 [01:08<00:00,  1.02s/it]",
        "Capturing CUDA graphs (decode, FULL):   9%|...| 3/35 [00:00<00:09,  3.30it/s]",
    ]
    failed = (
        "(EngineCore_DP0 pid=7317) ERROR 10-23 09:37:55 [core.py:708] RuntimeError: Worker failed with error 'CUDA error: out of memory"
    )
    document = judged("\n".join([*bars, failed]))
    assert document["phase"] == "graph_capture"
    assert [proof["line"] for proof in document["proof"]] == [4, 3]


TABLE = """+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |
|=========================================================================================|
|    0   N/A  N/A            4242      C   python3                              70000MiB |
|    0   N/A  N/A            7501      C   VLLM::Worker_TP0                      8000MiB |
+-----------------------------------------------------------------------------------------+
"""
ON_CARD = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU {} has a total capacity of 79.15 GiB of which 1.00 GiB is free."


def test_a_process_that_nvidia_smi_lists_beside_the_engines_own_is_named() -> None:
    document = judged(TABLE + ON_CARD.format(0))
    assert any("python3 (pid 4242" in note for note in document["notes"])
    assert document["first_error"]["line"] == 8
    assert document["first_error"]["text"].startswith("torch.OutOfMemoryError")


def test_a_process_on_another_card_is_nobodys_fault() -> None:
    assert not any("python3" in note for note in judged(TABLE + ON_CARD.format(1))["notes"])
    own = TABLE.replace("VLLM::Worker_TP0", "python3         ")  # the one that failed may be either
    assert not any("python3" in note for note in judged(own + ON_CARD.format(0))["notes"])


def test_an_answer_about_the_load_moves_no_phase_unless_it_names_a_failure() -> None:
    log = f"(Worker_TP0 pid=1) INFO 10-23 09:37:20 [gpu_model_runner.py:2602] Starting to load model m...\n{ON_CARD.format(0)}"
    assert judged(log, Contribution("answer", "workload=we send 100 requests"))["phase"] == "weight_loading"
    assert judged(ON_CARD.format(0), Contribution("answer", "workload=it crashes when we send 100 requests"))["phase"] == "serving"


def test_an_answer_that_names_another_engine_than_the_command_is_said_to_be_followed() -> None:
    document = judged(f"vllm serve m\n{ON_CARD.format(0)}", Contribution("answer", "engine_version=sglang 0.5"))
    assert any("says SGLang and is followed, though the paste starts vLLM" in note for note in document["notes"])
    same = judged(f"vllm serve m\n{ON_CARD.format(0)}", Contribution("answer", "engine_version=vllm 0.11.0"))
    assert not any("is followed" in note for note in same["notes"])


def test_the_container_that_was_killed_is_named_where_a_pod_has_several() -> None:
    killed = "    Last State:     Terminated\n      Reason:       OOMKilled\n      Exit Code:    137\n"
    several = f"Containers:\n  istio-proxy:\n{killed}  vllm:\n    State:          Running\n"
    assert "The container that was killed is istio-proxy (line 4)." in judged(several)["notes"]
    assert not any("container that was killed" in note for note in judged(f"Containers:\n  vllm:\n{killed}")["notes"])


def test_a_rank_that_a_record_names_is_that_of_the_failure() -> None:
    record = '{"ts":"2026-03-01T10:00:00Z","rank":RANK,"level":"ERROR","msg":"' + ON_CARD.format(1) + '"}'
    assert judged(record.replace("RANK", "5"))["rank"]["number"] == 5
    assert judged(record.replace("RANK", "0.5"))["rank"]["number"] == 1


def test_the_smallest_pool_is_named_where_the_check_goes_by_it() -> None:
    pools = "".join(
        f"(Worker_TP{rank} pid=1{rank}) INFO 11-30 10:00:00 [gpu_worker.py:276] Available KV cache memory: {pool} GiB\n"
        for rank, pool in ((0, 6.2), (1, 3.1))
    )
    failed = "ValueError: To serve at least one request with the models's max seq len (65536), (8.0 GiB KV cache is needed, which is larger than the available KV cache memory (3.1 GiB)."
    assert "The check goes by the smallest pool: 3.10 GiB, that of rank 1 (Worker_TP1)." in notes(pools + failed)
    assert not any("smallest pool" in note for note in notes(pools.replace("6.2", "3.1") + failed))


def test_preemption_is_said_to_be_pressure_where_nothing_else_went_wrong() -> None:
    stats = "(APIServer pid=1) INFO 01-19 10:00:10 [loggers.py:257] Engine 000: Avg prompt throughput: 2211.9 tokens/s, Running: 91 reqs, Waiting: 240 reqs, {}GPU KV cache usage: 99.9%"
    assert any(note.startswith("Requests were preempted (line 1)") for note in judged(stats.format("Preemptions: 1882, "))["notes"])
    assert not any("preempted" in note for note in judged(stats.format(""))["notes"])
    failed = (
        stats.format("Preemptions: 1882, ")
        + "\n"
        + worker("Worker_TP0", frame("v1/worker/gpu_worker.py", "execute_model"), oom("1.00 GiB", "0.50 GiB"))
    )
    assert not any("preempted" in note for note in judged(failed)["notes"])
