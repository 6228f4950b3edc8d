"""For rules about phases that no whole incident needs: the shortest paste that does, and the phase that it is answered with."""

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.19 GiB of which 1.02 GiB is free."
CPP = "CUDA error: out of memory"
POOLS = (
    "Of the allocated memory 70.00 GiB is allocated by PyTorch, with 62.00 MiB allocated in private pools (e.g., CUDA Graphs), and 20.00 MiB is "
    "reserved by PyTorch but unallocated."
)
SAMPLER = OOM.replace("2.00 GiB", "148.50 MiB")
"""256 rows of 152,064 logits of four bytes."""
BAR = "Capturing CUDA graphs (decode, FULL):   9%|▉| 3/35 [00:00<00:09,  3.30it/s]"


def frame(path: str, function: str, echo: str = "") -> str:
    """One frame of a traceback, with the source below it."""
    return f'  File "/opt/venv/lib/python3.12/site-packages/{path}", line 88, in {function}' + (f"\n    {echo}" if echo else "")


def signed(file: str, message: str) -> str:
    """A line as the engine core signs it."""
    return f"(EngineCore pid=88) INFO 11-18 10:00:00 [{file}:268] {message}"


def method(name: str) -> str:
    """What a worker of V0 says of the call that failed."""
    return f"Exception in worker VllmWorkerProcess while processing method {name}."


TUNING = "2026-08-26 11:09:23,105 - INFO - autotuner.py:829 - flashinfer.jit: [Autotuner]: Autotuning process starts ..."

