"""A value is as large as the figures in the paste say; a change that cannot give what is missing, or that changes nothing, is not offered."""

from typing import Any

import pytest

from bot.usecases.wording import in_words
from tests.diagnosis.material import frame, judged, oom, worker


def offered(document: dict[str, Any]) -> dict[str, str | None]:
    """The value of each change, by its flag or name, the first first."""
    changes = [document["recommendation"], *document["alternatives"]]
    return {change["flag"] or change["id"]: change["value"] for change in changes}


LLAMA_CPP = (
    "llama_model_load_from_file_impl: using device CUDA0 (NVIDIA GeForce RTX 4090) (0000:01:00.0) - {free} MiB free\n"
    "load_tensors: offloaded 65/65 layers to GPU\n"
    "load_tensors:        CUDA0 model buffer size = 18508.35 MiB\n"
    "load_tensors:        CUDA1 model buffer size =  1024.00 MiB\n"
    "llama_context: n_ctx         = 40960\n"
    "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 10240.00 MiB on device 0: cudaMalloc failed: out of memory\n"
    "llama_init_from_model: failed to initialize the context: failed to allocate buffer for kv cache\n"
    "srv    load_model: failed to load model, '/models/Qwen3-32B-Q4_K_M.gguf'\n"
)


@pytest.mark.parametrize(
    ("free", "context"),
    [
        ("19000", None),  # nothing is left beside the weights and a compute buffer
        ("19300", "1024"),
        ("23287", "16384"),  # 4,779 MiB beside the weights: 17,068 tokens of 0.25 MiB, and 512 MiB for the compute buffer
    ],
)
def test_a_context_of_llama_cpp_is_what_fits_beside_the_weights(free: str, context: str | None) -> None:
    document = judged(LLAMA_CPP.format(free=free))
    assert offered(document).get("-c") == context
    assert "--cache-type-k" not in offered(document)  # keys of eight bits take a quarter off, and more than half has to go
    if context:
        assert document["recommendation"]["command"] == f"llama-server -m /models/Qwen3-32B-Q4_K_M.gguf -c {context}"
        assert "10.00 GiB for 40960 tokens" in document["recommendation"]["because"]


def test_what_a_card_had_free_and_holds_is_that_of_the_card_that_failed() -> None:
    (budget,) = judged(LLAMA_CPP.format(free="23287"))["budgets"]
    assert (budget["free_at_start_bytes"], budget["lines"]["free_at_start_bytes"]) == (23287 * 2**20, 1)
    assert budget["lines"]["weights_bytes"] == 3


def test_a_cache_of_eight_bit_keys_is_offered_where_it_fits() -> None:
    assert offered(judged(LLAMA_CPP.format(free="27000")))["--cache-type-k"] == "q8_0"


LOGPROBS = (
    "vllm serve org/m1 --max-num-batched-tokens 16384{more}\n"
    "(EngineCore_DP0 pid=77) INFO 04-11 12:00:40 [gpu_model_runner.py:3562] Model loading took 51.4053 GiB memory and 31.0 seconds\n"
    "(APIServer pid=1) INFO:     Application startup complete.\n"
)


@pytest.mark.parametrize(
    ("tried", "free", "more", "tokens"),
    [
        ("1.00 GiB", "0.99 GiB", "", "4096"),  # twice 1.00 GiB for 16,384 tokens
        ("15.98 GiB", "2.01 GiB", "", "1024"),
        ("15.98 GiB", "0.10 GiB", " --max-num-seqs 512", "512"),  # fewer than the requests at once are refused
    ],
)
def test_log_probabilities_are_cut_to_what_was_free(tried: str, free: str, more: str, tokens: str) -> None:
    failed = worker("EngineCore_DP0", frame("v1/worker/gpu_model_runner.py", "_get_prompt_logprobs_dict"), oom(tried, free), pid=77)
    changes = offered(judged(LOGPROBS.format(more=more) + failed))
    assert changes["--max-num-batched-tokens"] == tokens
    assert "--max-num-seqs" not in changes  # they are as many as a prompt's tokens, whatever runs beside it


