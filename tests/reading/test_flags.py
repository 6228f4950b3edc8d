"""Arguments are found wherever they stand, and nothing else is taken for one."""

from typing import Any

import pytest

from tests.reading.material import arguments, evidence


def test_what_a_librarys_source_calls_with_nobody_set() -> None:
    frame = '  File "{}", line 8, in {}\n    pool = torch.zeros(shape, dtype=torch.int8, max_num_seqs=64)'
    assert arguments(frame.format("/opt/venv/lib/python3.12/site-packages/vllm/v1/worker/gpu/attn_utils.py", "_allocate")) == {}
    own = arguments('  File "/home/u/vllm/serve.py", line 8, in main\n    llm = LLM("a/b", dtype="half", max_num_seqs=64)')
    assert (own["dtype"], own["max_num_seqs"]) == ("half", 64)


def test_metrics_and_placeholders_are_no_arguments() -> None:
    assert (
        arguments("GPU utilization: 98%\ngpu_util: 98\nKV cache usage: 99.1%\n--max-model-len $LEN\n--max-num-seqs <n>\nmax_num_seqs=None")
        == {}
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "vllm serve a/b \\\n  --max-model-len \\\n    32768 \\\n  --gpu-memory-utilization=0.93 \\\n  --enforce-eager \\\n  --max-num-seqs 64",
            {"max_model_len": 32768, "gpu_memory_utilization": 0.93, "enforce_eager": True, "max_num_seqs": 64},
        ),
        (
            'args:\n  - --max-model-len\n  - "32768"\n  - "--gpu-memory-utilization=0.9"\n  - --enforce-eager\n  - --tensor-parallel-size\n  - "4"',
            {"max_model_len": 32768, "gpu_memory_utilization": 0.9, "enforce_eager": True, "tensor_parallel_size": 4},
        ),
        ('command: ["--max-model-len", "32768", "--enforce-eager", "--tensor-parallel-size", "2"]', {"max_model_len": 32768, "tensor_parallel_size": 2}),
        ('CMD ["vllm", "serve", "a/b", "--max-model-len", "4096", "--enable-sleep-mode"]', {"max_model_len": 4096, "enable_sleep_mode": True}),
        ("vllmConfig:\n  maxModelLen: 16384\n  gpuMemoryUtilization: 0.92\n  tensorParallelSize: 2", {"max_model_len": 16384, "tensor_parallel_size": 2}),
        ("helm install x --set modelSpec[0].vllmConfig.maxModelLen=4096", {"max_model_len": 4096}),
        ("gpu-memory-utilization: 0.88\nmax_model_len: 8192", {"gpu_memory_utilization": 0.88, "max_model_len": 8192}),
        ("args: Namespace(host=None, max_model_len=4096, gpu_memory_utilization=0.7, enforce_eager=False)", {"max_model_len": 4096, "enforce_eager": False}),
        ("non-default args: {'max_model_len': 4096, 'compilation_config': {'cudagraph_capture_sizes': [1, 2]}}", {"cudagraph_capture_sizes": "[1, 2]"}),
        ("LLM(model='a/b', tensor_parallel_size=8, gpu_memory_utilization=.9)", {"tensor_parallel_size": 8, "gpu_memory_utilization": 0.9}),
        ("vllm serve m --no-enable-prefix-caching --enable-chunked-prefill=False", {"enable_prefix_caching": False, "enable_chunked_prefill": False}),
        ("vllm serve m -cc.cudagraph_mode=NONE", {"cudagraph_mode": "NONE"}),
        ("L40S, util .92, 0.22.1", {"gpu_memory_utilization": 0.92}),
        ("slime --sglang-mem-fraction-static 0.8 --rollout-num-gpus 8", {"mem_fraction_static": 0.8}),
        ("sglang, mem-fraction 0.9", {"mem_fraction_static": 0.9}),
        ("gpu-memory-utilization は 0.96 です", {"gpu_memory_utilization": 0.96}),
        ("利用率设的 0.97", {"gpu_memory_utilization": 0.97}),
        ("- `--max-model-len`: 8192", {"max_model_len": 8192}),
        ("| --max-model-len | 8192 |", {"max_model_len": 8192}),
        ("we run it with a max model len of 32k", {"max_model_len": 32000}),
        ("--max_model_len 32K", {"max_model_len": 32768}),
        ("gpu memory utilization 95%? no: --gpu-memory-utilization 95%", {"gpu_memory_utilization": 0.95}),
        ("I keep util at 0.85. The max model len is 8192.", {"gpu_memory_utilization": 0.85, "max_model_len": 8192}),
        ("with gpu_memory_utilization set to 0.8 and max num seqs of 48", {"gpu_memory_utilization": 0.8, "max_num_seqs": 48}),
        ("`--gpu-memory-utilization` = 0.97, then --max-num-seqs to 96", {"gpu_memory_utilization": 0.97, "max_num_seqs": 96}),
        ("--max-model-len 98,304 on one card", {"max_model_len": 98304}),
        ("| gpu_memory_utilization | 0.87 |\n| max_num_batched_tokens | 4096 |", {"gpu_memory_utilization": 0.87, "max_num_batched_tokens": 4096}),
        ("rollout.max_num_seqs=24 rollout.gpu_memory_utilization=0.45", {"max_num_seqs": 24, "gpu_memory_utilization": 0.45}),
        ("environment:\n  - GPU_MEMORY_UTILIZATION=0.83\n  - MAX_MODEL_LEN=6144", {"gpu_memory_utilization": 0.83, "max_model_len": 6144}),
        ('VLLM_MAX_NUM_SEQS: "12"', {"max_num_seqs": 12}),
        ("ROLLOUT_GPU_MEM_UTIL=0.35\nexport PROFILE_MAX_NUM_SEQS=8", {"gpu_memory_utilization": 0.35, "max_num_seqs": 8}),
        ("MAX_MODEL_LEN=6144\nJUDGE_MAX_MODEL_LEN=2048", {"max_model_len": 6144}),  # another engine's may be
        ("GPU_MEM=80 MY_BLOCK_SIZE=128", {"gpu_memory_utilization": None, "block_size": None}),
        ("its budget was 0.52 × 23.5 = 12.2 GiB", {"gpu_memory_utilization": 0.52}),
        ("80 GiB * 0.85 = 68 GiB", {"gpu_memory_utilization": 0.85}),
        ("0.5 * 4 = 2 cards", {"gpu_memory_utilization": None}),
        ("python -m sglang.launch_server --tp 8 --mem-fraction-static 0.8", {"tensor_parallel_size": 8, "mem_fraction_static": 0.8}),
    ],
)  # fmt: skip
def test_each_place_and_spelling(text: str, expected: dict[str, Any]) -> None:
    found = arguments(text)
    assert {name: found.get(name) for name in expected} == expected


