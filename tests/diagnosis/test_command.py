"""The suggested command is the one that was given, with one change; what a log says stands quoted."""

from dataclasses import replace

import pytest

from bot.diagnosis.command import command
from bot.diagnosis.remedies import remedies
from bot.diagnosis.this_run import scene_of
from bot.diagnosis.within import within
from bot.domain.diagnosis import Phase
from bot.rulebook.load import load_rulebook
from tests.diagnosis.material import frame, judged, oom, worker
from tests.reading.material import evidence

TOO_LONG = (
    "ValueError: To serve at least one request with the models's max seq len (131072), (16.00 GiB KV cache is needed, which is larger than the "
    "available KV cache memory (8.00 GiB). Based on the available memory, the estimated maximum model length is 65536.\n"
)
NO_BLOCKS = "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.\n"


def suggested(text: str) -> str:
    recommendation = judged(text)["recommendation"]
    return str(recommendation["command"])


@pytest.mark.parametrize("spelled", ["--max-model-len 131072", "--max_model_len 131072", "--max-model-len=131072"])
def test_the_command_is_as_given_but_for_the_change(spelled: str) -> None:
    given = f"vllm serve org/m1 --revision abc {spelled} --trust-remote-code --max-num-seqs 1\n"
    assert suggested(given + TOO_LONG) == "vllm serve org/m1 --revision abc --max-model-len 65536 --trust-remote-code --max-num-seqs 1"


def test_the_engine_s_own_list_of_what_was_given_keeps_where_it_listens() -> None:
    given = "(APIServer pid=1) INFO 11-01 10:00:00 [utils.py:233] non-default args: {'model_tag': 'org/m1', 'host': '0.0.0.0', 'port': 8311, 'max_model_len': 131072}\n"
    assert suggested(given + TOO_LONG) == "vllm serve org/m1 --host 0.0.0.0 --port 8311 --max-model-len 65536"


SEGMENTS = worker("Worker_TP0", frame("v1/worker/gpu_worker.py", "execute_model"), oom("1.27 GiB", "110.00 MiB", spare="2.90 GiB"))
SET = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"


@pytest.mark.parametrize(
    ("given", "command"),
    [
        ("", f"{SET} vllm serve MODEL"),  # nobody told the start, and a variable alone starts nothing
        ("vllm serve org/m1 --seed 1", f"{SET} vllm serve org/m1 --seed 1"),
        ("NCCL_DEBUG=INFO vllm serve org/m1 --seed 1", f"{SET} NCCL_DEBUG=INFO vllm serve org/m1 --seed 1"),
        ("PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:512 vllm serve org/m1 --seed 1", f"{SET} vllm serve org/m1 --seed 1"),
        (
            "docker run --gpus all vllm/vllm-openai:v0.11.0 --model org/m1 --seed 1",
            f"docker run -e {SET} --gpus all vllm/vllm-openai:v0.11.0 --model org/m1 --seed 1",
        ),
        ('llm = LLM(model="org/m1", seed=1)', SET),  # a program sets its own
    ],
)
def test_a_variable_stands_in_front_of_the_start_that_was_given(given: str, command: str) -> None:
    assert suggested(f"{given}\n{SEGMENTS}") == command


@pytest.mark.parametrize(("named", "model"), [("Qwen3-27B", "MODEL"), ("Qwen/Qwen3-32B", "Qwen/Qwen3-32B")])
def test_a_name_that_no_start_finds_is_not_put_into_one(named: str, model: str) -> None:
    assert suggested(f"24 GB card, {named} (NVFP4), this error:\n{TOO_LONG}") == f"vllm serve {model} --max-model-len 65536"


@pytest.mark.parametrize("key", ["command", "args"])
def test_the_arguments_of_a_container_whose_image_is_not_shown_are_the_start(key: str) -> None:
    given = f"{key}: --model /models/m1 --reasoning-parser deepseek_r1 --tensor_parallel_size 4\n"
    command = (
        f'{key}: ["--model", "/models/m1", "--reasoning-parser", "deepseek_r1", "--tensor_parallel_size", "4", "--max-model-len", "65536"]'
    )
    assert suggested(given + TOO_LONG) == command


def test_a_key_without_a_model_is_no_start() -> None:
    assert suggested("command: sleep --verbose 3\n" + TOO_LONG) == "vllm serve MODEL --max-model-len 65536"


