"""What shows that memory ran out is found in a large text as in a small one, and fast."""

import pytest

from bot.slack import words
from bot.slack.render.wording import as_asked_here
from bot.slack.talk import is_thanks
from bot.slack.words import Verb, short_of_memory, shows_shortage, verb

NOISE = "INFO 11-30 04:10:02 [loggers.py:127] Engine 000: no room: 1371 requests zoomed to, exit code 1, cache larger than before\n"
SAID = (
    "torch.OutOfMemoryError", "CUDA out of memory.", "an OOM again", "OOMKilled", "No available memory for the cache blocks",
    "Free memory on device (1/2 GiB)", "is less than desired GPU memory utilization", "is larger than the available KV cache memory",
    "is larger than the maximum number of tokens", "To serve at least one request", "CUBLAS_STATUS_ALLOC_FAILED", "cuMemCreate failed",
    "cuMemAlloc failed", "cumem_allocator.cpp", "memory allocation of 12 bytes failed", "Cannot allocate memory",
    "No space left on device: /x/shm", "/dev/shm is full", "exited with code 137", "exit code 137", "exits 137", "Killed", "NCCL WARN no memory",
    "No available Mamba cache blocks", "HIP out of memory", "Tried to allocate 2 GiB", "does not fit in GPU memory", "does not fit in memory",
)  # fmt: skip


@pytest.mark.parametrize("lines", [0, 10, 5_000])
def test_noise_is_not_taken_for_it(lines: int) -> None:
    assert not short_of_memory(NOISE * lines)


@pytest.mark.parametrize("lines", [0, 10, 100])
@pytest.mark.parametrize("said", SAID)
def test_every_phrase_is_found_wherever_it_stands(said: str, lines: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "_PIECE", 3_000)
    assert short_of_memory(f"{NOISE * lines}(Worker pid=1) {said}\n{NOISE * lines}")
    assert short_of_memory(f"{NOISE * lines}{said.lower()}")


def test_several_lines_in_a_conversation_are_no_verb() -> None:
    assert verb("history\nof this server") is None


@pytest.mark.parametrize("space", [" ", "  ", "\u00a0", "\t", " \u00a0"])
def test_a_verb_ends_at_whatever_space_is_typed_or_copied(space: str) -> None:
    assert verb(f"size{space}llama-70b gpu=H100") == Verb("size", "llama-70b gpu=H100")


def test_a_command_may_go_over_several_lines() -> None:
    assert verb("size llama-70b\n gpu=H100\n", typed_as_command=True) == Verb("size", "llama-70b gpu=H100")


@pytest.mark.parametrize(
    "said",
    [
        "the OOM killer talk is at 3",
        "OOM party on Friday",
        "who owns the OOM runbook?",
        "I remember OOM jokes",
        "Killed it in the demo!",
        "an article on out of memory bugs",
    ],
)
def test_who_only_names_the_matter_shows_no_shortage(said: str) -> None:
    assert not shows_shortage(said)


@pytest.mark.parametrize(
    "said",
    ["CUDA out of memory", "vllm ran out of memory", "OOM on 2xH100 with llama 70b", "our pod is OOM", "OOMKilled", "Tried to allocate 2.00 GiB",
     "Out of memory: Killed process 4711 (python3)", "we get OOM since Monday", "it crashed, OOM", "OOM again", "OOM\nKilled", "exit code 137"],
)  # fmt: skip
def test_what_says_that_it_happened_shows_one(said: str) -> None:
    assert shows_shortage(said)


def test_thanks_are_told_from_what_else_begins_with_them() -> None:
    assert all(is_thanks(said) for said in ("thanks!", "Thank you so much.", "ok, thanks a lot :)", "great, thx"))
    assert not any(is_thanks(said) for said in ("thanks, but it still fails", "no thanks to rank 3", "thanks, what about rank 3?", ""))


def test_a_command_of_the_terminal_is_said_as_it_is_asked_here() -> None:
    assert as_asked_here("`oombot history` lists those there are.") == "`@oombot history` lists those there are."
    assert as_asked_here("as `oombot db export` wrote it") == "as `oombot db export` wrote it"
