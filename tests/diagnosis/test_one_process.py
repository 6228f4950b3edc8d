"""Rank 0 where nothing signs the lines and the evidence speaks of one process, with why; never where more may be meant."""

import pytest

from tests.diagnosis.material import frame, judged, worker

TERMS = (
    "the current vLLM instance can use total_gpu_memory (8.00GiB) x gpu_memory_utilization (0.90) = 7.20GiB\n"
    "model weights take 6.10GiB; non_torch_memory takes 0.05GiB; PyTorch activation peak memory takes 1.40GiB; "
    "the rest of the memory reserved for KV Cache is -0.35GiB."
)
TRIED = "torch.OutOfMemoryError: Tried to allocate 1.20 GiB while loading. 0.40 GiB was free."
NO_BLOCKS = "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine."
COUNTED = "the executor that counted the blocks in line 1 runs one worker"
LOADING = frame("model_executor/model_loader/loader.py", "load_model") + "\n" + TRIED


@pytest.mark.parametrize(
    "text",
    [
        f"vllm serve a/b --tensor-parallel-size 2\n{LOADING}",
        f"vllm serve a/b $MORE\n{LOADING}",
        f"docker model run a/b --tensor-parallel-size 2\nvllm: 0.19.0\n{LOADING}",
        f"vllm serve a/b --nnodes 2\n{LOADING}",
        f"vllm serve a/b\nresources:\n  limits:\n    nvidia.com/gpu: 4\n{LOADING}",
        f"docker run --gpus '\"device=0,1\"' vllm/vllm-openai:latest --model a/b\n{LOADING}",
        f"CUDA_VISIBLE_DEVICES=0,1 vllm serve a/b\n{LOADING}",
        f"torchrun --nproc-per-node 2 run.py\nllm = LLM(model='a/b')\n{LOADING}",
        f"llm = LLM(model='a/b', tensor_parallel_size=torch.cuda.device_count())\n{LOADING}",
        f"RTX 3090 and RTX 4090, vLLM 0.19\n{LOADING}",
        f"TP4, vllm serve a/b\n{LOADING}",
        f"vllm serve a/b on one of our A100\n{LOADING}",
        f"DGX H100: vllm serve a/b\n{LOADING}",
        f"llm = LLM(model='a/b', **options)\n{LOADING}",
        f"2x RTX 4090, vLLM 0.19\n{LOADING}",
        f"Both GPUs are RTX 4090, vLLM 0.19\n{LOADING}",
        f"RTX 4090, vLLM 0.19, TP=2 dies and TP=1 too\n{LOADING}",
        f"两张3090, vLLM 0.19\n{LOADING}",
        f"vllm serve a/b\n{worker('VllmWorkerProcess', TERMS)}",
        "RTX 4090, vLLM 0.19. I get a CUDA out of memory error while it loads the model.",
        f"WSL2, python -m sglang.launch_server --model-path a/b\n{TRIED}",
        "vllm serve a/b --max-model-len 65536\nValueError: To serve at least one request with the models's max seq len (65536), "
        "(8.0 GiB KV cache is needed, which is larger than the available KV cache memory (6.94 GiB).",
        f"vllm serve a/b\nAvailable KV cache memory: -1.20 GiB\n{NO_BLOCKS}",
        "INFO 12-01 10:00:00 distributed_gpu_executor.py:57] # GPU blocks: 40, # CPU blocks: 819\nit crashed, max_model_len=8192",
        "WSL2 with a 12 GB card: vLLM says CUDA out of memory, no idea where.",
    ],
)
def test_where_more_workers_may_be_meant_or_nothing_says_that_there_is_one_no_rank_is_given(text: str) -> None:
    assert (judged(text)["rank"] or {"number": None})["number"] is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (TERMS, "V0 printed line 2 without a worker's signature"),
        ("INFO 12-01 10:00:00 gpu_executor.py:121] # GPU blocks: 40, # CPU blocks: 819\nit crashed, max_model_len=8192", COUNTED),
        (f"llm = LLM(model='a/b', quantization='awq')\n{NO_BLOCKS}", "the start in line 1 asks for no second card"),
        (f"vllm serve a/b --max-num-seqs 4\n{LOADING}", "the start in line 1 asks for no second card"),
        (f"RTX 5090M 24GB, vLLM 0.19\n{LOADING}", "one RTX5090Laptop-24GB is named, and nothing asks for a second card"),
        (f"vLLM 0.19 on WSL2\n{LOADING}", "line 1 speaks of one card"),
        (f"a single A100, vLLM 0.19\n{LOADING}", "line 1 speaks of one card"),
        (f"1x RTX 3090, vLLM 0.19\n{LOADING}", "line 1 speaks of one card"),
        (f"docker model run a/b hello\nvllm: 0.19.0\n{LOADING}", "what starts it in line 1 runs one for each model"),
        ("SGLang goes OOM while loading the weights\nwith tp=1", "line 2 asks for one rank"),
        (
            "Initializing an LLM engine with config: model='/m', max_seq_len=8192, tensor_parallel_size=1\n# GPU blocks: 400\nit crashed",
            "V0 counted its blocks with the tensor_parallel_size=1 of line 1",
        ),
    ],
)
def test_one_process_is_rank_0_and_why_is_said(text: str, why: str) -> None:
    document = judged(text)
    assert (document["rank"]["number"], document["rank"]["basis"]) == (0, "only_worker")
    assert f"Rank 0, for there is one process: {why}." in document["notes"]