def test_a_flag_that_was_not_given_stands_at_the_end() -> None:
    assert suggested("vllm serve org/m1 --enforce-eager\n" + TOO_LONG) == "vllm serve org/m1 --enforce-eager --max-model-len 65536"


def test_a_short_spelling_is_changed_where_it_stands() -> None:
    given = "vllm serve org/m1 -gmu 0.5 --seed 1\n(EngineCore pid=5) INFO 11-01 10:00:00 [gpu_worker.py:1] Available KV cache memory: -1.50 GiB\n"
    assert suggested(given + NO_BLOCKS).startswith("vllm serve org/m1 --gpu-memory-utilization ")
    assert suggested(given + NO_BLOCKS).endswith(" --seed 1")


def test_of_several_starts_the_last_before_the_error_is_changed() -> None:
    text = "vllm serve org/m1 -tp 2\nvllm serve org/m1 -tp 4\n" + TOO_LONG + "vllm serve org/m1 -tp 8\n"
    assert suggested(text) == "vllm serve org/m1 -tp 4 --max-model-len 65536"


def test_without_a_start_the_dump_gives_what_decides_memory() -> None:
    text = (
        "(EngineCore pid=5) INFO 11-01 10:00:00 [core.py:105] Initializing a V1 LLM engine (v0.28.0) with config: model='org/m1', dtype=torch.bfloat16, "
        "tensor_parallel_size=2, pipeline_parallel_size=1, enforce_eager=True, trust_remote_code=False\n"
    )
    assert suggested(text + TOO_LONG) == "vllm serve org/m1 --tensor-parallel-size 2 --enforce-eager --max-model-len 65536"


def told(text: str) -> str:
    return " ".join(judged(text)["notes"])


@pytest.mark.parametrize(
    ("given", "command"),
    [
        (
            "python3 -m vllm.entrypoints.openai.api_server --model org/m1 --api-key [hidden]",
            "python3 -m vllm.entrypoints.openai.api_server --model org/m1 --api-key '[hidden]' --max-model-len 65536",
        ),
        (
            "docker run --gpus all vllm/vllm-openai:v0.8.5 --model org/m1",
            "docker run --gpus all vllm/vllm-openai:v0.8.5 --model org/m1 --max-model-len 65536",
        ),
        ("    image: vllm/vllm-openai:v0.8.5\n    args:\n    - --model=org/m1", 'args: ["--model=org/m1", "--max-model-len", "65536"]'),
        ("llm = LLM(model='org/m1', max_model_len=131072, seed=1)", "LLM(model='org/m1', max_model_len=65536, seed=1)"),
        ("llm = LLM(model='org/m1')", "LLM(model='org/m1', max_model_len=65536)"),
    ],
)
def test_a_start_keeps_its_launcher(given: str, command: str) -> None:
    assert suggested(f"{given}\n{TOO_LONG}") == command
    assert ("put yours in" in told(f"{given}\n{TOO_LONG}")) == ("[hidden]" in given)


def test_before_vllm_serve_there_was_none() -> None:
    version = "INFO 05-01 10:00:00 llm_engine.py:1] Initializing an LLM engine (v0.4.2) with config: model='org/m1'\n"
    assert suggested(version + TOO_LONG).startswith("python -m vllm.entrypoints.openai.api_server --model org/m1 ")
    assert suggested(version.replace("0.4.2", "0.6.2") + TOO_LONG).startswith("vllm serve org/m1 ")


def test_a_command_that_nobody_gave_says_that_it_holds_only_what_the_paste_says() -> None:
    assert "flags that you gave and that are not in it stay as they are" in told(
        "It fails with --block-size 256 and --dtype half.\n" + TOO_LONG
    )
    assert suggested("It fails with --block-size 256 and --dtype half.\n" + TOO_LONG).endswith(
        " --block-size 256 --dtype half --max-model-len 65536"
    )
    assert "flags that you gave" not in told("vllm serve org/m1\n" + TOO_LONG)


def test_what_only_the_engine_worked_out_is_not_given() -> None:
    line = (
        "[2025-09-02 11:21:40 TP1] Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=10.12 GB, mem usage=68.21 GB.\n"
    )
    error = "[2025-09-02 11:21:50 TP1] Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 1.50 GiB.\n"
    assert "--dtype" not in suggested(line + error)
    assert " --tensor-parallel-size N " in suggested(line + error)
    assert "N in the command stands for the number of tensor-parallel ranks: their tags show 2 or more." in told(line + error)


