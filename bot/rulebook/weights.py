"""The [weights] tables of rules/models/*.toml: how each family's tensors are made and placed, per engine version."""

import re
from collections.abc import Mapping
from typing import Any

_STEP = re.compile(r"\s*(>=|<=|==|<|>)\s*([\d.]+)\s*")


def version_number(text: str) -> tuple[int, ...]:
    """0.19.1 as (0, 19, 1); a suffix (rc1, +cu129) is left off."""
    return tuple(int(piece) for piece in re.findall(r"\d+", re.split(r"[^\d.]", text.lstrip("v"), maxsplit=1)[0]))


def in_range(version: str, wanted: str) -> bool:
    """Is a version inside a range such as `>=0.20,<0.32`?"""
    number = version_number(version)
    for step in wanted.split(","):
        match = _STEP.fullmatch(step)
        if match is None:
            raise ValueError(f"not a version range: {wanted!r} (write it as >=0.20,<0.32)")
        other = version_number(match[2])
        length = max(len(number), len(other))
        mine, theirs = number + (0,) * (length - len(number)), other + (0,) * (length - len(other))
        if not {">=": mine >= theirs, "<=": mine <= theirs, "==": mine == theirs, "<": mine < theirs, ">": mine > theirs}[match[1]]:
            return False
    return True


def narrowed(weights: Mapping[str, Any], version: str, gpu: str = "", architecture: str = "") -> Mapping[str, Any]:
    """A [weights] table as it stands for one engine version, GPU and architecture.

    Each `[[weights.change]]` is laid over it whose `vllm` range holds, whose `architectures` name this one, and whose `not_gpus`
    are no part of the GPU's name (an unknown GPU counts as one of them).
    """
    table = {key: value for key, value in weights.items() if key != "change"}
    for change in weights.get("change", ()):
        if "vllm" in change and not in_range(version, change["vllm"]):
            continue
        if "architectures" in change and architecture not in change["architectures"]:
            continue
        if "not_gpus" in change and (not gpu or any(name in gpu for name in change["not_gpus"])):
            continue
        table |= {key: value for key, value in change.items() if key not in CONDITIONS}
    return table


CONDITIONS = frozenset({"vllm", "architectures", "not_gpus", "sources"})
"""Keys of a change that say when it holds; the others are what it changes."""
