"""The suggested command is the one that was given, with one change; what a log says stands quoted."""

import pytest

from tests.diagnosis.material import judged

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
    assert suggested(text + TOO_LONG) == "vllm serve org/m1 --tensor-parallel-size 2 --dtype bfloat16 --enforce-eager --max-model-len 65536"
