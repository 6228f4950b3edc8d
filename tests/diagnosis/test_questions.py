"""An open verdict asks, also of who does not know: it says what is missing and what would decide it."""

import pytest

from bot.domain.incident import Contribution
from tests.diagnosis.material import judged

TAIL = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
WRAPPER = "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n"


@pytest.mark.parametrize("log", [TAIL, WRAPPER, f"{WRAPPER}{TAIL}", f"vllm serve m\n{TAIL}", "Memory access fault by GPU node-1\n"])
def test_an_open_verdict_asks_whatever_is_not_known(log: str) -> None:
    answers: list[Contribution] = []
    for _ in range(4):
        document = judged(log, *answers)
        assert (document["verdict"] == "open") == (document["phase"] == "unknown")
        if document["verdict"] != "open":
            return
        assert 1 <= len(document["questions"]) <= 2
        answers += [Contribution("answer", f"{question['id']}=unknown") for question in document["questions"]]


def test_what_is_decided_is_not_asked_of_who_does_not_know() -> None:
    document = judged("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB while loading the weights", *[
        Contribution("answer", f"{name}=unknown") for name in ("failing_rank", "first_error", "engine_version", "engine_config")
    ])  # fmt: skip
    assert (document["phase"], document["questions"]) == ("weight_loading", [])
