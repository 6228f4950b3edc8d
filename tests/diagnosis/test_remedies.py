import shlex
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.domain.engines import ENGINES
from bot.domain.incident import Contribution
from bot.domain.phases import STEPS
from bot.reading.read import read
from bot.rulebook.load import load_rulebook
from bot.usecases.judge import judge
from tests.diagnosis.material import frame, judged, oom, worker

CAPTURE = [frame("v1/worker/gpu_worker.py", "compile_or_warm_up_model"), frame("v1/worker/gpu_model_runner.py", "capture_model")]
LOAD = [frame("v1/worker/gpu_worker.py", "load_model"), frame("model_executor/layers/linear.py", "create_weights")]


def test_weights_that_do_not_fit_are_never_answered_with_utilization() -> None:
    document = judged(worker("Worker_TP0", *LOAD, oom("518.00 MiB", "100.00 MiB", allocated="78.00 GiB")))
    offered = [document["recommendation"], *document["alternatives"]]
    assert all(change["flag"] != "--gpu-memory-utilization" for change in offered)
    assert {(a["flag"], a["direction"]) for a in document["avoid"]} >= {("--gpu-memory-utilization", "lower"), ("--max-model-len", "lower")}


@pytest.mark.parametrize(
    ("text", "first"),
    [
        (worker("Worker_TP0", *LOAD, oom("1.96 GiB", "1.02 GiB")), "use-prequantized-checkpoint"),
        (
            worker(
                "Worker",
                *LOAD,
                frame("model_executor/model_loader/bitsandbytes_loader.py", "_unquantized_generator"),
                oom("112.00 MiB", "77.56 MiB"),
            ),
            "use-prequantized-checkpoint",
        ),
        (worker("Worker_TP0", "Loading drafter model...", *LOAD, oom("1.96 GiB", "1.02 GiB")), "remove-speculative-config"),
        (
            worker("Worker_TP0", *LOAD, frame("v1/spec_decode/eagle.py", "load_model"), oom("1.96 GiB", "1.02 GiB")),
            "remove-speculative-config",
        ),
        ("vllm: the 70B is in, loading the draft model ends in CUDA OOM", "remove-speculative-config"),
        ("vllm: with a draft it goes OOM while loading the weights of the 70B", "raise-tensor-parallel-size"),
    ],
)
def test_where_the_model_is_in_and_its_draft_is_not_the_draft_goes(text: str, first: str) -> None:
    assert judged(text)["recommendation"]["id"] == first


@pytest.mark.parametrize(
    ("start", "tag", "allocated", "partition"),
    [
        ("org/m --pipeline-parallel-size 2", "Worker_PP1", "78.00 GiB", None),  # how many layers m has nobody says
        ("llama-3.3-70b", "Worker_PP1", "78.00 GiB", None),  # nor here how many stages there are
        ("llama-3.3-70b --pipeline-parallel-size 2", "Worker_PP1", "78.00 GiB", "41,39"),
        ("somebody/Llama-3.3-70B-Instruct-AWQ --pipeline-parallel-size 2", "Worker_PP1", "78.00 GiB", "41,39"),
        ("/models/Llama-3.3-70B-Instruct --pipeline-parallel-size 2", "Worker_PP1", "78.00 GiB", "41,39"),
        (
            "/hub/models--meta-llama--Llama-3.3-70B-Instruct/snapshots/6f6073b --pipeline-parallel-size 2",
            "Worker_PP1",
            "78.00 GiB",
            "41,39",
        ),
        ("llama-3.3-70b --pipeline-parallel-size 2", "Worker_PP1", "10.00 GiB", "42,38"),  # a layer is 256 MiB then, and 384 were missing
        ("llama-3.3-70b --pipeline-parallel-size 4", "Worker_PP3", "5.00 GiB", "20,21,21,18"),
        ("llama-3.3-70b --pipeline-parallel-size 4", "Worker_PP1_TP3", "78.00 GiB", "20,19,21,20"),
        ("llama-3.3-70b --pipeline-parallel-size 2", "Worker_PP1", "0.10 GiB", "79,1"),  # a stage keeps a layer
        ('org/m --pipeline-parallel-size 2\n"num_hidden_layers": 61,', "Worker_PP0", "78.00 GiB", "30,31"),
        ('org/m --pipeline-parallel-size 3\n"num_hidden_layers": 60,', "Worker_PP1", "78.00 GiB", "21,19,20"),
        ('org/m --pipeline-parallel-size 2\n"num_hidden_layers": 2,', "Worker_PP0", "78.00 GiB", None),
        (
            'org/m --pipeline-parallel-size 2\n"num_hidden_layers": 61,\n"vision_config": {\n"num_hidden_layers": 27\n}',
            "Worker_PP0",
            "78.00 GiB",
            None,
        ),
    ],
)
def test_the_stage_that_failed_gives_up_as_many_layers_as_the_allocation_lacked(
    start: str, tag: str, allocated: str, partition: str | None
) -> None:
    change = judged(f"vllm serve {start}\n" + worker(tag, *LOAD, oom("484.00 MiB", "100.00 MiB", allocated=allocated)))["recommendation"]
    assert (change["flag"], change["direction"], change["value"]) == ("VLLM_PP_LAYER_PARTITION", "set", partition)
    assert change["command"] == (f"VLLM_PP_LAYER_PARTITION={partition} vllm serve {start}".partition("\n")[0] if partition else None)


V1_FRAMES = [frame("v1/worker/gpu_worker.py", "determine_available_memory")]


@pytest.mark.parametrize(
    ("version", "flag"),
    [
        ("", "--max-num-batched-tokens"),  # the wording allows 0.7.x and 0.8.x, the frame is of the V1 engine
        ("INFO 05-04 14:19:49 api_server.py:1] vLLM API server version 0.7.3\n", "--max-num-batched-tokens"),
        ("INFO 05-04 14:19:49 api_server.py:1] vLLM API server version 0.8.4\n", "--max-num-batched-tokens"),
    ],
)
def test_the_v1_engine_reads_prompts_in_chunks_whatever_the_oldest_release_that_it_may_be_did(version: str, flag: str) -> None:
    at = "ERROR 05-04 14:19:50 [multiproc_executor.py:380]"
    text = "WorkerProc hit an exception: %s\n" + worker("VllmWorker rank=4", "Traceback (most recent call last):", *V1_FRAMES, at=at)
    change = judged(version + text)["recommendation"]
    assert (change["flag"], change["direction"]) == (flag, "lower")
    assert change["value"]
    assert change["command"]


@pytest.mark.parametrize(("flags", "offered"), [("", True), (" --enforce-eager", False)])
def test_fewer_captured_sizes_are_not_offered_to_an_engine_that_captures_nothing(flags: str, offered: bool) -> None:
    document = judged(f"vllm serve org/m1{flags}\n" + worker("Worker_TP0", *CAPTURE, oom("34.00 MiB", "16.00 MiB", private="612.00 MiB")))
    flags_ = {change["flag"] for change in [document["recommendation"], *document["alternatives"]]}
    assert ("--cudagraph-capture-sizes" in flags_) is offered


@pytest.mark.parametrize(("version", "offered"), [("0.1.2", False), ("0.2.7", False), ("0.5.0", False), ("0.5.3", True)])
def test_offloading_to_the_host_is_offered_only_to_releases_that_have_it(version: str, offered: bool) -> None:
    text = (
        "\n".join(LOAD).replace("site-packages/vllm/", f"site-packages/vllm-{version}-py3.9-linux-x86_64.egg/vllm/")
        + "\ntorch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 160.00 MiB (GPU 0; 79.35 GiB total capacity; 78.58 GiB already "
        "allocated; 145.19 MiB free; 78.58 GiB reserved in total by PyTorch)\n"
    )
    document = judged(text)
    assert document["engine_version"] == version
    assert ("--cpu-offload-gb" in {change["flag"] for change in [document["recommendation"], *document["alternatives"]]}) is offered
    assert any("is older than 0.2.7" in note for note in document["notes"]) is (version == "0.1.2")


CPU_POOL = (
    "(EngineCore pid=3409) WARNING 11-30 02:52:15 [cpu_worker.py:60] libtcmalloc is not found in LD_PRELOAD\n"
    "(EngineCore pid=3409) ERROR 11-30 02:52:16 [core.py:1108] ValueError: To serve at least one request with the models's max seq len (131072), (8.0 GiB "
    "KV cache is needed, which is larger than the available KV cache memory (1.0 GiB). Based on the available memory, the estimated maximum model "
    "length is 16384.\n"
)


