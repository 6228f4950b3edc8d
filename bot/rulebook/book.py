"""The Rulebook: every rule, looked up the way that reading and diagnosis ask for it."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from bot.rulebook import files

_WITHIN = re.compile(r"[-_](?<=\w[-_])(?=\w)")
"""It begins with what it is about, so that other letters are passed quickly."""


def texts(value: files.Texts) -> list[str]:
    """One text or several, as a list without empty ones."""
    return [value] if isinstance(value, str) and value else [v for v in value if v] if isinstance(value, list) else []


def written(said: str) -> str:
    """A word or text in small letters, a hyphen or underscore within a word as a space."""
    return _WITHIN.sub(" ", said.lower())


class Rulebook:
    """All rules of one folder. `digest` names exactly these rules; `homes` says which file an id stands in."""

    def __init__(self, tables: Mapping[str, Sequence[Any]], homes: Mapping[str, str], digest: str) -> None:
        self.formats: Sequence[files.FormatRule] = tables["format"]
        self.facts: Sequence[files.FactRule] = tables["fact"]
        self.outer: Sequence[files.OuterFrame] = tables["outer"]
        self.marks: Sequence[files.Mark] = tables["mark"]
        self.rules: Sequence[files.PhaseRule] = tables["rule"]
        self.ruled_out: Sequence[files.RuledOut] = tables["ruled_out"]
        self.remedies: Sequence[files.RemedyRule] = tables["remedy"]
        self.avoid: Sequence[files.AvoidRule] = tables["avoid"]
        self.questions: Sequence[files.QuestionRule] = tables["question"]
        self.topics: Sequence[files.Topic] = tables["topic"]
        self.redactions: Sequence[files.Redaction] = tables["redaction"]
        self.arguments: Sequence[files.ArgumentRule] = tables["argument"]
        self.launches: Sequence[files.Launch] = tables["launch"]
        self.advice: Sequence[files.Advice] = tables["advice"]
        self.charges: Sequence[files.TermRow] = tables["charge"]
        self.printed: Sequence[files.PrintedRow] = tables["printed"]
        self.scopes: Sequence[files.ScopeRow] = tables["scope"]
        self.accounting: Sequence[files.AccountingExample] = tables["accounting"]
        self.releases: Sequence[files.Release] = tables["release"]
        self.wordings: Sequence[files.Wording] = tables["wording"]
        self.derived: Sequence[files.Derivation] = tables["derived"]
        self.vocabularies: Sequence[files.Vocabulary] = tables["vocabulary"]
        self.namings: Sequence[files.Naming] = tables["naming"]
        self.model_words: Sequence[files.ModelWords] = tables["model_words"]
        self.words: Sequence[files.Word] = tables["word"]
        self.moments: Sequence[files.Moment] = tables["moment"]
        self.unspoken: Sequence[files.Unspoken] = tables["unspoken"]
        self.heard: Sequence[files.Heard] = tables["heard"]
        self.homes = homes
        self.digest = digest
