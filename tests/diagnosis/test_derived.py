import pytest

from bot.diagnosis.derived import sampler_rows
from bot.domain.evidence import Evidence
from bot.domain.size import GIB, MIB
from tests.diagnosis.material import judged, oom, worker


@pytest.mark.parametrize(
    ("tried", "rows"),
    [
        (round(1.74 * GIB), (1024, 151936, 12)),
        (round(1.47 * GIB), (1024, 128256, 12)),
        (round(1.16 * GIB), (1024, 151936, 8)),
        (380 * MIB, (256, 129280, 12)),
        (150 * MIB, (256, 151936, 4)),
    ],
)
def test_a_request_that_is_rows_times_vocabulary_names_the_sampler(tried: int, rows: tuple[int, int, int]) -> None:
    assert sampler_rows(tried, Evidence()) == rows


@pytest.mark.parametrize("tried", [2 * GIB, 20 * MIB, 512 * MIB, round(3.5 * GIB)])
def test_a_round_request_names_nothing(tried: int) -> None:
    assert sampler_rows(tried, Evidence()) is None


def test_memory_that_others_hold_is_named_before_the_weights() -> None:
    line = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 500.00 MiB. GPU 0 has a total capacity of 79.18 GiB of which 100.00 MiB is free. "
        "Including non-PyTorch memory, this process has 20.00 GiB memory in use. Of the allocated memory 19.00 GiB is allocated by PyTorch, "
        "and 50.00 MiB is reserved by PyTorch but unallocated."
    )
    from tests.diagnosis.material import frame

    document = judged(worker("Worker", frame("v1/worker/gpu_worker.py", "load_model"), line))
    assert document["recommendation"]["id"] == "stop-other-process"


def test_far_more_free_than_asked_for_is_no_shortage_when_the_allocator_was_refused() -> None:
    text = "CUDA Error: invalid argument at /workspace/csrc/cumem_allocator.cpp:119\n" + oom("20.00 MiB", "66.43 GiB")
    assert judged(text)["phase"] == "not_oom"
