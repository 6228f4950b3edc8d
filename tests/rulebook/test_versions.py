"""Ranges of versions: which versions lie in one, and what is none."""

import pytest

from bot.rulebook.load import load_rulebook
from bot.rulebook.versions import RUNNERS, USUAL, UnknownVersion, holds, is_range, meet, release


@pytest.mark.parametrize("text", ["0.20 or later", "v0.20", ">0.20 <0.30", "=>0.20"])
def test_what_is_no_range_is_told_from_one(text: str) -> None:
    assert not is_range(text)
    assert is_range(">=0.20,<0.32")


def test_what_is_no_version_is_said() -> None:
    with pytest.raises(UnknownVersion, match=r"'main' is not a vLLM version; write it as 0\.33\.0"):
        holds(">=0.20", "main")


@pytest.mark.parametrize(
    ("version", "wanted", "inside"),
    [
        ("0.20.0", "<0.20", False),
        ("0.32.0", ">=0.20,<0.32", False),
        ("0.19.1", "<0.20", True),
        ("0.33.0rc1", ">=0.33", True),
        ("0.18.0", "==0.18", True),
        ("0.11.0", "", True),
    ],
)
def test_a_version_lies_in_a_range_or_not(version: str, wanted: str, inside: bool) -> None:
    assert holds(wanted, version) is inside


def test_a_local_build_or_pre_release_counts_as_its_release() -> None:
    assert [release(version) for version in ("0.33.0rc1+cu129", "0.8.5.post1", "v0.9")] == ["0.33.0", "0.8.5", "0.9"]
    assert holds(">=0.33", "0.33.0rc1+cu129")


def test_a_post_release_lies_behind_its_release() -> None:
    assert not holds(">=0.6.4.post1", "0.6.4")
    assert holds(">=0.6.4.post1", "0.6.4.post1+cu124")
    assert holds(">=0.6.4,<0.6.5", "0.6.4.post1")


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [("<0.20", ">=0.20", False), (">=0.18,<0.20", "<0.18", False), ("<0.20", ">=0.19", True), ("", ">=0.9", True)],
)
def test_two_ranges_share_a_version_or_not(one: str, other: str, shared: bool) -> None:
    assert meet(one, other) is meet(other, one) is shared


def test_every_release_has_a_runner_and_one_that_is_usual() -> None:
    for known in load_rulebook().releases:
        usual = [runner for runner, span in USUAL.items() if holds(span, known.version)]
        assert len(usual) == 1, known.version
        assert holds(RUNNERS[usual[0]], known.version), known.version
