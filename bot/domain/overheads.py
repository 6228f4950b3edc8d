"""What a rank needs beside weights and KV cache: how such a term is estimated, and from what."""

from dataclasses import dataclass
from typing import Literal

Runner = Literal["v0", "v1", "v2"]
Span = tuple[float, float, float]
"""low, typical, high."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """One term in bytes, never one confident number. `basis`: formula, source and how many measured rows stand behind it.

    `inside`: whether this version subtracts it from the budget before the pool is sized; else it comes on top of the budget.
    """

    name: str
    low: int
    typical: int
    high: int
    basis: str
    inside: bool = True


@dataclass(frozen=True, slots=True)
class ForwardShape:
    """What one forward pass moves per token, whole model. `context_bytes`: up-projected latents per token of context (MLA), else 0.

    `vision`: hidden, intermediate and patches of the largest item that profiling encodes; None for text models. `streams`: copies of the
    hidden state that run beside each other (hyper-connections).
    """

    hidden: int
    intermediate: int
    vocab: int
    layers: int
    experts_per_token: int = 0
    expert_intermediate: int = 0
    context_bytes: int = 0
    vision: tuple[int, int, int] | None = None
    value_bytes: int = 2
    streams: int = 1


@dataclass(frozen=True, slots=True)
class Run:
    """How the engine is started. `*_given` False: the default of the version, so a real start may well differ."""

    tokens: int
    sequences: int
    max_model_len: int
    tp: int = 1
    pp: int = 1
    tokens_given: bool = False
    sequences_given: bool = False
    eager: bool = False
    encodes: bool = True


@dataclass(frozen=True, slots=True)
class Measured:
    """A coefficient fitted on `rows` measured starts."""

    span: Span
    rows: int
    source: str


@dataclass(frozen=True, slots=True)
class OverheadFigures:
    """One version's figures. Units: `sampler` bytes per sequence and vocabulary entry; `forward`, `encoder`, `context` factors on the
    counted bytes; `non_torch`, `first_graph`, `baseline` GiB; `graph` MiB per captured graph and layer; `repacked` a share of
    the weights.

    `samples`: profiling draws from the logits too. `graphs_charged`: the budget pays for graphs. `full_graphs`: a second set is captured.
    `profiled`: `batch` tokens of one batch, or `prompt` one whole prompt (unless chunked) as the first engine did.
    """

    runner: Runner
    sampler: Measured
    forward: Measured
    encoder: Measured
    context: Measured
    non_torch: Measured
    baseline: Measured
    first_graph: Measured
    graph: Measured
    repacked: Measured
    graphs_charged: bool
    full_graphs: bool
    profiled: Literal["batch", "prompt"] = "batch"
