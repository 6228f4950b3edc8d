"""An archive that was not read whole says so to whoever sent it."""

import gzip
import io
import zipfile

from bot.domain.incident import Contribution
from bot.slack.intake import read_file


def test_a_whole_file_says_nothing() -> None:
    assert read_file("a.log", b"CUDA out of memory") == ([Contribution("file", "CUDA out of memory", name="a.log")], None)


def test_a_gzip_that_was_cut_short_says_so() -> None:
    parts, left_out = read_file("a.log.gz", gzip.compress(b"line of a log\n" * 500, 0)[:-9])
    assert parts[0].name == "a.log"
    assert left_out is not None
    assert "a.log.gz was cut short" in left_out


def test_a_zip_of_too_many_logs_keeps_the_one_with_an_error_and_says_so() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for n in range(60):
            archive.writestr(f"{n:02}.log", "starting")
        archive.writestr("zz.log", "CUDA out of memory")
    parts, left_out = read_file("pods.zip", out.getvalue())
    assert (parts[-1].name, parts[-1].text) == ("zz.log", "CUDA out of memory")
    assert "pods.zip holds 61 text files; 50 were read" in (left_out or "")