@pytest.mark.parametrize(
    ("start", "version", "raised"),
    [
        ("VLLM_CPU_KVCACHE_SPACE=1 vllm serve org/m1", "0.19.1", "VLLM_CPU_KVCACHE_SPACE"),
        ("VLLM_CPU_KVCACHE_SPACE=1 vllm serve org/m1", "0.32.0", "VLLM_CPU_KVCACHE_SPACE"),
        ("VLLM_CPU_OMP_THREADS_BIND=all vllm serve org/m1", "0.19.1", "VLLM_CPU_KVCACHE_SPACE"),
        ("VLLM_CPU_OMP_THREADS_BIND=all vllm serve org/m1", "0.32.0", "--gpu-memory-utilization"),  # which is of the machine there
        ("vllm serve org/m1", "0.19.1", "--gpu-memory-utilization"),
    ],
)
def test_the_cpu_backends_pool_is_raised_by_what_sizes_it(start: str, version: str, raised: str) -> None:
    told = CPU_POOL if "CPU" in start else CPU_POOL.partition("\n")[2]
    document = judged(f"{start}\n(APIServer pid=1) INFO 11-30 02:51:51 [utils.py:299] vLLM API server version {version}\n{told}")
    ways = {change["flag"]: change for change in [document["recommendation"], *document["alternatives"]] if change["direction"] == "raise"}
    assert [flag for flag in ways if flag in ("VLLM_CPU_KVCACHE_SPACE", "--gpu-memory-utilization")] == [raised]
    if raised.startswith("VLLM"):
        assert ways[raised]["value"] == "9"
        assert ways[raised]["command"] in (f"VLLM_CPU_KVCACHE_SPACE=9 {start}", "VLLM_CPU_KVCACHE_SPACE=9 vllm serve org/m1")


def test_the_cpu_backends_fraction_is_lowered_to_what_passes() -> None:
    line = (
        "ValueError: Available memory on node 0 (20.11/31.34 GiB) on startup is less than desired CPU memory utilization (0.9, 28.21 GiB)."
    )
    for text in (line, line.replace("less than", "less\nthan")):
        document = judged(text)
        change = document["recommendation"]
        assert (document["phase"], change["flag"], change["direction"], change["value"]) == (
            "startup_check",
            "--gpu-memory-utilization",
            "lower",
            "0.64",
        )


