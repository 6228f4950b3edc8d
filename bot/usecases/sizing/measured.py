"""Terms that our own incidents measured, for the same model, card, grid, version and batch, in place of estimates."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from bot.domain.overheads import Estimate
from bot.domain.size import MIB
from bot.rulebook.versions import UnknownVersion, holds, release
from bot.usecases.sizing.estimates import Measured, figures_of
from bot.usecases.sizing.question import Asked
from bot.usecases.wording import some_named

Row = Mapping[str, Any]
_AGAIN = (0.1, 128 * MIB)  # how far a second start of the same command lies from a single one: a share, and at least so much


def measured_terms(rows: Sequence[Row]) -> Measured:
    """Figures as the store gives them (`measured`: bytes per rank, with the incident's id) -> what sizing asks for its terms."""
    return lambda asked: list(_terms([row for row in rows if _same(row, asked)], asked))


def _same(row: Row, asked: Asked) -> bool:
    """The same start as far as the terms go; a batch that neither names is the version's default for both."""
    tokens = asked.arguments.get("max_num_batched_tokens")
    gpu = asked.gpu.id if asked.gpu else None
    return (row["gpu"], row["tp"] or 1, row["batched_tokens"]) == (gpu, asked.grid.tp, tokens) and _minor(row["engine_version"]) == _minor(
        asked.version
    )


def _minor(version: str | None) -> tuple[str, ...] | None:
    try:
        return tuple(release(str(version)).split(".")[:2]) if version else None
    except UnknownVersion:
        return None


def _terms(rows: Sequence[Row], asked: Asked) -> Iterator[Estimate]:
    charged = figures_of(asked).graphs_charged
    graphs = "graph_estimate_bytes" if charged else "graph_bytes"
    for name, inside, value in (
        ("activations", True, lambda row: _activations(row, asked, charged)),
        ("non-torch", True, _non_torch),
        ("CUDA graphs", charged, lambda row: row[graphs]),
    ):
        yield from _term(name, rows, value, inside)


def _term(name: str, rows: Sequence[Row], value: Callable[[Row], int | None], inside: bool) -> Iterator[Estimate]:
    """The middle of what was seen and its ends; one start alone stands for a little more and a little less."""
    seen = [(row["id"], found) for row in rows if (found := value(row)) is not None and found >= 0]
    if not seen:
        return
    low, high, middle = min(v for _, v in seen), max(v for _, v in seen), round(median(v for _, v in seen))
    incidents = list(dict.fromkeys(incident for incident, _ in seen))
    room = max(round(_AGAIN[0] * middle), _AGAIN[1]) if len(incidents) == 1 else 0
    yield Estimate(name, max(0, low - room), middle, high + room, f"measured {some_named(incidents)}", inside)


def _activations(row: Row, asked: Asked, charged: bool) -> int | None:
    """From 0.27 (and in 0.18.0 and 0.18.1) the printed peak holds the applied graph estimate; without that figure it says nothing."""
    peak = row["activation_peak_bytes"]
    if peak is None or not charged or not holds(">=0.27", asked.version):
        return None if peak is None else int(peak)
    return None if row["graph_estimate_bytes"] is None else int(peak - row["graph_estimate_bytes"])


def _non_torch(row: Row) -> int | None:
    """As printed, else what was consumed beside the weights."""
    if row["non_torch_bytes"] is not None:
        return int(row["non_torch_bytes"])
    if row["consumed_bytes"] is None or row["weights_bytes"] is None:
        return None
    return int(row["consumed_bytes"] - row["weights_bytes"])