PREFILL = '  File "/opt/venv/lib/python3.12/site-packages/vllm/v1/worker/gpu_worker.py", line 100, in determine_available_memory'


@pytest.mark.parametrize(("tried", "tokens"), [("2.00 GiB", "8192"), ("40.00 GiB", "4096")])
def test_a_profiled_batch_is_cut_by_more_than_half_where_half_does_not_fit(tried: str, tokens: str) -> None:
    loaded = "(Worker_TP0 pid=7501) INFO 04-11 12:00:40 [gpu_model_runner.py:3562] Model loading took 50.00 GiB memory and 31.0 seconds\n"
    failed = worker("Worker_TP0", PREFILL, oom(tried, "1.00 GiB", allocated="70.00 GiB"))
    assert offered(judged(f"vllm serve org/m1 --max-num-batched-tokens 16384\n{loaded}{failed}"))["--max-num-batched-tokens"] == tokens


def pool(weights: str, pool: str, error: str, start: str = "") -> dict[str, Any]:
    return judged(
        f"{start}INFO 09-11 11:02:01 [gpu_model_runner.py:2007] Model loading took {weights} GiB and 40.1 seconds\n"
        f"INFO 09-11 11:02:44 [gpu_worker.py:276] Available KV cache memory: {pool} GiB\nERROR 09-11 11:02:44 [core.py:700] ValueError: {error}\n"
    )


NO_BLOCKS = "No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine."
V0101 = "INFO 09-11 11:01:01 [core.py:75] Initializing a V1 LLM engine (v0.10.1.1) with config: model='org/m1', max_seq_len=131072\n"


@pytest.mark.parametrize(
    ("weights", "left", "first"),
    [
        ("44.76", "-0.90", "--gpu-memory-utilization"),
        ("44.76", "-2.60", "--max-num-batched-tokens"),  # more than 0.05 of some 48 GiB
        ("44.76", "-4.11", "use-prequantized-checkpoint"),  # more than half of what profiling takes with 2,048 tokens
    ],
)
def test_a_pool_below_zero_is_answered_by_what_can_give_as_much(weights: str, left: str, first: str) -> None:
    document = pool(weights, left, NO_BLOCKS, V0101)
    assert next(iter(offered(document))) == first
    # of a card that weights and pool say is small, 2,048 tokens are the default already
    assert offered(document).get("--max-num-batched-tokens") in (None, "1024")
    told = [one["because"] for one in document["avoid"] if (one["flag"], one["direction"]) == ("--gpu-memory-utilization", "raise")]
    assert told == (
        []
        if left == "-0.90"
        else [f"vLLM's message asks for it, but {left[1:]} GiB are missing, and even 0.95 of this card does not add as much."]
    )


def test_a_pool_that_is_further_below_zero_than_the_weights_are_large_says_nothing_of_the_card() -> None:
    assert offered(pool("8.49", "-19.92", NO_BLOCKS, V0101))["--gpu-memory-utilization"] == "0.95"


@pytest.mark.parametrize(("kv", "fewer"), [("7.42", False), ("15.20", True)])
def test_fewer_profiled_tokens_are_offered_where_they_can_give_what_a_request_lacks(kv: str, fewer: bool) -> None:
    error = (
        f"To serve at least one request with the models's max seq len (131072), (16.00 GiB KV cache is needed, which is larger than the available "
        f"KV cache memory ({kv} GiB). Based on the available memory, the estimated maximum model length is 60768."
    )
    assert ("--max-num-batched-tokens" in offered(pool("30.59", kv, error, V0101))) is fewer


TGI = (
    '2024-09-12T10:11:01.112233Z  INFO text_generation_launcher: Args {{ model_id: "org/m1", {args}, num_shard: Some(1) }}\n'
    "2024-09-12T10:11:40.112233Z ERROR text_generation_launcher: Method Warmup encountered an error.\n"
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 8.75 GiB. GPU 0 has a total capacity of 21.99 GiB of which 4.33 GiB is free. Process 99 has 17.66 GiB memory in use. \n"
    "RuntimeError: Not enough memory to handle {tokens} prefill tokens. You need to decrease `--max-batch-prefill-tokens`\n"
)


