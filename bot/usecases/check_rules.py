"""The rulebook held against itself: its own checks, and every example of its rules and of the model families."""

from collections.abc import Callable, Sequence
from pathlib import Path

from bot.rulebook.architectures import load_architectures
from bot.rulebook.book import Rulebook
from bot.rulebook.check import Problem, home, problems, unreadable
from bot.rulebook.gpus import load_gpus
from bot.rulebook.load import RulebookError, load_rulebook, rules_folder
from bot.rulebook.model_names import load_model_names
from bot.rulebook.models import load_models
from bot.rulebook.overheads import load_overheads
from bot.rulebook.planning import load_planning
from bot.rulebook.sizing_words import load_sizing_words
from bot.usecases.check_changes import changes
from bot.usecases.check_examples import cases, faults
from bot.usecases.check_families import family_cases, family_faults
from bot.usecases.doctor import Check, checkup
from bot.usecases.reply import Reply, Unusable
from bot.usecases.sizing.question import SizingRules, load_sizing


def check_rules(book: Rulebook, sizing: SizingRules | None = None, names: Sequence[str] = ()) -> Reply:
    """All problems at once, each with file and rule, of everything or of the files, folders and rules that are named; kind `checks`.

    Where a pattern does not compile, that is said whatever is named, and no example is read.
    """

    def wanted(file: str, rule: str) -> bool:
        return not names or rule in names or any(file == name or file.startswith(f"{name}/") for name in names)

    broken = unreadable(book)
    found = [*broken, *(problem for problem in problems(book, wanted) if problem not in broken)]
    found += [problem for problem in changes(book) if wanted(problem.file, problem.rule.partition("]] ")[2])]
    every = [(home(book, c.table, c.rule), c) for c in (() if broken else cases(book)) if wanted(home(book, c.table, c.rule), c.rule)]
    found += [Problem(file, f"[[{c.table}]] {c.rule}", says) for file, c in every for says in faults(book, c)]
    families = [c for c in (family_cases(sizing) if sizing else ()) if wanted(c.file, c.family)]
    found += [Problem(c.file, f"[[{c.table}]] {c.number}", says) for c in families if sizing for says in family_faults(sizing, c)]
    rows = [Check(f"{p.file}: {p.rule}", False, p.says, f"mend rules/{p.file}") for p in found]
    of = ", ".join(names) or f"{len(book.facts):,} messages and {len(book.formats):,} signatures"
    well = [f"{len(every):,} examples of {of} were read as they say"] if every or not families else []
    well += [f"{len(families):,} examples of model families need the bytes that they say"] if families else []
    return checkup(
        [*rows, Check("rulebook", None if rows else True, f"{len(rows)} problem{'s' * (len(rows) > 1)}" if rows else ", ".join(well), None)]
    )


def check_installed(names: Sequence[str] = ()) -> Reply:
    """The same of the rules that this installation reads; files that cannot be read are its problems too, whatever is named.

    Unusable where a name is no file, folder or rule of them.
    """
    broken = list(dict.fromkeys(says for load in LOADERS for says in _problems_of(load)))
    if broken:
        return checkup([Check("rulebook", False, says, "mend the file that is named") for says in broken])
    book = load_rulebook()
    return check_rules(book, load_sizing(), [_known(book, name) for name in names])


def _known(book: Rulebook, name: str) -> str:
    """A file or folder as a path below rules/, or the id of a rule."""
    folder = rules_folder().resolve()
    for path in (Path(name).resolve(), folder / name):
        if path.exists() and path.is_relative_to(folder):
            return path.relative_to(folder).as_posix()
    if any(key.endswith(f":{name}") for key in book.homes):
        return name
    raise Unusable(f"{name}: there is no such file in {folder}, and no rule with that id.")


LOADERS: tuple[Callable[[], object], ...] = (
    load_rulebook, load_models, load_planning, load_gpus, load_overheads, load_model_names, load_architectures,
    load_sizing_words,
)  # fmt: skip
"""Every reader of rules/; each reports all its problems at once."""


def _problems_of(load: Callable[[], object]) -> tuple[str, ...]:
    try:
        load()
    except RulebookError as error:
        return error.problems
    return ()
