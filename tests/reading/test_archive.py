"""Archives give their logs, and a bomb gives a refusal."""

import gzip
import io
import tarfile
import time
import zipfile

import pytest

from bot.reading.archive import MOST_FILES, opened, unpacked
from bot.reading.text import NotText


def zipped(**members: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return out.getvalue()


def test_a_zip_without_text_is_refused() -> None:
    with pytest.raises(NotText, match="no text file"):
        unpacked("a.zip", zipped(**{"a.png": b"\x89PNG", "__MACOSX/._a.log": b"x"}))


@pytest.mark.parametrize("data", [b"PK\x03\x04 and then nothing", b"\x1f\x8b\x08\x00" + b"\xff" * 40])
def test_a_broken_archive_is_refused_with_advice(data: bytes) -> None:
    with pytest.raises(NotText, match="send"):
        unpacked("a.zip", data)


def test_a_bomb_is_refused_by_what_comes_out() -> None:
    for data in (zipped(**{"a.log": b"x" * 20_000}), zipped(**{"a.log": b"x" * 6000, "b.log": b"x" * 6000}), gzip.compress(b"x" * 20_000)):
        with pytest.raises(NotText, match="unpacks to more"):
            unpacked("a.zip", data, 10_000)


def test_a_zip_of_several_logs_gives_each_by_name() -> None:
    data = zipped(**{"pod/b.log": b"two", "pod/a.log": gzip.compress(b"one"), "pod/vllm.log.1": b"old", "pod/core": b"\x7fELF" + bytes(50)})
    assert unpacked("a.zip", data) == [("pod/a.log", b"one"), ("pod/b.log", b"two"), ("pod/vllm.log.1", b"old")]


def test_a_compressed_tar_gives_its_logs() -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as file:
        for name, content in (("x/a.log", b"one"), ("x/b.txt", b"two")):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            file.addfile(info, io.BytesIO(content))
    assert unpacked("a.tgz", out.getvalue()) == [("x/a.log", b"one"), ("x/b.txt", b"two")]


def test_a_gzip_that_was_cut_short_gives_what_it_holds() -> None:
    whole = bytes(range(32, 127)) * 3000
    ((name, text),) = unpacked("vllm.log.gz", gzip.compress(whole, 1)[:-300])
    assert name == "vllm.log"
    assert text
    assert whole.startswith(text)


def test_what_is_no_archive_is_itself() -> None:
    assert unpacked("a.log", b"hello") == [("a.log", b"hello")]


def test_of_very_many_logs_those_with_an_error_are_read_and_the_rest_is_named() -> None:
    members = {f"{n:03}.log": b"nothing" for n in range(MOST_FILES + 20)} | {"zz.log": b"CUDA out of memory", "zy.log": b"Killed"}
    inside = opened("pods.zip", zipped(**members))
    assert len(inside.parts) == MOST_FILES
    assert {"zz.log", "zy.log"} <= {name for name, _ in inside.parts}
    assert inside.left_out is not None
    assert "pods.zip holds 72 text files; 50 were read" in inside.left_out


def test_a_gzip_that_was_cut_short_says_so_and_a_whole_one_does_not() -> None:
    data = gzip.compress(bytes(range(32, 127)) * 3000, 1)
    assert opened("a.log.gz", data).left_out is None
    assert "a.log.gz was cut short" in (opened("a.log.gz", data[:-300]).left_out or "")


def test_members_that_are_no_text_count_against_the_limit_too() -> None:
    bomb = gzip.compress(bytes(6000))
    with pytest.raises(NotText, match=r"^it unpacks to more"):
        unpacked("a.zip", zipped(**{f"{n}.log.gz": bomb for n in range(6)}, **{"z.log": b"one"}), 20_000)


def test_what_was_not_opened_of_very_many_members_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.reading.archive.MOST_MEMBERS", 3)
    found = opened("a.zip", zipped(**{f"{n}.log": b"line" for n in range(5)}))
    assert found.left_out is not None
    assert found.left_out.startswith("a.zip holds 3 text files and 2 more that were not opened; 3 were read")


def test_a_gzip_of_very_many_members_is_read_in_a_time_that_grows_with_its_length() -> None:
    def seconds(members: int) -> float:
        data = gzip.compress(b"") * members + gzip.compress(b"last")
        before = time.process_time()
        assert unpacked("a.log.gz", data) == [("a.log", b"last")]
        return time.process_time() - before

    assert seconds(40_000) < 12 * max(seconds(10_000), 0.01)


def test_a_member_whose_name_is_no_utf8_is_refused_in_a_sentence() -> None:
    data = zipped(**{"\u00e4.log": b"line"}).replace("\u00e4".encode(), b"\xff\xfe")
    with pytest.raises(NotText, match="cannot be read"):
        unpacked("a.zip", data)
