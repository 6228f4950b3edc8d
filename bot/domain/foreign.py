"""JSON that somebody else wrote: whatever is wrong with it is one kind of error."""

import json
from typing import Any


def foreign_json(text: str | bytes) -> Any:
    """The value. ValueError with a reason, also where it is nested deeper than anything that means something."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
