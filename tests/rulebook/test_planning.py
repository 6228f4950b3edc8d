"""The planner's rules: one row per term and version, and clear words when not."""

from pathlib import Path

import pytest

from bot.rulebook.load import RulebookError, rules_folder
from bot.rulebook.planning import FILE, Planning, load_planning
from bot.rulebook.versions import UnknownVersion


@pytest.fixture(scope="module")
def planning() -> Planning:
    return load_planning()


def changed(tmp_path: Path, old: str, new: str) -> str:
    text = (rules_folder() / FILE).read_text(encoding="utf-8")
    assert old in text
    (tmp_path / "accounting").mkdir()
    (tmp_path / FILE).write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(RulebookError) as broken:
        load_planning(tmp_path)
    return str(broken.value)


def test_a_gap_between_ranges_is_found(tmp_path: Path) -> None:
    assert "rule in_flight: 0 rows hold for 0.26.0, it must be one" in changed(tmp_path, '">=0.26"', '">=0.27"')


def test_an_overlap_is_found(tmp_path: Path) -> None:
    assert "rule in_flight: 2 rows hold for 0.26.0" in changed(tmp_path, '"<0.26"', '"<0.27"')


def test_a_value_of_the_wrong_kind_is_found(tmp_path: Path) -> None:
    assert "rule in_flight: Invalid enum value 'some'" in changed(tmp_path, 'value  = "batch"', 'value  = "some"')


def test_a_term_that_does_not_exist_is_found(tmp_path: Path) -> None:
    assert "rule in_fright: the planner has no such term" in changed(tmp_path, '"in_flight"', '"in_fright"')


def test_a_broken_range_is_found(tmp_path: Path) -> None:
    assert "vllm = 'before 0.26' is not a version range" in changed(tmp_path, '"<0.26"', '"before 0.26"')


@pytest.mark.parametrize(("version", "in_flight", "null_block", "tokens", "utilization"), [
    ("0.19.1", "batch", False, "groups", 0.9),
    ("0.20.0", "batch", False, "groups", 0.92),
    ("0.20.2", "batch", False, "concurrency", 0.92),
    ("0.26.0", "batches", False, "concurrency", 0.92),
    ("0.29.0", "batches", True, "concurrency", 0.92),
    ("0.33.0", "batches", True, "concurrency", 0.92),
])  # fmt: skip
def test_what_changed_between_versions(
    planning: Planning, version: str, in_flight: str, null_block: bool, tokens: str, utilization: float
) -> None:
    rules = planning.rules(version)
    assert (rules.in_flight, rules.holds_null_block, rules.printed_tokens, rules.utilization) == (
        in_flight,
        null_block,
        tokens,
        utilization,
    )


def test_a_pre_release_or_local_build_counts_as_its_release(planning: Planning) -> None:
    assert planning.rules("0.29.0rc1+cu129.d20260901") == planning.rules("0.29.0")


def test_no_version_is_said_to_be_none(planning: Planning) -> None:
    with pytest.raises(UnknownVersion, match=r"'main' is not a vLLM version; write it as 0\.33\.0"):
        planning.rules("main")


@pytest.mark.parametrize(("gpu", "gib", "tokens", "seqs"), [
    ("H100-80GB", 79.2, 8192, 1024), ("A100-80GB", 79.3, 2048, 256), ("L40S-48GB", 44.4, 2048, 256), ("B200-180GB", 178.4, 16384, 1024),
])  # fmt: skip
def test_the_default_batch_follows_the_device(planning: Planning, gpu: str, gib: float, tokens: int, seqs: int) -> None:
    batch = planning.batch("0.32.0", gpu, int(gib * 2**30))
    assert (batch.tokens, batch.seqs) == (tokens, seqs)


@pytest.mark.parametrize(("version", "gpu", "gib", "tokens", "seqs"), [
    ("0.2.7", "H100-80GB", 79.2, 2048, 256), ("0.7.3", "H100-80GB", 79.2, 2048, 256),
    ("0.8.0", "H100-80GB", 79.2, 8192, 1024), ("0.8.3", "A100-80GB", 79.3, 2048, 1024), ("0.8.3", "L40S-48GB", 44.4, 2048, 1024),
    ("0.8.4", "H200-141GB", 139.8, 8192, 1024), ("0.8.4", "A100-80GB", 79.3, 2048, 256), ("0.8.4", "B200-180GB", 178.4, 2048, 256),
    ("0.8.5", "A100-80GB", 79.3, 8192, 1024), ("0.8.5", "L40S-48GB", 44.4, 2048, 256), ("0.8.5.post1", "H100-80GB", 79.2, 8192, 1024),
    ("0.9.0", "A100-80GB", 79.3, 2048, 1024), ("0.9.0", "H100-80GB", 79.2, 8192, 1024), ("0.9.1", "A100-80GB", 79.3, 2048, 256),
    ("0.27.0", "B200-180GB", 178.4, 8192, 1024), ("0.28.0", "B200-180GB", 178.4, 16384, 1024), ("0.28.0", "H200-141GB", 139.8, 8192, 1024),
    ("0.33.0", "GB10-128GB", 119.7, 2048, 256), ("0.33.0", "A100-40GB", 39.4, 2048, 256),
])  # fmt: skip
def test_the_default_batch_follows_the_version(planning: Planning, version: str, gpu: str, gib: float, tokens: int, seqs: int) -> None:
    batch = planning.batch(version, gpu, int(gib * 2**30))
    assert (batch.tokens, batch.seqs) == (tokens, seqs)


@pytest.mark.parametrize("minor", range(2, 34))
@pytest.mark.parametrize("gib", [0, 23.6, 79.2, 178.4])
def test_every_version_has_a_default_batch_on_every_device(planning: Planning, minor: int, gib: float) -> None:
    assert planning.batch(f"0.{minor}.{7 if minor == 2 else 0}", "", int(gib * 2**30)).seqs in {256, 1024}


@pytest.mark.parametrize(
    ("version", "whole", "chunk"), [("0.5.2", True, 0), ("0.6.4", True, 512), ("0.7.3", True, 2048), ("0.8.0", False, 0)]
)
def test_before_the_second_engine_a_batch_holds_a_whole_prompt(planning: Planning, version: str, whole: bool, chunk: int) -> None:
    batch = planning.batch(version, "H100-80GB", 85 * 10**9)
    assert (batch.whole, batch.chunk) == (whole, chunk)


def test_a_kv_cache_type_exists_from_some_version_on(planning: Planning) -> None:
    assert planning.kv_dtype("nvfp4", "0.19.1") is None
    assert planning.kv_dtype("nvfp4", "0.32.0") is not None
    assert "nvfp4" not in planning.kv_dtypes("0.19.1")
