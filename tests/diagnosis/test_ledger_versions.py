"""Budgets that were measured, printed as their versions print them, read back, and closed under the version's own rule."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from bot.diagnosis.diagnose import diagnose
from bot.domain.diagnosis import ReportedBudget
from bot.domain.incident import Contribution
from bot.domain.size import GIB
from bot.reading.read import read
from bot.rulebook.load import load_rulebook


def _reports() -> ModuleType:
    spec = importlib.util.spec_from_file_location("ledger_reports", Path(__file__).parent / "reports.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["ledger_reports"] = module
    spec.loader.exec_module(module)
    return module


reports = _reports()
Measured = reports.Measured
BOOK = load_rulebook()
WITHIN = 0.02 * GIB

CLOSING = {
    "Llama-3-8B on an H100": Measured("0.6.5", "v0", 79.22, 0.9, 14.96, 1.26, 1.79, 53.29),
    "Llama-3.2-Vision on an H100, images together": Measured("0.6.6.post1", "v0", 79.22, 0.9, 19.86, 36.63, 0.16, 14.65),
    "Llama-3-8B on an A100-40": Measured("0.6.6.post1", "v0", 39.5, 0.9, 14.96, 9.37, 0.1, 11.12),
    "Qwen2.5-0.5B on a T4": Measured("0.6.6.post1", "v0", 14.56, 0.9, 0.93, 1.44, 0.11, 10.63),
    "four ranks with sleep mode": Measured("0.7.2", "v0", 79.33, 0.9, 9.69, 2.95, 1.27, 57.48),
    "Llama-3.1-8B on an L4": Measured("0.7.3", "v0", 22.07, 0.9, 14.99, 0.22, 0.05, 4.6),
    "R1 AWQ over sixteen 3090": Measured("0.8.2", "v0", 23.58, 0.99, 21.21, 0.37, 0.2, 1.57),
    "two ranks with LoRA": Measured("0.8.1", "v0", 79.33, 0.89, 32.95, 1.3, 0.28, 36.07),
    "below nothing on a Jetson": Measured("0.8.5.post1", "v0", 29.96, 0.45, 6.59, 4.93, 2.18, -0.22),
    "148 GiB over two H200": Measured("0.11.0", "weight", 139.81, 0.9, 74.28, 5.58, 1.38, 44.59, free=139.21, graphs=2.37),
    "L40S": Measured("0.12.0", "weight", 44.39, 0.8, 4.74, 0.23, 0.02, 30.53, free=43.9, graphs=0.62),
    "0.88 GiB on 16 GiB, estimate charged": Measured("0.25.0", "weight", 16.0, 0.95, 0.88, 0.26, 0.16, 13.33, free=15.89, estimate=0.58, graphs=0.24),
    "a mixture on GB200, estimate charged": Measured("0.26.0", "weight", 184.31, 0.92, 106.69, 6.31, 0.95, 50.62, free=181.84, estimate=4.99, graphs=4.13),
    "DeepSeek-V4 on a B300, runner V2, no estimate": Measured("0.26.0", "weight-v2", 267.69, 0.92, 156.32, 2.99, 0.23, 86.74, free=267.08, graphs=3.06),
    "27B on a 3090, the peak holds the estimate": Measured("0.27.1", "consumed", 23.56, 0.972, 14.26, 1.09, 0.47, 7.08, free=23.05, graphs=0.71),
    "GLM on eight H200, the peak holds the estimate": Measured("0.28.0", "consumed", 139.8, 0.9, 38.24, 4.04, 1.74, 81.79, free=137.64, estimate=1.3, graphs=1.2),
    "35B on 3090s under WDDM": Measured("0.28.0", "consumed", 24.0, 0.7, 9.96, 1.54, 0.74, 4.55, free=22.6, graphs=0.54, consumed=10.7),
    "runner V2 with a true estimate": Measured("0.30.0", "consumed-v2", 24.0, 0.7, 9.96, 1.54, 0.74, 4.55, free=22.6, graphs=0.54),
    "debug lines": Measured("0.28.0", "debug", 79.18, 0.825, 0.67, 0.24, 0.14, 64.27, free=78.66),
}  # fmt: skip


def budget_of(measured: object) -> ReportedBudget:
    (row,) = diagnose(BOOK, read(BOOK, [Contribution("paste", reports.printed(measured))])).budgets
    return row


@pytest.mark.parametrize("title", list(CLOSING))
def test_a_measured_budget_closes_within_two_hundredths_of_a_gibibyte(title: str) -> None:
    measured = CLOSING[title]
    row = budget_of(measured)
    assert row.closes is True
    assert row.residual_bytes is not None
    assert abs(row.residual_bytes) <= WITHIN
    assert row.figures["kv_cache_bytes"] == pytest.approx(measured.kv * GIB, abs=0.006 * GIB)
    assert row.figures["requested_bytes"] == pytest.approx(measured.requested * GIB, abs=0.006 * GIB)


@pytest.mark.parametrize(
    "measured",
    [
        Measured("0.22.0", "weight", 60.96, 0.6, 27.54, 0.26, 0.18, 8.04, graphs=0.47),
        Measured("0.26.0", "weight", 22.06, 0.8, 8.28, 1.02, -3.58, 11.06, graphs=0.68),
    ],
)
def test_a_charged_estimate_that_is_not_in_the_paste_is_named_as_what_is_missing(measured: object) -> None:
    row = budget_of(measured)
    assert row.closes is None
    assert "graph_estimate_bytes" in row.missing
    assert row.residual_bytes is not None
    assert row.residual_bytes > 0.5 * GIB


def test_a_budget_that_does_not_add_up_is_said_not_to_close() -> None:
    row = budget_of(Measured("0.11.0", "weight", 139.81, 0.9, 74.28, 5.58, 1.38, 40.0, free=139.21, graphs=2.37))
    assert row.closes is False
    assert row.residual_bytes == pytest.approx(4.59 * GIB, abs=0.02 * GIB)


def test_the_same_terms_without_their_pool_are_too_few_to_judge() -> None:
    (row,) = diagnose(BOOK, read(BOOK, [Contribution("paste", "Model loading took 14.96 GiB memory and 4.1 seconds")])).budgets
    assert (row.closes, row.residual_bytes) == (None, None)
    assert "kv_cache_bytes" in row.missing
