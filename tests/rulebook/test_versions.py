"""Ranges of versions: which versions lie in one, and what is none."""

import pytest

from bot.rulebook.versions import UnknownVersion, holds, is_range, release


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


def test_a_local_pre_or_post_release_counts_as_its_release() -> None:
    assert [release(version) for version in ("0.33.0rc1+cu129", "0.8.5.post1", "v0.9")] == ["0.33.0", "0.8.5", "0.9"]
