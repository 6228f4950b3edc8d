"""Every example and counterexample of the rulebook, read as a paste would be, and what reading makes of it that its rule does not say."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from bot.diagnosis.diagnose import diagnose
from bot.domain.diagnosis import ERROR_KINDS
from bot.domain.evidence import Fact
from bot.domain.incident import Contribution
from bot.domain.size import parse_size
from bot.reading.facts import read_facts
from bot.reading.lines import sign
from bot.reading.prose import is_talk
from bot.reading.read import read
from bot.reading.redact import redact
from bot.reading.signatures import signatures_of
from bot.reading.text import clean, split_lines
from bot.rulebook.book import Rulebook
from bot.rulebook.check import expected_value
from bot.rulebook.files import FactRule
from bot.rulebook.patterns import groups, search


@dataclass(frozen=True, slots=True)
class Case:
    """One example or counterexample of one rule. `number` counts from 1 within the rule."""

    table: str
    rule: str
    number: int
    line: str
    expect: Any = None
    counter: bool = False
    instead: str = ""

    @property
    def name(self) -> str:
        """The name that a test and a problem carry."""
        return f"{self.table}:{self.rule}:{'not-' if self.counter else ''}{self.number}"


def cases(book: Rulebook) -> Iterator[Case]:
    """Every example and counterexample of the rulebook."""
    for table, rules in (("fact", book.facts), ("moment", book.moments), ("unspoken", book.unspoken), ("redaction", book.redactions)):
        for rule in rules:
            yield from (Case(table, rule.id, n, e.line, dict(e.expect)) for n, e in enumerate(rule.example, 1))
            yield from (Case(table, rule.id, n, c.line, None, True, c.instead) for n, c in enumerate(rule.counterexample, 1))
    for form in book.formats:
        yield from (Case("format", form.id, n, e.line, dict(e.expect)) for n, e in enumerate(form.example, 1))
    yield from (Case("accounting", str(n), 1, e.log, e) for n, e in enumerate(book.accounting, 1))


def faults(book: Rulebook, case: Case) -> list[str]:
    """What reading makes of the case that its rule does not say; nothing when all is well."""
    return _JUDGES[case.table](book, case)


def _facts(book: Rulebook, text: str) -> list[Fact]:
    return read_facts(book, list(sign(book, 1, list(enumerate(split_lines(text), 1)))))[0]


@cache
def _rules(book: Rulebook) -> dict[str, FactRule]:
    return {rule.id: rule for rule in book.facts}


def _fact_faults(book: Rulebook, case: Case) -> list[str]:
    found = _facts(book, case.line)
    own = next((f for f in found if f.id == case.rule), None)
    shown = repr(case.line[:70])
    if case.counter:
        says = [f"takes the line that it must leave alone: {shown}"] if own is not None else []
        if case.instead and all(f.id != case.instead for f in found):
            says.append(f"{case.instead} should take {shown} and does not")
        return says
    if own is None:
        return [f"does not read its own example {shown}"]
    return [*_captures(_rules(book)[case.rule], own, case), *_rivals(own, found, shown)]


def _captures(rule: FactRule, own: Fact, case: Case) -> Iterator[str]:
    for name, wanted in case.expect.items():
        try:
            value = expected_value(rule, name, wanted)
        except (ValueError, KeyError):
            continue  # the rulebook's own check says so
        if own.fields.get(name) != value:
            yield f"captures {name} = {own.fields.get(name)!r}, not {value!r}, in {case.line[:70]!r}"


def _rivals(own: Fact, found: list[Fact], shown: str) -> Iterator[str]:
    """Another rule of the same kind that claims the same line: two errors, or two readings of one figure of the budget."""
    for other in found:
        if other.id == own.id or other.line != own.line or "prose" in other.kinds or "retold" in own.kinds:
            continue
        if both := own.kinds & other.kinds & set(ERROR_KINDS):
            yield f"and {other.id} both call {shown} {', '.join(sorted(both))}"
        if "budget" in own.kinds & other.kinds and (fields := own.fields.keys() & other.fields.keys()):
            yield f"and {other.id} both read {', '.join(sorted(fields))} from {shown}"


def _moment_faults(book: Rulebook, case: Case) -> list[str]:
    named = [fact.id for fact in _facts(book, case.line)]
    if (case.rule in named) is not case.counter:
        return []
    shown = f"{case.line[:70]!r}: {', '.join(named) or 'nothing'} was read"
    return [f"is named where it must not be, in {shown}" if case.counter else f"is not named in {shown}"]


def _unspoken_faults(book: Rulebook, case: Case) -> list[str]:
    (line,) = sign(book, 1, [(1, case.line)])
    if is_talk(book, line) is case.counter:
        return []
    return [
        f"takes a person's words for a program's: {case.line[:70]!r}" if case.counter else f"leaves its example as talk: {case.line[:70]!r}"
    ]


def _format_faults(book: Rulebook, case: Case) -> list[str]:
    """Its signature is among those peeled off; alone, or with the others on the line, it gives what the example says."""
    text = clean(case.line)
    rest, head = signatures_of(book).peel(text)
    signed = [rule.id for rule, _ in head.signatures]
    if case.rule not in signed:
        return [f"does not sign its own example {case.line[:70]!r}; {', '.join(signed) or 'nothing'} does"]
    alone = search(next(rule.pattern for rule in book.formats if rule.id == case.rule), text)
    own = {} if alone is None else groups(alone) | {"rest": text[alone.end() :]}
    together: dict[str, Any] = {"rest": rest}
    for _, values in head.signatures:
        together |= values
    wrong = {n: v for n, v in case.expect.items() if str(v).strip() not in (str(own.get(n)).strip(), str(together.get(n)).strip())}
    return [f"gives {name} = {own.get(name)!r}, not {value!r}" for name, value in wrong.items()]


def _redaction_faults(book: Rulebook, case: Case) -> list[str]:
    hidden, _ = redact(case.line)
    if case.counter:
        return [] if hidden == case.line else [f"hides something in {case.line[:70]!r}, where no secret stands"]
    secret = case.expect.get("secret", "")
    return [f"leaves the secret of its example visible: {case.line[:20]!r}…"] if secret and secret in hidden else []


def _accounting_faults(book: Rulebook, case: Case) -> list[str]:
    example = case.expect
    rows = diagnose(book, read(book, [Contribution("paste", case.line)])).budgets
    if not rows:
        return [f"{example.title}: gives no budget"]
    figures = rows[0].figures
    says = []
    for name, wanted in example.expect.items():
        value = parse_size(wanted) if isinstance(wanted, str) else wanted
        if figures.get(name) != value:
            says.append(f"{example.title}: {name} is {figures.get(name)!r}, not {value!r}")
    if rows[0].closes is not example.closes:
        says.append(f"{example.title}: closes is {rows[0].closes}, not {example.closes}; off by {rows[0].residual_bytes} bytes")
    return says


_JUDGES = {
    "fact": _fact_faults,
    "moment": _moment_faults,
    "unspoken": _unspoken_faults,
    "format": _format_faults,
    "redaction": _redaction_faults,
    "accounting": _accounting_faults,
}
