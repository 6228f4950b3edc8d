"""What sentences say of an argument that was tried at several values: the one that failed is in force."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bot.domain.evidence import Fact
from bot.domain.known import Known

_IN_SENTENCES = ("prose.tried-words", "prose.tried-alone")
_TOLD = (("passed_at", True), ("failed_at", False))


def that_failed(facts: Sequence[Fact], arguments: Mapping[str, Known[Any]]) -> Iterator[tuple[str, Known[Any]]]:
    """Of each argument the least value that failed, where nothing else is known to be in force, or only one that passed."""
    passed: dict[str, set[float]] = {}
    failed: dict[str, list[tuple[float, Fact]]] = {}
    for fact in facts:
        if fact.id not in _IN_SENTENCES:
            continue
        name = re.sub(r"[- ]", "_", str(fact.fields["name"]).lower())
        for where, well in (*_TOLD, ("at", "passed" in fact.fields)):
            if where in fact.fields and name != "batch_size":
                value = float(str(fact.fields[where]).replace(",", ""))
                passed.setdefault(name, set()).update((value,) if well else ())
                failed.setdefault(name, []).extend(() if well else ((value, fact),))
    for name, tries in failed.items():
        now = arguments.get(name)
        if tries and (now is None or (now.origin == "log" and now.value in passed[name])):
            least, said = min(tries, key=lambda one: one[0])
            yield name, Known(least if least < 1 else int(least), "log", said.source, said.line)