@pytest.mark.parametrize(
    ("args", "tokens", "flag", "command"),
    [
        (  # the batch follows from the longest input, and TGI refuses one below it
            "max_input_tokens: Some(32000), max_total_tokens: Some(32768)", "32050", "--max-input-length",
            "--max-total-tokens 32768 --max-input-length 15360",
        ),
        (  # both are given: they go down together
            "max_input_tokens: Some(16000), max_total_tokens: Some(32768), max_batch_prefill_tokens: Some(32000)", "32000",
            "--max-batch-prefill-tokens", "--max-total-tokens 32768 --max-input-length 15616 --max-batch-prefill-tokens 15616",
        ),
        (
            "max_input_tokens: Some(4000), max_total_tokens: Some(4096), max_batch_prefill_tokens: Some(32000)", "32000",
            "--max-batch-prefill-tokens", "--max-total-tokens 4096 --max-input-length 4000 --max-batch-prefill-tokens 15616",
        ),
    ],
)  # fmt: skip
def test_tgi_s_warm_up_is_cut_to_what_fits_and_its_launcher_takes_the_command(args: str, tokens: str, flag: str, command: str) -> None:
    document = judged(TGI.format(args=args, tokens=tokens))
    given = document["recommendation"]["command"].removeprefix("text-generation-launcher --model-id org/m1 ")
    options = dict(zip(words := given.split(), words[1:], strict=False))
    assert next(iter(offered(document))) == flag
    assert {name: options[name] for name in command.split()[::2]} == dict(zip(command.split()[::2], command.split()[1::2], strict=True))
    assert int(options["--max-input-length"]) < int(options["--max-total-tokens"])
    assert "--max-total-tokens" not in offered(document)  # 2,048 of them are below the longest input


def test_what_the_kernel_says_that_a_container_used_is_its_limit_whatever_the_killed_process_held() -> None:
    document = judged(
        "[914223.118842] python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=984\n"
        "[914223.118921] memory: usage 67108864kB, limit 67108864kB, failcnt 19231\n"
        "[914223.119050] Memory cgroup out of memory: Killed process 1882114 (VLLM::Worker_TP) total-vm:121231232kB, anon-rss:14121232kB, file-rss:212312kB\n"
    )
    assert (document["recommendation"]["id"], document["recommendation"]["value"]) == ("raise-host-memory", "96 GiB")


def test_a_kernel_s_kill_is_not_disproved_by_a_kernel_that_shows_none() -> None:
    kill = "[71023.118301] Out of memory: Killed process 4711 (VLLM::Worker_TP) total-vm:231892748kB, anon-rss:1117884kB, file-rss:0kB\n"
    assert "kernel log shows no" not in judged(kill)["recommendation"]["disproved_by"]
    assert "kernel log shows no" in judged("My vllm dies, exit code 137, no error.\n")["recommendation"]["disproved_by"]


SGLANG = "[2025-11-03 03:14:0{second} TP3] {text}\n"
LOGITS = '  File "/sgl-workspace/sglang/python/sglang/srt/layers/logits_processor.py", line 512, in _get_logits'
DECODES = SGLANG.format(
    second=1, text="Decode batch. #running-req: 120, #token: 480122, token usage: 0.97, cuda graph: True, #queue-req: 44"
)


@pytest.mark.parametrize(("tried", "fraction"), [("2.32 GiB", "0.86"), ("20.10 GiB", "0.74")])
def test_sglang_s_fraction_goes_down_by_what_was_short_also_where_it_is_not_said(tried: str, fraction: str) -> None:
    failed = (
        f"Scheduler hit an exception: Traceback (most recent call last):\n{LOGITS}\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate "
        f"{tried}. GPU 3 has a total capacity of 139.81 GiB of which 1.90 GiB is free. Process 3 has 137.90 GiB memory in use."
    )
    document = judged(DECODES + SGLANG.format(second=9, text=failed))
    change = document["recommendation"]
    assert (change["flag"], change["value"], change["frees_bytes"]) == ("--mem-fraction-static", fraction, None)
    assert f"{fraction} is counted from what SGLang takes by itself, about 0.88" in " ".join(document["notes"])