def test_a_draft_models_settings_are_not_the_engines() -> None:
    given = (
        """vllm serve m --speculative-config '{"model": "d/x", "num_speculative_tokens": 3, "max_model_len": 2048}' --max-model-len 4096"""
    )
    found = arguments(given)
    assert (found["max_model_len"], found["num_speculative_tokens"]) == (4096, 3)


def test_a_resolved_length_stands_for_an_automatic_one() -> None:
    dump = "INFO 10-26 11:04:26 [core.py:2] Initializing a V1 LLM engine (v0.20.0) with config: model='x/y', max_seq_len=32768,"
    assert arguments("vllm serve x/y --max-model-len auto\n" + dump)["max_model_len"] == 32768


def test_a_flag_and_a_dump_that_differ_were_both_tried() -> None:
    dump = "INFO 10-26 11:04:26 [utils.py:233] non-default args: {'gpu_memory_utilization': 0.9}"
    found = evidence("vllm serve x/y --gpu-memory-utilization 0.95\n" + dump).deployment
    assert found.tried["gpu_memory_utilization"] == (0.95, 0.9)
    assert found.value("gpu_memory_utilization") is None


def test_values_listed_in_a_sentence_were_tried() -> None:
    assert evidence("Tried --gpu-memory-utilization 0.9, 0.92 and 0.95").deployment.tried["gpu_memory_utilization"] == (0.9, 0.92, 0.95)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("dropping `--gpu-memory-utilization` to\n`0.83` alone. It did not start.", 0.83),
        ("we lowered --gpu-memory-utilization to\n0.83 and it starts", 0.83),
        ("we looked at --gpu-memory-utilization to\nsee whether 0.83 helps", None),
    ],
)
def test_a_value_that_stands_in_the_next_line_of_a_sentence_is_its_flag_s(text: str, value: float | None) -> None:
    assert evidence(text).deployment.value("gpu_memory_utilization") == value


