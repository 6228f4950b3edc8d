"""`oombot size` on the command line, offline."""

import asyncio
import json
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bot.domain.incident import LOCAL_TEAM, Contribution, Origin
from bot.main import run
from bot.store.store import open_store

LLAMA = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 80,
    "num_attention_heads": 64, "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 131072, "torch_dtype": "bfloat16",
}  # fmt: skip


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA))
    return str(path)


def answered(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert run(["size", *arguments, "--json"]) == 0
    out = capsys.readouterr()
    assert out.err == ""
    return dict(json.loads(out.out))


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(["size", *arguments]) == 2
    out = capsys.readouterr()
    assert out.out == ""
    return out.err


def test_a_question_without_a_model_says_what_to_write(capsys: pytest.CaptureFixture[str]) -> None:
    assert "There is no model in the question" in refused(capsys, "--gpu", "H100")


def test_a_missing_file_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert "absent.json: there is no such file" in refused(capsys, "--config", "absent.json", "--gpu", "H100")
    assert "absent.jsonl: there is no such file" in refused(capsys, "--batch", "absent.jsonl")


def test_a_file_that_is_no_config_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{")
    assert "oombot: config.json: this is not JSON (" in refused(capsys, "--config", "config.json", "--gpu", "H100")
    assert "oombot: .: config.json of this folder is not JSON (" in refused(capsys, "--config", ".", "--gpu", "H100")


def test_a_model_that_nobody_has_is_refused_with_the_nearest_name(capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, "Qwen/Qwen3-8C", "--gpu", "H100")
    assert "Did you mean Qwen/Qwen3-8B?" in said or "Did you mean qwen3-8b?" in said or "Did you mean Qwen3-8B?" in said


def test_a_shared_card_name_is_asked_back(capsys: pytest.CaptureFixture[str]) -> None:
    assert "say which: A100-40GB" in refused(capsys, "qwen3-8b", "--gpu", "A100")


def test_a_value_in_the_wrong_form_names_its_flag(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        run(["size", "qwen3-8b", "--gpu", "H100", "--tp", "many"])
    assert stopped.value.code == 2
    assert "tensor_parallel_size is 'many'; it takes a whole number" in capsys.readouterr().err


@pytest.mark.parametrize(("flag", "value", "said"), [
    ("--weights-bytes", "-1", "weights_bytes is -1"), ("--block-size", "0", "block_size is 0"), ("--dtype", "banana", "dtype is 'banana'"),
    ("--utilization", "0", "gpu_memory_utilization is 0"), ("--utilization", "2", "gpu_memory_utilization is 2"), ("--tp", "0", "size is 0"),
    ("--gpu-memory-bytes", "0", "gpu_memory_bytes is 0"), ("--checkpoint-bytes", "-70GB", "checkpoint_bytes is -70000000000"),
])  # fmt: skip
def test_a_value_that_cannot_be_is_refused_in_a_sentence(capsys: pytest.CaptureFixture[str], flag: str, value: str, said: str) -> None:
    told = refused(capsys, "qwen3-8b", "--gpu", "H100", f"{flag}={value}")
    assert told.startswith("oombot: ")
    assert said in told
    assert told.count("\n") == 1


def test_the_article_by_flags_gives_its_pool_to_the_byte(capsys: pytest.CaptureFixture[str], config: str) -> None:
    document = answered(
        capsys, "--config", config, "--gpu-memory-bytes", "80GB", "--tp", "4", "--checkpoint-bytes", "70GB", "--other-bytes", "10GB",
        "--utilization", "0.92", "--max-model-len", "131072", "--max-num-seqs", "256",
    )  # fmt: skip
    rank = document["ranks"][0]
    assert [rank[name] for name in ("budget_bytes", "weights_bytes", "kv_pool_bytes", "outside_budget_bytes")] == [
        73_600_000_000, 17_500_000_000, 46_100_000_000, 6_400_000_000,
    ]  # fmt: skip
    assert {name: document["kv"][name] for name in ("bytes_per_token", "request_bytes", "max_concurrency", "full_requests")} == {
        "bytes_per_token": 81_920, "request_bytes": 10_737_418_240, "max_concurrency": 4.293, "full_requests": 4,
    }  # fmt: skip
    assert (document["fits"], len(document["ranks"]), document["range"]) == (True, 4, None)
    assert document["assumptions"] == ["weights split evenly over 4 ranks"]
    assert [(term["name"], term["bytes"], term["basis"]) for term in document["terms"]] == [("other", 10_000_000_000, "given")]
    assert document["demand"] == {
        "requests": 256, "bytes_per_rank": 256 * 10_737_418_240, "bytes_all_ranks": 4 * 256 * 10_737_418_240, "reserved_at_startup": False,
    }  # fmt: skip


@pytest.mark.parametrize("flags", [
    ["--tp", "2", "--len", "32k", "--util", "0.9", "--kv", "fp8", "--seqs", "64", "--batched", "8k", "--version", "0.26.0"],
    ["--tensor-parallel-size", "2", "--max-model-len", "32768", "--gpu-memory-utilization", "90%", "--kv-cache-dtype", "fp8", "--max-num-seqs", "64",
     "--max-num-batched-tokens", "8192", "--engine-version", "0.26.0"],
])  # fmt: skip
def test_short_and_long_names_ask_the_same(capsys: pytest.CaptureFixture[str], flags: list[str]) -> None:
    document = answered(capsys, "qwen3-8b", "--gpu", "H100", *flags)
    assert document["engine_version"] == "0.26.0"
    assert document["command"] == (
        "vllm serve Qwen/Qwen3-8B --tensor-parallel-size 2 --max-model-len 32768 --max-num-seqs 64 --max-num-batched-tokens 8192 "
        "--gpu-memory-utilization 0.9 --kv-cache-dtype fp8"
    )


def test_words_and_flags_together_let_the_flags_win(capsys: pytest.CaptureFixture[str]) -> None:
    document = answered(capsys, "llama-3.3-70b", "on", "4xH100", "128k", "fubar", "--max-model-len", "8192")
    assert "--max-model-len 8192" in document["command"]
    assert document["corrections"] == ["'fubar' was not understood and is left out"]


def test_a_folder_is_read_as_the_model(capsys: pytest.CaptureFixture[str], config: str, tmp_path: Path) -> None:
    document = answered(capsys, str(tmp_path), "--gpu", "H100", "--tp", "4")
    assert document["fits"] is True
    assert document["command"].startswith(f"vllm serve {tmp_path} --tensor-parallel-size 4")


def test_a_file_that_is_named_alone_is_the_models_config(capsys: pytest.CaptureFixture[str], config: str) -> None:
    document = answered(capsys, config, "--gpu", "H100", "--tp", "4")
    assert document["fits"] is True
    assert config not in (document["command"] or "")


def test_a_known_hub_id_works_without_the_hub_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    document = answered(capsys, "Qwen/Qwen3-8B", "--gpu", "H100")
    assert any("as the rulebook knows it" in said for said in document["assumptions"])


def test_what_does_not_fit_is_an_answer_with_ways(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["size", "llama-3.3-70b", "2xH100", "128k"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("It does not fit: meta-llama/Llama-3.3-70B-Instruct on H100-80GB")
    assert "What would make it fit, cheapest first" in text
    assert "Demand, not a reservation" in text
    assert re.search(
        r"\nRun, with --max-model-len (\d+)\n    vllm serve meta-llama/\S+ --tensor-parallel-size 2 --max-model-len \1\n", text
    )


def test_nothing_is_offered_to_run_where_nothing_fits(capsys: pytest.CaptureFixture[str], config: str) -> None:
    assert run(["size", "--config", config, "--gpu", "L4", "--weights-bytes", "1000GiB"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("It does not fit: L4-24GB")
    assert "The weights alone take 1,000.00 GiB on rank 0" in text
    assert "vllm serve" not in text


def test_an_estimate_that_does_not_decide_may_fit(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["size", "gpt-oss-120b", "--gpu", "H100"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("It may fit: openai/gpt-oss-120b on H100-80GB")
    assert "Run, with --tensor-parallel-size 2\n" in text


def test_a_config_file_is_no_name_to_serve(capsys: pytest.CaptureFixture[str], config: str) -> None:
    asked = ("--gpu", "H100", "--tp", "4")
    assert answered(capsys, "--config", config, *asked)["command"] == "vllm serve MODEL --tensor-parallel-size 4"
    assert answered(capsys, "--config", str(Path(config).parent), *asked)["command"] == "vllm serve MODEL --tensor-parallel-size 4"
    Path(config).write_text(json.dumps({**LLAMA, "_name_or_path": "acme/heron-70b"}))
    assert answered(capsys, "--config", config, *asked)["command"] == "vllm serve acme/heron-70b --tensor-parallel-size 4"


def test_amounts_read_in_gib_and_in_gb_only_beside_what_was_given_so(capsys: pytest.CaptureFixture[str], config: str) -> None:
    asked = ["size", "--config", config, "--tp", "4", "--utilization", "0.92"]
    assert run([*asked, "--gpu-memory-bytes", "80GB", "--checkpoint-bytes", "70GB", "--other-bytes", "10GB"]) == 0
    text = capsys.readouterr().out
    assert "The pool of rank 0 has 42.93 GiB (46.1 GB)" in text
    assert re.search(r"in GB +80 GB +73.6 GB +17.5 GB +10 GB +46.1 GB +6.4 GB", text)
    assert run([*asked, "--gpu-memory-bytes", "80GiB", "--checkpoint-bytes", "70GiB", "--other-bytes", "10GiB"]) == 0
    assert re.search(r"\d GB\b(?!\))", capsys.readouterr().out) is None


def test_two_versions_and_several_cards_stand_in_columns(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["size", "gemma-3-27b", "--gpu", "H100", "--engine-version", "0.25.0", "--engine-version", "0.26.0"]) == 0
    assert "0.25.0 fits" in capsys.readouterr().out
    assert run(["size", "qwen3-8b", "--gpu", "RTX 4090,H200"]) == 0
    text = capsys.readouterr().out
    assert text.splitlines()[1].split() == ["RTX", "4090", "H200"]
    assert "Run, with H200\n    vllm serve Qwen/Qwen3-8B" in text
    assert "Why" in text


def test_a_batch_answers_every_line_and_goes_on_after_a_refusal(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    lines = [
        {"id": 1, "config": LLAMA, "gpu": "H100", "tensor_parallel_size": 4},
        {"id": 2, "config": LLAMA, "tensor_parallel_size": 7},
        {"id": 3},
    ]
    (tmp_path / "fleet.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines) + "nonsense\n")
    assert run(["size", "--batch", "fleet.jsonl", "--json"]) == 0
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [answer["id"] for answer in answers] == [1, 2, 3, None]
    assert answers[0]["fits"] is True
    assert [answer.get("refused_by") for answer in answers[1:]] == ["engine", "oombot", "oombot"]


def test_building_the_parser_loads_nothing_heavy() -> None:
    code = (
        "import sys, argparse, bot.cli.size; bot.cli.size.add_options(argparse.ArgumentParser());"
        "sys.exit(any(name in sys.modules for name in ('PIL', 'huggingface_hub', 'msgspec', 'sqlalchemy', 'bot.usecases.sizing.size')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_an_unknown_flag_gets_the_nearest_one(capsys: pytest.CaptureFixture[str]) -> None:
    for flag, said in (
        ("--max-modellen", "did you mean --max-model-len?"),
        ("-tp", "there is no -tp; did you mean --tp?"),
        ("--trust-remote-code", "--help"),
    ):
        with pytest.raises(SystemExit) as stopped:
            run(["size", "qwen3-8b", "--gpu", "H100", flag, "4"])
        assert stopped.value.code == 2
        told = capsys.readouterr().err
        assert said in told
        assert told.count("\n") == 1


@pytest.mark.parametrize("words", [["llama-3.3-70b", "--tp", "4", "on", "H100"], ["--tp", "4", "llama-3.3-70b", "on", "H100"]])
def test_words_may_stand_anywhere_among_the_flags(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    document = answered(capsys, *words)
    assert (document["gpu"], len(document["ranks"])) == ("H100-80GB", 4)
    assert document["model"] == "meta-llama/Llama-3.3-70B-Instruct"


def test_batch_lines_may_name_their_model(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    questions = [
        {"id": "named", "model": "qwen3-8b", "gpu": "2xH100"},
        {"id": "absent", "model": "nobody/nothing", "gpu": "H100"},
        {"id": "none", "gpu": "H100"},
    ]
    (tmp_path / "fleet.jsonl").write_text("\n".join(map(json.dumps, questions)))
    assert run(["size", "--batch", "fleet.jsonl", "--json"]) == 0
    named, absent, none = map(json.loads, capsys.readouterr().out.splitlines())
    assert (named["id"], named["fits"], len(named["ranks"])) == ("named", True, 2)
    assert (absent["id"], absent["refused_by"]) == ("absent", "oombot")
    assert "nobody/nothing is not in the hub's cache" in absent["error"]
    assert "there is no config.json in the question" in none["error"]


def test_a_hub_that_cannot_be_reached_is_said_at_once(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    waited: list[float] = []
    monkeypatch.setattr("time.sleep", waited.append)  # as huggingface_hub does between its tries, for half a minute
    assert "http://127.0.0.1:9 cannot be reached: check the network or HF_ENDPOINT" in refused(capsys, "nobody/nothing", "--gpu", "H100")
    assert waited == []


def test_terms_that_this_machine_measured_stand_in_for_estimates(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    asked = ["llama-3.1-8b", "--gpu", "H100", "--max-model-len", "8192", "--max-num-batched-tokens", "8192", "--engine-version", "0.26.0"]
    assert all(not term["basis"].startswith("measured") for term in answered(capsys, *asked)["terms"])
    place = tmp_path / "data" / "oombot" / "oombot.db"
    assert not place.exists()
    place.parent.mkdir(parents=True, exist_ok=True)
    asyncio.run(keep_a_start(f"sqlite+aiosqlite:///{place}"))
    first = answered(capsys, *asked)["terms"][0]
    assert (first["name"], first["bytes"], first["basis"]) == ("activations", 3 * 2**30, "measured D-0001")
    assert run(["size", *asked]) == 0
    (shown,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  activations")]
    assert shown.split()[:3] == ["activations", "3.00", "GiB"]
    assert shown.endswith("measured D-0001")


async def keep_a_start(url: str) -> None:
    document = {
        "engine_version": "0.26.0", "phase": "kv_cache_sizing",
        "deployment": {
            "model": "meta-llama/Llama-3.1-8B-Instruct", "gpu": "H100-80GB", "tensor_parallel_size": 1, "max_num_batched_tokens": 8192,
        },
        "budgets": [{"rank": 0, "label": "Worker_TP0", "activation_peak_bytes": 3 * 2**30, "weights_bytes": 15 * 2**30}],
    }  # fmt: skip
    store = await open_store(url)
    try:
        await store.append(Origin(team=LOCAL_TEAM), [Contribution("paste", "a log", at=datetime(2026, 11, 30, tzinfo=UTC))], document)
    finally:
        await store.close()


def test_a_database_that_cannot_be_opened_leaves_the_estimates(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "broken.db").write_text("this is no database at all, but long enough to look like one" * 40)
    monkeypatch.setenv("OOMBOT_DATABASE_URL", f"sqlite+aiosqlite:///{tmp_path / 'broken.db'}")
    assert run(["size", "qwen3-8b", "--gpu", "H100", "--json"]) == 0
    out = capsys.readouterr()
    assert json.loads(out.out)["fits"] is True
    assert "what was measured here is left out" in out.err


def test_sizing_without_a_database_imports_none() -> None:
    code = (
        "import sys\nfrom bot.main import run\n"
        "assert run(['size', 'qwen3-8b', '--gpu', 'H100', '--json']) == 0\n"
        "assert not {'sqlalchemy', 'aiohttp', 'huggingface_hub'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert (done.returncode, done.stderr) == (0, "")


def test_weights_that_do_not_fit_while_they_are_converted_do_not_fit(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["llama-3.3-70b", "--gpu", "H100", "--quantization", "fp8", "--max-model-len", "2048"]
    before = answered(capsys, *asked, "--engine-version", "0.14.0")
    assert before["fits"] is False
    assert before["why"] == "rank 0 needs 132.24 GiB while weights are loaded and converted, but its device has 79.19 GiB"
    since = answered(capsys, *asked, "--engine-version", "0.15.0")
    assert "while weights are loaded" not in since["why"]
    (loading,) = [term for term in since["terms"] if term["name"] == "weights while loading"]
    assert 0 < loading["bytes"] < 3 * 10**9


def test_a_quantization_that_cannot_be_made_while_loading_means_a_checkpoint_stored_so(capsys: pytest.CaptureFixture[str]) -> None:
    document = answered(capsys, "llama-3.3-70b", "awq", "on", "2xL40S", "8k")
    assert document["fits"] is True
    assert document["ranks"][0]["weights_bytes"] == pytest.approx(19.9e9, rel=0.01)
    assert "--quantization" not in document["command"]
    assert "its weights as usual for AWQ: 4 bits, groups of 128" in document["assumptions"][0]


def test_the_requests_that_were_asked_for_and_both_longest_contexts_are_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["size", "llama", "3.1", "8b", "on", "a", "4090", "16k", "20", "users"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "tokens, if the estimates hold, the model's own limit aside" in text
    assert "tokens of context would fit even at the worst of the estimates" in text
    assert "At once: Of the 20 requests at full length that are asked for, 3 fit into the pool at once; the others wait" in text
    assert "- for all of them: " in text


def test_a_size_without_a_number_of_requests_says_nothing_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["size", "llama", "3.1", "8b", "on", "a", "4090", "16k"]) == 0
    assert "At once" not in capsys.readouterr().out


def test_how_many_cards_is_answered_with_their_number(capsys: pytest.CaptureFixture[str]) -> None:
    answer = answered(capsys, "how many H200 for deepseek v3 at 64k")
    assert (answer["headline"], answer["fits"], len(answer["ranks"])) == ("8 cards are enough", True, 8)
    assert answer["command"] == "vllm serve deepseek-ai/DeepSeek-V3 --tensor-parallel-size 8 --max-model-len 65536"
    none = answered(capsys, "how many T4-16GB for deepseek v3 at 64k")
    assert (none["headline"], none["fits"]) == ("It does not fit", False)


def test_a_comparison_says_what_its_longest_context_leaves_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["size", "llama-3.1-8b", "--gpu", "H100-80GB,H200"]) == 0
    assert "“Longest context” is what one request could have, the model's own limit aside." in " ".join(capsys.readouterr().out.split())


def test_cards_alone_are_no_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert "There is no model in the question" in refused(capsys, "8xH100")


def test_an_unknown_card_names_the_flag_for_its_memory(capsys: pytest.CaptureFixture[str]) -> None:
    assert "give its memory by --gpu-memory-bytes" in refused(capsys, "llama-3.3-70b", "--gpu", "H1000")