def test_a_laptop_is_not_told_to_use_a_second_card() -> None:
    failed = "\n".join([*LOAD, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.30 GiB."])
    laptop = judged(f"RTX 5090M 24GB, vLLM v0.19.1\n{failed}")
    assert (laptop["phase"], laptop["recommendation"]["id"]) == ("weight_loading", "use-prequantized-checkpoint")
    assert judged(f"RTX 5090, vLLM v0.19.1\n{failed}")["recommendation"]["id"] == "raise-tensor-parallel-size"


def test_the_number_of_layers_is_asked_for_where_it_is_all_that_is_missing_and_its_answer_is_used() -> None:
    text = "vllm serve m --pipeline-parallel-size 2\n" + worker("Worker_PP1", *LOAD, oom("484.00 MiB", "100.00 MiB", allocated="78.00 GiB"))
    assert [question["id"] for question in judged(text)["questions"]] == ["model_config"]
    for answer in ("model_config=80", 'model_config="num_hidden_layers": 80,'):
        document = judged(text, Contribution("answer", answer))
        assert (document["recommendation"]["value"], document["questions"]) == ("41,39", [])


def test_no_layers_are_asked_for_without_a_pipeline_or_where_they_are_known() -> None:
    failed = worker("Worker_PP1", *LOAD, oom("484.00 MiB", "100.00 MiB"))
    for start in ("vllm serve m --tensor-parallel-size 2", "vllm serve llama-3.3-70b --pipeline-parallel-size 2"):
        assert "model_config" not in [question["id"] for question in judged(f"{start}\n{failed}")["questions"]]


def test_a_stage_that_failed_without_figures_gives_up_one_layer() -> None:
    start = "vllm serve llama-3.3-70b --pipeline-parallel-size 2\n"
    assert judged(start + worker("Worker_PP1", *LOAD, "RuntimeError: CUDA error: out of memory"))["recommendation"]["value"] == "41,39"


def test_a_partition_that_was_given_is_where_the_next_one_begins() -> None:
    start = "export VLLM_PP_LAYER_PARTITION=45,35\nvllm serve m --pipeline-parallel-size 2\n"
    assert judged(start + worker("Worker_PP0", *LOAD, oom("484.00 MiB", "100.00 MiB")))["recommendation"]["value"] == "44,36"


def test_the_start_up_check_gets_the_largest_fraction_that_passes() -> None:
    line = "ValueError: Free memory on device (30.12/31.84 GiB) on startup is less than desired GPU memory utilization (0.95, 30.25 GiB)."
    change = judged(line)["recommendation"]
    assert (change["flag"], change["direction"], change["value"]) == ("--gpu-memory-utilization", "lower", "0.94")


def test_a_context_that_does_not_fit_gets_the_engines_own_estimate() -> None:
    line = (
        "ValueError: To serve at least one request with the models's max seq len (262144), (36.0 GiB KV cache is needed, which is larger than the "
        "available KV cache memory (6.94 GiB). Based on the available memory, the estimated maximum model length is 50512."
    )
    change = judged(line)["recommendation"]
    assert (change["flag"], change["direction"], change["value"]) == ("--max-model-len", "lower", "50512")


def test_too_few_state_blocks_lower_the_sequences_to_their_number() -> None:
    change = judged("ValueError: max_num_seqs (1024) exceeds available Mamba cache blocks (856).")["recommendation"]
    assert (change["flag"], change["value"]) == ("--max-num-seqs", "856")


def test_a_capture_failure_makes_the_pool_smaller_by_what_was_short() -> None:
    text = "vllm serve m --gpu-memory-utilization 0.95\n" + worker("Worker", *CAPTURE, oom("3.00 GiB", "1.00 GiB", private="300.00 MiB"))
    change = judged(text)["recommendation"]
    assert (change["flag"], change["direction"], change["value"]) == ("--gpu-memory-utilization", "lower", "0.92")
    assert "--gpu-memory-utilization 0.92" in change["command"]
    assert change["disproved_by"]
    assert change["keep_fixed"] == ["model revision", "engine image", "GPU topology", "workload"]


def test_an_empty_pool_needs_more_budget_and_a_failed_capture_less() -> None:
    sizing = judged(
        "INFO 10-23 09:36:43 [gpu_worker.py:298] Available KV cache memory: -1.35 GiB\nValueError: No available memory for the cache blocks."
    )
    capture = judged(worker("Worker", *CAPTURE, oom("3.00 GiB", "1.00 GiB", private="300.00 MiB")))
    assert (sizing["recommendation"]["direction"], capture["recommendation"]["direction"]) == ("raise", "lower")


def test_expandable_segments_is_advised_against_where_little_is_reserved() -> None:
    document = judged(worker("Worker", *CAPTURE, oom("3.00 GiB", "1.00 GiB", spare="80.00 MiB")))
    assert "PYTORCH_CUDA_ALLOC_CONF" in {a["flag"] for a in document["avoid"]}


def test_a_refuted_change_is_not_offered_again_and_undo_brings_it_back() -> None:
    text = worker("Worker", *CAPTURE, oom("3.00 GiB", "1.00 GiB", private="300.00 MiB"))
    first = judged(text)["recommendation"]["id"]
    refused = Contribution("outcome", "same", name=first)
    assert judged(text, refused)["recommendation"]["id"] != first
    assert judged(text, refused, Contribution("outcome", "undo"))["recommendation"]["id"] == first


def ended(incident: str, outcome: str, change: Mapping[str, Any]) -> dict[str, Any]:
    return {"id": incident, "outcome": outcome, "remedy": change["id"], "flag": change["flag"]}


def test_a_change_that_worked_more_often_than_it_failed_elsewhere_keeps_its_place() -> None:
    text = worker("Worker", *CAPTURE, oom("3.00 GiB", "1.00 GiB", private="300.00 MiB"))
    plain = judged(text)
    past = [ended(f"D-000{n}", outcome, plain["recommendation"]) for n, outcome in enumerate(("fixed", "same", "moved", "fixed"))]
    assert judge(load_rulebook(), [Contribution("paste", text)], past) == plain


def test_a_change_that_failed_elsewhere_stands_last_and_it_is_said_where() -> None:
    text = worker("Worker", *CAPTURE, oom("3.00 GiB", "1.00 GiB", private="300.00 MiB"))
    first, second, *others = (judged(text)["recommendation"], *judged(text)["alternatives"])
    document = judge(load_rulebook(), [Contribution("paste", text)], [ended(f"D-000{n}", "same", first) for n in range(1, 6)])
    assert document["recommendation"] == second
    assert document["alternatives"] == [*others, first]
    assert f"{first['flag']} did not help in D-0001, D-0002, D-0003 and 2 more, so it stands further down." in document["notes"]
    mixed = [ended("D-0001", "same", first), ended("D-0002", "fixed", first), ended("D-0003", "same", first)]
    notes = judge(load_rulebook(), [Contribution("paste", text)], mixed)["notes"]
    assert f"{first['flag']} did not help in D-0001, D-0003 and did in D-0002, so it stands further down." in notes


@pytest.mark.parametrize(
    ("sizes", "value", "frees"),
    [
        (" (GPU 0; 79.18 GiB total capacity; 76.00 GiB already allocated; 1.00 GiB free;", "0.83", "5.5"),  # 5 GiB and 256 MiB were missing
        (" (GPU 0; 79.18 GiB total capacity; 76.00 GiB already allocated; 5.90 GiB free;", "0.88", "1.6"),
        (".", "0.85", None),  # how large the card is nobody says
    ],
)
def test_sglangs_fraction_is_lowered_by_what_the_failed_allocation_lacked(sizes: str, value: str, frees: str | None) -> None:
    text = f"sglang.launch_server --mem-fraction-static 0.9\nException: Capture cuda graph failed: CUDA out of memory. Tried to allocate 6.00 GiB{sizes}"
    change = judged(text)["recommendation"]
    assert (change["flag"], change["direction"], change["value"]) == ("--mem-fraction-static", "lower", value)
    assert (None if change["frees_bytes"] is None else f"{change['frees_bytes'] / 2**30:.1f}") == frees


@pytest.mark.parametrize(
    ("engine", "text", "flag", "direction"),
    [
        (
            "sglang",
            "sglang.launch_server --mem-fraction-static 0.9\nException: Capture cuda graph failed: CUDA out of memory. Tried to allocate 1.00 GiB.",
            "--mem-fraction-static",
            "lower",
        ),
        (
            "sglang",
            "python -m sglang.launch_server\nRuntimeError: Not enough memory. Please try to increase --mem-fraction-static.",
            "--mem-fraction-static",
            "raise",
        ),
        (
            "tgi",
            "text_generation_launcher\nRuntimeError: Not enough memory to handle 4096 prefill tokens. You need to decrease `--max-batch-prefill-tokens`",
            "--max-batch-prefill-tokens",
            "lower",
        ),
    ],
)
def test_other_engines_are_answered_in_their_own_flags(engine: str, text: str, flag: str, direction: str) -> None:
    document = judged(text)
    change = document["recommendation"]
    assert (document["engine"], change["flag"], change["direction"]) == (engine, flag, direction)
    assert not any((r["flag"] or "") == "--gpu-memory-utilization" for r in [change, *document["alternatives"]])


def test_every_phase_of_every_engine_has_a_change() -> None:
    from bot.rulebook.load import load_rulebook

    rows = load_rulebook().remedies
    plain = [r for r in rows if not (r.all or r.any or r.vllm)]
    for engine in (*ENGINES, "unknown"):
        for phase in (*STEPS, "wake_up", "host_memory"):
            assert any(phase in r.phases and (engine in r.engines or "any" in r.engines) for r in plain), (engine, phase)


def test_layers_of_llama_cpp_are_lowered_to_what_the_card_had_free() -> None:
    text = (
        "llama-server -m a.gguf -ngl 99\n"
        "  - CUDA0   : NVIDIA GeForce RTX 3090 (24126 MiB, 20000 MiB free)\n"
        "load_tensors: offloaded 40/65 layers to GPU\n"
        "load_tensors:        CUDA0 model buffer size = 14000.00 MiB\n"
        "llama_kv_cache:      CUDA0 KV buffer size =  5000.00 MiB\n"
        "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 2000.00 MiB on device 0: cudaMalloc failed: out of memory\n"
        "graph_reserve: failed to allocate compute buffers\n"
    )
    document = judged(text)
    layers = next(c for c in (document["recommendation"], *document["alternatives"]) if c["flag"] == "-ngl")
    assert layers["value"] == "35"  # 40 × (20000 × 0.95 − 2000) ÷ 19000


def test_no_number_of_layers_is_made_up_where_nothing_says_what_was_free() -> None:
    line = "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 38402.39 MiB on device 0: cudaMalloc failed: out of memory"
    change = judged(f"llama-server -ngl 99\n{line}\nllama_model_load: error loading model: unable to allocate CUDA0 buffer")[
        "recommendation"
    ]
    assert (change["flag"], change["direction"], change["value"]) == ("-ngl", "lower", None)


def test_a_lone_kill_asks_what_the_kernel_says_and_a_proven_one_does_not() -> None:
    alone = judged("vllm serve m\nKilled")
    proven = judged("vllm serve m\nKilled\nOut of memory: Killed process 4711 (VLLM::Worker_TP) total-vm:23189kB, anon-rss:1117kB")
    assert "dmesg" in alone["questions"][0]["how"]
    assert proven["questions"] == []


def test_a_kill_that_is_only_told_of_asks_what_the_kernel_says() -> None:
    document = judged("vLLM 0.11.0 on one L40S: the process gets killed while it loads a 32B model")
    assert document["phase"] == "unknown"
    assert "dmesg" in document["questions"][0]["how"]


def test_a_killed_pod_is_asked_for_its_last_state() -> None:
    document = judged(
        "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - args: [serve, m]\n    image: vllm/vllm-openai:v0.11.0\n---\nKilled"
    )
    assert "kubectl describe pod" in document["questions"][0]["how"]


def test_a_load_error_is_no_name_of_a_model() -> None:
    text = "allocating 38402.39 MiB on device 0: cudaMalloc failed: out of memory\nllama_model_load: error loading model: unable to allocate CUDA0 buffer"
    assert judged(text)["deployment"]["model"] is None


def test_another_engines_limits_stand_under_vllms_names() -> None:
    deployment = judged("python3 -m sglang.launch_server --model-path m --context-length 32768 --max-running-requests 64")["deployment"]
    assert (deployment["max_model_len"], deployment["max_num_seqs"]) == (32768, 64)


def test_no_flag_of_vllm_is_offered_to_who_names_an_engine_that_is_none_of_those_known() -> None:
    document = judged(
        "python -m lightllm.server.api_server --tp 1\n" + oom("2.00 GiB", "1.00 GiB") + "\nIt dies while it serves requests under load."
    )
    offered = [c["flag"] or "" for c in (document["recommendation"], *document["alternatives"]) if c]
    assert not any(flag.startswith("--") for flag in offered)
    assert "not known here" in " ".join(document["notes"])


def test_each_engine_is_asked_for_its_own_log() -> None:
    ollama = judged("Error: llama runner process has terminated: exit status 2")["questions"][0]
    sglang = judged("sglang says CUDA out of memory, what now?")["questions"][0]
    assert "journalctl -u ollama" in ollama["how"]
    assert "EngineCore" not in sglang["text"]


@pytest.mark.parametrize("value", ["fp8;reboot", "fp8|sh", "fp8 && sh", "$(sh)"])
def test_what_a_log_says_is_quoted_in_a_command(value: str) -> None:
    text = (
        f"INFO non-default args: {{'model': 'Qwen/Qwen3-32B', 'kv_cache_dtype': '{value}', 'gpu_memory_utilization': 0.9}}\n"
        "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.\n"
    )
    document = judged(text)
    commands = [r["command"] for r in (document["recommendation"], *document["alternatives"]) if r["command"]]
    assert commands
    for command in commands:
        words = shlex.shlex(command, posix=True, punctuation_chars=True)
        assert not {";", "|", "&&", "("} & set(words), command


@pytest.mark.parametrize(
    ("model", "value"),
    [("Qwen/Qwen2.5-32B-Instruct", "4"), ("Qwen/Qwen2.5-7B-Instruct", "2"), ("Qwen/Qwen2.5-72B-Instruct-AWQ", "2"), ("my-model", "2")],
)
def test_as_many_cards_are_named_as_hold_the_weights_that_the_name_tells(model: str, value: str) -> None:
    text = f"vllm serve {model}\n" + worker("Worker", *LOAD, oom("500.00 MiB", "100.00 MiB", total="23.64 GiB", allocated="22.00 GiB"))
    assert judged(text)["recommendation"]["flag"] == "--tensor-parallel-size"
    assert judged(text)["recommendation"]["value"] == value


def test_a_fraction_is_not_raised_where_even_the_largest_leaves_no_pool() -> None:
    text = (
        "INFO 11-01 10:00:00 [worker.py:1] the current vLLM instance can use total_gpu_memory (47.40GiB) x gpu_memory_utilization (0.90) = 42.66GiB\n"
        "INFO 11-01 10:00:00 [worker.py:1] model weights take 45.00GiB; non_torch_memory takes 0.10GiB; PyTorch activation peak memory takes 1.50GiB; "
        "the rest of the memory reserved for KV Cache is -3.94GiB.\n"
        "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.\n"
    )
    document = judged(text)
    assert all(change["id"] != "raise-gpu-memory-utilization" for change in (document["recommendation"], *document["alternatives"]))
    nearer = judged(text.replace("-3.94GiB", "-0.50GiB"))
    assert nearer["recommendation"]["id"] == "raise-gpu-memory-utilization"


SHORT = "vllm serve org/m1 --gpu-memory-utilization {}\nINFO 11-01 10:00:00 [gpu_worker.py:298] Available KV cache memory: {} GiB\n"


@pytest.mark.parametrize(
    ("card", "fraction", "pool", "value"),
    [
        ("", "0.90", "-20.10", None),  # the largest card there is has 288 GiB
        ("", "0.90", "-3.10", "0.95"),
        ("RTX 4090", "0.90", "-3.10", None),
        ("DGX Spark", "0.60", "-6.78", "0.66"),
    ],
)
def test_a_fraction_is_raised_by_what_the_card_can_give(card: str, fraction: str, pool: str, value: str | None) -> None:
    document = judged(f"{card}\n" + SHORT.format(fraction, pool))
    offered = {one["id"]: one["value"] for one in (document["recommendation"], *document["alternatives"])}
    assert offered.get("raise-gpu-memory-utilization") == value


def test_a_pool_that_lacks_more_than_the_default_leaves_of_the_card_says_that_a_lower_fraction_is_set() -> None:
    log = "NVIDIA A100-SXM4-80GB\nINFO 11-01 10:00:00 [gpu_worker.py:298] Available KV cache memory: -30.00 GiB\n"
    document = judged(log)
    assert (document["recommendation"]["id"], document["recommendation"]["value"]) == ("raise-gpu-memory-utilization", "0.95")


@pytest.mark.parametrize(("card", "value"), [("NVIDIA A100-SXM4-80GB", "1024"), ("NVIDIA H100 80GB HBM3", "2048")])
def test_a_default_that_is_in_force_is_not_suggested(card: str, value: str) -> None:
    profile = [frame("v1/worker/gpu_worker.py", "determine_available_memory"), frame("v1/worker/gpu_model_runner.py", "profile_run")]
    text = (
        f"INFO 11-01 10:00:00 [core.py:1] Initializing a V1 LLM engine (v0.21.0) with config: model='org/m1'\nGPU 0: {card} (UUID: GPU-1)\n"
    )
    document = judged(text + worker("Worker", *profile, oom("2.00 GiB", "1.00 GiB")))
    lowered = next(c for c in (document["recommendation"], *document["alternatives"]) if c["flag"] == "--max-num-batched-tokens")
    assert lowered["value"] == value


def test_a_fraction_is_not_lowered_by_more_than_the_pool_has() -> None:
    pool = "(Worker pid=7501) INFO 11-30 02:52:40 [gpu_worker.py:440] Available KV cache memory: 1.00 GiB\n"
    text = pool + worker("Worker", *CAPTURE, oom("34.00 MiB", "16.06 MiB", private="612.00 MiB"))
    assert judged("vllm serve org/m1 --gpu-memory-utilization 0.9\n" + text)["recommendation"]["value"] == "0.89"
    wide = text.replace("1.00 GiB\n", "10.00 GiB\n", 1)
    assert judged("vllm serve org/m1 --gpu-memory-utilization 0.9\n" + wide)["recommendation"]["value"] == "0.88"


SGLANG_CAPTURE = [
    "[2025-09-02 11:20:01 TP1] Load weight begin. avail mem={before} GB",
    "[2025-09-02 11:21:41 TP1] KV Cache is allocated. #tokens: 12345, K size: {half} GB, V size: {half} GB",
    "[2025-09-02 11:21:41 TP1] Memory pool end. avail mem={left} GB",
    "[2025-09-02 11:21:42 TP1] Capture cuda graph begin. This can take up to several minutes. avail mem=7.35 GB",
    "[2025-09-02 11:21:50 TP1] Scheduler hit an exception: Traceback (most recent call last):",
    '  File "/sgl-workspace/sglang/python/sglang/srt/model_executor/cuda_graph_runner.py", line 260, in __init__',
]
GIBS = st.integers(1, 900).map(lambda hundredths: hundredths / 100)


def freed_enough(text: str) -> None:
    """Every sized change frees what was missing, or says that it does not."""
    document = judged(text)
    error = document["first_error"]
    lacked = error["tried_bytes"] - error["free_bytes"]
    for change in [document["recommendation"], *document["alternatives"]]:
        if change["frees_bytes"] is not None and change["frees_bytes"] < lacked:
            assert "that is not enough, and " in change["because"]


@settings(max_examples=40, deadline=None)
@given(
    GIBS, GIBS, st.sampled_from([0.5, 0.83, 0.9, 0.941, 0.97]), st.sampled_from(["", "--kv-cache-memory-bytes 30G", "--max-num-seqs 96"])
)
def test_a_sized_change_of_vllm_frees_what_was_missing_or_says_that_it_does_not(tried: float, free: float, now: float, more: str) -> None:
    start = f"vllm serve org/m1 --gpu-memory-utilization {now} {more}\n"
    error = oom(f"{tried + free:.2f} GiB", f"{free:.2f} GiB", private="300.00 MiB")
    for frames in (CAPTURE, [frame("v1/worker/gpu_worker.py", "execute_model")]):
        freed_enough(start + worker("Worker", *frames, error))


@settings(max_examples=40, deadline=None)
@given(GIBS, GIBS, st.sampled_from(["0.30", "0.94", "9.10"]), st.sampled_from(["2.10", "7.90", "15.00"]))
def test_a_sized_change_of_sglang_frees_what_was_missing_or_says_that_it_does_not(tried: float, free: float, half: str, left: str) -> None:
    told = "\n".join(SGLANG_CAPTURE).format(before="78.33", half=half, left=left)
    freed_enough(
        f"{told}\n{oom(f'{tried + free:.2f} GiB', f'{free:.2f} GiB', gpu=1)}\nException: Capture cuda graph failed: CUDA out of memory.\n"
    )


def test_a_small_pool_gives_what_was_missing_where_it_has_so_much() -> None:
    told = "\n".join(SGLANG_CAPTURE).format(before="78.33", half="0.94", left="7.90")
    change = judged(f"{told}\n{oom('1.50 GiB', '512.00 MiB', gpu=1)}\nException: Capture cuda graph failed: CUDA out of memory.\n")[
        "recommendation"
    ]
    assert (change["value"], change["frees_bytes"] >= 2**30) == ("0.88", True)


def test_a_pool_too_small_for_what_was_missing_says_what_comes_with_it() -> None:
    told = "\n".join(SGLANG_CAPTURE).format(before="78.33", half="0.60", left="7.90")
    change = judged(f"{told}\n{oom('6.00 GiB', '512.00 MiB', gpu=1)}\nException: Capture cuda graph failed: CUDA out of memory.\n")[
        "recommendation"
    ]
    assert "of the 5.50 GiB that were missing: that is not enough, and lower --cuda-graph-max-bs comes with it." in change["because"]


SERVING = worker(
    "Worker_TP0", frame("v1/worker/gpu_worker.py", "execute_model"), oom("2.00 GiB", "1.00 GiB", private="1.20 GiB", spare="{spare}")
)


@pytest.mark.parametrize(("spare", "first"), [("3.00 GiB", "lower-gpu-memory-utilization"), ("3.30 GiB", "set-expandable-segments")])
def test_what_the_pools_of_graphs_have_spare_joins_no_other_pieces(spare: str, first: str) -> None:
    change = judged(SERVING.replace("{spare}", spare))["recommendation"]
    assert change["id"] == first
    assert (spare in change["because"]) == (first == "set-expandable-segments")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (
            "INFO 02-10 19:39:54 engine.py:275] Added request cmpl-1.\nCRITICAL 02-10 19:39:55 launcher.py:101] MQLLMEngine is already dead\n",
            "128",
        ),
        ("INFO 02-10 19:39:54 api_server.py:1] vLLM API server version 0.7.2\n", "128"),
        ("INFO 02-10 19:39:54 [api_server.py:1] vLLM API server version 0.11.0\nNVIDIA H100 80GB HBM3\n", "512"),
    ],
)
def test_fewer_requests_are_fewer_than_that_version_has_by_default(text: str, value: str) -> None:
    error = oom("1.30 GiB", "110.00 MiB")
    old = f"ERROR 02-10 19:39:55 engine.py:139] OutOfMemoryError('{error.partition(': ')[2]}')"
    new = worker("Worker_TP0", frame("v1/worker/gpu_worker.py", "execute_model"), error)
    document = judged(text + (new if "0.11.0" in text else old) + "\n")
    offered = {change["flag"]: change["value"] for change in [document["recommendation"], *document["alternatives"]]}
    assert offered["--max-num-seqs"] == value