@pytest.mark.parametrize(
    "text",
    [
        "env:\n  - name: CUDA_VISIBLE_DEVICES\n    value: \"4,5\"",
        "env:\n  - {name: CUDA_VISIBLE_DEVICES, value: \"4,5\"}",
        "environment:\n  - CUDA_VISIBLE_DEVICES=4,5",
        "docker run -e CUDA_VISIBLE_DEVICES=4,5 vllm/vllm-openai",
        "HIP_VISIBLE_DEVICES=4,5 vllm serve m",
    ],
)  # fmt: skip
def test_a_variable_is_read_from_every_kind_of_file(text: str) -> None:
    assert evidence(text).deployment.environment["CUDA_VISIBLE_DEVICES"].value == "4,5"


def test_limits_of_a_container_are_the_hosts() -> None:
    host = evidence("resources:\n  limits:\n    memory: 64Gi\n    nvidia.com/gpu: 1\nshm_size: 2gb\n").deployment.host
    assert (host["limit_bytes"].value, host["limit_bytes"].line) == (64 * 2**30, 3)
    assert host["shm_bytes"].value == 2 * 10**9


def test_what_a_container_asks_for_is_no_limit() -> None:
    described = "    Requests:\n      cpu:     8\n      memory:  32Gi\n"
    assert "limit_bytes" not in evidence(described).deployment.host
    host = evidence(described + "    Limits:\n      cpu:     16\n      memory:  64Gi\n").deployment.host
    assert (host["limit_bytes"].value, host["limit_bytes"].line) == (64 * 2**30, 6)


@pytest.mark.parametrize(
    "line",
    [
        "If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.",
        "PYTORCH_ALLOC_CONF=expandable_segments:True to avoid fragmentation. See documentation for Memory Management",
        "If this problem persists, try setting VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=0",
        "Replace gpu_memory_utilization config with `--kv-cache-memory=57411846144` to fit into requested memory, or "
        "`--kv-cache-memory=65390811136` to fully utilize gpu memory.",
    ],
)
def test_what_an_engine_advises_was_not_set(line: str) -> None:
    found = evidence(line).deployment
    assert (found.arguments, found.tried, found.environment) == ({}, {}, {})


def test_the_fraction_in_force_stands_beside_the_ones_that_the_engine_compares_it_with() -> None:
    line = (
        "(EngineCore pid=12) INFO 04-01 10:00:00 [gpu_worker.py:300] CUDA graph memory profiling is enabled (default since v0.21.0). The "
        "current --gpu-memory-utilization=0.9000 is equivalent to --gpu-memory-utilization=0.8865 without CUDA graph memory profiling. To "
        "maintain the same effective KV cache size as before, increase --gpu-memory-utilization to 0.9135."
    )
    found = evidence(line).deployment
    assert (found.value("gpu_memory_utilization"), found.tried) == (0.9, {})


