"""What is wrong with a rulebook beyond its shape: patterns, anchors, examples, what leads nowhere, accounting that is not total."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, product
from time import process_time
from typing import Any

import regex
from packaging.version import InvalidVersion, Version

from bot.rulebook import files
from bot.rulebook.book import Rulebook, texts, written
from bot.rulebook.fields import KINDS, parse
from bot.rulebook.patterns import TIMEOUT, compiled, quick
from bot.rulebook.references import references
from bot.rulebook.versions import RUNNERS, holds, is_range

TIME_LIMIT = 0.06
"""Seconds of the processor that a pattern may take over a line of 3,000 letters made to tire it, or more on a slow machine if four times
the line takes no more than eight times as long; a hundredth of that is usual.
"""
_FILLERS = tuple((filler * 3000)[:3000] for filler in ("a", " ", "7", "1,", "1.0 GiB ", "(", "x=1, ", "a-", "/a.b"))
Wanted = Callable[[str, str], bool]
"""Is this rule, of this file and with this id, to be checked?"""


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong, in which file and rule, and what mends it."""

    file: str
    rule: str
    says: str

    def __str__(self) -> str:
        return f"{self.file}: {self.rule}: {self.says}"


def problems(book: Rulebook, wanted: Wanted = lambda file, rule: True) -> list[Problem]:
    """Every problem of the wanted rules, in the order of the checks."""
    checks: tuple[Callable[[Rulebook], Iterable[Problem]], ...] = (
        _uncompiled, _fields, _anchors, _without_example, _versions, _words, _secrets, _accounting, _releases,
    )  # fmt: skip
    lost = (_problem(book, *found) for found in references(book))
    found = chain(_tiring_patterns(book, wanted), *(check(book) for check in checks), lost)
    return [problem for problem in found if wanted(problem.file, problem.rule.partition("]] ")[2])]


def home(book: Rulebook, table: str, rule_id: str) -> str:
    """The file that a rule stands in."""
    return book.homes.get(f"{table}:{rule_id}") or next((f for key, f in book.homes.items() if key.endswith(f":{table}")), "rules")


def _problem(book: Rulebook, table: str, rule_id: str, says: str) -> Problem:
    return Problem(home(book, table, rule_id), f"[[{table}]] {rule_id}", says)


def _spoken(book: Rulebook) -> Iterator[tuple[str, Any]]:
    """Every rule that reads text, with its table."""
    yield from (("format", rule) for rule in book.formats)
    yield from (("fact", rule) for rule in book.facts)
    yield from (("redaction", rule) for rule in book.redactions)


def _pattern(text: str) -> "regex.Pattern[str] | None":
    try:
        return compiled(text)
    except regex.error:
        return None


def unreadable(book: Rulebook) -> list[Problem]:
    """Patterns and figures that do not compile: with one of them in the book no text can be read."""
    return list(_uncompiled(book))


def _uncompiled(book: Rulebook) -> Iterator[Problem]:
    patterns: Iterable[tuple[str, str, str, Callable[[str], Any]]] = chain(
        ((table, rule.id, rule.pattern, compiled) for table, rule in (*_spoken(book), *(("unspoken", row) for row in book.unspoken))),
        (("fact", rule.id, figure, quick) for rule in book.facts for figure in texts(rule.figure)),
        (("wording", row.fact or "names", row.pattern, compiled) for row in book.wordings),
        (("naming", row.kind, row.pattern, compiled) for row in book.namings),
        (("vocabulary", row.pattern, row.pattern, compiled) for row in book.vocabularies),
    )
    for table, rule_id, text, made in patterns:
        try:
            made(text)
        except regex.error as error:
            yield _problem(book, table, rule_id, f"{text[:60]!r} does not compile: {error}")


def _tiring_patterns(book: Rulebook, wanted: Wanted) -> Iterator[Problem]:
    for table, rule in _spoken(book):
        pattern = _pattern(rule.pattern)
        if not rule.pattern or pattern is None or not wanted(home(book, table, rule.id), rule.id):
            continue
        tried = pattern.match if table == "format" else pattern.search  # signatures are only ever tried at the start
        for line in _tiring(rule):
            if _tires(tried, line):
                says = f"the pattern takes more than {TIME_LIMIT} s over {line[:40]!r}… ({len(line):,} characters); bound its repeats"
                yield _problem(book, table, rule.id, says)
                break


