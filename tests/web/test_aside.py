"""What goes to a reading process and back is small: while something large is pickled, the event loop stands still."""

import gzip
import pickle
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from bot.web.forms import Form, Upload
from bot.web.intake import contributions_of

LOG = b"INFO 11-30 04:10:02 [x.py:1] nothing of interest here\n" * 370_000 + b"torch.OutOfMemoryError: CUDA out of memory.\n"


def uploaded(name: str | None, data: bytes) -> Upload:
    body = tempfile.TemporaryFile()  # noqa: SIM115  who asked for it closes it
    return Upload(name, body, body.write(data))


@pytest.mark.parametrize(
    ("name", "data"), [(None, LOG), ("server.log", LOG), ("server.log.gz", gzip.compress(LOG))], ids=["paste", "file", "small packed file"]
)
async def test_20_megabytes_are_sent_by_their_place_and_come_back_as_their_telling_lines(name: str | None, data: bytes) -> None:
    sizes = []

    async def aside(work: Callable[[], Any]) -> Any:
        sent = pickle.dumps(work)
        back = pickle.dumps(pickle.loads(sent)())
        sizes.extend((len(sent), len(back)))
        return pickle.loads(back)

    form = Form(uploads=[uploaded(name, data)])
    (contribution,), _ = await contributions_of(form, "U1", datetime(2026, 12, 1, tzinfo=UTC), aside)
    form.close()
    assert sizes[0] < 1_000
    assert sizes[1] < 1_000_000
    assert contribution.truncated
    assert (contribution.text or "").rstrip().endswith("torch.OutOfMemoryError: CUDA out of memory.")