@pytest.mark.parametrize(
    ("given", "size"),
    [
        ("--kv-cache-memory-bytes 20G", 20 * 2**30),
        ("--kv-cache-memory-bytes 20g", 20 * 10**9),
        ("--kv-cache-memory 21474836480", 20 * 2**30),
        ("kv_cache_memory_bytes=int(20e9)", 20 * 10**9),
        ("kv_cache_memory_bytes=20 * 1024**3,", 20 * 2**30),
        ("kv_cache_memory_bytes=20 * (1 << 30),", 20 * 2**30),
        ("kv_cache_memory_bytes=20 << 30", 20 * 2**30),
        ('kvCacheMemoryBytes: "20Gi"', 20 * 2**30),
        ("--kv-cache-memory-bytes pinned to 19.5 GiB", 19.5 * 2**30),
        ("kv_cache_memory_bytes=20", None),  # of what?
    ],
)
def test_a_pool_in_bytes_is_read_however_it_is_written(given: str, size: float | None) -> None:
    assert evidence(given).deployment.number("kv_cache_memory_bytes") == size


@pytest.mark.parametrize(
    "text",
    [
        "GPU memory utilization: 98%",
        "TP4 failed first",  # a rank's name
        "it dies at 128k context",  # of one request
        "cutting max context from 134K to 44K tokens",
        "running seqs: 12",
        "Default MAX_TOTAL_BYTES to 2048",
    ],
)
def test_figures_of_something_else_are_no_arguments(text: str) -> None:
    assert arguments(text) == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("OOM with gmu 0.85, mml 32k, seqs 16", {"gpu_memory_utilization": 0.85, "max_model_len": 32768, "max_num_seqs": 16}),
        ("at ctx=40k and 0.9 util", {"gpu_memory_utilization": 0.9, "max_model_len": 40000}),
        ("max seqs: 64, max batched tokens 2048", {"max_num_seqs": 64, "max_num_batched_tokens": 2048}),
        ("8192 batched tokens on tp=4 pp=2", {"max_num_batched_tokens": 8192, "tensor_parallel_size": 4, "pipeline_parallel_size": 2}),
        ("gpu_memory_utilization → ~0.95", {"gpu_memory_utilization": 0.95}),
        ("gpu_memory_utilization at 90%", {"gpu_memory_utilization": 0.9}),
        ("gpu_memory_utilization设置为0.9，max_model_len调到8192", {"gpu_memory_utilization": 0.9, "max_model_len": 8192}),
        ("the maximum context length is 32768 tokens", {"max_model_len": 32768}),
        ("mem-fraction-static was 0.85", {"mem_fraction_static": 0.85}),
        ("max_model_len: 32,768, util 0.9", {"max_model_len": 32768, "gpu_memory_utilization": 0.9}),
        ("only TP3 dies, the others wait", {}),
        ("8 x H100, and TP3 ran out", {}),
        ("TP2 on 2x3090", {"tensor_parallel_size": 2}),
        ("on 8 x H100 NVL, TP8", {"tensor_parallel_size": 8}),
        ("four 3090s as TP2 PP2", {"tensor_parallel_size": 2, "pipeline_parallel_size": 2}),
    ],
)
def test_figures_may_be_given_in_short(text: str, expected: dict[str, Any]) -> None:
    assert arguments(text) == expected


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("vllm serve m --gpu-memory-utilization ${GPU_UTIL:-0.92}", 0.92),
        ('gpu_memory_utilization=float(os.environ.get("GMU", "0.85")),', 0.85),
        ('gpu_memory_utilization=os.getenv("GMU", 0.85),', 0.85),
        ("gpu_memory_utilization=float(0.9)", 0.9),
        ("vllm serve m --gpu-memory-utilization ${GPU_UTIL}", None),
    ],
)
def test_the_default_of_a_variable_is_its_value(text: str, value: float | None) -> None:
    assert arguments(text).get("gpu_memory_utilization") == value


def test_a_product_is_worked_out() -> None:
    assert arguments("llm = LLM(m, max_model_len=16 * 1024, max_num_seqs=8)") == {"max_model_len": 16384, "max_num_seqs": 8}


