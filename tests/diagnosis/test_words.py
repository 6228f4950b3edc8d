"""People's words alone: what they say of the phase, and never more than likely."""

import pytest

from bot.domain.incident import Contribution
from bot.rulebook.load import load_rulebook
from bot.usecases.judge import judge
from tests.diagnosis.material import judged, oom, worker

BOOK = load_rulebook()
SAID = {
    "unknown": [
        "vLLM hangs during profiling, the GPU is at 100 %",
        "vllm OOM",
        "CUDA out of memory with vllm on a small card",
        "vLLM keeps giving me out of memory whatever I set",
        "loading the model works, then vllm runs out of memory",
        "I want to serve 300 users and vllm OOMs with this config",
        "vLLM OOM with concurrent instances on one card",
        "vLLM works for small models, OOM on large ones",
        "OOM in vLLM although the model was loaded on two cards",
        "vLLM OOM every time it starts on my box",
    ],
    "weight_loading": [
        "vllm OOMs before it is even done loading the model",
        "It runs out of GPU memory before the weights are even fully loaded, shard 31/37. (vllm)",
        "Loading the checkpoint fails with CUDA OOM after 14/30 shards (vllm 0.10.1).",
        "[Bug]: OOM in process_weights_after_loading for a four-bit MoE, vllm",
        "When converting the weights to fp8 vLLM needs twice the memory and OOMs.",
        "vllm 加载权重的时候显存爆了",
        "We get OOM before any cache stands, right when shard 5/9 is being read. vLLM 0.12.",
        "CUDA OOM in vLLM while the weights are being loaded on 4 cards",
        "Loading the 32B on one L4: CUDA out of memory (vllm)",
        "vllm 加载 32B 模型权重时 CUDA out of memory",
    ],
    "profiling": [
        "determine_available_memory raises torch.OutOfMemoryError on the last card (vllm 0.12)",
        "OOM happens in the dummy run, before the KV cache is created (vllm 0.13).",
        "vLLM goes OOM if I raise batched tokens to 40k",
        "vLLM OOMs while it profiles peak memory",
    ],
    "kv_cache_sizing": [
        "vllm refuses to start because 16.0 GiB KV cache is needed but only 9.1 GiB is available",
        "available KV cache memory is negative after upgrading vllm",
        "no memory left for KV cache blocks after the weights (vllm 0.9)",
        "vllm 启动报错 KV cache 不足",
        "vllm: no room for the KV cache on a 12 GB card",
        "vLLM says max model len is larger than what fits in the KV cache",
        "after loading the weights vLLM has -0.8 GiB for KV cache",
    ],
    "kv_cache_allocation": [
        "CUDA out of memory when the KV cache is allocated (vllm 0.15, 2 engines on one GPU)",
        "vllm fails to allocate KV cache: CUDA out of memory, a neighbour had started",
    ],
    "graph_capture": [
        "With enforce_eager=True it starts fine, without it I get CUDA OOM. vllm 0.10.2",
        "capture_model -> torch.OutOfMemoryError on the last worker (vLLM 0.18)",
        "vllm 捕获 CUDA graph 阶段 OOM",
        "vLLM starts fine, but OOM when capturing graphs",
        "vLLM OOM capturing cudagraphs with 600 sequences",
    ],
    "warmup": [
        "vLLM OOM in kernel_warmup after the upgrade",
        "Capture finishes, then OOM in the warm-up with dummy requests. vLLM 0.10",
        "vLLM OOM while warming up the sampler",
    ],
    "serving": [
        "One request with 40 images on vllm will have OOM.",
        "Server starts fine, but when I send 50 concurrent requests it dies with torch.OutOfMemoryError (vllm)",
        "Every time a user uploads a 4K image vLLM runs out of memory",
        "GPU memory of the vllm server grows until it OOMs after days",
        "CUDA OOM mid-generation with drafts (vllm 0.12)",
        "The first long request kills vLLM with CUDA out of memory, short ones are fine",
        "vllm 服务跑了一天之后 OOM 崩溃",
        "vLLM OOM in our soak test",
        "the first few prompts worked, then vLLM went OOM",
        "vLLM is stable for short prompts, OOM on long ones",
        "our vllm loads fine, but OOM when chatting",
        "Prompts over 70k tokens crash vLLM 0.11 with OOM",
        "vllm ran for two hours, then torch.OutOfMemoryError",
        "vllm 压测时 OOM",
        "When three people chat at once vLLM dies with CUDA out of memory",
        "vllm dies with OOM about three times a day",
        "vLLM OOM shows up only when images are sent",
        "prefill of long prompts fails in vLLM with CUDA out of memory",
    ],
    "startup_check": [
        "vllm refuses to start: free memory on device is less than desired gpu memory utilization",
        "vllm: the free memory is less than the desired utilization, another container holds the card",
    ],
    "wake_up": [
        "rollout 唤醒 vllm 时 OOM",
        "calling llm.wake_up(tags=['kv_cache']) raises torch.OutOfMemoryError",
        "When vLLM wakes from sleep mode it OOMs because another model was loaded meanwhile",
        "waking vllm up after sleep(level=2) fails with CUDA out of memory",
    ],
    "not_oom": [
        "The vLLM server silently hangs while it captures graphs.",
        "Kubernetes sends SIGTERM and the requests of vllm fail with EngineDeadError.",
    ],
    "host_memory": [
        "The container exits with code 137 during model load (vllm)",
        "While loading a 405B the host runs out of RAM and the process is gone (vllm)",
        "CPU memory keeps growing until vllm is Killed, GPU memory is fine",
    ],
}