@pytest.mark.parametrize(
    ("flags", "value"),
    [
        ("--max-model-len 16384", None),
        ("--max-model-len 16384 --max-num-batched-tokens 16384", None),
        ("--max-model-len 8192 --max-num-batched-tokens 32768", "16384"),
        ("--max-model-len 16384 --max-num-batched-tokens 20480", "16384"),
        ("--max-model-len 16384 --enable-chunked-prefill", "2048"),
        ("--max-model-len 65536", "1024"),
    ],
)
def test_a_batch_is_never_shorter_than_the_context_where_prompts_are_read_whole(flags: str, value: str | None) -> None:
    start = f"vllm serve org/m1 {flags}\nINFO 02-10 19:39:54 api_server.py:1] vLLM API server version 0.7.2\nINFO 02-10 19:39:54 engine.py:275] Added request cmpl-1.\n"
    document = judged(
        f"{start}ERROR 02-10 19:39:55 engine.py:139] OutOfMemoryError('{oom('1.30 GiB', '110.00 MiB').partition(': ')[2]}')\n"
    )
    offered = {change["flag"]: change["value"] for change in [document["recommendation"], *document["alternatives"]]}
    assert offered.get("--max-num-batched-tokens") == value
    assert ("--enable-chunked-prefill" in offered) == (value != "2048" and value != "1024")


