"""Every change that the rulebook suggests or warns of: the figures that its sentences name, and the arithmetic of its value."""

import re
from collections.abc import Iterator

from bot.diagnosis import first_error
from bot.diagnosis.values import COMPUTED
from bot.rulebook.book import Rulebook
from bot.rulebook.check import Problem, home
from bot.usecases.budget_rows import FIGURES

_NAMED = re.compile(r"\{(\w+)\}")
_FUNCTION = re.compile(r"[a-z]+(?:-[a-z]+)+")
"""How a value is written that is counted, and no other."""


def changes(book: Rulebook) -> Iterator[Problem]:
    """Names in sentences, values and topics that nothing gives: a person would read a question mark, or copy a word into a command."""
    figures = [*FIGURES, *(f"oom_{name}" for name in first_error.FIGURES.values())]
    known = {name.removesuffix("_bytes") for name in figures} | {"value"}
    arguments = {argument.name for argument in book.arguments}
    derived = tuple(f"{row.kind.replace('-', '_')}_" for row in book.derived)
    said = [("remedy", r.id, (r.because, r.costs, r.disproved_by)) for r in book.remedies]
    for table, rule_id, sentences in (*said, *(("avoid", r.flag, (r.because,)) for r in book.avoid)):
        for name in _NAMED.findall(" ".join(sentences)):
            if name not in known | arguments and not name.startswith(derived):
                says = f"{{{name}}} is no figure; known: {', '.join(sorted(known))}, any argument, and any derived kind with its field"
                yield Problem(home(book, table, rule_id), f"[[{table}]] {rule_id}", says)
    for rule in book.remedies:
        if _FUNCTION.fullmatch(rule.value) and rule.value not in COMPUTED:
            says = f"value = {rule.value!r} is counted by no function of bot/diagnosis/values.py"
            yield Problem(home(book, "remedy", rule.id), f"[[remedy]] {rule.id}", says)
    for topic in book.topics:
        for name in topic.numbers:
            if name not in FIGURES:
                says = f"{name!r} is no figure; known: {', '.join(FIGURES)}"
                yield Problem(home(book, "topic", topic.id), f"[[topic]] {topic.id}", says)
