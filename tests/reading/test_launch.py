"""The start of an engine is read word for word, wherever a person or the engine itself gives it."""

import pytest

from tests.reading.material import evidence


def started(text: str) -> list[str]:
    return [" ".join(known.value) for known in evidence(text).deployment.commands]


@pytest.mark.parametrize(
    "text",
    [
        "when I run vllm serve it fails with an error",
        "vllm serve raises ValueError with --max-model-len 8192",
        "the vllm serve command needs --tensor-parallel-size on that machine",
        "docker pull vllm/vllm-openai:v0.11.0",
        "INFO 11-01 10:00:00 [cli.py:1] vllm serve is running",
        "non-default args: {'model': <object at 0x7f>}",
        "MyLLM(model='org/m1')",
        "the class LLM(ABC) has no such method",
        "image: vllm/vllm-openai:v0.11.0\nports: [8000]",
    ],
)
def test_a_sentence_about_the_command_is_none(text: str) -> None:
    assert started(text) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("$ vllm serve Qwen/Qwen3-32B", "vllm serve Qwen/Qwen3-32B"),
        ("vllm serve Qwen/Qwen3-8B --enforce-eager 2>&1 | tee log", "vllm serve Qwen/Qwen3-8B --enforce-eager"),
        ("vllm serve ./m1 -tp 2 --cudagraph-capture-sizes 1 2 4 and then it dies", "vllm serve ./m1 -tp 2 --cudagraph-capture-sizes 1 2 4"),
        ("I ran `vllm serve ./m1 --max-model-len 8192` on two cards", "vllm serve ./m1 --max-model-len 8192"),
        ("vllm serve m/x --tp $(nvidia-smi -L | wc -l) --port 1", "vllm serve m/x --tp $(nvidia-smi -L | wc -l) --port 1"),
        ("vllm serve m/x --tp `nvidia-smi -L | wc -l` --port 1", "vllm serve m/x --tp $(nvidia-smi -L | wc -l) --port 1"),
        ("vllm serve org/m1 --api-key [hidden] --port 1", "vllm serve org/m1 --api-key [hidden] --port 1"),
        (
            "vllm serve org/m1 \\\n  --max-num-seqs 8 \\\n  --dtype half\nINFO 11-01 10:00:00 [x.py:1] hello",
            "vllm serve org/m1 --max-num-seqs 8 --dtype half",
        ),
        (
            "python3 -m vllm.entrypoints.openai.api_server --model org/m1 --enable-lora --limit-mm-per-prompt '{\"image\": 1}'",
            'python3 -m vllm.entrypoints.openai.api_server --model org/m1 --enable-lora --limit-mm-per-prompt {"image": 1}',
        ),
        (
            "$ sudo docker run --gpus all \\\n  -e HF_TOKEN=[hidden] \\\n  ghcr.io/vllm/vllm-openai:v0.11.0 \\\n  --model org/m1 -tp 4",
            "docker run --gpus all -e HF_TOKEN=[hidden] ghcr.io/vllm/vllm-openai:v0.11.0 --model org/m1 -tp 4",
        ),
        ("we use vllm/vllm-openai:v0.11.0 --model org/m1 -tp 4", "docker run vllm/vllm-openai:v0.11.0 --model org/m1 -tp 4"),
        ("CUDA_VISIBLE_DEVICES=1 vllm serve --model org/m1 -tp 4", "CUDA_VISIBLE_DEVICES=1 vllm serve org/m1 -tp 4"),
        ("vllm serve --max-num-seqs 8 --model=org/m1", "vllm serve org/m1 --max-num-seqs 8"),
        ("vllm.entrypoints.openai.api_server --model org/m1 -tp 4", "python -m vllm.entrypoints.openai.api_server --model org/m1 -tp 4"),
        (
            "python /app/vllm/entrypoints/openai/api_server.py --model org/m1 -tp 4",
            "python /app/vllm/entrypoints/openai/api_server.py --model org/m1 -tp 4",
        ),
        ("I run vllm serve org/m1 --limit-mm-per-prompt '{\"image\":4}'. It dies.", 'vllm serve org/m1 --limit-mm-per-prompt {"image":4}'),
        ("I run vllm serve org/m1 --max-num-seqs 16. It dies.", "vllm serve org/m1 --max-num-seqs 16"),
        (
            'containers:\n  - name: a\n    image: vllm/vllm-openai:v0.8.5\n    args:\n    - --model\n    - "org/m1"\n    - --max-model-len=8192\n    ports: []',
            "args: --model org/m1 --max-model-len=8192",
        ),
        (
            'services:\n  a:\n    image: "vllm/vllm-openai:latest"\n    command: ["--model", "org/m1",\n      "--hf-overrides", "{\\"a\\": 1}"]\n    shm_size: 8g',
            'command: --model org/m1 --hf-overrides {"a": 1}',
        ),
        (
            "    image: vllm/vllm-openai:latest\n    command: >\n      --model org/m1\n      --max-num-seqs 8\n    ports:\n      - 1:1\n",
            "command: --model org/m1 --max-num-seqs 8",
        ),
        (
            "llm = LLM(model='org/m1', dtype=\"half\", max_model_len=4 * 1024, compilation_config={'a': [1]}) # fails",
            "LLM( model='org/m1' dtype='half' max_model_len=4 * 1024 compilation_config={'a': [1]}",
        ),
        ('LLM("org/m1", tensor_parallel_size=2)', "LLM( model='org/m1' tensor_parallel_size=2"),
        (
            "llm = LLM(model=\"org/m1, quantization='awq', tensor_parallel_size=8)",
            "LLM( model='org/m1' quantization='awq' tensor_parallel_size=8",
        ),
        ("python -m sglang.launch_server --model-path org/m1 --tp 8", "python -m sglang.launch_server --model-path org/m1 --tp 8"),
        ("llama-server -m /models/m1.gguf -c 4096 --flash-attn on", "llama-server -m /models/m1.gguf -c 4096 --flash-attn on"),
        (
            "(APIServer pid=1) INFO 11-01 10:00:00 [utils.py:233] non-default args: {'model_tag': 'org/m1', 'host': '0.0.0.0', 'port': 8311, 'api_key': ['k1'], 'model': 'org/m1', "
            "'enforce_eager': True, 'enable_prefix_caching': False, 'max_num_seqs': 1, 'compilation_config': {'cudagraph_mode': 'FULL'}, "
            "'allowed_origins': ['a', 'b'], 'revision': None}",
            'vllm serve org/m1 --host 0.0.0.0 --port 8311 --api-key [hidden] --enforce-eager --no-enable-prefix-caching --max-num-seqs 1 --compilation-config {"cudagraph_mode": "FULL"} --allowed-origins a b',
        ),
    ],
)
def test_a_start_is_read_with_all_that_was_given(text: str, words: str) -> None:
    assert started(text) == [words]


def test_of_several_starts_each_stands_at_its_line() -> None:
    found = evidence("vllm serve org/m1 -tp 2\n\nthen\nvllm serve org/m1 -tp 4").deployment.commands
    assert [(known.line, known.value[-1]) for known in found] == [(1, "2"), (4, "4")]


def test_json_that_no_shell_has_seen_keeps_its_quotes() -> None:
    config = '{"kv_connector":"LMCacheConnectorV1","kv_role":"kv_both"}'
    (found,) = evidence(f"Args:\n  vllm serve m/x-8b --kv-transfer-config {config} --max-model-len 8192").deployment.commands
    assert found.value == ("vllm", "serve", "m/x-8b", "--kv-transfer-config", config, "--max-model-len", "8192")