NEEDED = {
    "progress.autotuning": (f"{TUNING}\n{OOM}\n{BAR}", "warmup"),
    "startup-check.device-group": (
        f"{frame('vllm/distributed/device_communicators/custom_all_reduce.py', '__init__')}\n{OOM}",
        "startup_check",
    ),
    "method.init-device": (f"{method('init_device')}\n{OOM}", "startup_check"),
    "method.execute": (f"{method('execute_model')}\n{OOM}", "serving"),
    "method.wake-up": (f"{method('wake_up')}\n{OOM}", "wake_up"),
    "method.warm-up": (f"{method('compile_or_warm_up_model')}\n{OOM}", "graph_capture"),
    "not-oom.probe-ended": (
        "2m  Normal  Killing  pod/chat-0  Container engine failed startup probe, will be restarted\n    Last State:  Terminated\n      Exit Code:  143",
        "not_oom",
    ),
    "method.initialize-cache": (f"{method('initialize_cache')}\n{OOM}", "kv_cache_allocation"),
    "method.initialize-cache-capture": (
        f"{method('initialize_cache')}\n{OOM} {POOLS}",
        "graph_capture",
    ),
    "load.worker-failed-to-start": (f"{OOM}\nWorkerProc failed to start.", "weight_loading"),
    "lmdeploy.runtime": ("RuntimeError: No enough gpu memory for runtime.", "kv_cache_sizing"),
    "allocation.cumem": (
        "Available KV cache memory: 13.70 GiB\nGPU KV cache size: 107,920 tokens\nCUDA Error: out of memory at /workspace/csrc/cumem_allocator.cpp:163",
        "kv_cache_allocation",
    ),
    "not-oom.lock-limit": (
        "warning: failed to mlock 512327680-byte buffer (after previously locking 0 bytes): Cannot allocate memory\n"
        "Try increasing RLIMIT_MEMLOCK ('ulimit -l' as root).",
        "not_oom",
    ),
    "not-oom.lock-limit-up": (
        "warning: failed to mlock 512327680-byte buffer (after previously locking 0 bytes): Cannot allocate memory\n"
        "main: server is listening on http://0.0.0.0:8080 - starting the main loop\ndo I have too little RAM?",
        "not_oom",
    ),
    "not-oom.slow": ("vLLM 0.9: GPU utilization stays at 100% although nobody asks anything", "not_oom"),
    "not-oom.wrong-output": ("vLLM 0.9: the model starts producing gibberish towards the end of a long answer", "not_oom"),
    "sizing.session-cut": (
        "[TM][WARNING] `session_len` truncated to 5120 due to limited KV cache memory\n"
        "[TM][ERROR] [Engine] Warm-up for 8192 tokens failed with status 6",
        "kv_cache_sizing",
    ),
    "sizing.holds-less-than-one": ("Maximum concurrency for 32768 tokens per request: 0.38x\nThen it exits.", "kv_cache_sizing"),
    "arithmetic.beyond-captured": (f"{OOM} {POOLS}", "serving"),
    "arithmetic.private-pools-at-start": (
        f'{OOM} {POOLS}\nTraceback (most recent call last):\n  File "/opt/venv/bin/vllm", line 10, in <module>',
        "graph_capture",
    ),
    "exllama.no-room": ("RuntimeError: Insufficient VRAM in split for model and cache", "weight_loading"),
    "frame.sglang-capture": (f"{frame('sglang/srt/model_executor/model_runner.py', 'init_cuda_graphs')}\n{OOM}", "graph_capture"),
    "frame.sglang-pool": (f"{frame('sglang/srt/model_executor/model_runner.py', 'init_memory_pool')}\n{OOM}", "kv_cache_allocation"),
    "frame.trt-profiling": (f"{frame('tensorrt_llm/_torch/pyexecutor/_util.py', 'configure_kv_cache_capacity')}\n{OOM}", "profiling"),
    "frame.trt-weights": (f"{frame('tensorrt_llm/_torch/models/modeling_utils.py', 'load_single_module')}\n{OOM}", "weight_loading"),
    "frame.trt-warm-up": (f"{frame('tensorrt_llm/_torch/pyexecutor/model_engine.py', 'warmup')}\n{OOM}", "warmup"),
    "frame.tgi-warm-up": (f"{frame('text_generation_server/server.py', 'Warmup')}\n{OOM}", "profiling"),
    "frame.tgi-request": (f"{frame('text_generation_server/server.py', 'Prefill')}\n{OOM}", "serving"),
    "frame.lmdeploy-weights": (f"{frame('lmdeploy/turbomind/turbomind.py', '_from_hf')}\n{OOM}", "weight_loading"),
    "frame.lmdeploy-warm-up": (f"{frame('lmdeploy/pytorch/engine/model_agent.py', 'warmup')}\n{OOM}", "warmup"),
    "frame.lmdeploy-cache": (f"{frame('lmdeploy/pytorch/engine/model_agent.py', 'build_cache_engine')}\n{OOM}", "kv_cache_allocation"),
    "frame.exllama-step": (f"{frame('exllamav2/generator/dynamic.py', 'iterate')}\n{OOM}", "serving"),
    "frame.whisper-load": (
        f"{frame('faster_whisper/transcribe.py', '__init__')}\nRuntimeError: CUDA failed with error out of memory",
        "weight_loading",
    ),
    "frame.whisper-step": (
        f"{frame('faster_whisper/transcribe.py', 'encode')}\nRuntimeError: CUDA failed with error out of memory",
        "serving",
    ),
    "frame.graph-memory-estimate": (f"{frame('vllm/v1/worker/gpu_model_runner.py', 'profile_cudagraph_memory')}\n{OOM}", "profiling"),
    "frame.initialize-cache": (f"{frame('vllm/worker/worker.py', 'initialize_cache')}\n{OOM}", "kv_cache_allocation"),
    "frame.runner": (f"{frame('vllm/v1/worker/gpu_model_runner.py', '__init__')}\n{OOM}", "weight_loading"),
    "frame.rpc-warm-up": (f"{frame('vllm/v1/executor/abstract.py', 'compile_or_warm_up_model')}\n{OOM}", "graph_capture"),
    "frame.rpc-initialize-from-config": (f"{frame('vllm/v1/executor/abstract.py', 'initialize_from_config')}\n{OOM}", "graph_capture"),
    "frame.rpc-load": (f"{frame('vllm/executor/executor_base.py', 'load_model')}\n{OOM}", "weight_loading"),
    "frame.rpc-wake-up": (f"{frame('vllm/v1/engine/async_llm.py', 'wake_up')}\n{OOM}", "wake_up"),
    "inner.profile-run": (f"{frame('vllm/v1/worker/gpu_model_runner.py', 'profile_run')}\n{OOM}", "profiling"),
    "inner.sleep-allocator": (f"{frame('vllm/device_allocator/cumem.py', 'create_and_map')}\n{OOM}", "wake_up"),
    "inner.kv-allocation": (f"{frame('vllm/v1/worker/gpu_model_runner.py', '_allocate_kv_cache_tensors')}\n{OOM}", "kv_cache_allocation"),
    "inner.compile": (f"{frame('torch/_inductor/compile_fx.py', 'compile_fx')}\n{OOM}", "profiling"),
    "inner.call-of-the-load": (f"    self.model_runner.load_model()\n{OOM}", "weight_loading"),
    "inner.v0-state-cache": (f"{frame('vllm/model_executor/models/mamba_cache.py', '__init__')}\n{OOM}", "profiling"),
    "mark.vllm.model-loading": (f"Loading model weights took 14.9595 GB\n{OOM}", "profiling"),
    "mark.vllm.device-ready": (
        "INFO 11-18 10:00:00 [parallel_state.py:1208] rank 3 in world size 8 is assigned as DP rank 0, PP rank 0, TP rank 3, EP rank 3\n"
        + OOM,
        "weight_loading",
    ),
    "mark.vllm.pool-bar": (
        f"Allocating TT kv caches for each layer (submesh 1):   9%|▉         | 3/32 [00:00<00:06,  4.57it/s]\n{OOM}",
        "kv_cache_allocation",
    ),
    "mark.vllm.kernel-warm-up-ends": (f"JIT kernel warmup finished in 4.18s.\n{OOM}", "graph_capture"),
    "mark.sglang.load-begins": (f"Load weight begin. avail mem=78.60 GB\n{OOM}", "weight_loading"),
    "mark.sglang.load-ends": (
        f"Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=63.45 GB, mem usage=15.15 GB.\n{OOM}",
        "kv_cache_allocation",
    ),
    "mark.sglang.totals": (
        "max_total_num_tokens=435488, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=4096, context_len=131072, "
        f"available_gpu_mem=8.62 GB\n{OOM}",
        "warmup",
    ),
    "mark.tensorrt-llm.capture-begins": (
        f"[TRT-LLM] [RANK 0] [I] Run generation only CUDA graph warmup for batch size=128, draft_len=0\n{OOM}",
        "graph_capture",
    ),
    "mark.llama-cpp.load-begins": (
        "load_tensors: loading model tensors, this can take a while... (mmap = true)\ncudaMalloc failed: out of memory",
        "weight_loading",
    ),
    "mark.tensorrt-llm.context": (
        f"[TensorRT-LLM][INFO] [MemUsageChange] Allocated 1.21 GiB for execution context memory.\n{OOM}",
        "kv_cache_allocation",
    ),
    "mark.tensorrt-llm.weights": (f"Rank 0 uses 8.46 GB for model weights.\n{OOM}", "profiling"),
    "mark.tensorrt-llm.pool": (
        f"[TensorRT-LLM][INFO] [MemUsageChange] Allocated 52.93 GiB for max tokens in paged KV cache (433600).\n{OOM}",
        "graph_capture",
    ),
    "mark.tgi.loading": (f"INFO shard-manager: text_generation_launcher: Waiting for shard to be ready... rank=1\n{OOM}", "weight_loading"),
    "mark.tgi.warming": (f"INFO text_generation_launcher: Warming up model\n{OOM}", "profiling"),
    "mark.tgi.pool": (f"INFO text_generation_router: Setting max batch total tokens to 136064\n{OOM}", "serving"),
    "mark.llama-cpp.model-buffer": (f"load_tensors:        CUDA0 model buffer size =  4095.05 MiB\n{CPP}", "kv_cache_allocation"),
    "mark.llama-cpp.kv-begins": (f"llama_kv_cache_iswa: creating non-SWA KV cache, size = 128000 cells\n{CPP}", "kv_cache_allocation"),
    "mark.llama-cpp.kv-buffer": (f"llama_kv_cache_unified:      CUDA0 KV buffer size =   512.00 MiB\n{CPP}", "profiling"),
    "mark.llama-cpp.compute-buffer": (f"llama_context:      CUDA0 compute buffer size =   560.00 MiB\n{CPP}", "serving"),
    "prose.memory-released": ("vLLM fails: a tenant releases memory", "profiling"),
    "prose.tgi-launch": (
        "Out of memory when launching server with larger values for --max-batch-prefill-tokens\ntext-generation-launcher --model-id m --num-shard 2 --max-total-tokens 20000",
        "profiling",
    ),
    "sampler.sentence": (
        signed(
            "core.py", "RuntimeError: CUDA out of memory occurred when warming up sampler with 1024 dummy requests. Please try lowering"
        ),
        "warmup",
    ),
    "arithmetic.private-pools": (
        f"vllm serve Qwen/Qwen2.5-7B-Instruct\n{BAR}\n{SAMPLER} {POOLS}",
        "graph_capture",
    ),
    "arithmetic.sampler-after-capture": (f"vllm serve Qwen/Qwen2.5-7B-Instruct\n{SAMPLER} {POOLS}", "warmup"),
    "arithmetic.sampler-before-cache": (
        f"vllm serve Qwen/Qwen2.5-7B-Instruct\n{signed('gpu_model_runner.py', 'Starting to load model m...')}\n{SAMPLER}",
        "profiling",
    ),
    "arithmetic.above-budget-while-a-model-runs": (
        "LLM(model='org/m', gpu_memory_utilization=0.9)\n"
        "[rank0]: torch.OutOfMemoryError: Error in model execution (input dumped to /tmp/err_execute_model_input_20241112-101500.pkl): CUDA out of "
        "memory. Tried to allocate 1.50 GiB. GPU 0 has a total capacity of 23.69 GiB of which 812.00 MiB is free. Process 4410 has 22.89 GiB memory in "
        "use. Of the allocated memory 22.41 GiB is allocated by PyTorch, and 120.10 MiB is reserved by PyTorch but unallocated.",
        "profiling",
    ),
    "progress.pool-beyond-the-card": (
        f"{signed('gpu_model_runner.py', 'Estimated CUDA graph memory: -21.40 GiB total')}\n"
        f"{signed('gpu_worker.py', 'Available KV cache memory: 61.20 GiB')}\nOOM at once.",
        "kv_cache_allocation",
    ),
    "progress.forward-after-the-pool": (
        f"The profiling run goes out of memory.\n{signed('kv_cache_utils.py', 'GPU KV cache size: 796,000 tokens')}\n"
        f"{frame('vllm/model_executor/models/llama.py', 'forward')}\n{OOM}",
        "graph_capture",
    ),
    "inner.sampler-in-warm-up": (
        f"GPU KV cache size: 796,000 tokens\n{frame('vllm/v1/worker/gpu_model_runner.py', '_dummy_sampler_run')}\n{OOM}",
        "warmup",
    ),
    "mark.vllm.weights-read": (f"{signed('default_loader.py', 'Loading weights took 271.22 seconds')}\n{OOM}", "weight_loading"),
    "mark.vllm.graph-estimate": (f"{signed('gpu_model_runner.py', 'Estimated CUDA graph memory: 0.58 GiB total')}\n{OOM}", "profiling"),
    "mark.vllm.compile-size": (f"{signed('gpu_worker.py', 'Compile and warming up model for size 8')}\n{OOM}", "warmup"),
    "mark.vllm.ready": ("INFO:     Application startup complete.\nThen we see an OOM.", "serving"),
    "mark.sglang.ready": ("[2025-07-02 07:43:14 TP3] The server is fired up and ready to roll!\nThen we see an OOM.", "serving"),
    "mark.llama-cpp.ready": ("main: server is listening on http://127.0.0.1:8080 - starting the main loop\nThen we see an OOM.", "serving"),
    "mark.sglang.capture-begins": (
        f"[2025-09-02 11:21:42 TP1] Capture cuda graph begin. This can take up to several minutes. avail mem=7.35 GB\n{OOM}",
        "graph_capture",
    ),
    "wake-up.cumem-address": (
        "CUDA Error: invalid argument at /workspace/csrc/cumem_allocator.cpp:119\n"
        "CUDA Error: out of memory at /workspace/csrc/cumem_allocator.cpp:62",
        "wake_up",
    ),
    "mark.vllm.graph-pool": (
        f"{signed('gpu_worker.py', 'CUDA graph pool memory: 0.64 GiB (actual), 0.58 GiB (estimated), difference: 0.06 GiB (9.4%).')}\nThen we see an OOM.",
        "warmup",
    ),
    "mark.vllm.budget-summary": (
        f"{signed('gpu_worker.py', 'Free memory on device (46.9/47.5 GiB) on startup. Desired GPU memory utilization is (0.97, 46.08 GiB).')}\n"
        "Then we see an OOM.",
        "warmup",
    ),
    "mark.hpu.warm-up": (
        f"{signed('hpu_model_runner.py', '[Warmup][Prompt][3/24] batch_size:16 seq_len:1024 free_mem:20.1 GiB')}\nThen we see an OOM.",
        "warmup",
    ),
    "mark.hpu.graph-warm-up": (
        f"{signed('hpu_model_runner.py', '[Warmup][Graph/Decode][7/31] batch_size:64 seq_len:2048 free_mem:3.9 GiB')}\nThen we see an OOM.",
        "graph_capture",
    ),
    "mark.vllm.serving": (
        f"{signed('loggers.py', 'Engine 000: Avg prompt throughput: 6.5 tokens/s, Avg generation throughput: 0.0 tokens/s, Running: 1 reqs')}\n"
        "Then we see an OOM.",
        "serving",
    ),
    "mark.vllm.http-request": (
        'INFO:     10.0.0.34:57224 - "POST /v1/completions HTTP/1.1" 500 Internal Server Error\nThen we see an OOM.',
        "serving",
    ),
    "mark.sglang.capture-ends": (
        f"[2025-07-02 07:43:14 TP3] Capture cuda graph end. Time elapsed: 8.27 s. mem usage=1.21 GB. avail mem=8.62 GB.\n{OOM}",
        "warmup",
    ),
    "mark.tensorrt-llm.profiled": (
        "[09/17/2025-21:24:19] [TRT-LLM] [RANK 2] [I] Peak memory during memory usage profiling (torch + non-torch): 38.58 GiB, available KV cache "
        f"memory when calculating max tokens: 36.50 GiB, fraction is set 0.9, kv size is 65536. device total memory 79.19 GiB\n{OOM}",
        "kv_cache_allocation",
    ),
    "ruled-out.graphs-exist": (f"It runs out of memory while loading the model.\n{OOM} {POOLS}", "unknown"),
    "ruled-out.not-loaded": (f"It goes OOM while the CUDA graphs are captured.\n{OOM}\nWorkerProc failed to start.", "weight_loading"),
    "ruled-out.not-up": ("It goes OOM on wake up.\nRuntimeError: EngineCore_0 initialization failed. See root cause above.", "unknown"),
    "ruled-out.up": ("It runs out of memory while loading the model.\nEngineCore encountered a fatal error.", "unknown"),
    "prose.sizing": ("Not enough KV cache space for even a single 128k sequence", "kv_cache_sizing"),
    "prose.workers-meet": ("NCCL init fails with Cuda failure out of memory at TP=8", "startup_check"),
    "prose.allocation": ("CUDA out of memory when the KV cache is allocated, two engines on one card", "kv_cache_allocation"),
    "prose.grows": ("GPU memory usage creeps up slowly until the server dies", "serving"),
    "prose.inference": ("OOM while I was running the model, no log left", "serving"),
    "prose.no-oom": ("False alarm: no OOM anywhere, a flag was misspelt", "not_oom"),
    "arithmetic.above-budget": (
        f"vllm serve m --gpu-memory-utilization 0.8\n{OOM} {POOLS.replace('with 62.00 MiB allocated in private pools (e.g., CUDA Graphs), ', '')}",
        "weight_loading",
    ),
    "wake-up.cumem": ("CUDA Error: out of memory at /workspace/csrc/cumem_allocator.cpp:62", "wake_up"),
    "mark.vllm.profile-too-short": (
        signed(
            "registry.py",
            "The sequence length used for profiling (max_num_batched_tokens / max_num_seqs = 32) is too short to hold the multi-modal embeddings",
        )
        + "\nThen we see an OOM.",
        "profiling",
    ),
    "inner.sampler-called-by-worker": (f"    self.model_runner._dummy_sampler_run(\n{OOM}", "warmup"),
    "prose.sleep-freed-little": (
        "It goes out of memory.\nSleep mode freed 1.20 GiB memory, 140.10 GiB memory is still in use.",
        "wake_up",
    ),
    "shm.beside-the-exchange": (
        "In our pods /dev/shm fills up after three restarts. The workers then stop:\n    self.worker.init_device()\nRuntimeError: NCCL error: unhandled system error (run with NCCL_DEBUG=INFO for details)",
        "host_memory",
    ),
    "prose.start-cannot-fit": ("Qwen/Qwen2.5-32B-Instruct won't start on one RTX 4090, out of memory", "weight_loading"),
    "prose.tgi-warm-up": ("tgi: OOM in warmup with a gptq model, 24GB", "profiling"),
    "prose.offload-ignored": ("--cpu-offload-gb 24 has no effect in vLLM 0.27, and then it is out of memory", "weight_loading"),
    "prose.grows-outside-the-card": (
        "OOM with --kv-offloading-size 900\n\nFrom the memory profile, memory keeps growing until it is OOM.",
        "host_memory",
    ),
    "ruled-out.before-graphs": (
        "INFO 08-01 09:18:11 llm_engine.py:60] Initializing an LLM engine with config: model='m/7b', tensor_parallel_size=1, seed=0)\n"
        f"INFO 08-01 09:18:31 llm_engine.py:150] # GPU blocks: 2000, # CPU blocks: 512\n{OOM}",
        "kv_cache_allocation",
    ),
    "arithmetic.larger-than-the-card": (
        "八张卡也启动不起来\n" + OOM.replace("2.00 GiB", "300.00 GiB"),
        "profiling",
    ),
    "progress.pool-next-to-nothing": (
        "can use total_gpu_memory (23.50GiB) x gpu_memory_utilization (0.90) = 21.15GiB\n"
        "model weights take 18.90GiB; non_torch_memory takes 0.20GiB; PyTorch activation peak memory takes 2.02GiB; "
        "the rest of the memory reserved for KV Cache is 0.03GiB.\nThen it is OOM.",
        "kv_cache_sizing",
    ),
    "progress.kernels-failed": (f"{signed('gpu_worker.py', 'JIT kernel warmup failed after 6.10s.')}\n{OOM}", "warmup"),
    "arithmetic.larger-than-the-card-beside-frames": (
        f"{frame('app/start.py', 'begin')}\n{OOM.replace('2.00 GiB', '300.00 GiB')}\nEngineCore failed to start.",
        "profiling",
    ),
    "progress.encoder-at-start": (
        f"{frame('vllm/model_executor/models/qwen2_5_vl.py', 'forward', 'image_embeds = self.visual(pixel_values, grid_thw=grid)')}\n{OOM}\n"
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}",
        "profiling",
    ),
    "not-oom.refused-mapping": ("vllm serve m: CUDA Error: invalid argument at /w/csrc/cumem_allocator.cpp:128", "not_oom"),
}