def test_a_context_that_is_of_no_use_is_offered_last_and_says_so() -> None:
    text = (
        "vllm serve org/m1 --max-model-len 131072 --gpu-memory-utilization 0.97 --max-num-seqs 16\nValueError: To serve at least one request with the model's max seq len "
        "(131072), (1.34 GiB KV cache is needed, which is larger than the available KV cache memory (0.3 GiB). Based on the available memory, the estimated maximum model length is 720.\n"
    )
    document = judged(text)
    assert (document["recommendation"]["flag"], document["recommendation"]["value"]) == ("--cudagraph-capture-sizes", "1 2 4 8")
    last = document["alternatives"][-1]
    assert last["flag"] == "--max-model-len"
    assert last["because"].endswith("That is 720 of 131,072 tokens: it passes the check and serves little, so it stands last.")


def test_it_stands_first_where_the_figures_say_of_no_other_change_that_it_reaches() -> None:
    text = (
        "vllm serve org/m1 --max-model-len 131072\nValueError: To serve at least one request with the model's max seq len (131072), (46.00 GiB KV cache is needed, which "
        "is larger than the available KV cache memory (1.30 GiB). Based on the available memory, the estimated maximum model length is 3696.\n"
    )
    first = judged(text)["recommendation"]
    assert (first["flag"], first["value"]) == ("--max-model-len", "3696")
    assert first["because"].endswith("it passes the check and serves little.")


def test_more_tensor_parallelism_stays_within_the_cards_of_a_pipeline_stage() -> None:
    cards = "8x RTX 3090\n"
    tags = worker("Worker_PP1_TP3", *LOAD, oom("484.00 MiB", "100.00 MiB", allocated="23.00 GiB", total="23.69 GiB"))
    document = judged(cards + tags)
    assert "--tensor-parallel-size" not in {change["flag"] for change in [document["recommendation"], *document["alternatives"]]}


def test_more_cards_are_not_offered_twice() -> None:
    document = judged(worker("Worker", *LOAD, oom("484.00 MiB", "100.00 MiB", allocated="78.00 GiB")))
    ids = [change["id"] for change in [document["recommendation"], *document["alternatives"]]]
    assert "raise-tensor-parallel-size" in ids
    assert "add-gpus" not in ids


def test_a_kill_at_a_limit_that_is_not_printed_is_counted_from_what_was_held() -> None:
    line = "[1234567.9] Memory cgroup out of memory: Killed process 3210 (python3) total-vm:98765432kB, anon-rss:33012345kB, file-rss:0kB, shmem-rss:0kB, UID:0\n"
    change = judged(line)["recommendation"]
    assert (change["id"], change["value"]) == ("raise-host-memory", "48 GiB")
    assert judged(line.replace("Memory cgroup out of memory", "Out of memory"))["recommendation"]["value"] is None


def test_offloaded_weights_are_what_fills_the_machine() -> None:
    killed = "Out of memory: Killed process 3210 (VLLM::Worker_TP) total-vm:231892748kB, anon-rss:1117884kB, shmem-rss:90272184kB\n"
    change = judged("INFO  [uva.py:65] Total CPU offloaded parameters: 41.20\n" + killed)["recommendation"]
    assert (change["flag"], change["direction"]) == ("--cpu-offload-gb", "lower")
    assert "41.20 GiB" in change["because"]
    assert judged(killed)["recommendation"]["id"] == "raise-host-memory"


def test_a_gguf_is_told_of_no_quantized_checkpoint() -> None:
    text = (
        "load_tensors: offloaded 81/81 layers to GPU\nggml_backend_cuda_buffer_type_alloc_buffer: allocating 39979.48 MiB on device 0: cudaMalloc failed: out of memory\n"
        "llama_model_load: error loading model: unable to allocate CUDA0 buffer\n"
    )
    document = judged(text)
    assert document["recommendation"]["flag"] == "-ngl"
    assert "use-prequantized-checkpoint" not in {change["id"] for change in document["alternatives"]}


def test_small_defaults_are_not_set_to_themselves() -> None:
    text = "GPU 0: NVIDIA H200\n  MIG 2g.35gb     Device  0:\nScheduler batch defaults fall back to smallest-GPU values inside MIG containers (NVML permission error swallowed)\n"
    change = judged(text)["recommendation"]
    assert (change["flag"], change["value"], change["command"]) == ("--max-num-seqs", "512", "vllm serve MODEL --max-num-seqs 512")


@pytest.mark.parametrize(
    ("said", "first"),
    [
        (
            "CUDA out of memory while loading DeepSeek-R1 on 8xH100 with vLLM 0.8.4",
            "use-prequantized-checkpoint",
        ),  # 79.55 GiB of 79.19 each
        ("CUDA out of memory while loading DeepSeek-R1 on 8xH200 with vLLM 0.8.4", "raise-tensor-parallel-size"),
        ("CUDA out of memory while loading llama 3.3 70B on 2x A100 80GB, tp=2, vLLM 0.9.1", "stop-other-process"),
        ("CUDA out of memory while loading llama 3.3 70B on 4x L40S, tp=4, vLLM 0.9.1", "stop-other-process"),
        ("CUDA out of memory while loading llama 3.3 70B on 2x L40S, tp=2, vLLM 0.9.1", "use-prequantized-checkpoint"),
        ("CUDA out of memory while loading my own model on 2x A100 80GB, tp=2, vLLM 0.9.1", "use-prequantized-checkpoint"),
    ],
)
def test_what_is_advised_where_weights_do_not_load_agrees_with_sizing(said: str, first: str) -> None:
    document = judged(said)
    assert document["recommendation"]["id"] == first
    ids = {change["id"] for change in document["alternatives"]}
    assert ("raise-tensor-parallel-size" in ids | {first}) == (first == "raise-tensor-parallel-size")


def test_sizing_s_figures_stand_in_the_reason() -> None:
    document = judged("CUDA out of memory while loading llama 3.3 70B on 2x A100 80GB, tp=2, vLLM 0.9.1")
    assert "On 2 ranks the weights take about 65.74 GiB of the 79.25 GiB of a card" in document["recommendation"]["because"]
    assert "does not fit" not in " ".join(change["because"] for change in document["alternatives"])


def test_where_pytorch_holds_the_card_no_sizing_says_that_the_weights_fit() -> None:
    start = "vllm serve meta-llama/Llama-3.3-70B-Instruct --tensor-parallel-size 2\nNVIDIA A100-SXM4-80GB\n"
    full = judged(start + worker("Worker_TP0", *LOAD, oom("448.00 MiB", "90.00 MiB", allocated="77.80 GiB")))
    assert full["recommendation"]["id"] != "stop-other-process"
    light = judged(start + worker("Worker_TP0", *LOAD, oom("448.00 MiB", "90.00 MiB", allocated="31.00 GiB")))
    assert light["recommendation"]["id"] == "stop-other-process"


TABLE = """It runs out of memory while the graphs are captured, default gpu_memory_utilization=0.92
| config | capture | outcome |
|---|---|---|
| raw vLLM 0.22.0, batch {older} | 0.60 GiB | PASS |
| raw vLLM 0.23.0, batch 256 | 0.64 GiB | **OOM** |
| LMI v27 (0.23.1), batch {newer} | 0.44 GiB | **{ended}** |
"""


def test_a_change_that_the_paste_proves_comes_first() -> None:
    document = judged(TABLE.format(older=256, newer=128, ended="PASS"))
    assert document["engine_version"] == "0.23.0"
    assert (document["recommendation"]["flag"], document["recommendation"]["value"]) == ("--max-num-seqs", "128")
    assert "with 128 requests at once it passed (line 6), with 256 it did not" in document["recommendation"]["because"]


