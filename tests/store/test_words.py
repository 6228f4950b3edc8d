import re
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from bot.store.index import words_of


def slowly(said: str) -> str:
    """How the words of every index made so far were found."""
    return re.sub(r"[\W_]+", " ", unicodedata.normalize("NFKC", said)).lower().strip()


@given(
    st.text(max_size=200) | st.text(st.characters(max_codepoint=0x17F), max_size=200) | st.text(st.characters(codec="ascii"), max_size=200)
)
def test_words_are_found_fast_and_are_the_words_of_the_indexes_that_exist(said: str) -> None:
    assert words_of(said) == slowly(said)


def test_a_line_that_is_not_ascii_leaves_its_neighbours_as_they_are() -> None:
    assert (
        words_of("max_num_seqs=64\n100%|██████| 8/8 ΟΔΟΣ\nGPU³ ＯＯＭ\n\nWorker_TP3") == "max num seqs 64 100 8 8 οδος gpu3 oom worker tp3"
    )
