"""Other engines and other evidence: recognised, and read under the contract's names."""

import pytest

from tests.reading.material import evidence, fact

GIB = 2**30
SGLANG = """[2025-07-02 07:41:58 TP0] Load weight begin. avail mem=78.60 GB
[2025-07-02 07:42:58 TP0] Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=63.45 GB, mem usage=15.15 GB.
[2025-07-02 07:42:59 TP0] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 435488, K size: 26.58 GB, V size: 26.58 GB
[2025-07-02 07:42:59 TP0] Memory pool end. avail mem=9.83 GB
[2025-07-02 07:43:09 TP0] Capture cuda graph end. Time elapsed: 8.27 s. mem usage=1.21 GB. avail mem=8.62 GB.
[2025-07-02 07:43:09 TP0] max_total_num_tokens=435488, chunked_prefill_size=8192, max_running_requests=4096, context_len=131072, available_gpu_mem=8.62 GB
"""


def test_a_log_without_an_engines_mark_belongs_to_none() -> None:
    assert evidence("torch.OutOfMemoryError: CUDA out of memory.").engine == "unknown"


@pytest.mark.parametrize(
    ("text", "engine"),
    [
        (SGLANG, "sglang"),
        ("[07/08/2025-19:47:15] [TRT-LLM] [RANK 1] [E] Executor creation failed due to insufficient GPU memory.", "tensorrt-llm"),
        ("2023-07-07T19:40:07.805488Z ERROR text_generation_launcher: Method Warmup encountered an error.", "tgi"),
        ("[TM][ERROR] CUDA runtime error: out of memory /lmdeploy/src/turbomind/utils/allocator.h:246", "lmdeploy"),
        ("load_tensors:        CUDA0 model buffer size =  4095.05 MiB\nllama_kv_cache_unified: CUDA0 KV buffer size = 512.00 MiB", "llama.cpp"),
        ('time=2025-01-15T10:00:00Z level=INFO source=memory.go:356 msg="offload to cuda" layers.requested=-1', "llama.cpp"),
        ("(EngineCore_DP0 pid=7) INFO 11-18 10:00:00 [gpu_worker.py:298] Available KV cache memory: 35.68 GiB", "vllm"),
    ],
)  # fmt: skip
def test_each_engine_is_recognised(text: str, engine: str) -> None:
    assert evidence(text).engine == engine


def test_sglangs_figures_have_the_contracts_names() -> None:
    found = evidence(SGLANG)
    assert fact(found, "sglang.load-ends").fields["weights_bytes"] == round(15.15 * GIB)
    pool = fact(found, "sglang.pool").fields
    assert (pool["kv_tokens"], pool["kv_cache_bytes"]) == (435488, 2 * round(26.58 * GIB))
    assert fact(found, "sglang.capture-ends").fields["graph_bytes"] == round(1.21 * GIB)
    assert fact(found, "sglang.totals").fields["max_model_len"] == 131072


def test_kubectl_describe_says_the_limit_and_the_kill() -> None:
    text = """    Last State:     Terminated
      Reason:       OOMKilled
      Exit Code:    137
    Limits:
      cpu:             16
      memory:          96Gi
      nvidia.com/gpu:  1
"""
    found = evidence(text)
    assert found.deployment.host["limit_bytes"].value == 96 * GIB
    assert found.deployment.launcher is not None
    assert found.deployment.launcher.value == "kubernetes"
    assert fact(found, "host.pod-oomkilled").line == 2


def test_dmesg_says_which_process_and_how_large() -> None:
    text = "[1234.5] Out of memory: Killed process 4711 (VLLM::Worker_TP) total-vm:231892748kB, anon-rss:1117884kB, file-rss:0kB"
    found = evidence(text)
    assert found.deployment.host["rss_bytes"].value == 1117884 * 1024


@pytest.mark.parametrize(
    ("line", "identity"),
    [
        ("[1]+  Killed                  vllm serve x/y", "host.killed"),
        ("zsh: killed     vllm serve x/y", "host.killed"),
        ("A process of this unit has been killed by the OOM killer.", "host.kernel-oom"),
        ("The node was low on resource: memory. Threshold quantity: 100Mi", "host.pod-oomkilled"),
        ("slurmstepd: error: Exceeded job memory limit at some point.", "host.slurm"),
        ("DefaultCPUAllocator: can't allocate memory: you tried to allocate 1073741824 bytes. Error code 12", "host.mmap"),
        ("OSError: [Errno 98] Address already in use", "not-oom.port"),
        ("[12345.678] NVRM: Xid (PCI:0000:65:00): 79, pid=1234, GPU has fallen off the bus.", "not-oom.hardware"),
        ('vllm:num_preemptions_total{engine="0",model_name="x/y"} 132.0', "not-oom.preemptions-counted"),
    ],
)  # fmt: skip
def test_what_the_machine_says_is_read(line: str, identity: str) -> None:
    assert fact(evidence(line), identity).line == 1


def test_counters_that_stand_at_zero_say_nothing() -> None:
    assert not [f for f in evidence('vllm:num_preemptions_total{engine="0"} 0.0').facts if "not-oom" in f.kinds]