@pytest.mark.parametrize(("older", "newer", "ended"), [(256, 512, "PASS"), (256, 128, "OOM"), (512, 256, "PASS")])
def test_a_table_without_a_smaller_batch_that_passed_proves_nothing(older: int, newer: int, ended: str) -> None:
    assert judged(TABLE.format(older=older, newer=newer, ended=ended))["recommendation"]["flag"] != "--max-num-seqs"


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("vLLM OOMs in graph capture since I raised gpu_memory_utilization from 0.88 to 0.93", ("--gpu-memory-utilization", "0.88")),
        ("vLLM with --max-num-seqs 48 starts, with 192 it runs out of memory in the sampler warm-up", ("--max-num-seqs", "48")),
        (
            "vLLM OOM in the sampler warm-up. Tried lowering --max-num-seqs from 256 to 128, it still fails",
            ("--gpu-memory-utilization", "0.85"),
        ),
        ("vLLM with --max-num-seqs 48 starts, with 192 it OOMs in the sampler warm-up. We need 192", ("--gpu-memory-utilization", "0.85")),
        ("With --max-num-seqs 192 vLLM OOMs in the sampler warm-up.\nWith --max-num-seqs 48 it starts.", ("--max-num-seqs", "48")),
    ],
)
def test_of_two_values_in_a_sentence_the_one_that_worked_is_the_change(text: str, change: tuple[str, str]) -> None:
    recommendation = judged(text)["recommendation"]
    assert (recommendation["flag"], recommendation["value"]) == change


def test_the_engine_s_own_advice_is_named_where_it_stands_in_the_paste() -> None:
    message = "Failed to load model - not enough GPU memory. Try lowering --gpu-memory-utilization to free memory for weights, increasing --tensor-parallel-size."
    plain = worker("Worker", *LOAD, oom("484.00 MiB", "100.00 MiB", allocated="78.00 GiB"))
    said = {text: " ".join(one["because"] for one in judged(text)["avoid"]) for text in (plain, f"{plain}\n{message}")}
    assert ["own message suggests" in told for told in said.values()] == [False, True]


LAYERS = (
    "load_tensors: offloaded 81/81 layers to GPU\nggml_backend_cuda_buffer_type_alloc_buffer: allocating 39979.48 MiB on device 0: cudaMalloc failed: out of memory\n"
    "llama_model_load: error loading model: unable to allocate CUDA0 buffer\n"
)


SPENT = oom("2.00 GiB", "0.50 GiB", allocated="76.00 GiB")
SGLANG_DUMP = "[2025-07-02 07:44:01 TP0] Capture cuda graph failed: CUDA out of memory. Tried to allocate 2.00 GiB.\nPossible solutions:\n"


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        (f"{SGLANG_DUMP}1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)\n2. set --cuda-graph-max-bs to a smaller value (e.g., 16)", ["--mem-fraction-static lower", "--cuda-graph-max-bs lower"]),
        (
            f"{SGLANG_DUMP}1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)\n2. set --cuda-graph-max-bs-decode to a smaller value (e.g., 16)",
            ["--mem-fraction-static lower", "--cuda-graph-max-bs-decode lower"],
        ),
        (
            "[2025-07-02 07:44:01 TP0] RuntimeError: Prefill out of memory. Try to lower your batch size.",
            ["--max-running-requests lower", "--schedule-conservativeness raise", "--mem-fraction-static raise"],
        ),
        (
            "[2025-07-02 07:44:01 TP0] RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.",
            ["--mem-fraction-static raise", "--kv-cache-dtype set"],
        ),
        ("lmdeploy\nRuntimeError: No enough gpu memory for runtime.", ["--tp raise", "use-prequantized-checkpoint", "--cache-max-entry-count raise"]),
        (
            f'[TRT-LLM] [I] up\n  File "/usr/lib/tensorrt_llm/_torch/pyexecutor/py_executor.py", line 9, in _forward_step\n{SPENT}',
            ["free_gpu_memory_fraction lower", "--max_num_tokens lower"],
        ),
        (
            f'INFO text_generation_router: Connected\n  File "/opt/text_generation_server/models/flash_causal_lm.py", line 9, in generate_token\n{SPENT}',
            ["--max-batch-total-tokens lower", "--cuda-memory-fraction lower"],
        ),
        (
            "INFO text_generation_launcher: Warming up model\n" + oom("2.00 MiB", "1.94 MiB", allocated="40.92 GiB", spare="754.08 MiB"),
            ["--max-batch-total-tokens lower", "PYTORCH_CUDA_ALLOC_CONF set"],
        ),
    ],
)  # fmt: skip
def test_other_engines_are_offered_what_moves_that_phase_in_its_order(text: str, changes: list[str]) -> None:
    document = judged(text)
    offered = [document["recommendation"], *document["alternatives"]]
    assert [f"{one['flag']} {one['direction']}" if one["flag"] else one["id"] for one in offered][: len(changes)] == changes


def test_what_is_free_on_the_card_is_asked_for_where_it_counts_the_layers() -> None:
    asked = judged(LAYERS)
    assert (asked["recommendation"]["value"], [one["id"] for one in asked["questions"]]) == (None, ["gpu_inventory"])
    table = "gpu_inventory=index, name, memory.free [MiB], memory.total [MiB]\n0, NVIDIA GeForce RTX 3090, 23871 MiB, 24576 MiB\n"
    told = judged(LAYERS, Contribution("answer", table))
    assert (told["recommendation"]["value"], told["questions"]) == ("45", [])  # 0.95 × 23.3 of 39.0 GiB, of 81 layers


def test_a_fraction_that_no_engine_takes_is_not_offered() -> None:
    text = (
        "[2025-09-02 11:20:01 TP0] Load weight begin. avail mem=78.33 GB\n[2025-09-02 11:21:40 TP0] Load weight end. type=LlamaForCausalLM, avail mem=3.10 GB, mem usage=75.23 GB.\n"
        "[2025-09-02 11:21:41 TP0] RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.\n"
    )
    assert judged(text)["recommendation"]["flag"] == "--tensor-parallel-size"
    assert judged(text.replace("3.10", "13.10"))["recommendation"]["flag"] == "--mem-fraction-static"


def test_a_pool_in_bytes_is_raised_to_what_one_request_needs() -> None:
    text = (
        "vllm serve org/m1 --kv-cache-memory-bytes 8G --max-model-len 131072\nValueError: To serve at least one request with the models's max seq len (131072), (16.00 GiB KV cache "
        "is needed, which is larger than the available KV cache memory (8.00 GiB). Based on the available memory, the estimated maximum model length is 65536.\n"
    )
    document = judged(text)
    pool = next(one for one in [document["recommendation"], *document["alternatives"]] if one["flag"] == "--kv-cache-memory-bytes")
    assert 16 * 2**30 < int(pool["value"]) <= 16 * 2**30 + 12 * 2**20


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("RuntimeError: CUDA error: system not yet initialized", "fix-environment"),
        ("RuntimeError: CUDA error: no CUDA-capable device is detected", "fix-environment"),
        ("RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable", "fix-environment"),
        ("[TensorRT-LLM][ERROR] Assertion failed: mNextBlocks.empty() (/app/batch_manager/kvCacheManager.cpp:256)", "upgrade-engine"),
    ],
)
def test_what_is_no_shortage_is_answered_with_no_flag(text: str, first: str) -> None:
    document = judged(text)
    assert (document["phase"], document["recommendation"]["id"], document["recommendation"]["flag"]) == ("not_oom", first, None)


def test_another_engine_s_own_tip_is_what_is_advised() -> None:
    refused = "ERROR engine: KVCache allocation failed: Insufficient GPU memory for KVCache allocation.\nAvailable: 221.50 MB, Required: 1168.00 MB."
    assert judged(refused)["recommendation"]["flag"] is None
    assert judged(f"{refused}\nTips: Try reducing --max-model-len or --max-num-seqs.")["recommendation"]["flag"] == "--max-model-len"


@pytest.mark.parametrize(
    ("sizes", "first"), [((1.62, 1.62, 1.62), "lower-gpu-memory-utilization"), ((1.62, 1.62, 2.5), "stop-other-process")]
)
def test_the_engine_s_own_workers_on_a_card_are_no_other_process(sizes: tuple[float, ...], first: str) -> None:
    listed = " ".join(f"Process {71 + n} has {size} GiB memory in use." for n, size in enumerate(sizes))
    error = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 72.00 MiB. GPU 0 has a total capacity of 39.56 GiB of which 60.81 MiB is "
        f"free. {listed} Including non-PyTorch memory, this process has {39.5 - sum(sizes):.2f} GiB memory in use. Of the allocated memory 28.75 "
        "GiB is allocated by PyTorch, with 28.60 MiB allocated in private pools (e.g., CUDA Graphs), and 84.74 MiB is reserved by PyTorch but "
        "unallocated."
    )
    text = f"vllm serve m --tensor-parallel-size 4\nIt goes out of memory during CUDA graph capture.\n{error}"
    assert judged(text)["recommendation"]["id"] == first