@pytest.mark.parametrize("label", ["Worker_TP3_EP3", "Worker_TP3"])
def test_expert_parallelism_stands_in_the_tags(label: str) -> None:
    text = worker(
        label,
        frame("v1/worker/gpu_worker.py", "compile_or_warm_up_model"),
        frame("v1/worker/gpu_model_runner.py", "capture_model"),
        oom("3.00 GiB", "1.00 GiB"),
    )
    assert ("--enable-expert-parallel" in suggested(text)) == ("EP" in label)


def test_a_trainer_or_a_harness_gets_no_command_of_the_server() -> None:
    told = "{} vllm 0.11 goes OOM with long prompts"
    assert judged(told.format("our server,"))["recommendation"]["command"].startswith("vllm serve")
    trained = judged(told.format("GRPO with Gemma-12B,"))
    assert trained["recommendation"]["command"] is None
    assert any(note.startswith("Another program starts the engine here (a trainer, line 1)") for note in trained["notes"])
    harness = judged(told.format("lm_eval --model vllm --model_args pretrained=Qwen/Qwen2.5-72B-Instruct\n"))
    assert (harness["deployment"]["model"], harness["recommendation"]["command"]) == ("Qwen/Qwen2.5-72B-Instruct", None)


def test_a_program_that_starts_the_engine_itself_gets_no_command_of_another() -> None:
    text = "2026-05-20 01:43:21,994 xinference.core.worker 155 ERROR    Failed to load model Qwen3-VL-Instruct-0\n"
    assert judged(TOO_LONG + text)["recommendation"]["command"] is None
    assert "(xinference, line 2): it may write --max-model-len in its own way" in told(TOO_LONG + text)
    assert suggested("vllm serve org/m1\n" + TOO_LONG + text) == "vllm serve org/m1 --max-model-len 65536"


@pytest.mark.parametrize(
    ("version", "flag"), [("0.9.2", "VLLM_MM_INPUT_CACHE_GIB"), ("0.10.1", "--mm-processor-cache-gb"), ("0.6.0", None)]
)
def test_a_flag_is_offered_to_the_releases_that_have_it(version: str, flag: str | None) -> None:
    text = f"INFO 05-01 10:00:00 api_server.py:1] vLLM API server version {version}\nvllm serve Qwen/Qwen2.5-VL-7B-Instruct\nLast State: Terminated\n  Reason: OOMKilled\n"
    flags = {change["flag"] for change in judged(text)["alternatives"]}
    assert flags & {"VLLM_MM_INPUT_CACHE_GIB", "--mm-processor-cache-gb"} == ({flag} if flag else set())


def test_trtllm_serve_is_changed_as_it_spells_its_options() -> None:
    given = "trtllm-serve org/m1 --max_batch_size 256 --tp_size 2\n[TRT-LLM] [E] RuntimeError: no free state slots\n"
    rule = next(rule for rule in load_rulebook().remedies if rule.flag == "--max_batch_size")
    scene = scene_of(load_rulebook(), evidence(given))
    assert command(load_rulebook(), rule, "64", scene) == "trtllm-serve org/m1 --max_batch_size 64 --tp_size 2"


TGI = "text-generation-launcher --model-id org/m1 --max-input-length 4096 --max-batch-prefill-tokens 4096 --cuda-memory-fraction 0.8\n"
SGLANG = (
    "[2025-10-02 10:00:09 TP0] Capture cuda graph begin. This can take up to several minutes. avail mem=8.93 GB\n"
    '  File "/sgl-workspace/sglang/python/sglang/srt/model_executor/cuda_graph_runner.py", line 300, in __init__\n'
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 79.11 GiB of which 10.00 MiB is free.\n"
)


def test_another_engine_s_start_and_its_arguments_are_not_repeated() -> None:
    started = "(EngineCore_DP0 pid=12) INFO 11-01 10:00:00 [core.py:77] Initializing a V1 LLM engine (v0.11.0)\n"
    failed = f"{started}(EngineCore_DP0 pid=12) ERROR 11-01 10:00:13 [core.py:708] {TOO_LONG}"
    assert suggested(TGI + failed) == "vllm serve org/m1 --max-model-len 65536"
    assert suggested(f"vllm serve org/m1 --max-model-len 131072 --max-num-seqs 8\n{TGI}{failed}") == (
        "vllm serve org/m1 --max-model-len 65536 --max-num-seqs 8"
    )


