"""What a message says nothing without is looked for before its pattern is tried."""

from bot.reading.figures import Figures
from bot.rulebook.load import load_rulebook

FIGURES = Figures(load_rulebook())
NEEDED = "retold.needed-and-available"


def test_a_text_that_lacks_one_of_several_figures_is_passed() -> None:
    assert not FIGURES.stand_in("it needs 16.0 GiB, and there are 9.8 GiB", NEEDED)
    assert not FIGURES.stand_in("it needs 16.0 GiB for the KV cache", NEEDED)


def test_figures_stand_in_any_case() -> None:
    assert FIGURES.stand_in("NEED 16.0 GIB KV, HAVE 9.8 GIB", NEEDED)
    assert FIGURES.stand_in("needs 16.0 gib kv, has 9.8 gib", NEEDED)


def test_a_rule_without_figures_needs_none() -> None:
    assert FIGURES.stand_in("anything", "torch.oom")