@pytest.mark.parametrize(
    ("set_to", "machine", "value"),
    [
        ("--kv-offloading-size 96", "", "48"),
        ("--kv-offloading-size 96", "128 GB of RAM", "59"),  # half of it, for all ranks together
        ("LMCACHE_MAX_LOCAL_CPU_SIZE=64", "256 GB of RAM", "29"),  # half of it, for each of four
        ("LMCACHE_MAX_LOCAL_CPU_SIZE=2", "256 GB of RAM", None),  # far too small to have filled it
    ],
)
def test_a_pool_of_the_machines_memory_is_cut_to_its_share_of_half_of_it(set_to: str, machine: str, value: str | None) -> None:
    text = f"vllm serve m --tensor-parallel-size 4 {set_to}\n{machine}\n[1]+  Killed                  vllm serve m\n"
    change = judged(text)["recommendation"]
    assert (change["direction"], change["value"]) == (("lower", value) if value else (None, None))
    assert change["id"] == "raise-host-memory" or value


@pytest.mark.parametrize(("machine", "first", "value"), [("", "raise-connector-pool", "40"), ("16 GB of RAM", "upgrade-engine", None)])
def test_a_full_pool_of_a_connector_is_enlarged_where_the_machine_has_more(machine: str, first: str, value: str | None) -> None:
    full = "LMCache WARNING: Failed to allocate memory for tensor(torch.Size([2, 32, 256, 1024]), torch.bfloat16) because no memory is available"
    change = judged(f"LMCACHE_MAX_LOCAL_CPU_SIZE=20 vllm serve m\n{machine}\n{full}\n")["recommendation"]
    assert (change["id"], change["value"]) == (first, value)


def test_a_pool_given_in_bytes_does_not_depend_on_what_the_page_cache_hid_while_it_was_measured() -> None:
    words = "On a DGX Spark {} while the model is read, so the KV cache budget is negative and vLLM fails."
    pinned = judged(words.format("the page cache is counted as overhead"))["recommendation"]
    raised = judged(words.format("a second model is read"))["recommendation"]
    assert (pinned["flag"], pinned["direction"]) == ("--kv-cache-memory-bytes", "set")
    assert raised["flag"] == "--gpu-memory-utilization"


def test_swap_space_that_is_full_is_made_larger_and_not_the_machine() -> None:
    full = "RuntimeError: Aborted due to the lack of CPU swap space. Please increase the swap space to avoid this error."
    document = judged(f"vllm serve m --swap-space 16\n{full}")
    assert "the swap space that the engine sets aside for itself is full" in document["summary"]
    offered = [document["recommendation"], *document["alternatives"]]
    assert [(change["flag"], change["value"]) for change in offered] == [("--swap-space", "32")]
    assert judged(full)["recommendation"]["value"] == "16"


@pytest.mark.parametrize(("free", "value"), [("60.00", "50"), ("40.00", "40")])
def test_a_hierarchical_cache_is_cut_to_what_was_free_and_that_is_enough(free: str, value: str) -> None:
    said = f"Requesting 100.00 GB but only have {free} GB free. Please reduce the size of the hierarchical cache."
    start = "python -m sglang.launch_server --model-path m --enable-hierarchical-cache --hicache-size 100"
    change = judged(f"{start}\nValueError: Not enough host memory available. {said}")["recommendation"]
    assert (change["flag"], change["value"]) == ("--hicache-size", value)
    assert "not enough" not in change["because"]
    assert change["because"].count("93.13 GiB") == 1


def trt(more: str) -> str:
    return (
        "[03/01/2026-10:00:00] [TRT-LLM] [RANK 3] [I] Peak memory during memory usage profiling (torch + non-torch): 58.00 GiB, available KV "
        "cache memory when calculating max tokens: 20.10 GiB, fraction is set 0.9, kv size is 131072. device total memory 79.19 GiB\n"
        f"[03/01/2026-10:00:02] [TRT-LLM] [RANK 3] [E] CUDA out of memory. {more}"
    )


def test_tensorrt_llms_fraction_is_cut_to_what_the_pool_found_free() -> None:
    text = trt("Tried to allocate 20.10 GiB. GPU 3 has a total capacity of 79.19 GiB of which 15.00 GiB is free.")
    document = judged(text)
    change = document["recommendation"]
    assert (document["engine"], change["flag"], change["value"]) == ("tensorrt-llm", "free_gpu_memory_fraction", "0.67")
    assert "15.00 GiB of 20.10 GiB" in change["because"]


def test_a_small_request_beside_tensorrt_llms_pool_lowers_its_fraction_by_a_step() -> None:
    text = trt("Tried to allocate 1.00 GiB. GPU 3 has a total capacity of 79.19 GiB of which 0.50 GiB is free.")
    assert judged(text)["recommendation"]["value"] == "0.85"


@pytest.mark.parametrize("limit", ["pod limit 512Gi", "container memory limit: 512Gi", "memory limit is 512 GiB"])
def test_a_connectors_pools_are_cut_to_a_limit_that_somebody_names(limit: str) -> None:
    text = f"LMCACHE_MAX_LOCAL_CPU_SIZE=200 vllm serve m --tensor-parallel-size 8\n\n{limit}\n\nReason: OOMKilled"
    assert judged(text)["recommendation"]["value"] == "32"


def test_a_streamers_buffer_is_bounded_where_the_machine_ran_out_and_a_streamer_reads_the_weights() -> None:
    def flags(text: str) -> list[str | None]:
        document = judged(text)
        return [change["flag"] for change in (document["recommendation"], *document["alternatives"])]

    died = "The container died without any message while loading the weights."
    assert "RUNAI_STREAMER_MEMORY_LIMIT" not in flags(died)
    assert "RUNAI_STREAMER_MEMORY_LIMIT" in flags(f"{died}\nvllm serve s3://m/big --load-format runai_streamer")


@pytest.mark.parametrize(
    ("line", "because"),
    [
        ("huggingface_hub.errors.GatedRepoError: 401 Client Error. (Request ID: Root=1-2)", "HF_TOKEN"),
        ("OSError: [Errno 98] Address already in use", "--port"),
        ("safetensors_rust.SafetensorError: Error while deserializing header: MetadataIncompleteBuffer", "download it again"),
        ("OSError: We couldn't connect to 'https://huggingface.co' to load the files", "reaches the hub"),
        ("RuntimeError: The NVIDIA driver on your system is too old", "do not match"),
    ],
)
def test_what_is_to_be_mended_outside_the_engine_is_what_the_message_names(line: str, because: str) -> None:
    change = judged(line)["recommendation"]
    assert change["id"] == "fix-environment"
    assert because in change["because"]


def test_a_full_card_of_a_program_that_nobody_names_is_not_filled_by_weights() -> None:
    alone = (
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 23.69 GiB total capacity; 22.90 GiB already "
        "allocated; 10.69 MiB free; 23.00 GiB reserved in total by PyTorch)"
    )
    assert judged(alone)["phase"] == "unknown"
    assert judged(f"vllm serve m\n{alone}")["phase"] == "weight_loading"


@pytest.mark.parametrize("signed", ["Feb 03 09:12:44 srv ollama[2211]: ", "ollama-1  | "])
def test_what_ollama_runs_is_changed_by_ollamas_settings_though_only_its_unit_names_it(signed: str) -> None:
    lines = (
        "llama_kv_cache: size = 896.00 MiB",
        "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 812.00 MiB on device 0: cudaMalloc failed: out of memory",
    )
    lines = (*lines, "graph_reserve: failed to allocate compute buffers")
    assert judged("\n".join(lines))["recommendation"]["flag"] == "-ub"
    assert judged("\n".join(signed + line for line in lines))["recommendation"]["flag"] == "num_ctx"


def test_a_pool_whose_books_do_not_add_up_is_no_matter_of_its_size() -> None:
    full = judged("[2026-08-23 09:11:04 TP6] RuntimeError: Decode out of memory. Try to lower your batch size.")
    leak = judged("[2026-08-23 09:11:04 TP6] ValueError: pool memory leak detected! [full] total=9116160, available=768")
    assert [one["recommendation"]["id"] for one in (full, leak)] == ["lower-max-running-requests", "upgrade-engine"]
    assert not {one["flag"] for one in leak["alternatives"]} & {"--max-running-requests", "--mem-fraction-static"}


def test_cards_of_different_sizes_are_no_other_process() -> None:
    says = "ValueError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes."
    assert judged(f"[2026-08-23 09:11:04 TP0] {says}\nwe run 3090 + 3090")["recommendation"]["id"] == "stop-other-process"
    assert judged(f"[2026-08-23 09:11:04 TP0] {says}\nwe run A4000 (16GB) + 3090")["recommendation"]["id"] == "allow-unlike-cards"