def _tires(tried: Callable[..., Any], line: str) -> bool:
    """Does it take long, and more than twice as much again over a line four times as long? In processor time: others may be busy."""
    try:
        took = _seconds(tried, line)
        return took > TIME_LIMIT and _seconds(tried, line + 3 * line[-3000:]) > 8 * took
    except TimeoutError:
        return True


def _seconds(tried: Callable[..., Any], line: str) -> float:
    begun = process_time()
    tried(line, timeout=TIMEOUT)
    return process_time() - begun


def _tiring(rule: Any) -> Iterator[str]:
    """Lines that begin well and go on for long: the anchor and each example's beginnings, then one thing many times."""
    starts = [*texts(rule.anchor)[:3], *(e.line[: len(e.line) * part // 3] for e in rule.example[:2] for part in (1, 2, 3))]
    yield from (start + filler for start, filler in product(dict.fromkeys(starts), _FILLERS))
    yield from ((e.line + " ") * 40 for e in rule.example[:1])


def _fields(book: Rulebook) -> Iterator[Problem]:
    """Fields are groups of the pattern, of a known kind; what an example expects is a field and has its form."""
    for rule in book.facts:
        pattern = _pattern(rule.pattern)
        named = set() if pattern is None else {name for name in pattern.groupindex if not name.isupper()}
        for name, kind in rule.fields.items():
            if name not in named:
                yield _problem(book, "fact", rule.id, f"the field {name} is no group of the pattern")
            if kind not in KINDS:
                yield _problem(book, "fact", rule.id, f"{name} = {kind!r} is no kind of field; known: {', '.join(sorted(KINDS))}")
        for name in {*rule.below, *rule.below.values()} - rule.fields.keys():
            yield _problem(book, "fact", rule.id, f"below names {name}, which is none of its fields")
        for example in rule.example:
            yield from _expectations(book, rule, example, named)


def _expectations(book: Rulebook, rule: files.FactRule, example: files.FactExample, named: set[str]) -> Iterator[Problem]:
    for name, wanted in example.expect.items():
        if name not in named and name not in {part.partition("__")[0] for part in named}:
            yield _problem(book, "fact", rule.id, f"an example expects {name}, which is no group of the pattern")
            continue
        try:
            expected_value(rule, name, wanted)
        except (ValueError, KeyError):
            yield _problem(book, "fact", rule.id, f"an example expects {name} = {wanted!r}, which is no {rule.fields.get(name, 'text')}")


def expected_value(rule: files.FactRule, name: str, wanted: Any) -> Any:
    """What an example's expectation means: a text is parsed as the field is. ValueError when it has not that form."""
    return parse(rule.fields.get(name, "text"), wanted) if isinstance(wanted, str) else wanted


def _anchors(book: Rulebook) -> Iterator[Problem]:
    for table, rule in _spoken(book):
        anchors = texts(rule.anchor)
        if not anchors and table == "fact":
            yield _problem(book, table, rule.id, "no anchor: every line would be tried")
        for example in rule.example:
            line = example.line.lower() if table == "redaction" else example.line
            if anchors and not any((a.lower() if table == "redaction" else a) in line for a in anchors):
                yield _problem(book, table, rule.id, f"no anchor stands in its example {example.line[:70]!r}: it would never be tried")


def _without_example(book: Rulebook) -> Iterator[Problem]:
    for table, rule in (*_spoken(book), *(("moment", moment) for moment in book.moments)):
        if not rule.example:
            yield _problem(book, table, rule.id, "no example: add a line in the real format, with what must be captured")
    named = [("naming", n.pattern, n.example) for n in book.namings]
    for table, text, example in [*named, *(("vocabulary", v.pattern, v.example) for v in book.vocabularies)]:
        if text and not ((shape := _pattern(text)) and shape.search(example)):
            yield _problem(book, table, text, f"does not match its example {example!r}")
    for wording in book.wordings:
        pattern = _pattern(wording.pattern)
        if pattern is not None and not (wording.example and all(pattern.search(line) for line in wording.example)):
            yield _problem(book, "wording", wording.fact or "names", f"{wording.pattern!r} does not match its example")


def _versions(book: Rulebook) -> Iterator[Problem]:
    ranged: list[tuple[str, str, str]] = [("fact", r.id, r.vllm) for r in book.facts if r.vllm]
    ranged += [("remedy", r.id, r.vllm) for r in book.remedies if r.vllm] + [("avoid", r.flag, r.vllm) for r in book.avoid if r.vllm]
    ranged += [("charge", r.term, r.vllm) for r in book.charges] + [("printed", f"{r.fact}.{r.field}", r.vllm) for r in book.printed]
    ranged += [("scope", r.fact, r.vllm) for r in book.scopes] + [("wording", r.fact or "names", r.vllm) for r in book.wordings]
    ranged += [("argument", r.name, v) for r in book.arguments for v in (r.vllm, *r.default) if v]
    ranged += [("launch", r.command, r.vllm) for r in book.launches if r.vllm]
    for table, rule_id, text in ranged:
        if not is_range(text):
            yield _problem(book, table, rule_id, f"{text!r} is no range of versions; write it as '>=0.18,<0.20'")
        elif not any(holds(text, str(version)) for version in _known(book)):
            yield _problem(book, table, rule_id, f"no known release is within {text!r}")


def _known(book: Rulebook) -> list[Version]:
    found = []
    for release in book.releases:
        try:
            found.append(Version(release.version))
        except InvalidVersion:
            continue
    return found


def _words(book: Rulebook) -> Iterator[Problem]:
    """What people say stands once: of two places only the first would ever be heard."""
    words = (("word", str(word.means), said) for word in book.words for said in word.says)
    moments = (("moment", moment.id, said) for moment in book.moments for said in (*moment.telling, *moment.says))
    first: dict[str, str] = {}
    for table, owner, said in chain(words, moments):
        if written(said) in first:
            yield _problem(book, table, owner, f"{said!r} stands under {first[written(said)]} already")
        first.setdefault(written(said), owner)


def _secrets(book: Rulebook) -> Iterator[Problem]:
    hiding = [(rule, pattern) for rule in book.redactions if (pattern := _pattern(rule.pattern)) is not None]
    for table, rule in _spoken(book):
        lines = [] if table == "redaction" else [e.line for e in (*rule.example, *getattr(rule, "counterexample", ()))]
        for line, (secret, pattern) in product(lines, hiding):
            if any(a.lower() in line.lower() for a in texts(secret.anchor)) and pattern.search(line):
                yield _problem(book, table, rule.id, f"an example holds what looks like {secret.title}; write another value")


def _accounting(book: Rulebook) -> Iterator[Problem]:
    """For every release and runner exactly one row of each term holds, and at most one of each printed figure."""
    for term, runner in product(dict.fromkeys(c.term for c in book.charges), RUNNERS):
        rows = [c for c in book.charges if c.term == term and c.runner in ("", runner)]
        wrong = [v for v in _known(book) if holds(RUNNERS[runner], str(v)) and _holding(rows, v) != 1]
        if wrong:
            says = f"{'no row' if _holding(rows, wrong[0]) == 0 else 'several rows'} for {runner} in {', '.join(map(str, wrong[:4]))}"
            yield _problem(book, "charge", term, says)
    for key in dict.fromkeys((p.fact, p.field) for p in book.printed):
        printed = [p for p in book.printed if (p.fact, p.field) == key]
        twice = [v for v in _known(book) if _holding(printed, v) > 1]
        if twice:
            yield _problem(book, "printed", ".".join(key), f"several rows in {', '.join(map(str, twice[:4]))}")


def _holding(rows: Sequence[files.TermRow] | Sequence[files.PrintedRow], version: Version) -> int:
    return sum(is_range(row.vllm) and holds(row.vllm, str(version)) for row in rows)


def _releases(book: Rulebook) -> Iterator[Problem]:
    before: Version | None = None
    for release in book.releases:
        try:
            version = Version(release.version)
        except InvalidVersion:
            yield _problem(book, "release", release.version, "is no version")
            continue
        if before is not None and version <= before:
            yield _problem(book, "release", release.version, f"stands after {before}: the oldest comes first")
        before = version
        for marker in release.markers:
            if not regex.fullmatch(r"[\w.-]+\.py:\d+", marker):
                yield _problem(book, "release", release.version, f"{marker!r} is no source line; write it as core.py:708")
