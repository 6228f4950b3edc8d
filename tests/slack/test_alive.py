"""Which workers a process may call dead: only those whose end it can see."""

import os
import subprocess
import sys

import pytest

from bot.slack.alive import PROC, is_dead, worker_name

pytestmark = pytest.mark.skipif(not (PROC / "self/stat").exists(), reason="processes are not shown here: leases decide")


def test_a_living_worker_is_not_dead() -> None:
    assert not is_dead(worker_name())


@pytest.mark.parametrize("name", ["", "w1", "4100-1a2b3c4d", "elsewhere:1:2:x", "::2:x"])
def test_a_worker_of_another_machine_or_of_an_older_kind_is_left_to_its_lease(name: str) -> None:
    assert not is_dead(name)


def test_a_process_that_has_ended_is_dead() -> None:
    code = "from bot.slack.alive import worker_name; print(worker_name())"
    name = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert is_dead(name)


def test_a_process_id_that_was_given_away_again_is_another_life() -> None:
    home, pid, birth, rest = worker_name().split(":")
    assert pid == str(os.getpid())
    assert is_dead(f"{home}:{pid}:{int(birth) - 1}:{rest}")