@pytest.mark.parametrize(("phase", "said"), [(phase, said) for phase, sentences in SAID.items() for said in sentences])
def test_a_sentence_names_its_phase_at_most_as_likely(phase: str, said: str) -> None:
    document = judge(BOOK, [Contribution("paste", said)])
    assert document["phase"] == phase
    assert document["verdict"] == ("open" if phase == "unknown" else "likely")


def test_a_title_does_not_run_on_into_the_log_below() -> None:
    text = (
        "[Bug]: OOM when using the new engine, vllm\n"
        "INFO 04-02 10:00:01 [kv_cache_utils.py:634] Maximum concurrency for 32,768 tokens per request: 2.10x\n"
    )
    assert judge(BOOK, [Contribution("paste", text)])["phase"] != "serving"


def test_a_heading_that_quotes_the_error_is_not_the_first_error() -> None:
    text = "## vllm stops: `No available memory for the cache blocks`\n\nThis is what it prints:\n\nValueError: No available memory for the cache blocks.\n"
    assert judge(BOOK, [Contribution("paste", text)])["first_error"]["line"] == 5


def test_the_workers_own_call_of_the_sampler_is_warm_up_though_the_head_is_cut() -> None:
    text = (
        "(Worker pid=77) ERROR 11-02 09:00:00 [multiproc_executor.py:671]     self.model_runner._dummy_sampler_run(\n"
        '(Worker pid=77) ERROR 11-02 09:00:00 [multiproc_executor.py:671]   File "/opt/v/vllm/v1/worker/gpu_model_runner.py", line 3221, in _dummy_sampler_run\n'
        "(Worker pid=77) ERROR 11-02 09:00:00 [multiproc_executor.py:671]     raise RuntimeError(\n"
        "(Worker pid=77) ERROR 11-02 09:00:00 [multiproc_executor.py:671] RuntimeError: CUDA out of\n"
    )
    document = judge(BOOK, [Contribution("paste", text)])
    assert (document["phase"], document["first_error"]["line"]) == ("warmup", 4)


@pytest.mark.parametrize(
    ("said", "command"),
    [
        ("Qwen3-235B-A22B on 8xH100 with TP 8: CUDA out of memory with vllm", "oombot size Qwen3-235B-A22B --gpu H100-80GB --tp 8"),
        ("vllm: OOM with Qwen/Qwen3-32B on 2x RTX 4090", "oombot size Qwen/Qwen3-32B --gpu RTX4090-24GB --tp 2"),
        (
            "vllm serve org/m1-70b -tp 4 --max-model-len 32768\n"
            "It runs out of GPU memory before the weights are even fully loaded, shard 31/37. (vllm, 4x A100 80GB)",
            "oombot size org/m1-70b --gpu A100-80GB --tp 4 --max-model-len 32768",
        ),
    ],
)
def test_a_model_and_cards_that_are_named_can_be_sized(said: str, command: str) -> None:
    notes = judge(BOOK, [Contribution("paste", said)])["notes"]
    assert f"`{command}` says whether this model goes onto these cards, and what is left for its cache." in notes