def test_no_other_engines_user_is_told_to_leave_vllms_fraction_alone() -> None:
    for engine in ("sglang: python -m sglang.launch_server --tp 4", "ollama run llama3", "lmdeploy serve api_server m"):
        document = judged(f"{engine}\nthe pod was OOMKilled, exit code 137")
        assert document["phase"] == "host_memory"
        assert "--gpu-memory-utilization" not in {one["flag"] for one in document["avoid"]}


def test_where_a_load_test_runs_the_server_is_up() -> None:
    out = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 616.00 MiB."
    assert judged(f"lmsysorg/sglang:v0.4.1\n{out}")["phase"] == "unknown"
    measured = judged(f"lmsysorg/sglang:v0.4.1\npython3 -m sglang.bench_serving --num-prompt 5500\n{out}")
    assert (measured["phase"], measured["verdict"]) == ("serving", "likely")


@pytest.mark.parametrize("engine", ["trtllm-serve m", "lmdeploy serve api_server m"])
def test_one_machine_whose_card_shares_its_memory_gets_no_second_card(engine: str) -> None:
    assert judged(f"{engine}\nout of memory while loading the weights")["recommendation"]["id"] == "raise-tensor-parallel-size"
    assert judged(f"{engine}\nDGX Spark: out of memory while loading the weights")["recommendation"]["id"] == "use-prequantized-checkpoint"


@pytest.mark.parametrize(
    ("rows", "flag", "value"),
    [
        (
            "--max-num-batched-tokens 16384 -> startup succeeds\n--max-num-batched-tokens 65536 -> startup OOM",
            "--max-num-batched-tokens",
            "16384",
        ),
        ("gpu-memory-utilization 0.94: OOM\ngpu-memory-utilization 0.91: boots\n0.80 too", "--gpu-memory-utilization", "0.91"),
        (
            "gpu-memory-utilization 0.94: boots\ngpu-memory-utilization 0.91: OOM",
            "--gpu-memory-utilization",
            "0.85",
        ),  # nothing is proven downward
    ],
)
def test_what_a_list_of_tries_proves_is_the_change(rows: str, flag: str, value: str) -> None:
    first = judged(f"vllm goes OOM in CUDA graph capture\n{rows}\n")["recommendation"]
    assert (first["flag"], first["value"]) == (flag, value)


@pytest.mark.parametrize(
    "said",
    [
        "--max-num-seqs 64 works on H100, 256 OOMs",
        "--max-num-seqs 64 works fine with 2 GPUs, but 256 runs out of memory",
        "with --max-num-seqs 64 it works with eager mode, with 256 OOM",
        "lowering max_num_seqs from 256 to 64 fixed it on the other machine, but not here",
        "lowering max_num_seqs to 64 fixed it for llama, not for qwen",
        "--max-num-seqs 64 starts but then OOMs at the first request, 256 OOMs",
        "with --max-num-seqs 64 it doesn't start, with 256 it OOMs",
        "--max-num-seqs 64 almost works, 256 OOMs",
    ],
)
def test_what_passed_elsewhere_or_only_began_well_proves_nothing(said: str) -> None:
    assert judged(f"OOM in CUDA graph capture. {said}")["recommendation"]["flag"] == "--gpu-memory-utilization"


def test_of_two_values_not_at_the_second_says_that_it_failed() -> None:
    document = judged("OOM in CUDA graph capture. I read on.\n--gpu-memory-utilization works at 0.83, not at 0.9")
    assert (document["recommendation"]["value"], document["deployment"]["gpu_memory_utilization"]) == ("0.83", 0.9)


def test_the_value_in_force_is_of_the_line_that_says_that_it_failed() -> None:
    text = "OOM in CUDA graph capture.\nWith --max-num-seqs 64 it starts.\n\nUsing --max-num-seqs 256 runs out of memory."
    known = read(load_rulebook(), [Contribution("paste", text)]).deployment.arguments["max_num_seqs"]
    assert (known.value, known.line) == (256, 4)


@pytest.mark.parametrize(("said", "change"), [("GPU 1 is idle", "set-visible-devices"), ("no other GPU is free", "stop-other-process")])
def test_a_card_that_somebody_calls_free_is_taken(said: str, change: str) -> None:
    check = (
        "ValueError: Free memory on device cuda:0 (3.20/23.60 GiB) on startup is less than desired GPU memory utilization (0.9, 21.24 GiB)."
    )
    assert judged(f"{said}\n{check}\n")["recommendation"]["id"] == change


def test_a_number_of_blocks_that_is_set_is_removed_before_the_fraction_is_raised() -> None:
    text = (
        "vllm serve org/m1 --num-gpu-blocks-override 2048\nValueError: To serve at least one request with the model's max seq len (34048), "
        "(4.16 GiB KV cache is needed, which is larger than the available KV cache memory (4.0 GiB).\n"
    )
    document = judged(text)
    assert document["recommendation"]["flag"] == "--max-model-len"
    assert document["alternatives"][0]["flag"] == "--num-gpu-blocks-override"


@pytest.mark.parametrize(
    ("said", "change"),
    [
        ("the bf16 weights (15 GB) don't fit this laptop card", "use-prequantized-checkpoint"),
        ("the weights fit, the cache does not fit", "raise-gpu-memory-utilization"),
    ],
)
def test_who_says_that_the_weights_do_not_fit_is_not_told_to_raise_the_fraction(said: str, change: str) -> None:
    assert judged(f"vllm: {said}\nValueError: No available memory for the cache blocks.\n")["recommendation"]["id"] == change


def test_a_pool_that_an_engine_before_this_one_made_small_is_a_matter_of_that_engine() -> None:
    said = "vllm: the previous engine is still holding memory of this card"
    check = "ValueError: ... KV cache is needed, which is larger than the available KV cache memory"
    assert judged(f"{said}\n{check}\n")["recommendation"]["id"] == "stop-other-process"


@pytest.mark.parametrize(
    ("said", "flag"),
    [
        ("Works fine in LM Studio, vLLM: out of memory while loading the weights", "--tensor-parallel-size"),
        ("Ollama runs out of memory while it loads the weights", "num_gpu"),
        ("TGI goes CUDA out of memory while loading the weights", "--num-shard"),
        ("llamacpp: out of memory while loading the weights", "-ngl"),
        ("LM Studio: out of memory while loading the weights", "-ngl"),
        ("Ollama works, vLLM runs out of memory while it loads the weights", "--tensor-parallel-size"),
        ("It works fine with Ollama. Here it is out of memory while loading the weights", "--tensor-parallel-size"),
    ],
)
def test_who_names_an_engine_is_told_its_own_flags(said: str, flag: str) -> None:
    assert judged(said)["recommendation"]["flag"] == flag


def test_a_prompt_cache_that_fills_the_machine_is_made_smaller() -> None:
    killed = "llama-server is killed by the OOM killer: its prompt cache fills the RAM"
    assert judged(killed)["recommendation"]["command"] == "llama-server -m MODEL --cache-ram 1024"
    assert judged(f"{killed}\nollama serve")["recommendation"]["flag"] == "LLAMA_ARG_CACHE_RAM"
    assert judged(f"llama-server -m a.gguf --cache-ram 512\n{killed}")["recommendation"]["id"] == "raise-host-memory"


def test_a_file_of_tritons_gets_no_command_of_another_server() -> None:
    log = "[TensorRT-LLM][INFO] Max tokens in paged KV cache: 61440. Allocating 32212254720 bytes.\nCUDA runtime error: out of memory"
    assert judged(log)["recommendation"]["command"] is not None
    assert judged(f"I1103 tritonserver starts\n{log}")["recommendation"]["command"] is None


def test_tgis_cache_is_lowered_by_what_it_counted_and_not_below_its_longest_request() -> None:
    log = "text_generation_launcher: Setting max batch total tokens to 30816\nOOM errors occur under load"
    assert judged(log)["recommendation"]["value"] == "27648"
    given = "text-generation-launcher --model-id a/b --max-total-tokens 30000"
    assert judged(f"{given}\n{log}")["recommendation"]["flag"] != "--max-batch-total-tokens"


def test_a_card_of_another_maker_is_asked_for_by_the_engine_itself() -> None:
    log = "ggml_vulkan: Device memory allocation of size 4697620480 failed.\nllama_model_load: error loading model: unable to allocate"
    assert judged(f"{log} Vulkan0 buffer")["questions"][0]["how"] == "llama-server --list-devices"


def test_an_engine_that_is_not_known_is_none_that_it_is_compared_with() -> None:
    said = "[METAL] Command buffer execution failed: Insufficient Memory\nvMLX 1.3. It does not occur if I use LMStudio"
    assert judged(said)["engine"] == "unknown"


def test_ollama_that_holds_several_models_is_told_to_hold_one() -> None:
    said = "Ollama goes out of memory while loading the weights"
    assert judged(f"{said}. Two 7B models are loaded at once.")["recommendation"]["command"] == "OLLAMA_MAX_LOADED_MODELS=1"
    assert judged(f"{said}. I tried two models, both fail.")["recommendation"]["flag"] == "num_gpu"
