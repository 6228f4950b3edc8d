"""A figure is written as whoever printed it: in the unit that reads best, and in GiB where hundredths of those were printed."""

import pytest

from bot.domain.size import gib, parse_size


@pytest.mark.parametrize(
    "printed",
    ["0 B", "512 B", "64.00 MiB", "512.00 MiB", "12.50 MiB", "979.69 MiB", "0.61 GiB", "0.05 GiB", "-0.90 GiB", "35.68 GiB", "1.50 TiB"],
)
def test_a_size_is_written_as_it_was_printed(printed: str) -> None:
    assert gib(parse_size(printed)) == printed


def test_half_a_gib_is_as_many_whole_mib() -> None:
    assert gib(parse_size("0.50 GiB")) == "512.00 MiB"