def test_sglang_s_least_fraction_follows_from_what_a_load_took_and_left() -> None:
    document = judged(
        "[2025-12-09 10:00:00] server_args=ServerArgs(model_path='org/m1', mem_fraction_static=0.8, tp_size=2, context_length=131072)\n"
        "[2025-12-09 10:01:00 TP0] Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=12.41 GB, mem usage=65.75 GB.\n"
        "[2025-12-09 10:01:01 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"
        "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.\n"
    )
    assert offered(document)["--mem-fraction-static"] == "0.87"  # 1 - 12.41 / 78.16 is 0.842
    assert "of 78.16 GiB free before the weights 12.41 GiB were left" in document["recommendation"]["because"]
    assert "--kv-cache-dtype" not in offered(document)  # a pool below zero holds no smaller tokens either


def test_a_fraction_that_is_said_in_short_is_where_the_change_begins() -> None:
    document = judged("sglang deepseek v3.2 auf 8x H200 bleibt beim cuda graph capture mit OOM stehen, mem-fraction 0.9\n")
    assert offered(document)["--mem-fraction-static"] == "0.85"
    assert not any("fraction in force" in note for note in document["notes"])


@pytest.mark.parametrize(("given", "slots"), [("", None), (" --max-loras 8", "1")])
def test_the_default_is_not_what_something_is_lowered_to(given: str, slots: str | None) -> None:
    failed = worker("VllmWorker rank=1", frame("lora/models.py", "_create_lora_modules"), oom("54.00 MiB", "24.00 MiB", total="39.39 GiB"))
    assert offered(judged(f"vllm serve org/m1 --enable-lora{given}\n{failed}")).get("--max-loras") == slots


RAY = (
    "(RayWorkerWrapper pid=9912, ip=10.0.0.6) ERROR 02-11 07:20:11 worker_base.py:574] Error executing method 'load_model'. This might cause deadlock in distributed execution.\n"
    "(RayWorkerWrapper pid=9912, ip=10.0.0.6) ERROR 02-11 07:20:11 worker_base.py:574] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 896.00 MiB. GPU 0 has a "
    "total capacity of 79.11 GiB of which 587.19 MiB is free. Process 818 has 78.53 GiB memory in use. Of the allocated memory 77.80 GiB is allocated by PyTorch.\n"
)


@pytest.mark.parametrize(("start", "size", "asked"), [("", None, True), ("vllm serve /models/m --tensor-parallel-size 8\n", "16", False)])
def test_a_size_is_not_named_where_several_machines_run_nobody_knows_how_many_ranks(start: str, size: str | None, asked: bool) -> None:
    document = judged(start + RAY)
    assert offered(document)["--tensor-parallel-size"] == size
    assert ("engine_config" in [question["id"] for question in document["questions"]]) is asked


def test_the_fraction_that_tensorrt_llm_prints_is_the_one_in_force() -> None:
    document = judged(
        "[TensorRT-LLM] TensorRT-LLM version: 1.1.0\n"
        "[10/11/2025-09:11:12] [TRT-LLM] [I] Peak memory during memory usage profiling (torch + non-torch): 61.21 GiB, available KV cache memory when calculating "
        "max tokens: 13.21 GiB, fraction is set 0.9, kv size is 163840. device total memory 79.11 GiB, , tmp kv_mem 1.10 GiB\n"
        "[10/11/2025-09:11:20] [TRT-LLM] [RANK 1] [E] Failed to initialize executor on rank 1: CUDA runtime error in ::cudaMallocAsync(ptr, n, "
        "mMemPool->getPool(), mCudaStream->get()): out of memory (/src/tensorrt_llm/cpp/include/tensorrt_llm/runtime/tllmBuffers.h:1150)\n"
    )
    assert in_words(document["recommendation"], document["deployment"]) == "lower free_gpu_memory_fraction from 0.9 to 0.85"
