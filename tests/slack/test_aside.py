"""What goes to a reading process and back is small: while something large is pickled, the event loop stands still."""

import pickle
import tempfile
from collections.abc import Callable
from typing import Any, cast

from bot.slack.files import Fetched, Files
from bot.slack.installs import Identity
from bot.slack.intake import Intake
from tests.slack.material import CRASH

LINE = b"INFO 11-30 04:10:02 [x.py:1] nothing of interest here\n"


class OneFile:
    """Slack's files, of which there is one."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    async def fetch(self, who: Identity, file: str) -> Fetched:
        body = tempfile.TemporaryFile()  # noqa: SIM115  who asked for it closes it
        body.write(self._data)
        return Fetched(file, "server.log", body)


async def test_a_file_of_20_megabytes_is_sent_by_its_place_and_comes_back_as_its_telling_lines() -> None:
    sizes = []

    async def aside(work: Callable[[], Any]) -> Any:
        sent = pickle.dumps(work)
        back = pickle.dumps(pickle.loads(sent)())
        sizes.extend((len(sent), len(back)))
        return pickle.loads(back)

    files = cast("Files", OneFile(LINE * 370_000 + CRASH.encode()))
    body = {"files": [{"id": "F1", "name": "server.log"}], "user": "U1", "ts": "1.0"}
    gathered = await Intake(files, aside).gather(cast("Identity", None), body, text=False)
    (contribution,) = gathered.contributions
    assert sizes[0] < 1_000
    assert sizes[1] < 1_000_000
    assert contribution.truncated
    assert contribution.text is not None
    assert contribution.text.rstrip().endswith(CRASH.rstrip().splitlines()[-1])