def test_the_cells_of_a_table_stand_behind_the_names_of_their_columns() -> None:
    found = evidence("| run | util | ctx | result |\n|:--|---|---|---|\n| 1 | 0.9 | 32k | OOM |\n| 2 | 0.95 | 32k | OOM |").deployment
    assert (found.value("max_model_len"), found.tried) == (32768, {"gpu_memory_utilization": (0.9, 0.95)})
    assert found.arguments["max_model_len"].line == 3


def test_what_the_engine_says_of_the_run_that_failed_stands_beside_what_was_tried() -> None:
    found = evidence(
        "max_model_len 2048, then 1024\nValueError: The model's max seq len (256) is larger than the maximum number of tokens that can be "
        "stored in KV cache (112)."
    ).deployment
    assert (found.value("max_model_len"), found.tried["max_model_len"]) == (256, (2048, 1024))


def test_what_somebody_proposes_was_not_set() -> None:
    assert arguments(
        "It runs out of memory at `--gpu-memory-utilization 0.90`. Reducing it (e.g., `--gpu-memory-utilization 0.85`) lets it start."
    ) == {"gpu_memory_utilization": 0.9}
    assert arguments("OOM at gpu_memory_utilization=0.7. Fix: **`--gpu-memory-utilization 0.30`**") == {"gpu_memory_utilization": 0.7}


@pytest.mark.parametrize(
    "line",
    [
        "INFO 12-20 20:25:49 model_runner.py:1413] Capturing cudagraphs for decoding. This may lead to unexpected consequences if the model is not "
        "static. To run the model in eager mode, set 'enforce_eager=True' or use '--enforce-eager' in the CLI.",
        "4. disable CUDA graph by --disable-cuda-graph. (Not recommended. Huge performance loss)",
        "WARNING 12-20 20:25:49 custom_all_reduce.py:80] Custom allreduce is disabled because your platform lacks GPU P2P capability. To silence "
        "this warning, specify disable_custom_all_reduce=True explicitly.",
        "INFO 12-20 20:25:49 config.py:1] Chunked prefill is on. To disable use --no-enable-chunked-prefill",
    ],
)
def test_a_switch_that_an_engine_names_was_not_thrown(line: str) -> None:
    assert evidence(line).deployment.arguments == {}


def test_a_person_who_says_please_still_says_what_is_set() -> None:
    assert arguments("please help: --gpu-memory-utilization 0.9 goes OOM") == {"gpu_memory_utilization": 0.9}


@pytest.mark.parametrize(
    ("said", "size"),
    [
        ("memory: 68719476736 # 64Gi in bytes", 64 * 2**30),
        ("memory: 64Gi", 64 * 2**30),
        ("memory: 65536Mi", 64 * 2**30),
        ("memory: 64G", 64 * 10**9),
        ("memory: 32", None),
    ],
)
def test_a_containers_limit_is_read_as_kubernetes_writes_it(said: str, size: int | None) -> None:
    limit = evidence(f"apiVersion: v1\nkind: Pod\n    resources:\n      limits:\n        {said}\n").deployment.host.get("limit_bytes")
    assert (None if limit is None else limit.value) == size


def test_compose_counts_a_limit_in_powers_of_two() -> None:
    assert evidence("services:\n  vllm:\n    mem_limit: 64g\n").deployment.host["limit_bytes"].value == 64 * 2**30


@pytest.mark.parametrize(
    ("said", "size"), [("Memory size: 768GB, 4 cards", 768 * 10**9), ("GPU memory size: 80GB", None), ("KV cache memory size: 20GB", None)]
)
def test_a_memory_size_is_the_machines_where_nothing_says_whose_else(said: str, size: int | None) -> None:
    memory = evidence(f"{said}\n").deployment.host.get("memory_bytes")
    assert (None if memory is None else memory.value) == size