def test_several_sources_are_joined_and_keep_their_own_lines() -> None:
    command = "vllm serve meta-llama/Llama-3.1-70B-Instruct --tensor-parallel-size 4 --max-model-len 32768"
    smi = "|   0  NVIDIA H100 80GB HBM3          On  |\n|   1  NVIDIA H100 80GB HBM3          On  |"
    log = "(Worker_TP2 pid=5) ERROR 11-18 10:00:01 [x.py:1] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    found = evidence(command, smi, log)
    assert (fact(found, "torch.oom").source, fact(found, "torch.oom").line) == (3, 1)
    deployment = found.deployment
    assert deployment.gpu is not None
    assert deployment.gpu.value == "H100-80GB"
    assert deployment.gpu_count is not None
    assert deployment.gpu_count.value == 2
    assert deployment.model is not None
    assert deployment.model.value == "meta-llama/Llama-3.1-70B-Instruct"
    assert [rank.number for rank in found.ranks.values()] == [2]


def test_what_an_engine_logs_is_no_prose() -> None:
    assert not [
        f
        for f in evidence("(EngineCore_DP0 pid=7) INFO 11-18 10:00:00 [x.py:1] if it OOMs during load, lower it").facts
        if "prose" in f.kinds
    ]


OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total capacity of {} GiB of which 0.50 GiB is free."


@pytest.mark.parametrize(
    ("words", "total", "gpu"),
    [
        ("on my workstation", "7.79", "RTX4060-8GB"),
        ("on an RTX 3070", "7.79", None),  # another card, which is not listed
        ('nvidia.com/mig-2g.20gb: "1"', "19.55", None),  # a part of one of several cards
        ("on a 4090", "23.5", "RTX4090-24GB"),
        ("用4张A800部署", "79.3", "A800-80GB"),
    ],
)
def test_a_card_is_taken_by_its_size_where_none_is_named(words: str, total: str, gpu: str | None) -> None:
    named = evidence(f"{words}\n{OOM.format(total)}").deployment.gpu
    assert (named and named.value) == gpu


@pytest.mark.parametrize(
    ("words", "count"),
    [
        ("two nodes, and 8x H100 in one of them", 8),
        ("2 nodes g6e.24xlarge (4x L40S each)", 8),
        ("2 pods x 8 H200", 16),
        ("3 nodes (8x H100 per node)", 24),
    ],
)
def test_cards_of_each_node_are_counted_for_all_nodes(words: str, count: int) -> None:
    found = evidence(words).deployment.gpu_count
    assert (found and found.value) == count


@pytest.mark.parametrize(
    ("words", "model"),
    [
        ("that is all of pod = llama-70b-0", None),
        ("that is all of llama-70b", "llama-70b"),
        ("a hybrid model: 24 of 32 layers are linear", None),
        ("Modell ist Qwen2.5-VL-32B. Was tun?", "Qwen2.5-VL-32B"),
        ("部署DeepSeek-R1-Distill-Llama-70B,加载", "DeepSeek-R1-Distill-Llama-70B"),
    ],
)
def test_a_model_is_what_is_called_so_and_not_a_pod(words: str, model: str | None) -> None:
    found = evidence(f"vLLM: {words}").deployment.model
    assert (found and found.value) == model


@pytest.mark.parametrize(
    ("text", "figures"),
    [
        ("my laptop has 2 GB RAM left", {}),
        ("free -g says 503 total", {"memory_bytes": 503 * 2**30}),
        ("16 GB Mac mini", {"memory_bytes": 16 * 10**9}),
        ("8 GB MacBook Air, 1 GB RAM free", {"memory_bytes": 8 * 10**9}),
        ('$ docker inspect engine\n  "Memory": 137438953472,', {"limit_bytes": 2**37}),
        (
            "Memory on the node (IP: 10.0.12.7, ID: 4e) where the task (pid=5512, memory used=8.00GB) was running was 119.07GB / 125.00GB (0.951)",
            {"memory_bytes": 125 * 2**30, "rss_bytes": 8 * 2**30},
        ),
    ],
)
def test_what_a_machine_has_is_not_what_is_left_of_it(text: str, figures: dict[str, int]) -> None:
    assert {name: known.value for name, known in evidence(text).deployment.host.items()} == figures


@pytest.mark.parametrize(
    ("text", "launcher"),
    [
        ("see https://docs.nvidia.com/cuda/cuda-runtime-api", None),
        ('$ docker inspect engine\n"OOMKilled":true,"ExitCode":137', "docker"),
        ("nvidia.com/gpu: 1", "kubernetes"),
    ],
)
def test_a_word_of_a_launcher_is_not_an_address_and_not_another_ones(text: str, launcher: str | None) -> None:
    found = evidence(text).deployment.launcher
    assert (found and found.value) == launcher


def test_a_frame_in_a_table_whose_quotes_are_doubled_is_one() -> None:
    (frame,) = evidence('"14:14:28","[rank0]:   File ""/app/vllm/worker/model_runner.py"", line 1516, in capture_model"').frames
    assert (frame.path, frame.function) == ("/app/vllm/worker/model_runner.py", "capture_model")


def test_what_an_evaluation_runs_the_model_with_is_no_model() -> None:
    found = evidence("lm_eval --model vllm --model_args pretrained=Qwen/Qwen1.5-4B,dtype=float --tasks mmlu").deployment.model
    assert found is not None
    assert found.value == "Qwen/Qwen1.5-4B"
