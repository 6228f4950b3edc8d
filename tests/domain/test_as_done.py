"""A change that was made with another value than suggested is shown with that one, and only where that is sure."""

from typing import Any

import pytest

from bot.domain.as_done import as_done

FRACTION = {
    "flag": "--gpu-memory-utilization",
    "direction": "lower",
    "value": "0.88",
    "command": "vllm serve --gpu-memory-utilization 0.88",
}
COUNT = {"flag": "--max-num-seqs", "direction": "lower", "value": "128", "command": None}
KIND = {"flag": "--kv-cache-dtype", "direction": "set", "value": "fp8", "command": None}


@pytest.mark.parametrize(
    ("change", "note"),
    [
        (FRACTION, None), (FRACTION, "it worked with 0.88"), (FRACTION, "it worked with 2 GPUs"), (FRACTION, "with 0.85 or with 0.8"),
        (FRACTION, "works, but not with 0.9"), (FRACTION, "it worked on vllm 0.11.0"), (COUNT, "fixed at 3 pm"), (COUNT, "it worked with 2 GPUs"),
        (COUNT, "it works with 0.85"), (KIND, "it worked with 0.85"),
    ],
)  # fmt: skip
def test_what_names_no_other_value_of_its_kind_leaves_the_change_as_suggested(change: dict[str, Any], note: str | None) -> None:
    assert as_done(change, note) is change


@pytest.mark.parametrize(
    ("change", "note", "value", "direction"),
    [
        (FRACTION, "it worked with 0.85", "0.85", "lower"), (FRACTION, "0.85 did it", "0.85", "lower"), (FRACTION, "worked at .8.", ".8", "lower"),
        (FRACTION, "it worked with 0.95", "0.95", "set"), (FRACTION, "works, not with 0.9 but with 0.86", "0.86", "lower"),
        (COUNT, "it worked with 64, thanks", "64", "lower"), (COUNT, "--max-num-seqs=32 works", "32", "lower"), (COUNT, "still fails with 64", "64", "lower"),
    ],
)  # fmt: skip
def test_another_value_is_the_one_that_was_tried(change: dict[str, Any], note: str, value: str, direction: str) -> None:
    done = as_done(change, note)
    assert (done["value"], done["direction"], done["command"]) == (value, direction, None)
