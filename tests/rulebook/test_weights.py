"""The [weights] tables: every file of ours reads, and a mistake is named."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from bot.domain.tensors import TensorGrid
from bot.rulebook.load import RulebookError
from bot.rulebook.weights import check, in_range, load_weights, narrowed
from bot.usecases.weigh import weigh

RULES = Path(__file__).parents[2] / "rules" / "models"


def test_a_key_that_nothing_reads_is_named_with_its_file(tmp_path: Path) -> None:
    (tmp_path / "new.toml").write_text('family = "new"\narchitectures = ["New"]\n[weights]\nqk_nrom = "head"\n')
    with pytest.raises(RulebookError, match=r"new\.toml: \[weights\] has no 'qk_nrom'"):
        load_weights(tmp_path)


def test_a_range_that_is_none_is_named() -> None:
    assert list(check({"change": [{"vllm": "0.20 or later"}]})) == ["not a version range: '0.20 or later' (write it as >=0.20,<0.32)"]


def examples() -> list[tuple[str, dict[str, Any]]]:
    files = {path.stem: tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted(RULES.glob("*.toml"))}
    return [(name, example) for name, file in files.items() for example in file.get("weights", {}).get("example", ())]


@pytest.mark.parametrize(("family", "example"), examples(), ids=[f"{name}-{one['vllm']}-tp{one['tp']}" for name, one in examples()])
def test_every_example_gives_what_the_engine_counted(family: str, example: dict[str, Any]) -> None:
    grid = TensorGrid(example["tp"], example.get("pp", 1))
    counted = weigh(example["config"], RULES, grid, engine_version=example["vllm"], gpu="NVIDIA H100 80GB HBM3")
    assert counted.ranks[0].resident == pytest.approx(example["bytes"], rel=2e-3)


def test_every_file_of_ours_reads() -> None:
    assert load_weights(RULES).by_architecture["LlamaForCausalLM"].family == "llama"


@pytest.mark.parametrize(
    ("version", "wanted", "holds"),
    [("0.19.1", "<0.20", True), ("0.20.0", "<0.20", False), ("0.33.0rc1", ">=0.33", True), ("0.32.0", ">=0.20,<0.32", False)],
)
def test_a_version_is_in_a_range_or_not(version: str, wanted: str, holds: bool) -> None:
    assert in_range(version, wanted) is holds


def test_a_change_is_laid_over_where_it_holds() -> None:
    table = {"norms": 2, "change": [{"vllm": ">=0.32", "norms": 4}, {"not_gpus": ["H100"], "norms": 6}]}
    assert narrowed(table, "0.31.0", "NVIDIA H100") == {"norms": 2}
    assert narrowed(table, "0.32.0") == {"norms": 4}
    assert narrowed(table, "0.32.0", "NVIDIA A100") == {"norms": 6}
