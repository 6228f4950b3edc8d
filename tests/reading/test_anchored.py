"""A message is found on a line of any length, and only where it stands."""

import time

import pytest

from bot.reading.anchored import matched
from bot.rulebook.load import load_rulebook

RULES = {rule.id: rule for rule in load_rulebook().facts}
TALK = "The server ran for an hour and nobody touched it, then we looked at the log. " * 700
MESSAGE = "CUDA out of memory. Tried to allocate 64.00 MiB. GPU 1 has a total capacity of 79.18 GiB"


def test_a_long_line_without_the_message_is_passed() -> None:
    assert matched(RULES["torch.oom"], TALK) is None


@pytest.mark.parametrize(
    "text", [TALK + MESSAGE, MESSAGE + TALK, TALK + MESSAGE + TALK, "Tried to allocate nothing. " + TALK + MESSAGE + TALK]
)
def test_a_message_is_found_wherever_it_stands_on_a_long_line(text: str) -> None:
    match = matched(RULES["torch.oom"], text)
    assert match is not None
    assert match["tried"] == "64.00 MiB"


def test_a_line_that_goes_on_behind_what_was_looked_at_is_no_end_of_a_line() -> None:
    cut = "ValueError: max_num_seqs (1024) exceeds available Mamba"
    assert matched(RULES["vllm.mamba-blocks"], f"{TALK}{cut}") is not None
    assert matched(RULES["vllm.mamba-blocks"], f"{TALK}{cut}{' ' * 1440}and more{TALK}") is None


def test_what_may_stand_at_the_beginning_of_a_line_only_is_looked_for_there() -> None:
    assert matched(RULES["not-oom.download"], f"Found ulimit of 20000 {TALK} Too many open files") is None
    assert matched(RULES["not-oom.download"], f"{TALK} Too many open files") is not None


def test_many_messages_on_one_long_line_are_passed_quickly() -> None:
    text = f"{TALK}Tried to allocate it all. " * 4
    began = time.process_time()
    assert matched(RULES["torch.oom"], text) is None
    assert time.process_time() - began < 0.2
