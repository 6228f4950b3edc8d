"""A text as its words are looked for: what is no word is blotted out, and places can be told in both directions."""

import pytest

from bot.reading.plain import Plain


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("enforce_eager=True helps", "enforce eager=true helps"),
        ("a --enforce-eager run", "a --enforce eager run"),
        ("out-of-memory", "out of memory"),
        ("it can’t load", "it can't load"),
        ("set x=5", "set \0=5"),
    ],
)
def test_a_word_stays_a_word(text: str, plain: str) -> None:
    assert Plain(text).text == plain


@pytest.mark.parametrize("name", ["--max-num-seqs", "-tp", "VLLM_USE_V1", "https://example.org/load?oom=1", "test_loading", "load_format="])
def test_a_name_is_blotted_out_letter_by_letter(name: str) -> None:
    blotted = "\0" * len(name.removesuffix("=")) + "=" * name.endswith("=")
    assert Plain(f"OOM with\t{name}\nand ({name}").text == f"oom with\t{blotted}\nand ({blotted}"


def test_places_are_those_of_the_text_as_given_in_both_directions() -> None:
    text = "**Bug**: it   goes *OOM*\n`capture` runs"
    plain = Plain(text)
    assert plain.text == "bug: it goes oom\ncapture runs"
    assert text[plain.given(plain.text.index("oom")) :][:3] == "OOM"
    assert plain.text[plain.place(text.index("capture")) :] == "capture runs"
    assert plain.text[plain.place(text.index("`capture")) :] == "capture runs"
