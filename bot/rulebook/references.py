"""What rules name of each other: ids, kinds, fields, engines, arguments and moments that lead nowhere."""

from collections.abc import Iterable, Iterator
from itertools import chain, product
from typing import Any

from bot.domain.engines import ENGINES
from bot.domain.incident import ABOUT_THE_RANK, READ_LIKE_A_PASTE
from bot.rulebook import files
from bot.rulebook.book import Rulebook, texts

Lost = tuple[str, str, str]
"""(table, id of the rule, what is wrong)"""
_OURS = {"unknown", *ENGINES}
_BOUNDS = ("_has", "_min", "_max")


def references(book: Rulebook) -> Iterator[Lost]:
    """All that leads nowhere, or stands twice where only the first would be read."""
    checks = (_arguments, _engines, _facts, _fields, _questions, _kinds, _moments, _same_steps)
    yield from chain.from_iterable(check(book) for check in checks)


def _arguments(book: Rulebook) -> Iterator[Lost]:
    """What an argument is the same as is one of vLLM's own; every name, flag and key is one argument's."""
    own = {rule.name for rule in book.arguments if not rule.same_as}
    for rule in book.arguments:
        if rule.same_as and rule.same_as not in own:
            yield "argument", rule.name, f"is the same as {rule.same_as!r}, which is no argument of vLLM's"
    first: dict[str, str] = {}
    for rule in book.arguments:
        for name in (rule.name, *rule.flags, *rule.keys):
            if name in first:
                yield "argument", rule.name, f"{name!r} is {first[name]}'s already"
            first.setdefault(name, rule.name)


def _engines(book: Rulebook) -> Iterator[Lost]:
    """Every engine that a rule names is one; `foreign`: named by the paste and none of ours, `any`: whichever it is."""
    named: Iterable[tuple[str, str, Iterable[str], set[str]]] = chain(
        (("fact", r.id, [r.engine] if r.engine else [], _OURS) for r in book.facts),
        (("argument", r.name, [*r.engines, *r.spelled], set(ENGINES)) for r in book.arguments),
        (("launch", r.command, r.engines, _OURS) for r in book.launches),
        (("remedy", r.id, r.engines, {*_OURS, "foreign", "any"}) for r in book.remedies),
        (("avoid", r.flag, r.engines, {*_OURS, "foreign"}) for r in book.avoid),
    )
    for table, rule_id, engines, known in named:
        for engine in engines:
            if engine not in known:
                yield table, rule_id, f"there is no engine {engine!r}; known here: {', '.join(sorted(known))}"


def _facts(book: Rulebook) -> Iterator[Lost]:
    """Every fact that another rule names exists, and has the field that is spoken of."""
    ids = {rule.id for rule in book.facts}
    named: Iterable[tuple[str, str, Iterable[str]]] = chain(
        (("mark", m.then, [m.fact]) for m in book.marks),
        ((table, rule_id, [fact for c in conditions for fact in texts(c.fact)]) for table, rule_id, conditions in _conditions(book)),
        (("printed", f"{p.fact}.{p.field}", [p.fact]) for p in book.printed),
        (("scope", s.fact, [s.fact]) for s in book.scopes),
        (("wording", w.pattern, [w.fact] if w.fact else []) for w in book.wordings),
    )
    for table, rule_id, facts in named:
        for fact in facts:
            if fact not in ids:
                yield table, rule_id, f"names the fact {fact!r}, which no file has"
    by_id = {rule.id: rule for rule in book.facts}
    for printed in book.printed:
        if printed.fact in by_id and printed.field not in by_id[printed.fact].fields:
            yield "printed", f"{printed.fact}.{printed.field}", "that fact has no such field"
    for rule in book.facts:
        for counter in rule.counterexample:
            if counter.instead and counter.instead not in ids:
                yield "fact", rule.id, f"a counterexample names {counter.instead!r}, which no file has"


def _fields(book: Rulebook) -> Iterator[Lost]:
    """Every field that a condition looks into is one of the facts that it names; what is derived has fields of its own."""
    fields: dict[str, set[str]] = {}
    for rule in book.facts:
        for name in (rule.id, *rule.kinds):
            fields.setdefault(name, set()).update(field.partition("__")[0] for field in rule.fields)
    for table, rule_id, conditions in _conditions(book):
        for condition in conditions:
            named = [*texts(condition.fact), *texts(condition.kind)]
            known = set().union(*(fields.get(name, ()) for name in named))
            for asked in condition.where if all(name in fields for name in named) else ():
                field = asked[:-4] if asked.endswith(_BOUNDS) else asked
                if field not in known:
                    yield table, rule_id, f"{field!r} is no field of {', '.join(named)}; known: {', '.join(sorted(known))}"


def _conditions(book: Rulebook) -> Iterator[tuple[str, str, list[files.Condition]]]:
    """Every rule that asks something of the scene: its table, its id, all that it asks."""
    for outer in book.outer:
        yield "outer", outer.id, [*outer.any, *outer.none, *(c for i in outer.inside for c in (*i.any, *i.none))]
    yield from (("ruled_out", r.id, [*r.any, *r.none]) for r in book.ruled_out)
    asking: Iterable[tuple[str, str, Any]] = chain(
        (("rule", r.id, r) for r in book.rules),
        (("remedy", r.id, r) for r in book.remedies),
        (("avoid", r.flag, r) for r in book.avoid),
        (("question", r.id, r) for r in book.questions),
    )
    yield from ((table, rule_id, [*r.all, *r.any, *r.none]) for table, rule_id, r in asking)


def _questions(book: Rulebook) -> Iterator[Lost]:
    """Every question is one whose answer is read."""
    for question in book.questions:
        if question.id not in {*ABOUT_THE_RANK, *READ_LIKE_A_PASTE}:
            yield "question", question.id, "an answer to it would not be read: bot/domain/incident.py names those that are"


def _kinds(book: Rulebook) -> Iterator[Lost]:
    """Every kind that a condition names is a fact's, derived, told by a name, or made from an argument."""
    said = chain((fact.kinds for fact in book.facts), (moment.kinds for moment in book.moments))
    known = set(chain.from_iterable(said)) | {d.kind for d in book.derived} | {n.kind for n in book.namings}
    known |= {f"{made}-{a.name.replace('_', '-')}" for made, a in product(("set", "given", "tried"), book.arguments)}
    for table, rule_id, conditions in _conditions(book):
        for kind in dict.fromkeys(kind for c in conditions for kind in texts(c.kind)):
            if kind not in known:
                yield table, rule_id, f"names the kind {kind!r}, which no fact has and nothing derives"


def _moments(book: Rulebook) -> Iterator[Lost]:
    """What a pair joins is a meaning that has words, or a moment; so is what a moment begins after, a moment."""
    ids = {moment.id for moment in book.moments}
    known = ids | {str(word.means) for word in book.words}
    for moment in book.moments:
        for name in dict.fromkeys(chain.from_iterable(moment.pairs)):
            if name not in known:
                yield "moment", moment.id, f"pairs {name!r}, which is no meaning and no moment"
        if moment.begins_after and moment.begins_after not in ids:
            yield "moment", moment.id, f"begins after {moment.begins_after!r}, which is no moment"


def _same_steps(book: Rulebook) -> Iterator[Lost]:
    """What a change is in other words is a change."""
    ids = {rule.id for rule in book.remedies}
    for rule in book.remedies:
        for name in rule.same_step:
            if name not in ids:
                yield "remedy", rule.id, f"is the same step as {name!r}, which is no remedy"
