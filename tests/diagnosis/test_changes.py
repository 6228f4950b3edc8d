"""What must hold of every change, whatever is set already: no value twice, none that an engine refuses, none that is warned of."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import get_args

import pytest

from bot.diagnosis.command import given_start
from bot.diagnosis.ledger import ledger, smallest
from bot.diagnosis.remedies import _avoided, remedies
from bot.diagnosis.scene import Scene
from bot.diagnosis.spelled import argument_of, meant
from bot.diagnosis.this_run import scene_of
from bot.domain.diagnosis import Phase, Remedy
from bot.domain.incident import Contribution
from bot.reading.read import read
from bot.rulebook.load import load_rulebook
from bot.usecases.judge import judge

BOOK = load_rulebook()
PHASES: tuple[Phase, ...] = tuple(phase for phase in get_args(Phase) if phase not in ("not_oom", "unknown"))
STARTS = {
    "vllm": ("vllm serve org/m", [
        "", "--gpu-memory-utilization 0.05", "--gpu-memory-utilization 0.3", "--gpu-memory-utilization 0.97", "--enforce-eager",
        "--max-num-seqs 1", "--max-num-seqs 1024 --max-num-batched-tokens 1024", "--max-num-batched-tokens 256",
        "--tensor-parallel-size 8\n8x H100 80GB", "--tensor-parallel-size 4 --pipeline-parallel-size 2\n8x H100 80GB", "--quantization fp8",
        "--kv-cache-dtype fp8", "--cudagraph-capture-sizes 1 2", "--cudagraph-capture-sizes 1", "--cudagraph-capture-sizes 1 2 4 8 16 32",
        """--compilation-config '{"cudagraph_capture_sizes": [1, 2, 64]}'""", "-gmu 0.9 --no-enforce-eager", "--max_num_seqs=64 --max_model_len=8192",
        """--limit-mm-per-prompt '{"image":1,"video":0}'\nQwen/Qwen2.5-VL-7B-Instruct""", "Qwen/Qwen2.5-VL-7B-Instruct",
        """--mm-processor-kwargs '{"max_pixels":200000}'\n--limit-mm-per-prompt '{"image":1}'""", "--swap-space 0 --cpu-offload-gb 8",
        "--max-model-len 128", "--no-enable-chunked-prefill --max-model-len 8192 --max-num-batched-tokens 8192", "--max-logprobs 0\nprompt_logprobs",
        "--kv-cache-memory-bytes 1G", "--kv-cache-memory-bytes 20G", "--enable-sleep-mode", "NVIDIA GB10 128GB", "MIG 1g.10gb",
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", "VLLM_USE_V2_MODEL_RUNNER=0\nMRV2", "--no-enable-flashinfer-autotune",
        "VLLM_DEEP_GEMM_WARMUP=skip", "--max-loras 1", "RUNAI_STREAMER_MEMORY_LIMIT=0\n--load-format runai_streamer",
    ]),
    "sglang": ("python -m sglang.launch_server --model-path org/m", [
        "", "--mem-fraction-static 0.05", "--mem-fraction-static 0.3", "--mem-fraction-static 0.95", "--chunked-prefill-size 1024",
        "--cuda-graph-max-bs 4", "--max-running-requests 1", "--hicache-ratio 1.1", "--kv-cache-dtype fp8_e4m3", "--tp 8\n8x H100 80GB",
        "--disable-cuda-graph", "NVIDIA GB10 128GB", "--context-length 8192 --max-total-tokens 90000",
    ]),
    "tensorrt-llm": ("trtllm-serve org/m", [
        "", "--max_num_tokens 2048", "--max_batch_size 8", "free_gpu_memory_fraction: 0.3", "free_gpu_memory_fraction: 0.97", "--tp_size 8\n8x H100 80GB",
    ]),
    "tgi": ("text-generation-launcher --model-id org/m", [
        "", "--max-batch-prefill-tokens 512", "--max-total-tokens 1024", "--cuda-graphs 1", "--cuda-graphs 0", "--cuda-memory-fraction 0.8",
        "--num-shard 8\n8x H100 80GB", "--max-input-tokens 1024 --max-total-tokens 4096",
    ]),
    "lmdeploy": ("lmdeploy serve api_server org/m", [
        "", "--cache-max-entry-count 0.2", "--cache-max-entry-count 0.95", "--max-prefill-token-num 2048", "--max-batch-size 8", "--tp 8\n8x H100 80GB",
    ]),
    "llama.cpp": ("llama-server -m m.gguf", ["", "-ub 64", "-ub 32", "-ngl 1 -c 2048", "--n-gpu-layers 40 --ctx-size 8192", "-ctk q8_0", "--no-mmproj-offload"]),
}  # fmt: skip
EVERY = [(engine, start, given) for engine, (start, rows) in STARTS.items() for given in rows]
LISTS = ("cudagraph_capture_sizes", "limit_mm_per_prompt", "mm_processor_kwargs", "cuda_graphs")


def changes(engine: str, start: str, given: str) -> Iterator[tuple[Scene, Phase, list[Remedy]]]:
    """The changes of each phase for an engine that was started so."""
    scene = scene_of(BOOK, replace(read(BOOK, [Contribution("paste", f"{start} {given}")]), engine=engine))
    for phase in PHASES:
        yield scene, phase, remedies(BOOK, scene, phase, smallest(ledger(BOOK, scene)))


@pytest.mark.parametrize(("engine", "start", "given"), EVERY)
def test_no_change_is_what_is_set_already_or_less_than_that(engine: str, start: str, given: str) -> None:
    for scene, phase, offered in changes(engine, start, given):
        for change in offered:
            name = argument_of(BOOK, change.flag or "")
            now = scene.evidence.deployment.number(name)
            if change.value is None or name in LISTS:
                continue
            if now is not None and now > 0 and change.direction == "lower":
                assert float(change.value) < now, (phase, change.flag)
            elif now is not None and change.direction == "raise":
                assert float(change.value) > now, (phase, change.flag)
            else:
                assert str(scene.evidence.deployment.value(name)).lower() != change.value.lower(), (phase, change.flag)


@pytest.mark.parametrize(("engine", "start", "given"), EVERY)
def test_no_change_is_refused_by_the_engine_that_gets_it(engine: str, start: str, given: str) -> None:
    for scene, phase, offered in changes(engine, start, given):
        seqs = scene.evidence.deployment.number("max_num_seqs") or 1
        for change in offered:
            if change.value is None or change.direction == "remove":
                continue
            if "utilization" in (change.flag or "") or "fraction" in (change.flag or ""):
                assert 0 < float(change.value) <= 0.97, (phase, change.flag)
            if change.flag == "--max-num-batched-tokens":
                assert int(change.value) >= seqs, phase
            if change.flag in ("--max-num-seqs", "--max-model-len", "--max-num-batched-tokens", "-ub", "-c"):
                assert int(change.value) >= 1, (phase, change.flag)
            if change.flag == "--tensor-parallel-size" and scene.evidence.deployment.gpu_count is not None:
                stages = scene.evidence.deployment.number("pipeline_parallel_size") or 1
                assert int(change.value) * stages <= scene.evidence.deployment.gpu_count.value, phase


def options(words: Sequence[str], engine: str) -> dict[str, list[str]]:
    """The options of a command line with their values, by the limit that each sets; each may stand there once."""
    found: dict[str, list[str]] = {}
    for word in words:
        if word.startswith("-") and not word[1:].isdigit():
            flag, _, value = word.partition("=")
            name = next((one.same_as or one.name for one in meant(BOOK, flag, engine)), flag)
            assert name not in found, (flag, words)
            found[name] = [*(["no"] if flag.startswith("--no-") else []), *([value] if value else [])]
        elif found:
            found[[*found][-1]].append(word)
    return found


@pytest.mark.parametrize(("engine", "start", "given"), EVERY)
def test_a_command_is_the_start_that_was_pasted_with_one_option_changed(engine: str, start: str, given: str) -> None:
    for scene, phase, offered in changes(engine, start, given):
        pasted = given_start(BOOK, scene)
        for change in offered:
            if pasted is None or change.command is None or not (change.flag or "").startswith("-"):
                continue
            before, after = options(pasted, engine), options(shlex.split(change.command), engine)
            own = next((one.same_as or one.name for one in meant(BOOK, change.flag or "", engine)), change.flag)
            changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
            inside = changed == {"compilation_config"} and own == "cudagraph_capture_sizes"
            assert changed == {own} or inside, (phase, change.command)


@pytest.mark.parametrize(("engine", "start", "given"), EVERY)
def test_no_change_is_one_that_the_same_phase_warns_of(engine: str, start: str, given: str) -> None:
    for scene, phase, offered in changes(engine, start, given):
        warned = {(row.flag, row.direction) for row in BOOK.avoid if _avoided(row, scene, phase)}
        assert not warned & {(change.flag, change.direction) for change in offered}, phase


@pytest.mark.parametrize(
    ("engine", "given", "phase", "flag", "values"),
    [
        ("vllm", "--cudagraph-capture-sizes 1 2", "graph_capture", "--cudagraph-capture-sizes", {"1"}),
        ("vllm", "--cudagraph-capture-sizes 1", "graph_capture", "--cudagraph-capture-sizes", set()),
        ("vllm", "--cudagraph-capture-sizes 1 2 4 8 16 32 64", "graph_capture", "--cudagraph-capture-sizes", {"1 2 4 8 16"}),
        ("vllm", "--compilation-config '{\"cudagraph_capture_sizes\": [1, 2, 4, 8]}'", "graph_capture", "--cudagraph-capture-sizes", {"1 2 4"}),
        ("vllm", "--max-num-seqs 1024 --max-num-batched-tokens 1024", "profiling", "--max-num-batched-tokens", set()),
        ("vllm", "--max-num-seqs 768 --max-num-batched-tokens 1024", "profiling", "--max-num-batched-tokens", {"768"}),
        ("vllm", "--mm-processor-kwargs '{\"max_pixels\": 602112}' --limit-mm-per-prompt '{\"image\":1}'", "profiling", "--mm-processor-kwargs", {'{"max_pixels":301056}'}),
        ("vllm", "--mm-processor-kwargs '{\"max_pixels\": 50176}' --limit-mm-per-prompt '{\"image\":1}'", "profiling", "--mm-processor-kwargs", set()),
        ("vllm", "--limit-mm-per-prompt '{\"image\":1,\"video\":0}'\nQwen/Qwen2.5-VL-7B-Instruct", "profiling", "--limit-mm-per-prompt", set()),
        ("vllm", "--gpu-memory-utilization 0.3", "kv_cache_sizing", "--gpu-memory-utilization", {"0.80"}),
        ("vllm", "--gpu-memory-utilization 0.3\nNVIDIA GB10 128GB", "kv_cache_sizing", "--gpu-memory-utilization", {"0.35"}),
        ("vllm", "NVIDIA GB10 128GB --gpu-memory-utilization 0.8", "host_memory", "--gpu-memory-utilization", {"0.75"}),
        ("llama.cpp", "-ub 128", "profiling", "-ub", {"64"}),
        ("llama.cpp", "-ub 32", "profiling", "-ub", set()),
    ],
)  # fmt: skip
def test_what_is_set_is_where_a_change_begins(engine: str, given: str, phase: Phase, flag: str, values: set[str]) -> None:
    offered = next(found for _, at, found in changes(engine, STARTS[engine][0], given) if at == phase)
    assert {change.value for change in offered if change.flag == flag} == values


SERVES = "vllm serve org/m --gpu-memory-utilization 0.9\nWhile it serves requests it runs out of GPU memory.\n"


@pytest.mark.parametrize(
    ("said", "first"),
    [
        ("", "--gpu-memory-utilization"),
        ("Lowering gpu_memory_utilization to 0.85 and 0.8 did not help.", "--max-num-batched-tokens"),
        ("I reduced the util to 0.8, still OOM.", "--max-num-batched-tokens"),
        ("Reducing util to 0.8: same error.", "--max-num-batched-tokens"),
        ("Raising gpu_memory_utilization did not help.", "--gpu-memory-utilization"),  # the other way was not tried
        ("I tried gpu_memory_utilization, it didn't help.", "--gpu-memory-utilization"),  # nor is said which way
        ("Lowering gpu_memory_utilization helped.", "--gpu-memory-utilization"),
    ],
)
def test_a_change_that_was_tried_in_vain_is_not_offered_first(said: str, first: str) -> None:
    document = judge(BOOK, [Contribution("paste", SERVES + said)])
    assert document["recommendation"]["flag"] == first


def test_what_is_switched_on_in_vain_is_not_offered_first() -> None:
    text = "vllm serve org/m\nIt goes OOM while CUDA graphs are captured.\n"
    tried = "Lowering gpu_memory_utilization to 0.8: same error. Reducing max_num_seqs had no effect.\n"
    document = judge(BOOK, [Contribution("paste", text + tried + "With --enforce-eager the same OOM.\n")])
    order = [document["recommendation"]["flag"], *(change["flag"] for change in document["alternatives"])]
    assert order[0] == "--cudagraph-capture-sizes"


@pytest.mark.parametrize(
    ("engine", "phase", "first"),
    [
        ("vllm", "kv_cache_sizing", "--gpu-memory-utilization raise"),
        ("vllm", "serving", "--gpu-memory-utilization lower"),
        ("sglang", "kv_cache_sizing", "--mem-fraction-static raise"),
        ("sglang", "graph_capture", "--mem-fraction-static lower"),
        ("tensorrt-llm", "kv_cache_sizing", "free_gpu_memory_fraction raise"),
        ("tensorrt-llm", "graph_capture", "free_gpu_memory_fraction lower"),
        ("tgi", "kv_cache_sizing", "--max-total-tokens lower"),
        ("tgi", "kv_cache_allocation", "--max-batch-total-tokens lower"),
        ("lmdeploy", "kv_cache_allocation", "--cache-max-entry-count lower"),
        ("llama.cpp", "kv_cache_sizing", "-c lower"),
        ("llama.cpp", "weight_loading", "-ngl lower"),
    ],
)
def test_where_nothing_is_known_but_engine_and_phase_its_own_setting_comes_before_more_cards(engine: str, phase: Phase, first: str) -> None:
    offered = next(found for _, at, found in changes(engine, STARTS[engine][0], "") if at == phase)
    assert f"{offered[0].flag} {offered[0].direction}" == first


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("vLLM 0.22: CUDA-graph capture of 51 batch sizes goes OOM during profiling.", "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS"),
        ("vllm serve org/m\nGraph capture is OOM. By default it captures to 2048 tokens.", "--cudagraph-capture-sizes"),
        ("vllm serve org/m\nGraph capture is OOM. By default it captures a few.", "--gpu-memory-utilization"),
        ("vLLM: the kernel repacks the experts when they are first run, and profile_run goes OOM.", "use-other-kernel"),
        (
            "vLLM on a DGX Spark: ValueError: No available memory for the cache blocks. The page cache is counted as the engine's.",
            "--kv-cache-memory-bytes",
        ),
        ("vLLM on a DGX Spark: ValueError: No available memory for the cache blocks.", "--gpu-memory-utilization"),
        ("resume() in torch_memory_saver's entrypoint fails with OOM at wake up.", "free-trainer-cache"),
    ],
)
def test_what_somebody_says_takes_the_memory_is_what_is_changed(text: str, first: str) -> None:
    change = judge(BOOK, [Contribution("paste", text)])["recommendation"]
    assert (change["flag"] or change["id"]) == first


@pytest.mark.parametrize(("weights", "values"), [("72.10", {"0.93"}), ("77.90", set())])
def test_a_fraction_is_raised_to_what_holds_the_weights_or_not_at_all(weights: str, values: set[str]) -> None:
    text = (
        "vllm serve org/m --gpu-memory-utilization 0.9\n"
        f"(EngineCore pid=8) INFO 11-18 10:00:00 [gpu_model_runner.py:4854] Model loading took {weights} GiB memory and 99.0 seconds\n"
        "(EngineCore pid=8) INFO 11-18 10:00:05 [gpu_worker.py:440] Free memory on device (78.9/79.18 GiB) on startup. Desired GPU memory utilization is (0.9, 71.26 GiB). \n"
        "(EngineCore pid=8) ERROR 11-18 10:00:09 [core.py:870] ValueError: No available memory for the cache blocks. "
        "Try increasing `gpu_memory_utilization` when initializing the engine.\n"
    )
    document = judge(BOOK, [Contribution("paste", text)])
    offered = [document["recommendation"], *document["alternatives"]]
    assert document["phase"] == "kv_cache_sizing"
    assert {change["value"] for change in offered if change["flag"] == "--gpu-memory-utilization"} == values


@pytest.mark.parametrize(("spare", "first"), [("3.98 GiB", "set-expandable-segments"), ("0.40 GiB", "stop-other-process")])
def test_memory_that_was_there_in_pieces_is_joined_before_a_neighbour_is_stopped(spare: str, first: str) -> None:
    text = (
        "vllm serve org/m\nWhile it serves requests: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.70 GiB. GPU 0 has a total capacity of "
        "139.81 GiB of which 3.60 GiB is free. Including non-PyTorch memory, this process has 11.35 GiB memory in use. Process 174 has 124.83 GiB "
        f"memory in use. Of the allocated memory 7.01 GiB is allocated by PyTorch, and {spare} is reserved by PyTorch but unallocated.\n"
    )
    assert judge(BOOK, [Contribution("paste", text)])["recommendation"]["id"] == first
