"""How an engine spells an argument on its command line, and which arguments are one limit under several names."""

from collections.abc import Iterator

from bot.rulebook.book import Rulebook
from bot.rulebook.files import ArgumentRule


def spellings(book: Rulebook, flag: str, engine: str) -> Iterator[str]:
    """Every way in which this engine takes what a flag sets, and the way to say no to it."""
    for argument in meant(book, flag, engine):
        for form in _forms(argument, engine):
            yield form
            yield f"--{form[5:]}" if form.startswith("--no-") else f"--no-{form[2:]}" if form.startswith("--") else form
    yield f"--{flag[5:]}" if flag.startswith("--no-") else flag


def meant(book: Rulebook, flag: str, engine: str) -> list[ArgumentRule]:
    """The arguments that a flag of an engine sets, with those of other names for the same limit: `-c` is max_model_len and ctx_size."""
    names = {flag, flag.replace("_", "-"), f"--{flag[5:]}" if flag.startswith("--no-") else flag}
    limits = {one.same_as or one.name for one in book.arguments if names & {*_forms(one, engine), one.name}}
    return [one for one in book.arguments if (one.same_as or one.name) in limits]


def _forms(argument: ArgumentRule, engine: str | None = None) -> list[str]:
    """How an argument is spelled on a command line: of one engine, or of any."""
    own = engine is None or not argument.engines or engine in argument.engines
    plain = [f"--{argument.name.replace('_', '-')}", *(f.replace("_", "-") for f in argument.flags)] if own else []
    spelled = argument.spelled.values() if engine is None else (argument.spelled.get(engine, ""),)
    return [*plain, *(form for form in spelled if form)]


def argument_of(book: Rulebook, flag: str) -> str:
    """The name under which a flag's value is known, whoever spells it: `-ngl` is n_gpu_layers."""
    own, spelled = flag.lstrip("-").replace("-", "_"), flag.replace("_", "-")
    plain = own.removeprefix("no_") if flag.startswith("--no-") else own
    names = [argument.name for argument in book.arguments if argument.name in (own, plain)]
    return next((argument.name for argument in book.arguments if not names and spelled in _forms(argument)), names[0] if names else own)