def test_an_engine_gets_no_argument_that_it_does_not_have() -> None:
    given = "vllm serve org/m1 --max-num-seqs 128 --max-num-batched-tokens 4096 --block-size 32 --enforce-eager\n"
    assert suggested(given + SGLANG) == (
        "python -m sglang.launch_server --model-path org/m1 --max-running-requests 128 --mem-fraction-static 0.86"
    )


def test_stages_that_tags_only_show_the_least_of_stand_in_the_command_as_a_letter_too() -> None:
    checked = "".join(
        f"(Worker_PP{stage}_TP3 pid=1{stage}) INFO 11-30 10:00:00 [gpu_worker.py:276] Available KV cache memory: {pool} GiB\n"
        for stage, pool in ((0, 6.21), (1, 3.10))
    )
    assert " --tensor-parallel-size N --pipeline-parallel-size M " in suggested(checked + TOO_LONG)
    assert "M in the command stands for the number of pipeline-parallel ranks: their tags show 2 or more." in told(checked + TOO_LONG)
    assert " --pipeline-parallel-size 2 " in suggested(f"pipeline_parallel_size=2\n{checked}{TOO_LONG}")


def started(text: str, engine: str = "vllm", phase: Phase = "graph_capture") -> list[str]:
    """The commands of every change of that phase."""
    scene = scene_of(load_rulebook(), replace(evidence(text), engine=engine))
    return [change.command for change in remedies(load_rulebook(), scene, phase, None) if change.command]


@pytest.mark.parametrize(
    ("given", "engine", "phase", "command"),
    [
        ("llama-server -m m.gguf --ctx-size 40960 --port 1", "llama.cpp", "kv_cache_allocation", "llama-server -m m.gguf -c 20480 --port 1"),
        (
            "python -m sglang.launch_server --model-path org/m --cuda-graph-max-bs 64 --seed 1", "sglang", "graph_capture",
            "python -m sglang.launch_server --model-path org/m --cuda-graph-max-bs 16 --seed 1",
        ),
        (  # tokens of the pool are no limit of a request, though TGI calls that limit so
            "python -m sglang.launch_server --model-path org/m --max-total-tokens 90000 --mem-frac 0.9 --mem-fraction 0.9", "sglang", "graph_capture",
            "python -m sglang.launch_server --model-path org/m --max-total-tokens 90000 --mem-frac 0.9 --mem-fraction-static 0.85",
        ),
        ("vllm serve org/m --no-enforce-eager --max-model-len -1", "vllm", "graph_capture", "vllm serve org/m --enforce-eager --max-model-len -1"),
        (
            """vllm serve org/m --compilation-config '{"cudagraph_capture_sizes": [1, 2, 64], "mode": 3}'""", "vllm", "graph_capture",
            """vllm serve org/m --compilation-config '{"cudagraph_capture_sizes": [1, 2, 4, 8, 16], "mode": 3}'""",
        ),
        (
            "vllm serve org/m -cc.cudagraph_capture_sizes=[1,2,64] --seed 1", "vllm", "graph_capture",
            "vllm serve org/m '-cc.cudagraph_capture_sizes=[1, 2, 4, 8, 16]' --seed 1",
        ),
        ("trtllm-serve org/m --kv_cache_free_gpu_memory_fraction 0.9", "tensorrt-llm", "graph_capture", "trtllm-serve org/m --kv_cache_free_gpu_memory_fraction 0.85"),
        ("trtllm-serve org/m --config c.yaml\nfree_gpu_memory_fraction: 0.9", "tensorrt-llm", "graph_capture", "free_gpu_memory_fraction=0.85"),
        ("[TensorRT-LLM] TensorRT-LLM version: 1.1.0", "tensorrt-llm", "graph_capture", "trtllm-serve MODEL --kv_cache_free_gpu_memory_fraction 0.8"),
    ],
)  # fmt: skip
def test_one_option_is_changed_however_and_wherever_it_is_spelled(given: str, engine: str, phase: Phase, command: str) -> None:
    assert command in started(given + "\n", engine, phase)