@pytest.mark.parametrize(
    "said",
    [
        "OOM with vllm on 8xH100, TP 8",
        "OOM with vllm and Qwen/Qwen3-32B",
        "OOM with vllm and our-finetune-v7 on 2x RTX 4090",
        "vllm serve /data/models/m1-70b -tp 4\nOOM on 4x A100 80GB",
        "vllm: CUDA OOM during graph capture with Qwen/Qwen3-32B on 2x RTX 4090",
    ],
)
def test_what_sizing_cannot_look_up_or_does_not_decide_is_not_offered(said: str) -> None:
    assert not [note for note in judge(BOOK, [Contribution("paste", said)])["notes"] if "oombot size" in note]


def test_a_question_is_answered_with_what_it_names() -> None:
    said = judge(BOOK, [Contribution("paste", "How much GPU memory do I need to run Qwen/Qwen3-32B with vllm on 2x RTX 4090?")])
    assert said["sizing"] == "oombot size Qwen/Qwen3-32B --gpu RTX4090-24GB --tensor-parallel-size 2"
    assert not said["notes"]


def test_a_heading_does_not_run_into_the_line_below_it() -> None:
    assert judged("# Notes on graph capture and warm-up\nvLLM 0.11.0 OOM today on the L40S")["phase"] == "unknown"
    assert judged("# Notes\nvLLM 0.11.0 OOM today in the graph capture")["phase"] == "graph_capture"


def test_who_tells_of_an_error_is_asked_for_its_lines_and_not_for_a_rank() -> None:
    words = "Our embedding pod (vLLM 0.12.0) answers for hours, then throws CUDA out of memory during a long request."
    assert [question["id"] for question in judged(words)["questions"]] == ["first_error"]
    raised = worker("RayWorkerWrapper", oom("1.00 GiB", "0.50 GiB", gpu=3)).replace("pid=7501", "pid=7501, ip=10.0.0.3")
    assert "failing_rank" in [question["id"] for question in judged(words + "\n" + raised)["questions"]]


def test_a_word_in_quotes_that_something_matched_is_no_complaint() -> None:
    up = '(APIServer pid=1) INFO:     10.0.0.9:1 - "POST /v1/embeddings HTTP/1.1" 200 OK\n'
    assert judged(up + 'The alert matched the string "out of memory" in a warning. False alarm?')["phase"] == "not_oom"
    assert judged(up + 'Then it prints "out of memory" and dies during a long request.')["phase"] == "serving"


@pytest.mark.parametrize(
    ("words", "phase"),
    [
        ("the pod restarts every few hours, is vllm leaking memory?", "unknown"),
        ("vllm leaks memory, after 3 hours it crashes", "serving"),
        ("GPU memory grows with every request until vllm OOMs. Is it a leak?", "serving"),
    ],
)
def test_who_asks_whether_it_leaks_does_not_say_so(words: str, phase: str) -> None:
    document = judged(words)
    assert (document["phase"], document["engine"]) == (phase, "vllm")


def test_an_engine_in_a_path_is_not_spoken_of() -> None:
    assert judged("Traceback in /opt/vllm/run.py: it runs out of memory")["engine"] == "unknown"


def test_a_context_that_must_stay_is_not_advised_to_be_shorter() -> None:
    check = "ValueError: To serve at least one request with the model's max seq len (131072), (24.0 GiB KV cache is needed, which is larger than the available KV cache memory (17.42 GiB). Based on the available memory, the estimated maximum model length is 95136."
    change = judged(check)["recommendation"]
    assert (change["flag"], change["direction"]) == ("--max-model-len", "lower")
    kept = judged(check + "\n\nL40S, util 0.92. Constraint from product: 128k context must stay.")
    assert kept["recommendation"]["flag"] == "--kv-cache-dtype"  # 0.95 of that card adds 1.3 of the 6.6 GiB that are missing
    assert all(c["flag"] != "--max-model-len" for c in (kept["recommendation"], *kept["alternatives"]))
