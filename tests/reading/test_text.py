"""Bytes become text, and a line loses what terminals and chats did to it."""

import pytest

from bot.reading.text import NotText, clean, decode, split_lines


def test_a_picture_is_refused_by_name() -> None:
    with pytest.raises(NotText, match="PNG"):
        decode(b"\x89PNG\r\n\x1a\n" + bytes(100))


def test_a_zstandard_archive_is_refused_by_name() -> None:
    with pytest.raises(NotText, match="zstandard"):
        decode(b"\x28\xb5\x2f\xfd" + bytes(100))


def test_binary_data_without_a_known_beginning_is_refused() -> None:
    with pytest.raises(NotText, match="binary"):
        decode(bytes(range(1, 9)) * 2000)


def test_stray_bytes_leave_the_rest_readable() -> None:
    assert decode(b"CUDA out of memory \xff\xfe here").startswith("CUDA out of memory ")


def test_utf16_without_a_mark_is_recognised_by_its_zero_bytes() -> None:
    assert decode("CUDA out of memory".encode("utf-16-le")) == "CUDA out of memory"


def test_a_carriage_return_inside_a_line_does_not_end_it() -> None:
    assert split_lines("0%\r50%\r\nnext\n") == ["0%\r50%", "next", ""]


@pytest.mark.parametrize(
    ("given", "plain"),
    [
        ("\x1b[1;36m(Worker_TP0 pid=1)\x1b[0;0m ERROR", "(Worker_TP0 pid=1) ERROR"),
        ("^[[36m(Worker_TP0 pid=1)^[[0m ERROR", "(Worker_TP0 pid=1) ERROR"),
        ("#033[36m(raylet)#033[0m x", "(raylet) x"),
        ("\\u001b[36m(raylet)\\u001b[0m x", "(raylet) x"),
        ("[1;36m(Worker_TP0 pid=1)[0;0m ERROR", "(Worker_TP0 pid=1) ERROR"),
        ("&gt; File &quot;/a/b.py&quot;", '> File "/a/b.py"'),
        ("&amp;gt; a", "> a"),
        ("\\[core.py:390\\] \\_init\\_", "[core.py:390] _init_"),
        ("[<http://core.py:390|core.py:390>] boom", "[core.py:390] boom"),
        ("see <https://example.org/x>", "see https://example.org/x"),
        ("[core.py](http://core.py) boom", "core.py boom"),
        ("\u201cCUDA\u201d isn\u2019t \u22123.21 GiB", "\"CUDA\" isn't -3.21 GiB"),
        ("\u2502 boom \u2502", "boom"),
        ("\u00e2\u2013\u02c6\u00e2\u2013\u02c6 43%", "\u2588\u2588 43%"),
        ("\u2014max-model-len 8192", "--max-model-len 8192"),
        ("a\u200bb\x00c", "abc"),
    ],
)  # fmt: skip
def test_damage_is_undone(given: str, plain: str) -> None:
    assert clean(given) == plain


def test_code_that_looks_like_damage_is_left_alone() -> None:
    for line in ("x[0] = y[1][2]", "a & b < c", r"C:\Users\x", "caf\u00e9 \u00fcber", "weights[12]"):
        assert clean(line) == line
