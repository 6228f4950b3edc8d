"""Lines that recur are counted: the first, and the last before anything else is said, are read."""

from bot.domain.evidence import Fact
from tests.reading.material import evidence

STATS = (
    "(APIServer pid=1) INFO 11-18 09:00:{s:02d} [loggers.py:123] Engine 000: Avg prompt throughput: {s}.5 tokens/s, Avg generation "
    "throughput: 4.1 tokens/s, Running: {s} reqs, Waiting: 0 reqs, GPU KV cache usage: {s}.0%, Prefix cache hit rate: 12.3%"
)
ACCESS = '(APIServer pid=1) INFO:     10.0.0.3:{n} - "POST /v1/chat/completions HTTP/1.1" {status}'
OOM = (
    "(EngineCore_DP0 pid=7) ERROR 11-18 10:00:00 [core.py:710] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 64.00 MiB. "
    "GPU 0 has a total capacity of 79.18 GiB of which 20.88 MiB is free."
)


def facts_of(*lines: str) -> list[Fact]:
    return list(evidence("\n".join(lines)).facts)


def test_an_answer_with_other_words_is_not_counted_with_the_others() -> None:
    answers = [ACCESS.format(n=40000 + n, status="500 Internal Server Error" if n == 7 else "200 OK") for n in range(20)]
    seen = [(f.line, f.fields["status"], f.repeats) for f in facts_of(*answers) if f.id == "vllm.http-request"]
    assert seen == [(1, 200, 1), (7, 200, 6), (8, 500, 1), (20, 200, 12)]


def test_another_process_is_counted_apart() -> None:
    lines = [ACCESS.format(n=40000 + n, status="200 OK").replace("pid=1", f"pid={1 + n % 2}") for n in range(10)]
    seen = [(f.speaker.pid, f.repeats) for f in facts_of(*lines) if f.id == "vllm.http-request"]
    assert seen == [(1, 1), (2, 1), (1, 4), (2, 4)]


def test_the_last_figures_before_a_failure_and_the_last_of_all_are_read() -> None:
    stats = [STATS.format(s=s) for s in range(50)]
    facts = facts_of(*stats[:30], OOM, *stats[30:])
    seen = [(f.line, f.fields["running"], f.repeats) for f in facts if f.id == "vllm.serving"]
    assert seen == [(1, 0, 1), (30, 29, 29), (51, 49, 20)]
    assert [f.order for f in facts] == sorted(f.order for f in facts)


def test_a_progress_bar_is_read_where_it_begins_and_where_it_stands_when_something_happens() -> None:
    bar = "(Worker_TP0 pid=7500) Capturing CUDA graphs (decode, FULL): {p:3d}%|{b}{s}| {n}/35 [00:{n:02d}<00:09,  3.{n:02d}it/s]"
    bars = [bar.format(p=100 * n // 35, b="█" * (n // 4), s=" " * (9 - n // 4), n=n) for n in range(30)]
    facts = facts_of(*bars[:20], OOM, *bars[20:])
    seen = [(f.line, f.fields["done"], f.repeats) for f in facts if f.id == "vllm.capture-begins"]
    assert seen == [(1, 0, 1), (20, 19, 19), (31, 29, 10)]
