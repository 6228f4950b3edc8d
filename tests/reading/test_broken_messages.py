"""A message that a terminal or a mail broke between two words is read as if it stood in one line."""

import pytest

from bot.reading.text import clean
from bot.reading.wraps import USUAL
from bot.rulebook.load import load_rulebook
from tests.reading.material import evidence, fact

BOOK = load_rulebook()
MESSAGES = [
    (rule.id, example.line)
    for rule in BOOK.facts
    if "memory-error" in rule.kinds and rule.id.startswith("vllm.")
    for example in rule.example
    if "\n" not in example.line
]


@pytest.mark.parametrize(("rule", "message"), MESSAGES)
def test_an_error_broken_between_any_two_words_is_read(rule: str, message: str) -> None:
    lost = []
    for at, letter in enumerate(message):
        if letter != " " or not 12 <= at <= len(message) - 4 or at in USUAL:  # at a terminal's width a word may be broken as well
            continue
        broken = f"{message[:at]}\n{message[at + 1 :]}"
        if rule not in {fact.id for fact in evidence(broken).facts}:
            lost.append(broken)
    assert lost == []


def test_a_message_may_be_parted_into_paragraphs() -> None:
    found = evidence(
        "Exception: Capture cuda graph failed: CUDA out of memory.\nTried to allocate 672.00 MiB.\n\nGPU 0 has a total capacity of 47.06 GiB "
        "of which 200.75 MiB is free.\nOf the allocated memory 40.50 GiB is allocated by PyTorch,\nwith 3.23 GiB allocated in private pools "
        "(e.g., CUDA Graphs),\nand 1.01 GiB is reserved by PyTorch but unallocated."
    )
    assert {name: round(size / 2**20) for name, size in fact(found, "torch.oom").fields.items() if name != "gpu"} == {
        "tried": 672, "total": 48189, "free": 201, "allocated": 41472, "private": 3308, "unallocated": 1034,
    }  # fmt: skip


def test_the_padding_of_a_terminal_inside_a_line_is_taken_out() -> None:
    pad = " " * 29
    found = evidence(
        f"RuntimeError: CUDA out of memory. Tried to allocate 24.00 MiB. GPU 1 has a total capacity of 47.37 GiB of {pad}which 4.31 MiB is "
        f"free. Including non-PyTorch memory, this process has 47.35 GiB memory in use. Of the allocated memory 45.63 GiB is allocated by P{pad}"
        "yTorch, and 1.10 GiB is reserved by PyTorch but unallocated."
    )
    assert {"free", "allocated", "unallocated"} <= fact(found, "torch.oom").fields.keys()


def test_the_columns_of_a_table_keep_their_distance() -> None:
    assert clean("Processes:" + " " * 40 + "GPU Memory" + " " * 30 + "Usage") == "Processes:" + " " * 40 + "GPU Memory" + " " * 30 + "Usage"