def test_an_option_of_python_is_changed_inside_the_dict_that_holds_it() -> None:
    given = ["model='org/m'", "compilation_config={'cudagraph_capture_sizes': [1, 2, 64], 'level': 3}"]
    changed = ["model='org/m'", "compilation_config={'cudagraph_capture_sizes': [1, 2], 'level': 3}"]
    assert within("cudagraph_capture_sizes", "1 2", given) == changed
    assert within("cudagraph_mode", "PIECEWISE", given) is None
    assert within("cudagraph_capture_sizes", "1 2", ["--served-model-name", "{not json", "-cc.mode=3"]) is None


def test_a_launcher_is_one_that_every_release_has_which_may_be_speaking() -> None:
    line = "INFO 02-01 10:11:12 llm_engine.py:73] Initializing an LLM engine with config: model='org/m1', tensor_parallel_size=2, seed=0)\n"
    assert suggested(line + NO_BLOCKS).startswith("python -m vllm.entrypoints.openai.api_server --model org/m1 ")
    assert suggested(TOO_LONG).startswith("vllm serve MODEL ")  # words of releases that all have it


def test_what_an_engine_reports_to_be_in_force_stays_so() -> None:
    """Else the printed start changes more than the one option."""
    start = "[2026-01-14 09:12:01] server_args=ServerArgs(model_path='org/m1', mem_fraction_static=0.93, max_running_requests=None, chunked_prefill_size=8192, tp_size=2, cuda_graph_max_bs=256)\n"
    commands = started(start + SGLANG, "sglang")
    assert commands[0].endswith("--tensor-parallel-size 2 --chunked-prefill-size 8192 --cuda-graph-max-bs 256 --mem-fraction-static 0.91")
    assert commands[1].endswith("--tensor-parallel-size 2 --mem-fraction-static 0.93 --chunked-prefill-size 8192 --cuda-graph-max-bs 16")
    config = "(EngineCore pid=5) INFO 11-01 10:00:00 [core.py:105] Initializing a V1 LLM engine (v0.28.0) with config: model='org/m1', max_seq_len=32768\n"
    assert suggested(config + NO_BLOCKS).startswith("vllm serve org/m1 --max-model-len 32768 --gpu-memory-utilization ")


def test_what_stands_inside_another_arguments_json_is_no_flag_of_its_own() -> None:
    text = '--speculative-config \'{"method":"eagle3","num_speculative_tokens":4}\'\n' + worker(
        "EngineCore", frame("v1/worker/gpu_worker.py", "load_model"), oom("1.00 GiB", "0.30 GiB"), at="ERROR 09-14 06:06:19 [core.py:1205]"
    )
    command = judged(text)["recommendation"]["command"]
    assert '"num_speculative_tokens":4' in command
    assert "--num-speculative-tokens" not in command


@pytest.mark.parametrize("start", ["vllm serve org/m1 ", "it fails with "])
def test_what_another_argument_s_json_holds_is_changed_there(start: str) -> None:
    propose = [frame("v1/worker/gpu_worker.py", "execute_model"), frame("v1/spec_decode/eagle.py", "propose")]
    text = f'{start}--speculative-config \'{{"method":"eagle3","num_speculative_tokens":4}}\'\n' + worker(
        "EngineCore", *propose, oom("1.00 GiB", "0.30 GiB")
    )
    document = judged(text)
    change = next(one for one in (document["recommendation"], *document["alternatives"]) if one["flag"] == "--num-speculative-tokens")
    assert '"num_speculative_tokens": 1' in change["command"]
    assert "--num-speculative-tokens" not in change["command"]


def test_replicas_that_the_tags_show_stand_in_the_command() -> None:
    capture = (frame("v1/worker/gpu_worker.py", "compile_or_warm_up_model"), frame("v1/worker/gpu_model_runner.py", "capture_model"))
    both = worker("Worker_DP0_TP1", *capture, oom("3.00 GiB", "1.00 GiB")) + "\n" + worker("Worker_DP1_TP0", "NCCL error", pid=8)
    assert suggested(both).startswith("vllm serve MODEL --tensor-parallel-size 2 --data-parallel-size 2 ")
    one = worker("Worker_DP1_TP1", *capture, oom("3.00 GiB", "1.00 GiB"))
    assert suggested(one).startswith("vllm serve MODEL --tensor-parallel-size N --data-parallel-size K ")
    assert "K in the command stands for the number of data-parallel ranks: their tags show 2 or more." in told(one)
    assert "data-parallel" not in suggested(worker("Worker_TP1", *capture, oom("3.00 GiB", "1.00 GiB")))
